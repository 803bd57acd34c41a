"""Backends at work on the embedded server, and small things that their tests do to gangs there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from shoal.api.core import EVENTS
from shoal.api.grove import POD_CLIQUE_SETS
from shoal.api.meta import Resource
from shoal.api.scheduler_grove_io import POD_GANGS
from shoal.gangs.backends import Backends
from shoal.gangs.backends.controller import add_backends
from shoal.gangs.caches import Caches
from shoal.kube import Manager, Settings, running
from tests.gangs.backends.builders import a_gang_body
from tests.gangs.builders import a_set
from tests.support.clusters.client import QUICK_PACE, until
from tests.support.clusters.in_process import Cluster
from tests.support.waiting.at_rest import at_rest


class Gangs:
    """A cluster in which backends work, seen by one who makes gangs in it."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    @asynccontextmanager
    async def backends(self) -> AsyncIterator[Manager]:
        """Runs all backends for the length of a block; they are started again by a second one."""
        manager = Manager(self.cluster.server.transport(), name="backends", settings=Settings(pace=QUICK_PACE))
        add_backends(manager, Caches(manager), Backends.load(manager), look_again=0.05, good_news=0.05)
        async with running(manager):
            yield manager

    async def make(self, *groups: dict[str, Any], owner: dict[str, Any] | None = None, **fields: Any) -> str:
        """Makes a gang, and its set unless that is there; gives the gang's uid."""
        if await self.cluster.read(POD_CLIQUE_SETS, "web") is None:
            await self.cluster.make(POD_CLIQUE_SETS, owner or a_set("web"))
        made = await self.cluster.make(POD_GANGS, a_gang_body(*groups, **fields))
        return made.metadata.uid

    async def gang(self, name: str = "web-0") -> dict[str, Any]:
        found = await self.cluster.read(POD_GANGS, name)
        assert found is not None
        return found

    async def ready(self, reason: str, *, name: str = "web-0", within: float = 30.0) -> dict[str, Any]:
        """Waits until the gang's condition has this reason, and gives the condition."""

        async def condition() -> dict[str, Any] | None:
            for each in (await self.gang(name)).get("status", {}).get("conditions", []):
                if each["type"] == "BackendReady" and each["reason"] == reason:
                    return dict(each)
            return None

        found: dict[str, Any] = await until(condition, within=within)
        return found

    async def there(self, resource: Resource[Any], name: str) -> dict[str, Any]:
        """Waits until an object is there."""
        found: dict[str, Any] = await until(lambda: self.cluster.read(resource, name), within=30)
        return found

    async def gone(self, resource: Resource[Any], name: str) -> None:
        """Waits until an object is gone."""

        async def is_gone() -> bool:
            return await self.cluster.read(resource, name) is None

        await until(is_gone, within=30)

    async def edit(self, resource: Resource[Any], name: str, patch: dict[str, Any]) -> None:
        await self.cluster.client.merge_patch(resource.documents(), name, patch, "default")

    async def told(self, manager: Manager) -> list[tuple[str, int]]:
        """The reasons of all events about gangs, and how often each was told."""
        await at_rest(manager)
        found = [event for event in await self.cluster.all(EVENTS) if event["involvedObject"]["kind"] == "PodGang"]
        return [(event["reason"], event["count"]) for event in found]
