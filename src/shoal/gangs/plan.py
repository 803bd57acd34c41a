"""What a replica of a PodCliqueSet is made of: its cliques and its gangs, by name, and who starts after whom.

All of it follows from the set's template and the live number of replicas of each scaling group. Names are made, never
taken apart, so that every controller that asks gets the same answer.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from shoal.api.grove import ANY_ORDER, EXPLICIT, IN_ORDER, CliqueTemplate, PodCliqueSet, ScalingGroupTemplate, names


@dataclass(frozen=True, kw_only=True)
class Parent:
    """A clique that must be ready first: its full name, and how many of its pods."""

    clique: str
    min_available: int


@dataclass(frozen=True, kw_only=True)
class PlannedClique:
    """A PodClique that should be there."""

    name: str
    template: CliqueTemplate
    set_replica: int
    gang: str
    """The PodGang that its pods are in."""
    base_gang: str = ""
    """The gang that must be scheduled first; empty for the cliques of that gang itself."""
    group: str = ""
    """The full name of its scaling group, if it is in one."""
    group_replica: int = 0
    parents: tuple[Parent, ...] = ()


@dataclass(frozen=True, kw_only=True)
class PlannedGang:
    """A PodGang that should be there, and the cliques whose pods are in it, in order."""

    name: str
    set_replica: int
    cliques: tuple[PlannedClique, ...]
    group: str = ""
    """The full name of the scaling group that a scaled gang is a replica of; empty for a base gang."""
    group_replica: int = 0
    group_template: ScalingGroupTemplate | None = None

    @property
    def minimums(self) -> dict[str, int]:
        """How many pods of each clique must start together."""
        return {clique.name: clique.template.spec.minimum for clique in self.cliques}


def group_of(pcs: PodCliqueSet, clique_name: str) -> ScalingGroupTemplate | None:
    """The scaling group that a clique of the template is in."""
    groups = pcs.spec.template.pod_clique_scaling_groups
    return next((group for group in groups if clique_name in group.clique_names), None)


def group_named(pcs: PodCliqueSet, replica: int, full_name: str) -> ScalingGroupTemplate | None:
    """The scaling group of the template that has this full name in a replica of the set."""
    groups, set_name = pcs.spec.template.pod_clique_scaling_groups, pcs.metadata.name
    return next((group for group in groups if names.scaling_group(set_name, replica, group.name) == full_name), None)


def standalone_templates(pcs: PodCliqueSet) -> list[CliqueTemplate]:
    """The cliques that are in no scaling group, in the template's order."""
    grouped = {name for group in pcs.spec.template.pod_clique_scaling_groups for name in group.clique_names}
    return [clique for clique in pcs.spec.template.cliques if clique.name not in grouped]


def member_templates(pcs: PodCliqueSet, group: ScalingGroupTemplate) -> list[CliqueTemplate]:
    """The cliques of a scaling group, in the group's order."""
    templates = {clique.name: clique for clique in pcs.spec.template.cliques}
    return [templates[name] for name in group.clique_names if name in templates]


def standalone_cliques(pcs: PodCliqueSet, replica: int) -> list[PlannedClique]:
    """The cliques of a replica that are in no scaling group: all of them are in its base gang."""
    set_name = pcs.metadata.name
    return [
        PlannedClique(
            name=names.clique(set_name, replica, clique.name),
            template=clique,
            set_replica=replica,
            gang=names.base_gang(set_name, replica),
            parents=_parents_in_base(pcs, replica, clique.name),
        )
        for clique in standalone_templates(pcs)
    ]


def group_cliques(
    pcs: PodCliqueSet, replica: int, group: ScalingGroupTemplate, group_replica: int
) -> list[PlannedClique]:
    """The cliques of one replica of a scaling group: in the base gang up to the group's minimum, else in its own."""
    set_name = pcs.metadata.name
    full_name = names.scaling_group(set_name, replica, group.name)
    base = names.base_gang(set_name, replica)
    is_base = group_replica < group.minimum
    return [
        PlannedClique(
            name=names.member_clique(full_name, group_replica, clique.name),
            template=clique,
            set_replica=replica,
            gang=base if is_base else names.scaled_gang(full_name, group_replica, group.minimum),
            base_gang="" if is_base else base,
            group=full_name,
            group_replica=group_replica,
            parents=_parents_in_base(pcs, replica, clique.name)
            if is_base
            else _parents_in_replica(pcs, group, full_name, group_replica, clique.name),
        )
        for clique in member_templates(pcs, group)
    ]


