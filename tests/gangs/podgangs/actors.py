"""What the other controllers of gangs do, done by hand: PodCliques, scaling groups and pods of a set."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import msgspec

from shoal.api.core import PODS
from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES, SCALING_GROUPS, PodCliqueSet, names
from shoal.api.meta import Document, format_time, now
from shoal.api.scheduler_grove_io import POD_GANGS
from shoal.gangs import plan
from shoal.gangs.backends.registry import Backends, built_in
from shoal.gangs.caches import Caches
from shoal.gangs.podgangs import add_podgangs
from shoal.gangs.settings import GangSettings
from shoal.kube import Manager
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster

BACKENDS = Backends(built_in())


def podgangs(settings: GangSettings = GangSettings(), backends: Backends = BACKENDS) -> Callable[[Manager], None]:
    """Adds the controller of PodGangs to a manager."""
    return lambda manager: add_podgangs(manager, Caches(manager), settings, backends)


def owned(owner: Document, api_version: str, kind: str) -> list[dict[str, Any]]:
    metadata = owner.metadata
    reference = {"apiVersion": api_version, "kind": kind, "name": metadata.name, "uid": metadata.uid}
    return [{**reference, "controller": True, "blockOwnerDeletion": True}]


class Workload:
    """A PodCliqueSet on a cluster, whose parts a test makes one by one."""

    def __init__(self, cluster: Cluster, made: Document) -> None:
        self.cluster = cluster
        self.made = made
        self.pcs = msgspec.convert(made.content, PodCliqueSet)
        self._count = 0

    @classmethod
    async def create(cls, cluster: Cluster, body: dict[str, Any]) -> Workload:
        return cls(cluster, await cluster.make(POD_CLIQUE_SETS, body))

    async def change(self, patch: dict[str, Any]) -> None:
        """Changes the set by a merge patch."""
        await self.cluster.client.merge_patch(
            POD_CLIQUE_SETS.documents(), self.pcs.metadata.name, patch, self.pcs.metadata.namespace
        )

    def planned(self) -> list[plan.PlannedClique]:
        """All cliques of the set as it was made."""
        return [
            clique
            for replica in range(self.pcs.spec.replicas)
            for gang in plan.gangs_of_replica(self.pcs, replica, {})
            for clique in gang.cliques
        ]

    async def make_groups(self) -> None:
        for replica in range(self.pcs.spec.replicas):
            for group in self.pcs.spec.template.pod_clique_scaling_groups:
                name = names.scaling_group(self.pcs.metadata.name, replica, group.name)
                labels = names.component_labels(self.pcs.metadata.name, name, names.SCALING_GROUP_COMPONENT)
                spec = {"replicas": group.count, "minAvailable": group.minimum, "cliqueNames": group.clique_names}
                metadata = {
                    "name": name,
                    "labels": {**labels, names.SET_REPLICA_LABEL: str(replica)},
                    "ownerReferences": owned(self.made, "grove.io/v1alpha1", "PodCliqueSet"),
                }
                await self.cluster.make(SCALING_GROUPS, {"metadata": metadata, "spec": spec})

    async def make_cliques(self, *, only: Sequence[str] = ()) -> dict[str, Document]:
        """Makes the PodCliques, all of them or those of these names."""
        return {
            planned.name: await self.make_clique(planned)
            for planned in self.planned()
            if not only or planned.name in only
        }

    async def make_clique(self, planned: plan.PlannedClique) -> Document:
        labels = {
            **names.component_labels(self.pcs.metadata.name, planned.name, names.SET_CLIQUE_COMPONENT),
            names.SET_REPLICA_LABEL: str(planned.set_replica),
            names.GANG_LABEL: planned.gang,
        }
        if planned.group:
            labels[names.SCALING_GROUP_LABEL] = planned.group
            labels[names.SCALING_GROUP_REPLICA_LABEL] = str(planned.group_replica)
        if planned.base_gang:
            labels[names.BASE_GANG_LABEL] = planned.base_gang
        metadata = {
            "name": planned.name,
            "labels": labels,
            "ownerReferences": owned(self.made, "grove.io/v1alpha1", "PodCliqueSet"),
        }
        spec = msgspec.to_builtins(planned.template.spec)
        return await self.cluster.make(POD_CLIQUES, {"metadata": metadata, "spec": spec})

    async def make_pods(self, clique: Document, count: int) -> list[str]:
        """Makes pods of a PodClique, gated; gives their names."""
        made = []
        for _ in range(count):
            self._count += 1
            name = f"{clique.metadata.name}-{self._count:05d}"
            metadata = {
                "name": name,
                "labels": {**clique.metadata.labels, names.CLIQUE_LABEL: clique.metadata.name},
                "ownerReferences": owned(clique, "grove.io/v1alpha1", "PodClique"),
            }
            spec = {**clique.content["spec"]["podSpec"], "schedulingGates": [{"name": names.GATE}]}
            await self.cluster.make(PODS, {"metadata": metadata, "spec": spec})
            made.append(name)
        return made

    async def gang(self, name: str) -> dict[str, Any]:
        """A PodGang that must be there by now, or soon."""
        found = await until(lambda: self.cluster.read(POD_GANGS, name), within=30)
        assert isinstance(found, dict)
        return found

    async def gang_when(self, name: str, holds: Callable[[dict[str, Any]], object]) -> dict[str, Any]:
        """A PodGang, once it is so."""

        async def look() -> dict[str, Any] | None:
            found = await self.cluster.read(POD_GANGS, name)
            return found if found is not None and holds(found) else None

        try:
            found = await until(look, within=30)
        except TimeoutError:
            raise AssertionError(f"in vain; it is {await self.cluster.read(POD_GANGS, name)}") from None
        assert isinstance(found, dict)
        return found

    async def gangs(self) -> list[str]:
        return [gang["metadata"]["name"] for gang in await self.cluster.all(POD_GANGS)]


async def set_pod(cluster: Cluster, name: str, *, scheduled: bool = True, ready: bool = False) -> None:
    """Does to a pod's status what a scheduler and a node do."""
    moment = format_time(now())
    answers = {"PodScheduled": scheduled, "Ready": ready}
    conditions = [
        {"type": kind, "status": "True" if answer else "False", "lastTransitionTime": moment}
        for kind, answer in answers.items()
    ]
    await cluster.set_status(PODS, name, {"conditions": conditions})


def references(gang: dict[str, Any]) -> dict[str, list[str]]:
    return {group["name"]: [pod["name"] for pod in group["podReferences"]] for group in gang["spec"]["podgroups"]}


def answers(gang: dict[str, Any]) -> dict[str, str]:
    return {found["type"]: found["status"] for found in gang.get("status", {}).get("conditions", ())}


def reason(gang: dict[str, Any], condition: str) -> str:
    return next(str(found["reason"]) for found in gang["status"]["conditions"] if found["type"] == condition)


def is_initialized(gang: dict[str, Any]) -> bool:
    return answers(gang).get("Initialized") == "True"
