"""Definitions of workloads (Kartas), checked and made ready for the rule that groups by them.

A definition says of a kind which components it has, where each says how many replicas it has, by what its pods are
known, and which of them start together. All that can be wrong with one is said here, before any pod depends on it.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

from shoal.api.run_ai import (
    KARTA_GROUP,
    KARTA_KIND,
    KARTA_VERSION,
    Karta,
    KartaComponent,
    KartaGangScheduling,
    KartaKind,
    KartaTopology,
)
from shoal.api.scheduling_run_ai import TopologyConstraint
from shoal.scheduler.grouper.jq import InvalidQuery, Path, Query, parse
from shoal.scheduler.grouper.wanted import constraint

KindKey = tuple[str, str]
"""The API version and the kind of a workload: a definition holds for one version."""

MOST_COMPONENTS: Final = 100
"""No workload is made of so many."""

_HELD: Final = frozenset(
    {("apiVersion",), ("kind",), ("spec", "schedulerName"), ("spec", "nodeName"), ("spec", "priorityClassName")}
)
"""What the grouper knows of a pod beside its metadata: of tens of thousands of pods nothing else is kept."""


class InvalidDefinition(Exception):
    """Why a definition cannot be used, in one sentence."""


@dataclass(frozen=True, kw_only=True)
class Component:
    """One part of a workload, and where to read about it."""

    name: str
    parent: str
    has_pods: bool
    """Whether it describes pods, rather than other components alone."""
    has_scale: bool
    replicas: Query | None
    min_replicas: Query | None
    instances: Query | None
    """The names of its instances, where it has several."""
    pod_instance: Query | None
    """Of a pod: the instance that it belongs to."""
    pod_key: Query | None
    """Of a pod: what tells that it belongs to the component."""
    pod_value: str | None
    """What that must be; anything will do where this is None."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """A component that is a subgroup."""

    component: str
    topology: TopologyConstraint | None


@dataclass(frozen=True, kw_only=True)
class OneGroup:
    """One group for the workload, with parts where it names some."""

    name: str
    parts: tuple[Part, ...]
    topology: TopologyConstraint | None


@dataclass(frozen=True, kw_only=True)
class Member:
    """A component whose pods are grouped by the values of their keys, as far as they pass the filters."""

    component: str
    keys: tuple[Query, ...]
    filters: tuple[Query, ...]


@dataclass(frozen=True, kw_only=True)
class Definition:
    """How the workloads of a kind are grouped."""

    name: str
    kind: KindKey
    root: str
    components: Mapping[str, Component]
    group: OneGroup | None
    """Goes before ``members``."""
    members: tuple[Member, ...]

    def below(self, name: str) -> Iterable[Component]:
        """The components right below one."""
        return (one for one in self.components.values() if one.parent == name)

    @property
    def with_pods(self) -> list[Component]:
        """The components that describe pods."""
        return [one for one in self.components.values() if one.has_pods]

    @property
    def has_scale(self) -> bool:
        """Whether any component says how many replicas it has."""
        return any(one.has_scale for one in self.components.values())


def described_kind(karta: Karta) -> KartaKind | None:
    """The kind that a definition says how to group; None where it says nothing of groups, or is about to go."""
    gangs = karta.spec.optimization_instructions.gang_scheduling
    if karta.metadata.is_deleting or gangs is None or not (gangs.pod_group or gangs.pod_groups):
        return None
    return karta.spec.structure_definition.root_component.kind or KartaKind()


def definition_of(karta: Karta) -> Definition:
    """A definition that says something of groups, made ready; raises InvalidDefinition."""
    structure, gangs = karta.spec.structure_definition, karta.spec.optimization_instructions.gang_scheduling
    root = structure.root_component
    kind = _checked_kind(karta, root)
    components: dict[str, Component] = {}
    if len(structure.child_components) >= MOST_COMPONENTS:
        raise InvalidDefinition(f"it has more than {MOST_COMPONENTS} components: leave some out")
    for one in (root, *structure.child_components):
        if one.name in components:
            raise InvalidDefinition(f"two components are named {one.name!r}: rename one")
        components[one.name] = _component(one)
    _check_ownership(root, structure.child_components, components)
    assert gangs is not None
    return Definition(
        name=karta.metadata.name,
        kind=kind,
        root=root.name,
        components=components,
        group=_one_group(gangs, components),
        members=_members(gangs, components),
    )


def _checked_kind(karta: Karta, root: KartaComponent) -> KindKey:
    kind = root.kind
    if kind is None or not (kind.group and kind.version and kind.kind):
        raise InvalidDefinition("the root component does not say its group, version and kind: add them")
    wanted = {KARTA_GROUP: kind.group, KARTA_VERSION: kind.version, KARTA_KIND: kind.kind}
    for label, value in wanted.items():
        if karta.metadata.labels.get(label) != value:
            raise InvalidDefinition(f"it is not found by the kind that it is about: set label {label}={value}")
    if root.status_definition is None:
        raise InvalidDefinition(f"the root component {root.name!r} has no statusDefinition: add one")
    return f"{kind.group}/{kind.version}", kind.kind


def _component(said: KartaComponent) -> Component:
    if not said.name:
        raise InvalidDefinition("a component has no name: name it")
    spec, scale, selector = said.spec_definition, said.scale_definition, said.pod_selector
    pods = (
        () if spec is None else (spec.pod_template_spec_path, spec.pod_spec_path, spec.fragmented_pod_spec_definition)
    )
    if sum(one is not None for one in pods) > 1:
        raise InvalidDefinition(f"the component {said.name!r} describes its pods in several ways: leave one")
    by_type = None if selector is None else selector.component_type_selector
    by_instance = None if selector is None else selector.component_instance_selector
    if (said.instance_id_path is None) is not (by_instance is None):
        raise InvalidDefinition(
            f"the component {said.name!r} has one of instanceIdPath and podSelector.componentInstanceSelector: add "
            "the other"
        )
    where = f"the component {said.name!r}"
    return Component(
        name=said.name,
        parent=said.owner_ref or "",
        has_pods=any(one is not None for one in pods),
        has_scale=scale is not None,
        replicas=None if scale is None else _query(scale.replicas_path, f"replicasPath of {where}"),
        min_replicas=None if scale is None else _query(scale.min_replicas_path, f"minReplicasPath of {where}"),
        instances=_query(said.instance_id_path, f"instanceIdPath of {where}"),
        pod_instance=None if by_instance is None else _of_pod(by_instance.id_path, f"idPath of {where}"),
        pod_key=None if by_type is None else _of_pod(by_type.key_path, f"keyPath of {where}"),
        pod_value=None if by_type is None else by_type.value,
    )


def _check_ownership(
    root: KartaComponent, children: Iterable[KartaComponent], components: Mapping[str, Component]
) -> None:
    if root.owner_ref is not None:
        raise InvalidDefinition(f"the root component {root.name!r} has an ownerRef: remove it")
    for child in children:
        if not child.owner_ref:
            raise InvalidDefinition(f"the component {child.name!r} has no ownerRef: name the component above it")
        if child.owner_ref not in components:
            raise InvalidDefinition(
                f"the component {child.name!r} has ownerRef {child.owner_ref!r}, which is not there"
            )
        passed, above = {child.name}, child.owner_ref
        while above != root.name:
            if above in passed:
                raise InvalidDefinition(f"the component {child.name!r} lies below itself: change an ownerRef")
            passed.add(above)
            above = components[above].parent


def _one_group(gangs: KartaGangScheduling, components: Mapping[str, Component]) -> OneGroup | None:
    said = gangs.pod_group
    if said is None:
        return None
    if not said.name:
        raise InvalidDefinition("podGroup has no name: name it")
    for part in said.sub_groups:
        if part.component_name not in components:
            raise InvalidDefinition(f"a subgroup is of the component {part.component_name!r}, which is not there")
    parts = tuple(
        Part(component=part.component_name, topology=_topology(part.topology, f"subgroup {part.component_name!r}"))
        for part in said.sub_groups
    )
    return OneGroup(name=said.name, parts=parts, topology=_topology(said.topology, "podGroup"))


def _topology(said: KartaTopology | None, where: str) -> TopologyConstraint | None:
    if said is None:
        return None
    if not said.topology_name:
        raise InvalidDefinition(f"the topology of {where} has no topologyName: name it")
    if not (said.preferred_topology_level or said.required_topology_level):
        raise InvalidDefinition(f"the topology of {where} names no level: add a preferred or a required one")
    return constraint(said.topology_name, said.required_topology_level, said.preferred_topology_level)


def _members(gangs: KartaGangScheduling, components: Mapping[str, Component]) -> tuple[Member, ...]:
    said = [member for group in gangs.pod_groups for member in group.members]
    for member in said:
        if member.component_name not in components:
            raise InvalidDefinition(
                f"a member of a group is the component {member.component_name!r}, which is not there"
            )
    return tuple(
        Member(
            component=member.component_name,
            keys=tuple(
                _of_pod(path, f"a key of member {member.component_name!r}") for path in member.group_by_key_paths
            ),
            filters=tuple(_of_pod(path, f"a filter of member {member.component_name!r}") for path in member.filters),
        )
        for member in said
    )


def _query(text: str | None, where: str) -> Query | None:
    """An expression, if there is one; an empty one counts as none."""
    if not text:
        return None
    try:
        return parse(text)
    except InvalidQuery as error:
        raise InvalidDefinition(f"{where} is {text!r}: {error}") from error


def _of_pod(text: str, where: str) -> Query:
    """An expression that is read of pods, of which not everything is at hand."""
    query = _query(text, where)
    if query is None:
        raise InvalidDefinition(f"{where} is empty: write where to look in a pod")
    if unknown := next((path for path in sorted(query.reads()) if not _is_held(path)), None):
        raise InvalidDefinition(f"{where} is {text!r}: .{'.'.join(unknown)} of pods is not looked at, use a label")
    if () in query.reads():
        raise InvalidDefinition(f"{where} is {text!r}: name a field of pods, such as a label")
    return query


def _is_held(path: Path) -> bool:
    return path == () or path[0] == "metadata" or path in _HELD
