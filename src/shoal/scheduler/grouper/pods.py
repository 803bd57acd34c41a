"""Pods as the grouper sees them, and which of them are none of its business.

A pod belongs to exactly one gang. What another has put into a gang, by whatever mark its scheduler reads, is left as it
is: the grouper speaks for those pods alone that nobody speaks for.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from shoal.api import kai_names
from shoal.api.core import PODS
from shoal.api.meta import SUBDOMAIN_LIMIT, Object, Wire, fit_name

SPARK_NAME: Final = "spark-app-name"
SPARK_SELECTOR: Final = "spark-app-selector"

_GROUP_LABELS: Final = (
    "pod-group.scheduling.sigs.k8s.io",
    "pod-group.scheduling.sigs.k8s.io/name",
    "scheduling.x-k8s.io/pod-group",
)
"""Labels by which coscheduling and Koordinator know a pod's PodGroup."""

_GROUP_ANNOTATIONS: Final = ("scheduling.volcano.sh/group-name", "scheduling.k8s.io/group-name")
"""Annotations by which Volcano knows a pod's PodGroup."""


class SchedulingGroup(Wire, frozen=True, kw_only=True):
    """Kubernetes' own link from a pod to its PodGroup, since 1.36."""

    pod_group_name: str = ""


class GroupedPodSpec(Wire, frozen=True, kw_only=True):
    """What of a pod decides about its group."""

    scheduler_name: str = ""
    node_name: str = ""
    priority_class_name: str = ""
    workload_ref: dict[str, Any] | None = None
    scheduling_group: SchedulingGroup | None = None


class GroupedPodStatus(Wire, frozen=True, kw_only=True):
    """How far a pod is."""

    phase: str = ""


class GroupedPod(Object, frozen=True, kw_only=True):
    """A pod, as far as its group depends on it."""

    spec: GroupedPodSpec = GroupedPodSpec()
    status: GroupedPodStatus = GroupedPodStatus()

    @property
    def is_over(self) -> bool:
        """Whether the pod has ended, or is about to."""
        return self.metadata.is_deleting or self.status.phase in ("Succeeded", "Failed")


GROUPED_PODS: Final = PODS.view(GroupedPod)


def is_grouped_elsewhere(pod: GroupedPod, *, gang_has_backend: bool = False) -> bool:
    """Whether a pod is in a gang already that the grouper did not make, or wants to be left alone.

    ``gang_has_backend`` says that a backend of gangs keeps the PodGroup of the pod's PodGang.
    """
    metadata, spec = pod.metadata, pod.spec
    group = metadata.annotations.get(kai_names.POD_GROUP)
    return (
        wants_no_group(metadata.annotations)
        or gang_has_backend
        or (group is not None and not metadata.owner_references and group != own_group_name(pod))
        or bool(spec.workload_ref)
        or bool(spec.scheduling_group and spec.scheduling_group.pod_group_name)
        or any(metadata.labels.get(mark) for mark in _GROUP_LABELS)
        or any(metadata.annotations.get(mark) for mark in _GROUP_ANNOTATIONS)
    )


def wants_no_group(annotations: dict[str, str]) -> bool:
    """Whether the user asks the grouper to keep away from an object and everything below it."""
    return annotations.get(kai_names.SKIP_GROUPER) == "true"


def own_group_name(pod: GroupedPod) -> str:
    """The group of a pod that nobody owns."""
    return pod.metadata.labels[SPARK_SELECTOR] if is_of_spark(pod) else group_name(pod.metadata.name, pod.metadata.uid)


def is_of_spark(pod: GroupedPod) -> bool:
    """Whether Spark made the pod, driver or executor."""
    return bool(pod.metadata.labels.get(SPARK_NAME) and pod.metadata.labels.get(SPARK_SELECTOR))


def group_name(name: str, uid: str) -> str:
    """The group of an owner: its uid keeps the pods of an earlier owner of the same name out."""
    if len(f"pg-{name}-{uid}") <= SUBDOMAIN_LIMIT:
        return f"pg-{name}-{uid}"
    return f"pg-{fit_name(name, SUBDOMAIN_LIMIT - len(uid) - 4)}-{uid}"


def as_owner(pod: GroupedPod) -> dict[str, Any]:
    """A pod as the owner of its own group."""
    metadata = pod.metadata
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": metadata.name,
            "namespace": metadata.namespace,
            "uid": metadata.uid,
            "labels": metadata.labels,
            "annotations": metadata.annotations,
        },
    }


_WRITTEN_LATER: Final = frozenset(
    {
        kai_names.POD_GROUP,
        kai_names.SUBGROUP,
        kai_names.RECEIVED_RESOURCE_TYPE,
        kai_names.SHARED_GPU_CONFIG_MAP,
        kai_names.RESERVED_GPU_INDEX,
        kai_names.NUMA_PREDICTED,
        kai_names.NUMA_OBSERVED,
        kai_names.GPU_GROUP,
    }
)


def is_written_later(key: str) -> bool:
    """Whether a mark is put on pods while they are scheduled: the group of a pod is not to change with each of them."""
    return key in _WRITTEN_LATER or key.startswith(f"{kai_names.GPU_GROUP}/")


def facts_of(pod: GroupedPod) -> tuple[Any, ...]:
    """Everything of a pod that a reconcile looks at."""
    metadata = msgspec.structs.replace(pod.metadata, resource_version="", generation=0, finalizers=[])
    return (metadata, pod.spec, pod.is_over)
