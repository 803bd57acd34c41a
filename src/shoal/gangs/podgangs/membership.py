"""Which gang is meant, and which pods are in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from shoal.api.core import Pod
from shoal.api.grove import PodClique, PodCliqueSet, names
from shoal.api.meta import is_controlled_by
from shoal.api.scheduler_grove_io import NamespacedName
from shoal.gangs.plan import PlannedGang, base_gang, group_named, scaled_gang

References = Mapping[str, Sequence[NamespacedName]]
"""The pods of each clique, as a PodGang names them."""


@dataclass(frozen=True, kw_only=True)
class Members:
    """The pods that are there of a gang, clique by clique in the plan's order, each clique's by name."""

    pods: Mapping[str, Sequence[Pod]]
    is_complete: bool
    """Whether every clique is there and has as many pods as it asks for."""

    @property
    def references(self) -> References:
        """The pods as a PodGang names them."""
        return {
            clique: [NamespacedName(namespace=pod.metadata.namespace, name=pod.metadata.name) for pod in pods]
            for clique, pods in self.pods.items()
        }


def members_of(gang: PlannedGang, cliques: Iterable[PodClique], pods: Iterable[Pod]) -> Members:
    """The pods of a gang that stay.

    A pod counts where its PodClique owns it: those of an earlier one of the same name are on their way out, though
    nobody may have marked them yet.
    """
    live = {clique.metadata.name: clique for clique in cliques if not clique.metadata.is_deleting}
    found: dict[str, list[Pod]] = {clique.name: [] for clique in gang.cliques}
    for pod in sorted(pods, key=lambda pod: pod.metadata.name):
        name = pod.metadata.labels.get(names.CLIQUE_LABEL, "")
        owner = live.get(name)
        if owner is None or name not in found or pod.metadata.is_deleting:
            continue
        if is_controlled_by(pod.metadata, owner.metadata.uid):
            found[name].append(pod)
    is_complete = all(name in live and len(mine) >= live[name].spec.replicas for name, mine in found.items())
    return Members(pods=found, is_complete=is_complete)


def wanted_gang(
    pcs: PodCliqueSet, labels: Mapping[str, str], group_replicas: Callable[[str], int | None]
) -> PlannedGang | None:
    """The gang that a PodGang's labels, or those of a PodClique in it, speak of; None where the set wants it no more.

    ``group_replicas`` gives the live number of replicas of a scaling group, by its full name.
    """
    replica = names.index_in(labels, names.SET_REPLICA_LABEL)
    if replica is None or replica >= pcs.spec.replicas:
        return None
    if names.SCALING_GROUP_LABEL not in labels:
        return base_gang(pcs, replica)
    full_name = labels[names.SCALING_GROUP_LABEL]
    group_replica = names.index_in(labels, names.SCALING_GROUP_REPLICA_LABEL)
    group = group_named(pcs, replica, full_name)
    if group is None or group_replica is None:
        return None
    if group_replica < group.minimum:
        return base_gang(pcs, replica)
    live = group_replicas(full_name)
    count = group.count if live is None else live
    return scaled_gang(pcs, replica, group, group_replica) if group_replica < count else None
