"""Which of a set's planned cliques a PodClique is, and which pods are its own."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.core import Pod
from shoal.api.grove import POD_CLIQUES, PodClique, PodCliqueScalingGroup, PodCliqueSet, names
from shoal.api.meta import is_controlled_by, is_left_behind, owner_reference
from shoal.api.scheduler_grove_io import PodGang
from shoal.gangs.plan import PlannedClique, group_cliques, group_named, standalone_cliques


def planned_clique(pcs: PodCliqueSet, clique: PodClique) -> PlannedClique | None:
    """What the set's template says of a clique, found by its labels; None where it says nothing (any more)."""
    labels = clique.metadata.labels
    replica = names.index_in(labels, names.SET_REPLICA_LABEL)
    if replica is None:
        return None
    return next((one for one in _candidates(pcs, clique, replica) if one.name == clique.metadata.name), None)


def is_wanted(pcs: PodCliqueSet, clique: PodClique, group: PodCliqueScalingGroup | None) -> bool:
    """Whether the set asks for the clique's replica, and for that of its scaling group, the live size of which counts.

    Where it does not, its PodGang is taken away as it is, in no order, and no pod of it may start.
    """
    labels = clique.metadata.labels
    replica = names.index_in(labels, names.SET_REPLICA_LABEL)
    if replica is None or replica >= pcs.spec.replicas:
        return False
    group_replica = names.index_in(labels, names.SCALING_GROUP_REPLICA_LABEL)
    is_scaled = names.BASE_GANG_LABEL in labels
    return not is_scaled or group is None or group_replica is None or group_replica < group.spec.replicas


def is_standalone(clique: PodClique) -> bool:
    """Whether a clique belongs to no scaling group."""
    return names.SCALING_GROUP_LABEL not in clique.metadata.labels


def is_gang_of(pcs: PodCliqueSet, gang: PodGang) -> bool:
    """Whether pods may join a gang: one of another set that has the same name, or that goes, is none for them."""
    return not gang.metadata.is_deleting and is_controlled_by(gang.metadata, pcs.metadata.uid)


def own_pods(clique: PodClique, found: Iterable[Pod]) -> list[Pod]:
    """Those of the pods that the clique controls: an earlier clique of its name may have left some behind."""
    return [pod for pod in found if is_controlled_by(pod.metadata, clique.metadata.uid)]


def has_predecessors(clique: PodClique, found: Iterable[Pod]) -> bool:
    """Whether pods of an earlier clique of the same name are there that nobody has asked to go yet.

    They have the names and numbers that the clique's own pods are to have, and the garbage collector has them soon.
    """
    owner = owner_reference(clique, POD_CLIQUES)
    return any(is_left_behind(pod.metadata, owner) and not pod.metadata.is_deleting for pod in found)


def _candidates(pcs: PodCliqueSet, clique: PodClique, replica: int) -> list[PlannedClique]:
    labels = clique.metadata.labels
    group_name = labels.get(names.SCALING_GROUP_LABEL)
    if group_name is None:
        return standalone_cliques(pcs, replica)
    group_replica = names.index_in(labels, names.SCALING_GROUP_REPLICA_LABEL)
    group = group_named(pcs, replica, group_name)
    return [] if group is None or group_replica is None else group_cliques(pcs, replica, group, group_replica)
