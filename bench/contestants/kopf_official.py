"""The operator on kopf with the official Kubernetes client for its children, which is how most are written."""

import os
import sys
from typing import Any

import kubernetes.aio.client
import kubernetes.aio.config

from bench.contestants.kopf_operator import Opened, operate


async def official_client() -> Opened:
    """Makes ConfigMaps with the official client, on asyncio."""
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


if __name__ == "__main__":
    operate(sys.argv[1:], official_client)
