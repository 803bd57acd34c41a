"""A set on a real server whose PodCliques and PodGangs a test makes itself, with the controller of cliques at work."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import msgspec
import pytest

from shoal.api.core import PODS
from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES, PodCliqueSet, names
from shoal.api.scheduler_grove_io import POD_GANGS
from shoal.gangs.backends import Backends
from shoal.gangs.backends.registry import built_in
from shoal.gangs.caches import Caches
from shoal.gangs.cliques import add_cliques
from shoal.gangs.hashes import generation_hash
from shoal.gangs.plan import PlannedClique, PlannedGang, base_gang
from shoal.gangs.settings import GangSettings
from shoal.kube import Manager
from tests.gangs.cliques.builders import clique_body, gang_body
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster

WORKERS = "web-0-workers"
"""The clique that most tests are about."""


def cliques(settings: GangSettings = GangSettings()) -> Callable[[Manager], None]:
    """Adds the controller of cliques, with the real backends."""

    def add(manager: Manager) -> None:
        caches = Caches(manager, pod_selector=settings.pod_selector)
        add_cliques(manager, caches, settings, Backends(built_in()))

    return add


class Workload:
    """One PodCliqueSet on a server; what other controllers of gangs would do to it, done by hand."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster
        self.pcs: PodCliqueSet

    async def start(self, body: dict[str, Any], *, gangs: bool = True) -> None:
        """Makes the set, the cliques of its base gang, and that PodGang, which names no pods yet."""
        await self.cluster.make(POD_CLIQUE_SETS, body)
        await self.tell_hash(body)
        gang = base_gang(self.pcs, 0)
        for planned in gang.cliques:
            await self.make_clique(planned)
        if gangs:
            await self.make_gang(gang)

    async def tell_hash(self, body: dict[str, Any], **progress: Any) -> None:
        """Writes the set's template and, as its controller would, the hash of it and how far its update is."""
        await self.cluster.client.merge_patch(
            POD_CLIQUE_SETS.documents(), body["metadata"]["name"], {"spec": body["spec"]}, "default"
        )
        self.pcs = msgspec.convert(body, PodCliqueSet)
        status: dict[str, Any] = {"currentGenerationHash": generation_hash(self.pcs)}
        if progress:
            status["updateProgress"] = progress
        await self.cluster.set_status(POD_CLIQUE_SETS, body["metadata"]["name"], status)
        found = await self.cluster.read(POD_CLIQUE_SETS, body["metadata"]["name"])
        self.pcs = msgspec.convert(found, PodCliqueSet)

    async def make_clique(self, planned: PlannedClique) -> None:
        body = clique_body(self.pcs, planned)
        body["metadata"]["ownerReferences"] = [self._owner()]
        await self.cluster.make(POD_CLIQUES, body)

    def _owner(self) -> dict[str, Any]:
        return {
            "apiVersion": "grove.io/v1alpha1",
            "kind": "PodCliqueSet",
            "name": self.pcs.metadata.name,
            "uid": self.pcs.metadata.uid,
            "controller": True,
        }

    async def refresh_clique(self, planned: PlannedClique) -> None:
        """Writes a changed template to a clique, as its set's controller does; its size stays."""
        body = clique_body(self.pcs, planned)
        patch = {
            "metadata": {"labels": body["metadata"]["labels"]},
            "spec": {"podSpec": body["spec"]["podSpec"]},
        }
        await self.cluster.client.merge_patch(POD_CLIQUES.documents(), planned.name, patch, "default")

    async def make_gang(self, gang: PlannedGang, *, backend: str = "kai") -> None:
        body = gang_body(self.pcs, gang, backend=backend)
        body["metadata"]["ownerReferences"] = [self._owner()]
        await self.cluster.make(POD_GANGS, body)

    async def name_pods(self, gang: str, *, complete: bool = True) -> None:
        """Lets a PodGang name the pods that are there."""
        found = await self.cluster.read(POD_GANGS, gang)
        assert found is not None
        groups = found["spec"]["podgroups"]
        for group in groups:
            pods = await self.pods(group["name"])
            group["podReferences"] = [{"namespace": "default", "name": pod["metadata"]["name"]} for pod in pods]
        patch = {"spec": {"podgroups": groups}}
        await self.cluster.client.merge_patch(POD_GANGS.documents(), gang, patch, "default")
        condition = {
            "type": "Initialized",
            "status": "True" if complete else "False",
            "reason": "Test",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        await self.cluster.set_status(POD_GANGS, gang, {"phase": "Pending", "conditions": [condition]})

    async def pods(self, clique: str, *, going: bool = False) -> list[dict[str, Any]]:
        """The pods of a clique, by their index; those on their way out only where they are asked for."""
        found = await self.cluster.all(PODS, labels=f"{names.CLIQUE_LABEL}={clique}")
        kept = [pod for pod in found if going or "deletionTimestamp" not in pod["metadata"]]
        return sorted(kept, key=lambda pod: int(pod["metadata"]["labels"][names.POD_INDEX_LABEL]))

    async def has_pods(self, clique: str, count: int) -> list[dict[str, Any]]:
        """Waits until a clique has so many pods."""

        async def enough() -> list[dict[str, Any]] | None:
            pods = await self.pods(clique)
            return pods if len(pods) == count else None

        if count == 0:
            await until(lambda: _is_empty(self.pods(clique)), within=30)
            return []
        found: list[dict[str, Any]] = await until(enough, within=30)
        return found

    async def are_ungated(self, clique: str) -> list[dict[str, Any]]:
        """Waits until no pod of a clique is gated."""

        async def free() -> list[dict[str, Any]] | None:
            pods = await self.pods(clique)
            return pods if pods and not any(is_gated(pod) for pod in pods) else None

        found: list[dict[str, Any]] = await until(free, within=30)
        return found

    async def run(self, pod: dict[str, Any], *, ready: bool = True) -> None:
        """Lets a node have a pod, as a scheduler and the node would, and the pod be ready."""
        name = pod["metadata"]["name"]
        if not pod["spec"].get("nodeName"):
            await self.cluster.client.bind(PODS, name, "default", node="node-1")
        conditions = [{"type": "PodScheduled", "status": "True"}]
        if ready:
            conditions.append({"type": "Ready", "status": "True"})
        await self.cluster.set_status(PODS, name, {"phase": "Running", "conditions": conditions})

    async def run_all(self, clique: str) -> None:
        for pod in await self.pods(clique):
            await self.run(pod)

    async def delete_pod(self, pod: dict[str, Any], *, at_once: bool = True) -> None:
        """Deletes a pod; not at once, it stays on its way out."""
        await self.cluster.client.delete(PODS, pod["metadata"]["name"], "default", grace_seconds=0 if at_once else None)

    async def scale(self, clique: str, replicas: int) -> None:
        await self.cluster.client.scale(POD_CLIQUES, clique, replicas, "default")

    async def status_is(self, clique: str, **expected: Any) -> dict[str, Any]:
        """Waits until a clique's status has these values; gives all of it."""

        async def agrees() -> dict[str, Any] | None:
            found = await self.cluster.read(POD_CLIQUES, clique)
            status: dict[str, Any] = (found or {}).get("status", {})
            return status if all(status.get(key) == value for key, value in expected.items()) else None

        try:
            found: dict[str, Any] = await until(agrees, within=30)
        except TimeoutError:
            seen = await self.cluster.read(POD_CLIQUES, clique)
            raise AssertionError(f"waited for {expected}, but it is {(seen or {}).get('status')}") from None
        return found

    async def condition(self, clique: str, question: str) -> tuple[str, str]:
        found = await self.cluster.read(POD_CLIQUES, clique)
        assert found is not None
        conditions = found.get("status", {}).get("conditions", [])
        return next(((one["status"], one["reason"]) for one in conditions if one["type"] == question), ("", ""))


async def _is_empty(pods: Any) -> bool:
    return not await pods


def is_gated(pod: dict[str, Any]) -> bool:
    return bool(pod["spec"].get("schedulingGates"))


def pod_names(pods: list[dict[str, Any]]) -> list[str]:
    return [pod["metadata"]["name"] for pod in pods]


def indexes(pods: list[dict[str, Any]]) -> list[int]:
    return [int(pod["metadata"]["labels"][names.POD_INDEX_LABEL]) for pod in pods]


async def running(workload: Workload, body: dict[str, Any], count: int) -> list[dict[str, Any]]:
    """A set whose one clique has all its pods ready."""
    await workload.start(body)
    await workload.has_pods(WORKERS, count)
    await workload.name_pods("web-0")
    await workload.are_ungated(WORKERS)
    await workload.run_all(WORKERS)
    await workload.status_is(WORKERS, readyReplicas=count, replicas=count)
    return await workload.pods(WORKERS)


@pytest.fixture
def workload(cluster: Cluster) -> Workload:
    return Workload(cluster)


@asynccontextmanager
async def at_work(cluster: Cluster, settings: GangSettings = GangSettings()) -> AsyncIterator[Manager]:
    """Runs the controller of cliques for the length of a block."""
    async with cluster.controllers(cliques(settings)) as manager:
        yield manager
