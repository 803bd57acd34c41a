"""Grove's pods where no backend of gangs speaks for them: a group for each PodGang, a part for each of its cliques."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Final

from shoal.api import kai_names
from shoal.api.scheduling_run_ai import SubGroup, TopologyConstraint
from shoal.scheduler.grouper.base import flat_group
from shoal.scheduler.grouper.case import Case, inheriting
from shoal.scheduler.grouper.fields import (
    Json,
    Ungroupable,
    annotations_of,
    at,
    count,
    described,
    labels_of,
    number,
    text,
)
from shoal.scheduler.grouper.kinds.reference import Reference
from shoal.scheduler.grouper.pods import GroupedPod
from shoal.scheduler.grouper.wanted import GroupWanted, constraint

GANG: Final = "grove.io/podgang"
CLIQUE: Final = "grove.io/podclique"
"""Labels of Grove's pods."""

_TOPOLOGY_NAME: Final = "grove.io/topology-name"
_CLIQUES: Final = ("spec", "podgroups")
_PARTS: Final = ("spec", "topologyConstraintGroupConfigs")


def pod_gang_beside(case: Case) -> Reference | None:
    """The PodGang that a pod's label names."""
    name = case.pod.metadata.labels.get(GANG, "")
    return Reference(api_version="scheduler.grove.io/v1alpha1", kind="PodGang", name=name) if name else None


def pod_clique_set(case: Case) -> GroupWanted:
    """The cliques of a PodGang start together, each with its minimum; what is kept together is a part around them."""
    if case.beside is None:
        where = f"pod {case.pod.metadata.namespace}/{case.pod.metadata.name}"
        raise Ungroupable(f"{where} of {described(case.top)} has no label {GANG}: its PodGang is not known without one")
    gang = inheriting(case.beside, case.top)
    cliques = [_clique(gang, index) for index in range(count(gang, *_CLIQUES))]
    parents, parts = _kept_together(gang, [clique.name for clique in cliques])
    leaves = [_within(clique, parents.get(clique.name, "")) for clique in cliques]
    group = flat_group(case, gang)
    named = text(gang, "spec", "priorityClassName") if kai_names.PRIORITY_CLASS not in labels_of(gang) else ""
    return replace(
        group,
        priority_class=named or group.priority_class,
        min_member=sum(clique.min_member or 0 for clique in cliques),
        sub_groups=(*parts, *leaves),
        topology=_placement(gang, "spec") or group.topology,
        part_of=_part_of(gang, frozenset(clique.name for clique in cliques)),
    )


def _clique(gang: Json, index: int) -> SubGroup:
    path = (*_CLIQUES, index)
    name, minimum = text(gang, *path, "name"), number(gang, *path, "minReplicas")
    if not name or minimum is None or minimum < 1:
        raise Ungroupable(f"{described(gang)} has a podgroup {name!r} with minReplicas {minimum}: put 1 or more there")
    return SubGroup(name=name, min_member=minimum, topology_constraint=_placement(gang, *path))


def _kept_together(gang: Json, cliques: list[str]) -> tuple[dict[str, str], list[SubGroup]]:
    """In which part each clique is, the first that names it, and the parts that have any."""
    parents: dict[str, str] = {}
    names: list[tuple[str, TopologyConstraint | None]] = []
    for index in range(count(gang, *_PARTS)):
        name = text(gang, *_PARTS, index, "name")
        if not name:
            raise Ungroupable(f"{described(gang)} has a part of topologyConstraintGroupConfigs without a name: name it")
        for clique in at(gang, *_PARTS, index, "podGroupNames") or ():
            if clique in cliques:
                parents.setdefault(clique, name)
        names.append((name, _placement(gang, *_PARTS, index)))
    sizes = {name: list(parents.values()).count(name) for name, _ in names}
    parts = [
        SubGroup(name=name, min_sub_group=sizes[name], topology_constraint=placement)
        for name, placement in names
        if sizes[name]
    ]
    return parents, parts


def _within(clique: SubGroup, parent: str) -> SubGroup:
    return SubGroup(
        name=clique.name,
        parent=parent,
        min_member=clique.min_member,
        topology_constraint=clique.topology_constraint,
    )


def _placement(gang: Json, *path: str | int) -> TopologyConstraint | None:
    where = (*path, "topologyConstraint", "packConstraint")
    required, preferred = text(gang, *where, "required"), text(gang, *where, "preferred")
    if not (required or preferred):
        return None
    annotations = annotations_of(gang)
    topology = annotations.get(_TOPOLOGY_NAME) or annotations.get(kai_names.TOPOLOGY, "")
    if not topology:
        raise Ungroupable(
            f"{described(gang)} asks for a placement and does not say in which topology: set annotation "
            f"{_TOPOLOGY_NAME} to the name of a Topology"
        )
    return constraint(topology, required, preferred)


def _part_of(gang: Json, cliques: frozenset[str]) -> Callable[[GroupedPod], str]:
    listed: Mapping[tuple[str, str], str] = {
        (reference.get("namespace", ""), reference.get("name", "")): text(gang, *_CLIQUES, index, "name")
        for index in range(count(gang, *_CLIQUES))
        for reference in at(gang, *_CLIQUES, index, "podReferences") or ()
    }

    def part_of(pod: GroupedPod) -> str:
        """The clique that lists the pod, or, as long as none does, the one that the pod's label names."""
        part = listed.get((pod.metadata.namespace, pod.metadata.name)) or pod.metadata.labels.get(CLIQUE, "")
        return part if part in cliques else ""

    return part_of
