"""What there is of a scaling group's replicas."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shoal.api.grove import (
    CLIQUE_SCHEDULED,
    MIN_AVAILABLE_BREACHED,
    PodClique,
    PodCliqueSet,
    ScalingGroupTemplate,
    names,
)
from shoal.api.meta import find_condition, is_true
from shoal.gangs.plan import PlannedClique, group_cliques
from shoal.gangs.updates import Hashes


@dataclass(frozen=True, kw_only=True)
class Member:
    """A clique that should be there, and the one that is."""

    planned: PlannedClique
    template_hash: str
    """The hash of the template that the set has now."""
    seen: PodClique | None

    @property
    def present(self) -> PodClique | None:
        """The clique, unless it is not there or going."""
        return None if self.seen is None or self.seen.metadata.is_deleting else self.seen

    @property
    def is_scheduled(self) -> bool:
        """Whether enough of its pods have a node."""
        return self.present is not None and is_true(self.present.status.conditions, CLIQUE_SCHEDULED)

    @property
    def is_ready(self) -> bool:
        """Whether enough of its pods are ready."""
        return self.present is not None and self.present.status.ready_replicas >= self.present.spec.minimum

    @property
    def is_healthy(self) -> bool:
        """Whether it has told that enough of its pods are well."""
        if self.present is None:
            return False
        breached = find_condition(self.present.status.conditions, MIN_AVAILABLE_BREACHED)
        return breached is not None and breached.status != "True"

    @property
    def has_template(self) -> bool:
        """Whether it was made from the template that the set has now."""
        return self.present is not None and (
            self.present.metadata.labels.get(names.TEMPLATE_HASH_LABEL) == self.template_hash
        )

    @property
    def has_arrived(self) -> bool:
        """Whether its pods too are of that template.

        The set's hash is not asked for: a member has nothing of the set's other templates.
        """
        return (
            self.present is not None
            and self.has_template
            and self.present.status.current_pod_template_hash == self.template_hash
        )


@dataclass(frozen=True, kw_only=True)
class GroupReplica:
    """One replica of a scaling group."""

    index: int
    members: tuple[Member, ...]

    @property
    def cliques(self) -> list[PodClique]:
        """The cliques that are there and not going."""
        return [member.present for member in self.members if member.present is not None]

    @property
    def is_complete(self) -> bool:
        """Whether all its cliques are there."""
        return all(member.present is not None for member in self.members)

    @property
    def is_scheduled(self) -> bool:
        """Whether enough pods of all its cliques have a node."""
        return all(member.is_scheduled for member in self.members)

    @property
    def is_available(self) -> bool:
        """Whether enough pods of all its cliques are ready."""
        return self.is_scheduled and all(member.is_ready for member in self.members)

    @property
    def is_healthy(self) -> bool:
        """Whether none of its cliques is missing, going or broken."""
        return all(member.is_healthy for member in self.members)

    @property
    def is_old(self) -> bool:
        """Whether a clique of it is of another template than the set has now."""
        return any(member.present is not None and not member.has_template for member in self.members)

    @property
    def is_current(self) -> bool:
        """Whether it is complete, and all of the templates that the set has now."""
        return all(member.has_template for member in self.members)

    @property
    def has_arrived(self) -> bool:
        """Whether it is complete, and its pods too are of the templates that the set has now."""
        return all(member.has_arrived for member in self.members)

    @property
    def is_updated(self) -> bool:
        """Whether an update of it is done."""
        return self.has_arrived and self.is_available


def group_replicas(
    pcs: PodCliqueSet,
    set_replica: int,
    group: ScalingGroupTemplate,
    count: int,
    cliques: Iterable[PodClique],
    hashes: Hashes,
) -> list[GroupReplica]:
    """The replicas that a scaling group should have, with what there is of each."""
    seen = {clique.metadata.name: clique for clique in cliques}
    return [
        GroupReplica(
            index=index,
            members=tuple(
                Member(planned=planned, template_hash=hashes[planned.template.name], seen=seen.get(planned.name))
                for planned in group_cliques(pcs, set_replica, group, index)
            ),
        )
        for index in range(count)
    ]
