"""Simulated nodes on a real (embedded) API server, and the small things that tests do to them."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest

from shoal.api.core import NODES, PODS
from shoal.cluster.node.simulated import Pool, add_simulated_nodes
from shoal.kube import Manager
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, in_process_cluster


class Simulation:
    """A cluster, and the agent of its simulated nodes as often as a test starts it."""

    def __init__(self, cluster: Cluster, sockets: Path) -> None:
        self.cluster = cluster
        self.sockets = sockets
        self.client = cluster.client

    def running(self, *pools: str) -> AbstractAsyncContextManager[Manager]:
        """Runs the agent for the length of a block."""
        chosen = [Pool.parse(pool) for pool in pools]
        return self.cluster.controllers(
            lambda manager: add_simulated_nodes(manager, sockets=self.sockets, pools=chosen)
        )

    async def add_node(self, name: str, **metadata: Any) -> None:
        """A node as kwok's manifests have it."""
        annotations = {"kwok.x-k8s.io/node": "fake"} | metadata.pop("annotations", {})
        await self.cluster.make(NODES, {"metadata": {"name": name, "annotations": annotations, **metadata}})

    async def add_pod(self, name: str, *, node: str, sim: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
        """A pod, bound to a node; ``sim`` are annotations without their prefix, ``more`` is put into the spec."""
        annotations = {f"shoal.dev/sim-{key}": value for key, value in (sim or {}).items()}
        metadata = {"name": name, "annotations": annotations, **more.pop("metadata", {})}
        spec = {"containers": [{"name": "main", "image": "busybox:1"}], "automountServiceAccountToken": False, **more}
        await self.cluster.make(PODS, {"metadata": metadata, "spec": spec})
        await self.client.bind(PODS, name, "default", node=node)
        return await self.pod(name, lambda pod: True)

    async def pod(self, name: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The pod, once something holds for it."""

        async def look() -> dict[str, Any] | None:
            found = await self.cluster.read(PODS, name)
            return found if found is not None and holds(found) else None

        found: dict[str, Any] = await until(look, within=10)
        return found

    async def phase(self, name: str, phase: str) -> dict[str, Any]:
        """The pod, once it is in this phase."""
        return await self.pod(name, lambda pod: pod["status"].get("phase") == phase)

    async def gone(self, name: str) -> None:
        """Waits until a pod is no more."""

        async def look() -> bool:
            return await self.cluster.read(PODS, name) is None

        await until(look, within=10)

    async def node(self, name: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The node, once something holds for it."""

        async def look() -> dict[str, Any] | None:
            found = await self.cluster.read(NODES, name)
            return found if found is not None and holds(found) else None

        found: dict[str, Any] = await until(look, within=10)
        return found

    async def annotate_node(self, name: str, **annotations: str | None) -> None:
        """Sets or removes annotations whose names lack their prefix."""
        changed = {f"shoal.dev/{key.replace('_', '-')}": value for key, value in annotations.items()}
        await self.client.merge_patch(NODES, name, {"metadata": {"annotations": changed}})


def conditions(found: dict[str, Any]) -> dict[str, str]:
    """The conditions of an object, by type."""
    return {one["type"]: one["status"] for one in found["status"].get("conditions", ())}


@pytest.fixture
async def simulation(tmp_path: Path) -> AsyncIterator[Simulation]:
    async with in_process_cluster(tmp_path / "server") as cluster:
        yield Simulation(cluster, tmp_path / "agents")
