"""The operator on kopf, as its documentation teaches it and as quick as its settings allow.

kopf brings no client for children: its users bring one, most of them the official one. Here that is its asyncio form,
which takes less than the synchronous one in threads that the documentation shows; ``kopf_plain`` spares even that.

uvloop as kopf's own command uses it, no events posted, no scanning for new kinds, the first list as a stream, logs only
of what goes wrong, no limit of the objects at once (with one, it handles that many every five seconds).
"""

import logging
import os
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import kopf
import kubernetes.aio.client
import kubernetes.aio.config
import uvloop

from bench.contestants.starting import ready

CreateConfigMap = Callable[[str, dict[str, Any]], Awaitable[None]]
OpenClient = Callable[[], Awaitable[tuple[CreateConfigMap, Callable[[], Awaitable[None]]]]]


@kopf.on.startup()
async def configure(settings: kopf.OperatorSettings, memo: kopf.Memo, **_: Any) -> None:
    settings.posting.enabled = False
    settings.scanning.disabled = True
    settings.watching.initial_streaming = True
    memo.create_config_map, memo.close_client = await memo.open_client()


@kopf.on.cleanup()
async def clean_up(memo: kopf.Memo, **_: Any) -> None:
    await memo.close_client()


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


async def official_client() -> tuple[CreateConfigMap, Callable[[], Awaitable[None]]]:
    """Makes ConfigMaps with the official client."""
    await kubernetes.aio.config.load_kube_config(os.environ["KUBECONFIG"])
    client = kubernetes.aio.client.ApiClient()
    core = kubernetes.aio.client.CoreV1Api(client)

    async def create(namespace: str, config_map: dict[str, Any]) -> None:
        try:
            await core.create_namespaced_config_map(namespace, config_map)
        except kubernetes.aio.client.ApiException as error:
            if error.status != 409:
                raise

    return create, client.close


def operate(arguments: list[str], open_client: OpenClient) -> None:
    logging.getLogger("kopf").setLevel(logging.WARNING)
    kubeconfig, namespace = ready(arguments)
    os.environ["KUBECONFIG"] = str(kubeconfig)
    memo = kopf.Memo(open_client=open_client)
    uvloop.run(kopf.operator(standalone=True, namespaces=[namespace], memo=memo))


if __name__ == "__main__":
    operate(sys.argv[1:], official_client)
