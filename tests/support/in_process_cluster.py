"""A real (embedded) API server in the test's own process, and whatever controllers a test runs on it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from shoal.api.core import NAMESPACES, SERVICE_ACCOUNTS
from shoal.api.meta import Document, Resource
from shoal.cluster.apiserver.in_process import InProcessServer, serve_in_process
from shoal.kube import Client, Manager, NotFound, running
from tests.support.cluster_client import writes


class Cluster:
    """A server, a client of it, and whatever controllers a test starts on it."""

    def __init__(self, server: InProcessServer) -> None:
        self.server = server
        self.client = Client(server.transport())

    @asynccontextmanager
    async def controllers(self, *add: Callable[[Manager], None]) -> AsyncIterator[Manager]:
        """Runs a manager with these controllers for the length of a block; they are started again by a second one."""
        manager = Manager(self.server.transport(), name="controllers")
        for one in add:
            one(manager)
        async with running(manager):
            yield manager

    async def make(self, resource: Resource[Any], body: dict[str, Any], namespace: str = "default") -> Document:
        """Creates an object from plain values."""
        return await self.client.create(resource.documents(), body, namespace if resource.namespaced else "")

    async def read(self, resource: Resource[Any], name: str, namespace: str = "default") -> dict[str, Any] | None:
        """An object as plain values; None where there is none."""
        try:
            found = await self.client.get(resource.documents(), name, namespace if resource.namespaced else "")
        except NotFound:
            return None
        return found.content

    async def all(
        self, resource: Resource[Any], namespace: str = "default", *, labels: str = ""
    ) -> list[dict[str, Any]]:
        """The objects of a kind as plain values, by name."""
        listing = await self.client.list(
            resource.documents(), namespace if resource.namespaced else "", label_selector=labels
        )
        return sorted((item.content for item in listing.items), key=lambda item: str(item["metadata"]["name"]))

    async def set_status(
        self, resource: Resource[Any], name: str, status: dict[str, Any], namespace: str = "default"
    ) -> None:
        """Changes fields of an object's status, as the part of the cluster that owns it would."""
        place = namespace if resource.namespaced else ""
        await self.client.merge_patch(resource.documents(), name, {"status": status}, place, subresource="status")


@asynccontextmanager
async def in_process_cluster(folder: Path) -> AsyncIterator[Cluster]:
    """A server with nothing in it but what it makes itself."""
    async with serve_in_process(folder) as server:
        found = Cluster(server)
        if await found.read(NAMESPACES, "default") is None:
            await found.make(NAMESPACES, {"metadata": {"name": "default"}})
        await found.make(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}})  # pods are refused without one
        yield found


def writes_of(manager: Manager) -> int:
    """How many writes a manager's controllers have sent."""
    return writes(manager.metrics)


def errors_of(manager: Manager) -> int:
    """How many reconciles of a manager's controllers have failed."""
    samples = [sample for family in manager.metrics.reconcile_errors.collect() for sample in family.samples]
    return int(sum(sample.value for sample in samples if sample.name.endswith("_total")))
