"""The server that is raced on: Greetings to work on, what came of them, and how many writes that took.

All of it is told by the server itself. A contestant is not asked how it did.
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from examples.greeter import DEFINITION, GREETINGS
from shoal.api.core import CONFIG_MAPS, NAMESPACES
from shoal.api.meta import Object
from shoal.cluster.kubernetes import RealKubernetes, find_binaries
from shoal.kube import Client, HttpTransport, load_connection
from shoal.kube.queries import watch_query

CONFIG_MAP_NAMES = CONFIG_MAPS.view(Object)
_REQUESTS = re.compile(rb"^apiserver_request_total\{([^}]*)\} (\S+)$", re.MULTILINE)
_LABEL = re.compile(rb'(\w+)="([^"]*)"')
_WRITING = frozenset({b"POST", b"PUT", b"PATCH", b"APPLY", b"DELETE"})
_OF_THE_SERVER_ITSELF = frozenset({b"leases", b"flowschemas", b"prioritylevelconfigurations", b"apiservices"})


@asynccontextmanager
async def open_track(data_dir: Path) -> AsyncIterator[Track]:
    """A durable API server and etcd that nothing else uses, with the Greeting's definition in place."""
    cluster = RealKubernetes(find_binaries(), data_dir, durable=True, definitions=[DEFINITION.manifest()])
    await asyncio.to_thread(cluster.start)
    transport = HttpTransport(load_connection(cluster.kubeconfig))
    try:
        yield Track(Client(transport), cluster.kubeconfig)
    finally:
        await transport.close()
        await asyncio.to_thread(cluster.stop)


class Track:
    """One server, used for one race after the other."""

    def __init__(self, client: Client, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig
        self._client = client

    async def prepare(self, namespace: str, count: int) -> str:
        """Makes a namespace with that many Greetings; gives the version from which to watch."""
        await self._client.create(NAMESPACES, {"metadata": {"name": namespace}})
        names = iter(range(count))

        async def create_some() -> None:
            for number in names:
                body = {"metadata": {"name": f"greeting-{number:05}"}, "spec": {"name": f"guest {number}"}}
                await self._client.create(GREETINGS, body, namespace)

        async with asyncio.TaskGroup() as group:
            for _ in range(20):
                group.create_task(create_some())
        return (await self._client.list(GREETINGS, namespace)).resource_version

    async def finish(self, namespace: str, since: str, count: int) -> None:
        """Returns at the moment when the last of the statuses and of the children is there."""
        greeted = self._until(_watched(self._client, GREETINGS, namespace, since), _is_greeted, count)
        made = self._until(_watched(self._client, CONFIG_MAP_NAMES, namespace, since), lambda child: True, count)
        async with asyncio.TaskGroup() as group:
            group.create_task(greeted)
            group.create_task(made)

    async def check(self, namespace: str, count: int) -> None:
        """Raises where what was made is not what was asked for: whoever does less is not faster."""
        children = {child.metadata.name: child for child in (await self._client.list(CONFIG_MAPS, namespace)).items}
        greetings = (await self._client.list(GREETINGS, namespace)).items
        if not len(children) == len(greetings) == count:
            raise WrongResult(f"{len(greetings)} Greetings have {len(children)} ConfigMaps, {count} were wanted")
        for greeting in greetings:
            child = children[greeting.status.config_map]
            owner = child.metadata.controller
            if owner is None or owner.uid != greeting.metadata.uid:
                raise WrongResult(f"ConfigMap {child.metadata.name} does not belong to {greeting.metadata.name}")
            if child.data != {"words": f"Hello, {greeting.spec.name}!"}:
                raise WrongResult(f"ConfigMap {child.metadata.name} says {child.data}")

    async def writes(self) -> Counter[str]:
        """The writes that the server has been sent so far, refused ones too, by what they were about."""
        counted: Counter[str] = Counter()
        for labels, value in _REQUESTS.findall(await self._client.read_path("/metrics")):
            told = dict(_LABEL.findall(labels))
            if told[b"verb"] in _WRITING and told[b"resource"] not in _OF_THE_SERVER_ITSELF:
                what = [told[b"verb"], told[b"resource"], told[b"subresource"], told[b"code"]]
                counted[b" ".join(part for part in what if part).decode()] += int(float(value))
        return counted

    async def clear(self, namespace: str) -> None:
        """Removes what a race has left."""
        await self._client.delete_collection(CONFIG_MAPS, namespace)
        await self._client.delete_collection(GREETINGS, namespace)

    async def _until(self, objects: AsyncIterator[Any], holds: Any, count: int) -> None:
        seen: set[str] = set()
        async for found in objects:
            if holds(found):
                seen.add(found.metadata.name)
                if len(seen) == count:
                    return


class WrongResult(Exception):
    """A contestant did not do what all of them are to do."""


async def _watched(client: Client, resource: Any, namespace: str, since: str) -> AsyncIterator[Any]:
    query = watch_query(resource_version=since)
    async for batch in client.watch_batches(resource, namespace, query):
        for event in batch:
            if event.object is not None:
                yield event.object


def _is_greeted(greeting: Any) -> bool:
    return bool(greeting.status.config_map)
