"""The operator on kopf, as its documentation teaches it and as quick as its settings allow.

kopf brings no client for children. Here they are made by one plain request on the HTTP library that kopf itself stands
on, which is less work than any Kubernetes client for Python does; ``kopf_official`` makes them with the official one.
uvloop as kopf's own command uses it, no events posted, no scanning for new kinds, logs only of what goes wrong, as many
objects at once as it likes (with a limit it handles that many every five seconds).
"""

import logging
import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp
import kopf
import uvloop

from bench.contestants.bare import session_to
from bench.contestants.starting import ready

CreateConfigMap = Callable[[str, dict[str, Any]], Awaitable[None]]
Opened = tuple[CreateConfigMap, Callable[[], Awaitable[None]]]


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.initial_streaming = True
    memo.create_config_map, memo.close = await memo.open_client()


@kopf.on.cleanup()
async def clean_up(memo: kopf.Memo, **_: Any) -> None:
    await memo.close()


@kopf.on.login()
def sign_in(**given: Any) -> Any:
    return kopf.login_with_kubeconfig(**given)


@kopf.on.resume("example.shoal.dev", "v1", "greetings")
@kopf.on.create("example.shoal.dev", "v1", "greetings")
async def greet(name: str, namespace: str, spec: kopf.Spec, patch: kopf.Patch, memo: kopf.Memo, **_: Any) -> None:
    child = f"{name}-words"
    config_map = {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": child, "namespace": namespace},
        "data": {"words": f"Hello, {spec['name']}!"},
    }
    kopf.adopt(config_map)
    await memo.create_config_map(namespace, config_map)
    patch.status["configMap"] = child


async def plain_requests() -> Opened:
    """Makes ConfigMaps by plain requests."""
    session = session_to(Path(os.environ["KUBECONFIG"]))

    async def create(namespace: str, config_map: dict[str, Any]) -> None:
        async with session.post(f"/api/v1/namespaces/{namespace}/configmaps", json=config_map) as answer:
            await answer.read()
            if answer.status not in (201, 409):
                raise aiohttp.ClientError(f"ConfigMap {config_map['metadata']['name']}: {answer.status}")

    return create, session.close


def operate(arguments: list[str], open_client: Callable[[], Awaitable[Opened]]) -> None:
    logging.getLogger("kopf").setLevel(logging.WARNING)
    kubeconfig, namespace = ready(arguments)
    os.environ["KUBECONFIG"] = str(kubeconfig)
    memo = kopf.Memo(open_client=open_client)
    uvloop.run(kopf.operator(standalone=True, namespaces=[namespace], memo=memo))


if __name__ == "__main__":
    operate(sys.argv[1:], plain_requests)
