"""The operator on kopf, its children made by plain requests on the HTTP library that kopf itself stands on.

Few operators are written so; it shows what kopf alone costs.
"""

import os
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import aiohttp

from bench.contestants.bare import session_to
from bench.contestants.kopf_operator import CreateConfigMap, operate


async def plain_requests() -> tuple[CreateConfigMap, Callable[[], Awaitable[None]]]:
    """Makes ConfigMaps by plain requests."""
    session = session_to(Path(os.environ["KUBECONFIG"]))

    async def create(namespace: str, config_map: dict[str, Any]) -> None:
        async with session.post(f"/api/v1/namespaces/{namespace}/configmaps", json=config_map) as answer:
            await answer.read()
            if answer.status not in (201, 409):
                raise aiohttp.ClientError(f"ConfigMap {config_map['metadata']['name']}: {answer.status}")

    return create, session.close


if __name__ == "__main__":
    operate(sys.argv[1:], plain_requests)
