"""The controllers of sets on a cluster that fills token Secrets, and what the other controllers of gangs would do."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES
from shoal.api.meta import Resource, now, owner_reference
from shoal.api.scheduler_grove_io import POD_GANGS
from shoal.cluster.controllers.accounts import add_accounts, signer_of
from shoal.cluster.controllers.garbage import add_garbage_collector
from shoal.cluster.keyring import Keyring
from shoal.gangs.caches import Caches
from shoal.gangs.sets import add_sets
from shoal.gangs.settings import GangSettings
from shoal.kube import Manager, NotFound
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster
from tests.support.waiting.at_rest import at_rest

Content = dict[str, Any]


class Running:
    """A cluster on which the controllers of sets run."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self._folder = folder

    @asynccontextmanager
    async def surroundings(self) -> AsyncIterator[None]:
        """What every cluster has: someone who fills token Secrets, and someone who removes what has lost its owner."""
        keyring = Keyring(self._folder / "server" / "pki", now=now())

        def accounts(manager: Manager) -> None:
            add_accounts(manager, authority=keyring.authority, signer=signer_of(keyring))

        async with self.cluster.controllers(accounts, add_garbage_collector):
            yield

    @asynccontextmanager
    async def sets(self, settings: GangSettings = GangSettings()) -> AsyncIterator[Manager]:
        """The controllers of sets and of their replicas, alone in their manager."""

        def add(manager: Manager) -> None:
            add_sets(manager, Caches(manager), settings)

        async with self.cluster.controllers(add) as manager:
            yield manager

    async def make(self, body: Content) -> Content:
        """A set."""
        return (await self.cluster.make(POD_CLIQUE_SETS, body)).content

    async def change(self, patch: Content, name: str = "web", resource: Resource[Any] = POD_CLIQUE_SETS) -> None:
        """Changes fields of a set, or of something else."""
        await self.cluster.client.merge_patch(resource.documents(), name, patch, "default")

    async def names(self, resource: Resource[Any], count: int | None = None) -> list[str]:
        """The names of all objects of a kind, as soon as there are so many."""

        async def found() -> list[str] | None:
            names = [item["metadata"]["name"] for item in await self.cluster.all(resource)]
            return [*names, "found"] if count is None or len(names) == count else None

        return sorted((await until(found, within=30))[:-1])

    async def status(self, name: str = "web", **expected: Any) -> Content:
        """A set's status, as soon as some of its fields are as expected; None stands for a field that is not there."""
        last: Content = {}

        async def found() -> bool:
            nonlocal last
            last = (await self.cluster.read(POD_CLIQUE_SETS, name) or {}).get("status", {})
            return all(last.get(key) == value for key, value in expected.items())

        try:
            await until(found, within=30)
        except TimeoutError:
            assert {key: last.get(key) for key in expected} == expected
        return last

    async def ready(self, clique: str, **more: Any) -> None:
        """What the controller of PodCliques tells of one whose pods are all ready and of the wanted template."""
        content = await self.cluster.read(POD_CLIQUES, clique)
        pcs = await self.cluster.read(POD_CLIQUE_SETS, "web")
        assert content is not None
        assert pcs is not None
        count = content["spec"]["replicas"]
        status = {
            "replicas": count,
            "readyReplicas": count,
            "scheduledReplicas": count,
            "updatedReplicas": count,
            "currentPodTemplateHash": content["metadata"]["labels"]["grove.io/pod-template-hash"],
            "currentPodCliqueSetGenerationHash": pcs["status"]["currentGenerationHash"],
            **more,
        }
        await self.cluster.set_status(POD_CLIQUES, clique, status)

    async def gang(self, name: str, replica: int, phase: str = "Running", **labels: str) -> None:
        """What the controller of PodGangs makes of one that is complete."""
        pcs = await self.cluster.client.get(POD_CLIQUE_SETS, "web", "default")
        body = {
            "metadata": {
                "name": name,
                "ownerReferences": [msgspec.to_builtins(owner_reference(pcs, POD_CLIQUE_SETS))],
                "labels": {
                    "app.kubernetes.io/managed-by": "grove-operator",
                    "app.kubernetes.io/part-of": "web",
                    "grove.io/podcliqueset-replica-index": str(replica),
                    **labels,
                },
            },
            "spec": {"podgroups": []},
        }
        await self.cluster.make(POD_GANGS, body)
        condition = {"type": "Initialized", "status": "True", "reason": "PodGangPodsCreated", "message": ""}
        condition["lastTransitionTime"] = "2026-01-01T00:00:00Z"
        await self.cluster.set_status(POD_GANGS, name, {"phase": phase, "conditions": [condition]})

    async def released(self, resource: Resource[Any], count: int) -> None:
        """Waits until so many objects are left, letting those go that are deleted, as their controllers would."""

        async def gone() -> bool:
            left = await self.cluster.all(resource)
            for item in left:
                if "deletionTimestamp" in item["metadata"] and item["metadata"].get("finalizers"):
                    await self._release(resource, item["metadata"]["name"])
            return len(left) == count

        await until(gone, within=30)

    async def _release(self, resource: Resource[Any], name: str) -> None:
        try:
            await self.change({"metadata": {"finalizers": None}}, name, resource)
        except NotFound:
            return

    async def settled(self, manager: Manager) -> None:
        """Waits until nothing is left to do; what a set postpones is done within a second."""
        await at_rest(manager)


def looks(manager: Manager) -> dict[str, float]:
    """How often each controller has looked at something to the end, instead of putting it off."""
    found: dict[str, float] = {}
    for family in manager.metrics.reconciles.collect():
        for sample in family.samples:
            if sample.name.endswith("_total") and sample.labels["result"] == "success":
                found[sample.labels["controller"]] = found.get(sample.labels["controller"], 0) + sample.value
    return found