def base_gang(pcs: PodCliqueSet, replica: int) -> PlannedGang:
    """The gang that a replica cannot be without."""
    cliques = standalone_cliques(pcs, replica)
    for group in pcs.spec.template.pod_clique_scaling_groups:
        for group_replica in range(group.minimum):
            cliques += group_cliques(pcs, replica, group, group_replica)
    return PlannedGang(name=names.base_gang(pcs.metadata.name, replica), set_replica=replica, cliques=tuple(cliques))


def scaled_gang(pcs: PodCliqueSet, replica: int, group: ScalingGroupTemplate, group_replica: int) -> PlannedGang:
    """The gang of a scaling group's replica beyond its minimum."""
    full_name = names.scaling_group(pcs.metadata.name, replica, group.name)
    return PlannedGang(
        name=names.scaled_gang(full_name, group_replica, group.minimum),
        set_replica=replica,
        cliques=tuple(group_cliques(pcs, replica, group, group_replica)),
        group=full_name,
        group_replica=group_replica,
        group_template=group,
    )


def gangs_of_replica(pcs: PodCliqueSet, replica: int, group_replicas: Mapping[str, int]) -> Iterator[PlannedGang]:
    """All gangs of a replica; ``group_replicas`` are the live replicas of scaling groups by full name."""
    yield base_gang(pcs, replica)
    for group in pcs.spec.template.pod_clique_scaling_groups:
        count = group_replicas.get(names.scaling_group(pcs.metadata.name, replica, group.name), group.count)
        for group_replica in range(group.minimum, count):
            yield scaled_gang(pcs, replica, group, group_replica)


def parent_names(pcs: PodCliqueSet, clique_name: str) -> list[str]:
    """The cliques of the template that a clique starts after; a name that is none of them is passed over."""
    template = pcs.spec.template
    known = [clique.name for clique in template.cliques]
    match template.clique_startup_type or ANY_ORDER:
        case str() as order if order == IN_ORDER:
            position = known.index(clique_name)
            return [known[position - 1]] if position else []
        case str() as order if order == EXPLICIT:
            listed = next(clique.spec.starts_after for clique in template.cliques if clique.name == clique_name)
            return [name for name in listed if name in known]
        case _:
            return []


def _parents_in_base(pcs: PodCliqueSet, replica: int, clique_name: str) -> tuple[Parent, ...]:
    """Whom a clique of the base gang starts after: of a clique in a scaling group, all replicas in the base gang."""
    set_name = pcs.metadata.name
    templates = {clique.name: clique for clique in pcs.spec.template.cliques}
    parents = []
    for name in parent_names(pcs, clique_name):
        group = group_of(pcs, name)
        if group is None:
            full_names = [names.clique(set_name, replica, name)]
        else:
            group_name = names.scaling_group(set_name, replica, group.name)
            full_names = [names.member_clique(group_name, index, name) for index in range(group.minimum)]
        minimum = templates[name].spec.minimum
        parents += [Parent(clique=full_name, min_available=minimum) for full_name in full_names]
    return tuple(parents)


def _parents_in_replica(
    pcs: PodCliqueSet, group: ScalingGroupTemplate, group_name: str, group_replica: int, clique_name: str
) -> tuple[Parent, ...]:
    """Whom a clique of a scaled gang starts after: only cliques of the same replica of its group."""
    templates = {clique.name: clique for clique in pcs.spec.template.cliques}
    return tuple(
        Parent(clique=names.member_clique(group_name, group_replica, name), min_available=templates[name].spec.minimum)
        for name in parent_names(pcs, clique_name)
        if name in group.clique_names
    )
