"""Kinds that no rule here knows, but a definition in the cluster does (a Karta): grouped as it says.

In its newer form a definition asks for one group, whose parts are components; in the older one the pods of a component
are grouped by keys that they carry. How many start together follows from the replicas: those of a component times those
of everything below it, where both say some.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import msgspec

from shoal.api.scheduling_run_ai import SubGroup
from shoal.scheduler.grouper.base import flat_group
from shoal.scheduler.grouper.case import Case
from shoal.scheduler.grouper.definitions import Component, Definition, Member, OneGroup
from shoal.scheduler.grouper.fields import Json, Ungroupable, described, uid_of
from shoal.scheduler.grouper.jq import Query, QueryFailed, shown
from shoal.scheduler.grouper.pods import GroupedPod
from shoal.scheduler.grouper.wanted import GroupWanted


def karta(case: Case, definition: Definition) -> GroupWanted:
    """The group of a pod whose topmost owner is of the kind that a definition is about."""
    workload = _Workload(owner=case.top, definition=definition)
    if definition.group is not None:
        return _whole(case, workload, definition.group)
    return _by_keys(case, workload)


def _whole(case: Case, workload: _Workload, said: OneGroup) -> GroupWanted:
    """One group; all its parts start together, or all pods where it has none."""
    group = flat_group(case)
    group = replace(group, name=_group_name(case, said.name), topology=group.topology or said.topology)
    if not said.parts:
        return replace(group, min_member=max(1, workload.pods_of(workload.definition.root)))
    parts = tuple(
        SubGroup(
            name=part.component, min_member=workload.pods_of_part(part.component), topology_constraint=part.topology
        )
        for part in said.parts
    )

    def part_of(pod: GroupedPod) -> str:
        seen = _seen(pod)
        return next((part.component for part in said.parts if workload.has(part.component, seen)), "")

    return replace(group, min_member=None, min_sub_group=len(parts), sub_groups=parts, part_of=part_of)


def _by_keys(case: Case, workload: _Workload) -> GroupWanted:
    """A group for each value of the keys that the pods of a component carry."""
    seen = _seen(case.pod)
    component = workload.component_of(seen)
    member = workload.member_of(component, seen)
    keys = [workload.word(key, seen) for key in member.keys]
    instance = workload.instance_of(component, seen) if member.component == component.name else ""
    minimum = max(1, workload.pods_of(member.component, instance))
    return replace(flat_group(case), name=_group_name(case, *keys), min_member=minimum)


def _group_name(case: Case, *words: str) -> str:
    return "-".join(("pg", uid_of(case.top), *words))


def _seen(pod: GroupedPod) -> Json:
    """A pod as definitions see it."""
    content: dict[str, Any] = msgspec.to_builtins(pod)
    return {**content, "apiVersion": "v1", "kind": "Pod"}


@dataclass(frozen=True, kw_only=True)
class _Workload:
    """A workload, read by the definition of its kind."""

    owner: Json
    definition: Definition

    def pods_of(self, name: str, instance: str = "") -> int:
        """How many pods a component and all below it start with, or a single instance of it."""
        if self.definition.has_scale:
            return self._scaled(self.definition.components[name], instance)
        return self._counted(self.definition.components[name], instance)

    def pods_of_part(self, name: str) -> int:
        """The same for a part of a group, which cannot be empty."""
        pods = self.pods_of(name)
        if pods < 1:
            raise self._problem(f"the component {name!r} has no replicas: a part of a group needs at least one")
        return pods

    def has(self, name: str, pod: Json) -> bool:
        """Whether a pod belongs to a component, or to one below it."""
        component = self.definition.components[name]
        return self._selects(component, pod) or any(self.has(one.name, pod) for one in self.definition.below(name))

    def component_of(self, pod: Json) -> Component:
        """The component that a pod belongs to; where one alone describes pods, it is that one."""
        components = self.definition.with_pods
        if len(components) == 1:
            return components[0]
        found = next((one for one in components if self._selects(one, pod)), None)
        if found is None:
            raise self._problem(f"pod {pod['metadata']['name']} is of no component: check its labels")
        return found

    def member_of(self, component: Component, pod: Json) -> Member:
        """What is said of the pods of a component, or else of the one above it, and so on upwards."""
        name = component.name
        while name:
            for member in self.definition.members:
                if member.component == name and all(self._single(one, pod) is True for one in member.filters):
                    return member
            name = self.definition.components[name].parent
        raise self._problem(f"pod {pod['metadata']['name']} is a member of no group: check the filters")

    def instance_of(self, component: Component, pod: Json) -> str:
        """The instance of its component that a pod belongs to; empty where there is but one."""
        if component.pod_instance is None:
            return ""
        instance, there = self.word(component.pod_instance, pod), self._instances(component)
        if instance not in there:
            raise self._problem(
                f"{component.name!r} has the instances {', '.join(there)} and the pod is of {instance!r}"
            )
        return instance

    def word(self, query: Query, pod: Json) -> str:
        """A value of a pod that names something."""
        found = self._single(query, pod)
        if isinstance(found, list | dict):
            raise self._problem(f"{query.text} gives {shown(found)} in place of a text")
        return found if isinstance(found, str) else msgspec.json.encode(found).decode()

    def _scaled(self, component: Component, instance: str = "") -> int:
        """By the replicas that components say; one that says none leaves it to those above or below."""
        scales = self._scales(component)
        if instance and instance not in scales:
            raise self._problem(f"{component.name!r} has no instance {instance!r}")
        own = scales[instance] if instance else sum(scales.values())
        below = sum(self._scaled(one) for one in self.definition.below(component.name))
        return own * below if own and below else own or below

    def _counted(self, component: Component, instance: str = "") -> int:
        """Where nobody says any replicas: each component that describes pods has one, or one for each instance."""
        if component.has_pods:
            return 1 if instance or component.instances is None else len(self._instances(component))
        return sum(self._counted(one) for one in self.definition.below(component.name))

    def _scales(self, component: Component) -> Mapping[str, int]:
        """The replicas of each instance of a component: its minimum, or what it has where there is none."""
        minimums, replicas = self._numbers(component.min_replicas), self._numbers(component.replicas)
        count = max(len(minimums), len(replicas))
        if not count:
            return {}
        instances = self._instances(component)
        if len(instances) != count:
            raise self._problem(f"{component.name!r} has {len(instances)} instances and the replicas of {count}")
        minimums += [0] * (count - len(minimums))
        replicas += [0] * (count - len(replicas))
        return {name: least or some for name, least, some in zip(instances, minimums, replicas, strict=True)}

    def _instances(self, component: Component) -> list[str]:
        """The names of the instances of a component; one without a name where it has but one."""
        if component.instances is None:
            return [""]
        found = self._results(component.instances, self.owner)
        if not all(isinstance(name, str) and name for name in found):
            raise self._problem(
                f"{component.instances.text} does not give the names of instances, but {_listed(found)}"
            )
        return found

    def _numbers(self, query: Query | None) -> list[int]:
        return [] if query is None else [self._number(query, found) for found in self._results(query, self.owner)]

    def _number(self, query: Query, found: Any) -> int:
        """A count; 0 where there is none, or less than none."""
        if found is None:
            return 0
        if isinstance(found, str) and found.isdecimal() and len(found) < 10:
            return int(found)
        if isinstance(found, bool) or not isinstance(found, int | float) or abs(found) >= 2**31 or found != int(found):
            raise self._problem(f"{query.text} gives {shown(found)} in place of a whole number")
        return max(0, int(found))

    def _selects(self, component: Component, pod: Json) -> bool:
        if component.pod_key is None:
            return False
        found = self._results(component.pod_key, pod)
        if component.pod_value is None:
            return any(one is not None for one in found)
        return component.pod_value in found

    def _single(self, query: Query, pod: Json) -> Any:
        found = self._results(query, pod)
        if len(found) != 1 or found[0] in (None, ""):
            raise self._problem(f"{query.text} gives {_listed(found)} for pod {pod['metadata']['name']}, not one value")
        return found[0]

    def _results(self, query: Query, found: Json) -> list[Any]:
        try:
            return query.results(found)
        except QueryFailed as error:
            raise self._problem(f"{query.text}: {error}") from error

    def _problem(self, what: str) -> Ungroupable:
        return Ungroupable(f"{described(self.owner)} cannot be grouped by Karta {self.definition.name}: {what}")


def _listed(found: list[Any]) -> str:
    return ", ".join(map(shown, found[:5])) or "nothing"
