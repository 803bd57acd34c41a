"""What the controllers of gangs see of the cluster: one picture, found by label.

Informers are shared by all controllers of a process; these are the indexes that they find things by.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from shoal.api.core import PODS, Pod
from shoal.api.grove import (
    POD_CLIQUE_SETS,
    POD_CLIQUES,
    SCALING_GROUPS,
    TOPOLOGY_BINDINGS,
    ClusterTopologyBinding,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueSet,
    names,
)
from shoal.api.meta import HasMetadata
from shoal.api.scheduler_grove_io import POD_GANGS, PodGang
from shoal.kube import Informer, Key, Manager, by_label

OURS = f"{names.MANAGED_BY_LABEL}={names.MANAGER}"
"""Selects what was made for sets, of kinds that others have many objects of."""

BY_SET = "grove set"
BY_REPLICA = "grove replica"
BY_SCALING_GROUP = "grove scaling group"
BY_GANG = "grove gang"
BY_CLIQUE = "grove clique"


def by_set(found: HasMetadata) -> Iterable[Hashable]:
    """Finds what was made for a PodCliqueSet: namespace and the set's name."""
    labels = found.metadata.labels
    if labels.get(names.MANAGED_BY_LABEL) != names.MANAGER or names.PART_OF_LABEL not in labels:
        return ()
    return ((found.metadata.namespace, labels[names.PART_OF_LABEL]),)


def by_replica(found: HasMetadata) -> Iterable[Hashable]:
    """Finds what was made for one replica of a PodCliqueSet: namespace, the set's name, and the index as written."""
    index = found.metadata.labels.get(names.SET_REPLICA_LABEL)
    return () if index is None else [(*of_set, index) for of_set in by_set(found) if isinstance(of_set, tuple)]


CHILD_INDEXES = {BY_SET: by_set, BY_REPLICA: by_replica}
CLIQUE_INDEXES = {
    **CHILD_INDEXES,
    BY_SCALING_GROUP: by_label(names.SCALING_GROUP_LABEL),
    BY_GANG: by_label(names.GANG_LABEL),
}
POD_INDEXES = {BY_CLIQUE: by_label(names.CLIQUE_LABEL), BY_GANG: by_label(names.GANG_LABEL)}


class Caches:
    """The informers of Grove's kinds and of pods, with their indexes."""

    def __init__(self, manager: Manager, *, pod_selector: str = "") -> None:
        cache = manager.cache
        self.sets: Informer[PodCliqueSet] = cache.informer(POD_CLIQUE_SETS)
        self.cliques: Informer[PodClique] = cache.informer(POD_CLIQUES, indexes=CLIQUE_INDEXES)
        self.groups: Informer[PodCliqueScalingGroup] = cache.informer(SCALING_GROUPS, indexes=CHILD_INDEXES)
        self.gangs: Informer[PodGang] = cache.informer(POD_GANGS, indexes=CHILD_INDEXES)
        self.topologies: Informer[ClusterTopologyBinding] = cache.informer(TOPOLOGY_BINDINGS)
        self.pod_selector = pod_selector
        """Restricts the pods that are watched; a process that keeps all pods anyway leaves it empty."""
        self.pods: Informer[Pod] = cache.informer(PODS, label_selector=pod_selector, indexes=POD_INDEXES)

    def cliques_of_set(self, pcs: HasMetadata) -> list[PodClique]:
        """All PodCliques of a set."""
        return self.cliques.find(BY_SET, (pcs.metadata.namespace, pcs.metadata.name))

    def cliques_of_replica(self, pcs: HasMetadata, replica: int) -> list[PodClique]:
        """The PodCliques of one replica of a set."""
        return self.cliques.find(BY_REPLICA, (pcs.metadata.namespace, pcs.metadata.name, str(replica)))

    def cliques_of_group(self, group: HasMetadata) -> list[PodClique]:
        """The PodCliques of a scaling group."""
        return self.cliques.find(BY_SCALING_GROUP, (group.metadata.namespace, group.metadata.name))

    def cliques_of_gang(self, key: Key) -> list[PodClique]:
        """The PodCliques whose pods are in a gang."""
        return self.cliques.find(BY_GANG, (key.namespace, key.name))

    def groups_of_set(self, pcs: HasMetadata) -> list[PodCliqueScalingGroup]:
        """All scaling groups of a set."""
        return self.groups.find(BY_SET, (pcs.metadata.namespace, pcs.metadata.name))

    def groups_of_replica(self, pcs: HasMetadata, replica: int) -> list[PodCliqueScalingGroup]:
        """The scaling groups of one replica of a set."""
        return self.groups.find(BY_REPLICA, (pcs.metadata.namespace, pcs.metadata.name, str(replica)))

    def gangs_of_set(self, pcs: HasMetadata) -> list[PodGang]:
        """All gangs of a set."""
        return self.gangs.find(BY_SET, (pcs.metadata.namespace, pcs.metadata.name))

    def gangs_of_replica(self, pcs: HasMetadata, replica: int) -> list[PodGang]:
        """The gangs of one replica of a set."""
        return self.gangs.find(BY_REPLICA, (pcs.metadata.namespace, pcs.metadata.name, str(replica)))

    def pods_of_clique(self, clique: HasMetadata) -> list[Pod]:
        """The pods of a clique."""
        return self.pods.find(BY_CLIQUE, (clique.metadata.namespace, clique.metadata.name))

    def pods_of_gang(self, key: Key) -> list[Pod]:
        """The pods of a gang."""
        return self.pods.find(BY_GANG, (key.namespace, key.name))

    def set_of(self, child: HasMetadata) -> PodCliqueSet | None:
        """The set that something was made for."""
        name = child.metadata.labels.get(names.PART_OF_LABEL, "")
        return self.sets.get(name, child.metadata.namespace)
