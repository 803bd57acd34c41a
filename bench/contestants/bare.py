"""No operator at all: the calls that ours makes, from a list of the objects, with nothing around them.

This is the bound that an operator in Python on aiohttp can approach: no watch, no cache, no queue, no typed objects, no
retries and no metrics; answers are read and not decoded.
"""

import asyncio
import base64
import ssl
import sys
from pathlib import Path
from typing import Any

import aiohttp
import msgspec
import uvloop
import yaml

from bench.contestants.starting import WORKERS, ready


async def operate(kubeconfig: Path, namespace: str) -> None:
    async with session_to(kubeconfig) as session:
        greetings = f"/apis/example.shoal.dev/v1/namespaces/{namespace}/greetings"
        async with session.get(greetings) as answer:
            todo = iter(msgspec.json.decode(await answer.read())["items"])
        async with asyncio.TaskGroup() as group:
            for _ in range(WORKERS):
                group.create_task(work(session, namespace, todo))


async def work(session: aiohttp.ClientSession, namespace: str, todo: Any) -> None:
    for greeting in todo:
        metadata = greeting["metadata"]
        child = f"{metadata['name']}-words"
        path = f"/api/v1/namespaces/{namespace}/configmaps/{child}"
        async with session.get(path) as answer:
            await answer.read()
            if answer.status != 404:
                raise RuntimeError(f"GET {path}: {answer.status} where 404 was expected")
        owner = {"apiVersion": "example.shoal.dev/v1", "kind": "Greeting", "name": metadata["name"]}
        owner |= {"uid": metadata["uid"], "controller": True, "blockOwnerDeletion": True}
        config_map = {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": child, "namespace": namespace, "ownerReferences": [owner]},
            "data": {"words": f"Hello, {greeting['spec']['name']}!"},
        }
        await patch(session, f"{path}?fieldManager=bare&force=true", "apply-patch+yaml", config_map)
        status = {"metadata": {"resourceVersion": metadata["resourceVersion"]}, "status": {"configMap": child}}
        place = f"/apis/example.shoal.dev/v1/namespaces/{namespace}/greetings/{metadata['name']}/status"
        await patch(session, f"{place}?fieldManager=bare", "merge-patch+json", status)


async def patch(session: aiohttp.ClientSession, path: str, kind: str, body: dict[str, Any]) -> None:
    headers = {"Content-Type": f"application/{kind}"}
    async with session.patch(path, data=msgspec.json.encode(body), headers=headers) as answer:
        content = await answer.read()
        if answer.status >= 400:
            raise RuntimeError(f"PATCH {path}: {answer.status} {content.decode()}")


def session_to(kubeconfig: Path) -> aiohttp.ClientSession:
    """Connections to the one cluster of a kubeconfig, signed with its user's token."""
    config = yaml.safe_load(kubeconfig.read_text())
    cluster, user = config["clusters"][0]["cluster"], config["users"][0]["user"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    connector = aiohttp.TCPConnector(ssl=ssl.create_default_context(cadata=authority))
    headers = {"Authorization": f"Bearer {user['token']}"}
    return aiohttp.ClientSession(cluster["server"], connector=connector, headers=headers)


if __name__ == "__main__":
    uvloop.run(operate(*ready(sys.argv[1:])))
