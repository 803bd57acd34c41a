"""Kubernetes' own gangs: groups of a Workload in 1.35 (v1alpha1), PodGroups since 1.36, parts of others since 1.37.

A group is a gang of so many pods (``gang``), or says only that its pods belong together (``basic``): then each starts
when it can. A group of a Workload may be there several times, once for each replica key of its pods. PodGroups that are
parts of a CompositePodGroup are one gang with it, up to the one that is part of none.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from shoal.api.core.pods import Pod
from shoal.api.meta import Object, Resource, Wire
from shoal.api.scheduling_k8s_io import GROUP, POD_GROUPS_V1ALPHA2, POD_GROUPS_V1ALPHA3, WORKLOADS_V1ALPHA1
from shoal.scheduler.watching.dialects.plans import Branch, Facts, Leaf, Nearness, Plan, alone, missing, planned
from shoal.scheduler.watching.groups import Dialect, GangKey, Seat

WORKLOAD: Final = "workload"
POD_GROUP: Final = "podgroup"
COMPOSITE: Final = "compositepodgroup"
"""What the keys of gangs begin with, by what they are made of."""


class GangPolicy(Wire, frozen=True, kw_only=True):
    """All or nothing."""

    min_count: int = 1
    """Pods."""
    min_group_count: int = 1
    """Parts, where a group has parts."""


class Policy(Wire, frozen=True, kw_only=True):
    """Whether a group is a gang."""

    gang: GangPolicy | None = None
    basic: dict[str, Any] | None = None


class WorkloadGroup(Wire, frozen=True, kw_only=True):
    """A group of a Workload."""

    name: str = ""
    policy: Policy = Policy()


class WorkloadSpec(Wire, frozen=True, kw_only=True):
    """The groups of a Workload, in 1.35."""

    pod_groups: list[WorkloadGroup] = []


class Workload(Object, frozen=True, kw_only=True):
    """Groups of pods that belong to one piece of work."""

    spec: WorkloadSpec = WorkloadSpec()


class NodeLabel(Wire, frozen=True, kw_only=True):
    """A label of nodes whose value all pods of a group must share."""

    key: str = ""


class SchedulingConstraints(Wire, frozen=True, kw_only=True):
    """Where the pods of a group may be."""

    topology: list[NodeLabel] = []


class WorkloadName(Wire, frozen=True, kw_only=True):
    """The Workload that a group was made from."""

    workload_name: str = ""


class TemplateReference(Wire, frozen=True, kw_only=True):
    """The same in 1.36."""

    workload: WorkloadName | None = None


class PodGroupSpec(Wire, frozen=True, kw_only=True):
    """A group of pods, or of groups."""

    scheduling_policy: Policy = Policy()
    scheduling_constraints: SchedulingConstraints | None = None
    priority_class_name: str = ""
    priority: int | None = None
    parent_composite_pod_group_name: str = ""
    pod_group_template_ref: TemplateReference | None = None
    workload_ref: WorkloadName | None = None


class PodGroup(Object, frozen=True, kw_only=True):
    """Pods that belong together."""

    spec: PodGroupSpec = PodGroupSpec()


class CompositePodGroup(Object, frozen=True, kw_only=True):
    """Groups that belong together."""

    spec: PodGroupSpec = PodGroupSpec()


WORKLOADS: Final = WORKLOADS_V1ALPHA1.view(Workload)
POD_GROUPS: Final = (POD_GROUPS_V1ALPHA3.view(PodGroup), POD_GROUPS_V1ALPHA2.view(PodGroup))
"""The newest first."""
COMPOSITES: Final = Resource(
    type=CompositePodGroup, group=GROUP, version="v1alpha3", kind="CompositePodGroup", plural="compositepodgroups"
)


def workload_name(group: PodGroup) -> str:
    """The Workload that a PodGroup was made from; "" where it says none."""
    template = group.spec.pod_group_template_ref
    named = group.spec.workload_ref or (template.workload if template is not None else None)
    return named.workload_name if named is not None else ""


def plan_of_workload(workload: Workload, gang: GangKey, pods: Sequence[Pod], facts: Facts) -> Plan | None:
    """The gang of a group of a Workload, and of one replica of it; None where the Workload has no such group."""
    group = gang.name.split("/")[2:3]
    found = next((one for one in workload.spec.pod_groups if [one.name] == group), None)
    if found is None:
        return None
    root = alone(_minimum(found.policy))
    return planned(facts, gang.name, [workload], pods, root, namespace=gang.namespace)


def seat_of_group(group: PodGroup, composites: Mapping[str, CompositePodGroup]) -> Seat | None:
    """Where the pods of a PodGroup are; None as long as something that it is a part of is not there."""
    namespace, name = group.metadata.namespace, group.metadata.name
    parent = group.spec.parent_composite_pod_group_name
    if not parent:
        return Seat(gang=GangKey(Dialect.WORKLOAD, namespace, f"{POD_GROUP}/{name}"))
    seen = {parent}
    while True:
        found = composites.get(parent)
        if found is None:
            return None
        above = found.spec.parent_composite_pod_group_name
        if not above:
            return Seat(gang=GangKey(Dialect.WORKLOAD, namespace, f"{COMPOSITE}/{parent}"), pod_set=name)
        if above in seen:
            return None
        seen.add(above)
        parent = above


def plan_of_group(group: PodGroup, sources: Sequence[Object], pods: Iterable[Pod], facts: Facts) -> Plan:
    """The gang of a PodGroup that is part of nothing. ``sources``: the Workload that it was made from."""
    name = f"{POD_GROUP}.{GROUP}/{group.metadata.name}"
    spec = group.spec
    return planned(
        facts,
        name,
        [group, *sources],
        pods,
        alone(_minimum(spec.scheduling_policy), _near(spec)),
        namespace=group.metadata.namespace,
        priority_class=spec.priority_class_name,
        priority=spec.priority,
    )


def plan_of_composite(
    root: str,
    composites: Mapping[str, CompositePodGroup],
    groups: Iterable[PodGroup],
    sources: Sequence[Object],
    pods: Iterable[Pod],
    facts: Facts,
) -> Plan:
    """The gang of a CompositePodGroup that is part of nothing, with all of its parts."""
    whole = composites[root]
    members = sorted(groups, key=lambda group: group.metadata.name)
    return planned(
        facts,
        f"{COMPOSITE}/{root}",
        [whole, *members, *sources],
        pods,
        _branch(whole, composites, members, name=""),
        namespace=whole.metadata.namespace,
        priority_class=whole.spec.priority_class_name,
        priority=whole.spec.priority,
    )


def _branch(
    whole: CompositePodGroup, composites: Mapping[str, CompositePodGroup], groups: Sequence[PodGroup], *, name: str
) -> Branch:
    own = whole.metadata.name
    inner = sorted(one.metadata.name for one in composites.values() if one.spec.parent_composite_pod_group_name == own)
    branches = tuple(_branch(composites[one], composites, groups, name=one) for one in inner)
    leaves = tuple(
        Leaf(
            name=group.metadata.name,
            min_member=_minimum(group.spec.scheduling_policy),
            near=_near(group.spec),
        )
        for group in groups
        if group.spec.parent_composite_pod_group_name == own
    )
    gang = whole.spec.scheduling_policy.gang
    needed = gang.min_group_count if gang is not None else 0
    return Branch(
        name=name,
        min_children=needed,
        near=_near(whole.spec),
        branches=branches,
        leaves=leaves + missing(needed - len(branches) - len(leaves)),
    )


def _minimum(policy: Policy) -> int:
    return policy.gang.min_count if policy.gang is not None else 0


def _near(spec: PodGroupSpec) -> Nearness | None:
    """All values that must be shared, together: one level of several labels."""
    constraints = spec.scheduling_constraints
    levels = tuple(one.key for one in constraints.topology if one.key) if constraints is not None else ()
    return Nearness(levels=levels, required=levels[-1]) if levels else None
