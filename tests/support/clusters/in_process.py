"""A real (embedded) API server in the test's own process, and whatever controllers a test runs on it.

``cluster`` is such a server for one test. It serves the custom kinds of the fixture ``kinds``, which a folder or a file
overrides. Defining kinds takes ten times as long as starting a server, so each set of kinds is defined once in a
process, and every server starts on a copy of that data.
"""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from shoal.api.core import NAMESPACES, SERVICE_ACCOUNTS
from shoal.api.crd import CustomResource
from shoal.api.meta import Document, Resource
from shoal.cli.processes.api import define
from shoal.cluster.apiserver.in_process import InProcessServer, serve_in_process
from shoal.kube import Client, Manager, NotFound, Settings, running
from tests.support.clusters.client import writes

QUICK_DEBOUNCE = 0.1


class Cluster:
    """A server, a client of it, and whatever controllers a test starts on it."""

    def __init__(self, server: InProcessServer) -> None:
        self.server = server
        self.client = Client(server.transport())

    @asynccontextmanager
    async def controllers(
        self, *add: Callable[[Manager], None], debounce: float = QUICK_DEBOUNCE
    ) -> AsyncIterator[Manager]:
        """Runs a manager with these controllers for the length of a block; they are started again by a second one.

        Status writes that nothing waits for come ten times as soon as in a cluster, unless ``debounce`` is 1.
        """
        manager = Manager(self.server.transport(), name="controllers", settings=Settings(debounce=debounce))
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


@pytest.fixture
def kinds() -> Sequence[CustomResource]:
    """The custom kinds that ``cluster`` serves."""
    return ()


@pytest.fixture
async def cluster(tmp_path: Path, kinds: Sequence[CustomResource]) -> AsyncIterator[Cluster]:
    """A server of this test's own, without webhooks, and without controllers but those that the test starts."""
    async with in_process_cluster(tmp_path / "server", kinds) as found:
        yield found


@asynccontextmanager
async def in_process_cluster(folder: Path, kinds: Sequence[CustomResource] = ()) -> AsyncIterator[Cluster]:
    """A server with these custom kinds, the namespace ``default``, and its service account."""
    key = tuple(map(id, kinds))
    if key not in _prepared:
        _prepared[key] = await _prepare(kinds)
    shutil.copytree(_prepared[key].folder, folder, dirs_exist_ok=True)
    async with serve_in_process(folder) as server:
        yield Cluster(server)


@dataclass(frozen=True)
class _Prepared:
    """The data of a server that has ended; ``server`` keeps what it compiled of the kinds' schemas."""

    folder: Path
    kinds: Sequence[CustomResource]
    server: InProcessServer


_prepared: dict[tuple[int, ...], _Prepared] = {}


async def _prepare(kinds: Sequence[CustomResource]) -> _Prepared:
    folder = Path(tempfile.mkdtemp(prefix="shoal-prepared-"))
    async with serve_in_process(folder) as server:
        found = Cluster(server)
        if await found.read(NAMESPACES, "default") is None:
            await found.make(NAMESPACES, {"metadata": {"name": "default"}})
        await found.make(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}})  # pods are refused without one
        if kinds:
            await define(found.client, kinds)
        return _Prepared(folder, kinds, server)


def pytest_unconfigure() -> None:
    for one in _prepared.values():
        shutil.rmtree(one.folder, ignore_errors=True)
    _prepared.clear()


def writes_of(manager: Manager) -> int:
    """How many writes a manager's controllers have sent."""
    return writes(manager.metrics)


def errors_of(manager: Manager) -> int:
    """How many reconciles of a manager's controllers have failed."""
    samples = [sample for family in manager.metrics.reconcile_errors.collect() for sample in family.samples]
    return int(sum(sample.value for sample in samples if sample.name.endswith("_total")))
