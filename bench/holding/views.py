"""What a scheduler reads of a pod; every other field is skipped while decoding."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.api.core import PODS
from shoal.api.meta import ObjectMeta, Resource, Wire


class Requirement(Wire, frozen=True, kw_only=True):
    key: str
    operator: str
    values: list[str] = []


class NodeSelectorTerm(Wire, frozen=True, kw_only=True):
    match_expressions: list[Requirement] = []


class NodeSelector(Wire, frozen=True, kw_only=True):
    node_selector_terms: list[NodeSelectorTerm] = []


class NodeAffinity(Wire, frozen=True, kw_only=True):
    required_during_scheduling_ignored_during_execution: NodeSelector | None = None


class Affinity(Wire, frozen=True, kw_only=True):
    node_affinity: NodeAffinity | None = None
    pod_affinity: dict[str, Any] | None = None
    pod_anti_affinity: dict[str, Any] | None = None


class Toleration(Wire, frozen=True, kw_only=True):
    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class ResourceAmounts(Wire, frozen=True, kw_only=True):
    requests: dict[str, str] = {}


class Container(Wire, frozen=True, kw_only=True):
    resources: ResourceAmounts = ResourceAmounts()


class PodSpec(Wire, frozen=True, kw_only=True):
    node_name: str = ""
    scheduler_name: str = ""
    priority: int = 0
    priority_class_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    containers: list[Container] = []
    init_containers: list[Container] = []


class PodStatus(Wire, frozen=True, kw_only=True):
    phase: str = ""
    start_time: datetime | None = None


class SchedulerPod(Wire, frozen=True, kw_only=True):
    metadata: ObjectMeta
    spec: PodSpec
    status: PodStatus = PodStatus()


TRIMMED: Resource[SchedulerPod] = PODS.view(SchedulerPod)
WHOLE = PODS.documents()
