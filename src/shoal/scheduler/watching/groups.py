"""Which gang a pod belongs to, in whichever dialect it says so.

A pod belongs to exactly one gang. One that says nothing is its own, unless the grouper is still to say where it is.
What a pod names need not be the whole gang: several PodGroups may start together. Then a `Seat` says which gang those
belong to who name one of them, and where in it they are.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from enum import Enum
from typing import Final, NamedTuple

from shoal.api import kai_names as names
from shoal.api.core.pods import Pod, WorkloadReference

SCHEDULERS: Final = frozenset({names.SCHEDULER, "grove-scheduler", "default-scheduler", "koord-scheduler", "volcano"})
"""Whose pods one process can schedule, all dialects together."""
GROUPED_SCHEDULERS: Final = frozenset({names.SCHEDULER, "grove-scheduler"})
"""Of these, those whose pods wait until the grouper has said where they belong."""

COSCHEDULING_LABELS: Final = (
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
    "scheduling.x-k8s.io/pod-group",
)
KOORDINATOR: Final = "gang.scheduling.koordinator.sh"
"""What Koordinator's annotations begin with."""
VOLCANO_ANNOTATIONS: Final = ("scheduling.volcano.sh/group-name", "scheduling.k8s.io/group-name")


class Dialect(Enum):
    """Who speaks of gangs, and how."""

    KAI = "kai"
    WORKLOAD = "workload"
    COSCHEDULING = "coscheduling"
    VOLCANO = "volcano"
    PLAIN = "plain"


class GangKey(NamedTuple):
    """One gang, whatever it is called where."""

    dialect: Dialect
    namespace: str
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Seat:
    """Where in which gang those pods are that name one thing."""

    gang: GangKey
    pod_set: str = ""
    rule: Callable[[Pod], str] | None = None
    """Where pods of one name are in several pod sets: that of each."""

    def pod_set_of(self, pod: Pod) -> str:
        """The pod set of a pod."""
        return self.pod_set if self.rule is None else self.rule(pod)


class Membership(NamedTuple):
    """A pod's gang, and the name of its pod set there."""

    gang: GangKey
    pod_set: str


def gang_of(pod: Pod) -> GangKey:
    """The gang that a pod names. What Kubernetes itself says of a pod goes before what a grouper put on it."""
    metadata, spec = pod.metadata, pod.spec
    labels, annotations = metadata.labels, metadata.annotations
    if spec.workload_ref is not None and spec.workload_ref.name:
        return GangKey(Dialect.WORKLOAD, metadata.namespace, _group_of_workload(spec.workload_ref))
    if spec.scheduling_group is not None and (group := spec.scheduling_group.pod_group_name):
        return GangKey(Dialect.WORKLOAD, metadata.namespace, f"podgroup/{group}")
    if group := annotations.get(names.POD_GROUP, ""):
        return GangKey(Dialect.KAI, metadata.namespace, group)
    if group := _first(labels, COSCHEDULING_LABELS) or annotations.get(f"{KOORDINATOR}/name", ""):
        return GangKey(Dialect.COSCHEDULING, metadata.namespace, group)
    if group := _first(annotations, VOLCANO_ANNOTATIONS):
        return GangKey(Dialect.VOLCANO, metadata.namespace, group)
    return GangKey(Dialect.PLAIN, metadata.namespace, metadata.name)


def _group_of_workload(reference: WorkloadReference) -> str:
    parts = ("workload", reference.name, reference.pod_group, reference.pod_group_replica_key)
    return "/".join(part for part in parts if part)


def _first(marks: Mapping[str, str], keys: Iterable[str]) -> str:
    return next((value for key in keys if (value := marks.get(key))), "")
