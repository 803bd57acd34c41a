"""What tests of the binder do to a cluster: nodes, pods, orders, and the part of the node agent."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.api import kai_names as names
from shoal.api.core import NODES, PODS
from shoal.api.scheduling_run_ai import BIND_REQUESTS
from shoal.scheduler.binding.reservation import reservation_name
from tests.scheduler.builders import kai_pod_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster

RESERVATIONS = names.RESERVATION_NAMESPACE
HALF = {"count": 1, "portion": "0.50"}


class Stage:
    """A cluster, in the words of the binder's world."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def add_node(self, name: str, **labels: str) -> None:
        """A node that nobody looks after."""
        await self.cluster.make(NODES, {"metadata": {"name": name, "labels": labels}})

    async def add_pod(self, name: str, **given: Any) -> dict[str, Any]:
        """A pod that waits for this scheduler."""
        body = kai_pod_manifest(name, automountServiceAccountToken=False, **given)
        return (await self.cluster.make(PODS, body)).content

    async def order(
        self, pod: dict[str, Any], node: str, *, annotations: dict[str, str] | None = None, **spec: Any
    ) -> None:
        """What the scheduler writes for a pod that it has placed."""
        metadata = pod["metadata"]
        owner = {"apiVersion": "v1", "kind": "Pod", "name": metadata["name"], "uid": metadata["uid"]}
        body = {
            "metadata": {"name": metadata["name"], "ownerReferences": [owner], "annotations": annotations or {}},
            "spec": {
                "podName": metadata["name"],
                "selectedNode": node,
                "receivedResourceType": "Regular",
                **spec,
            },
        }
        await self.cluster.make(BIND_REQUESTS, body)

    async def order_part(self, pod: dict[str, Any], node: str, *groups: str, **spec: Any) -> None:
        """What the scheduler writes for a pod that shares devices."""
        await self.order(
            pod, node, receivedResourceType="Fraction", receivedGPU=HALF, selectedGPUGroups=list(groups), **spec
        )

    async def pod(self, name: str) -> dict[str, Any]:
        """A pod that is there."""
        found = await self.cluster.read(PODS, name)
        assert found is not None
        return found

    async def bound(self, name: str) -> dict[str, Any]:
        """A pod, once it is on a node."""
        return await self.pod_that(name, lambda pod: bool(pod["spec"].get("nodeName")))

    async def pod_that(self, name: str, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """A pod, once something holds for it."""

        async def look() -> dict[str, Any] | None:
            found = await self.cluster.read(PODS, name)
            return found if found is not None and holds(found) else None

        found: dict[str, Any] = await until(look, within=20)
        return found

    async def request(self, name: str, phase: str, *, attempts: int = 0) -> dict[str, Any]:
        """A request, once it is in this phase, after at least so many failures."""

        async def look() -> dict[str, Any] | None:
            found = await self.cluster.read(BIND_REQUESTS, name) or {}
            status = found.get("status") or {}
            is_there = status.get("phase") == phase and status.get("failedAttempts", 0) >= attempts
            return found if is_there else None

        found: dict[str, Any] = await until(look, within=20)
        return found

    async def reservation(self, node: str, group: str) -> dict[str, Any]:
        """A group's reservation, once it is there."""
        name = reservation_name(node, group)

        async def look() -> dict[str, Any] | None:
            return await self.cluster.read(PODS, name, RESERVATIONS)

        found: dict[str, Any] = await until(look, within=20)
        return found

    async def give_device(self, node: str, group: str, device: str) -> None:
        """What the program in a reservation does."""
        await self.reservation(node, group)
        await self.cluster.client.merge_patch(
            PODS,
            reservation_name(node, group),
            {"metadata": {"annotations": {names.RESERVED_GPU_INDEX: device}}},
            RESERVATIONS,
        )

    async def reservations(self) -> list[str]:
        """The names of all reservations."""
        return [pod["metadata"]["name"] for pod in await self.cluster.all(PODS, RESERVATIONS)]

    async def no_reservations(self) -> None:
        """Waits until there is none."""

        async def look() -> bool:
            return not await self.reservations()

        await until(look, within=20)

    async def run(self, name: str) -> None:
        """What a node does with a pod."""
        await self.cluster.set_status(PODS, name, {"phase": "Running"})
