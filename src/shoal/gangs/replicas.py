"""What is there of one replica of a PodCliqueSet."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from shoal.api.grove import PodClique, PodCliqueScalingGroup, PodCliqueSet
from shoal.api.meta import is_controlled_by
from shoal.gangs.caches import Caches


@dataclass(frozen=True, kw_only=True)
class ReplicaSeen:
    """The cliques and scaling groups of a replica, by full name, as they were seen."""

    index: int
    cliques: Mapping[str, PodClique]
    """Those in no scaling group."""
    groups: Mapping[str, PodCliqueScalingGroup]
    members: Sequence[PodClique]
    """The cliques of its scaling groups."""

    @classmethod
    def of(cls, pcs: PodCliqueSet, index: int, caches: Caches) -> ReplicaSeen:
        """What the caches show of a replica; what an earlier set of the same name has left is none of it."""
        groups = [
            one for one in caches.groups_of_replica(pcs, index) if is_controlled_by(one.metadata, pcs.metadata.uid)
        ]
        owners = {group.metadata.uid for group in groups}
        alone, members = [], []
        for clique in caches.cliques_of_replica(pcs, index):
            owner = clique.metadata.controller
            if owner is not None and owner.uid == pcs.metadata.uid:
                alone.append(clique)
            elif owner is not None and owner.uid in owners:
                members.append(clique)
        return cls(
            index=index,
            cliques={clique.metadata.name: clique for clique in alone},
            groups={group.metadata.name: group for group in groups},
            members=members,
        )
