"""The PodGroup that pods ask for, as a value, and how it is written to the server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

import msgspec

from shoal.api import kai_names
from shoal.api.meta import OwnerReference, dns1123_label_problems, dns1123_subdomain_problems
from shoal.api.scheduling_run_ai import PodGroupSpec, SubGroup, TopologyConstraint
from shoal.scheduler.grouper.fields import Ungroupable
from shoal.scheduler.grouper.pods import GroupedPod

MOST_SEGMENTS: Final = 10_000
"""So many segments a gang may be cut into."""


def in_no_part(pod: GroupedPod) -> str:
    """Pods of a group without parts are in none."""
    return ""


@dataclass(frozen=True, kw_only=True)
class GroupWanted:
    """One PodGroup, and in which of its parts each pod is."""

    name: str
    namespace: str
    owner: OwnerReference
    labels: Mapping[str, str]
    annotations: Mapping[str, str]
    queue: str
    priority_class: str
    preemptibility: str = ""
    preemption_delay: str = ""
    staleness_grace_period: str = ""
    min_member: int | None = 1
    """Pods that must start together; None where ``min_sub_group`` says it."""
    min_sub_group: int | None = None
    sub_groups: tuple[SubGroup, ...] = ()
    topology: TopologyConstraint | None = None
    part_of: Callable[[GroupedPod], str] = field(default=in_no_part, compare=False)
    """The subgroup of a pod; empty where it is in none."""

    def body(self, movable: frozenset[str]) -> dict[str, Any]:
        """What the grouper insists on; labels that are ``movable`` belong to whoever moves the group."""
        spec = PodGroupSpec(
            min_member=self.min_member,
            min_sub_group=self.min_sub_group,
            priority_class_name=self.priority_class,
            preemptibility=self.preemptibility,
            sub_groups=list(self.sub_groups),
            topology_constraint=self.topology,
            preemption_delay=self.preemption_delay,
            staleness_grace_period=self.staleness_grace_period,
        )
        labels = {key: value for key, value in self.labels.items() if key not in movable}
        metadata = {
            "name": self.name,
            "namespace": self.namespace,
            **({"labels": labels} if labels else {}),
            "annotations": dict(self.annotations),
        }
        return {"metadata": metadata, "spec": msgspec.to_builtins(spec)}

    def initial(self, movable: frozenset[str]) -> dict[str, Any]:
        """What the group begins with, and others may change: where it waits."""
        labels = {key: value for key, value in self.labels.items() if key in movable}
        return {"spec": {"queue": self.queue}, **({"metadata": {"labels": labels}} if labels else {})}


def checked(group: GroupWanted) -> GroupWanted:
    """The group itself; raises Ungroupable where the server would refuse its names."""
    if problems := dns1123_subdomain_problems(group.name):
        raise Ungroupable(f"the PodGroup would be named {group.name!r}, which {problems[0]}")
    names = Counter(part.name for part in group.sub_groups)
    if twice := next((name for name, times in names.items() if times > 1), ""):
        raise Ungroupable(f"two subgroups would be named {twice!r}: rename one of the parts")
    for part in group.sub_groups:
        if problems := dns1123_label_problems(part.name):
            raise Ungroupable(f"a subgroup would be named {part.name!r}, which {problems[0]}: rename that part")
    return group


def constraint(topology: str, required: str, preferred: str) -> TopologyConstraint | None:
    """How close together pods run; None where nothing says so."""
    if not (topology or required or preferred):
        return None
    return TopologyConstraint(topology=topology, required_topology_level=required, preferred_topology_level=preferred)


def annotated_constraint(annotations: Mapping[str, str]) -> TopologyConstraint | None:
    """The constraint that annotations ask for."""
    return constraint(
        annotations.get(kai_names.TOPOLOGY, ""),
        annotations.get(kai_names.TOPOLOGY_REQUIRED, ""),
        annotations.get(kai_names.TOPOLOGY_PREFERRED, ""),
    )
