"""autoscaling: how many pods a workload is to have, by what they use."""

from __future__ import annotations

from datetime import datetime

import msgspec

from shoal.api.meta import Condition, LabelSelector, Object, QuantityString, Resource, Wire

ABLE_TO_SCALE, SCALING_ACTIVE, SCALING_LIMITED = "AbleToScale", "ScalingActive", "ScalingLimited"
"""The conditions of an autoscaler."""

RESOURCE, CONTAINER_RESOURCE, PODS, OBJECT, EXTERNAL = "Resource", "ContainerResource", "Pods", "Object", "External"
"""The kinds of metrics that it goes by."""


class ObjectReference(Wire, frozen=True, kw_only=True):
    """An object in the autoscaler's own namespace."""

    kind: str = ""
    name: str = ""
    api_version: str = ""


class MetricIdentifier(Wire, frozen=True, kw_only=True):
    """A metric by its name and labels."""

    name: str = ""
    selector: LabelSelector | None = None


class MetricTarget(Wire, frozen=True, kw_only=True):
    """What a metric is to be: as a whole, for each pod, or in percent of what pods ask for."""

    type: str = ""
    value: QuantityString | None = None
    average_value: QuantityString | None = None
    average_utilization: int | None = None


class ResourceMetric(Wire, frozen=True, kw_only=True):
    """A resource that pods use."""

    name: str = ""
    target: MetricTarget = MetricTarget()


class ContainerResourceMetric(Wire, frozen=True, kw_only=True):
    """A resource that one container of each pod uses."""

    name: str = ""
    container: str = ""
    target: MetricTarget = MetricTarget()


class PodsMetric(Wire, frozen=True, kw_only=True):
    """A metric of each pod."""

    metric: MetricIdentifier = MetricIdentifier()
    target: MetricTarget = MetricTarget()


class ObjectMetric(Wire, frozen=True, kw_only=True):
    """A metric of another object."""

    described_object: ObjectReference = ObjectReference()
    metric: MetricIdentifier = MetricIdentifier()
    target: MetricTarget = MetricTarget()


class ExternalMetric(Wire, frozen=True, kw_only=True):
    """A metric of something outside the cluster."""

    metric: MetricIdentifier = MetricIdentifier()
    target: MetricTarget = MetricTarget()


class MetricSpec(Wire, frozen=True, kw_only=True):
    """One metric to go by."""

    type: str = ""
    resource: ResourceMetric | None = None
    container_resource: ContainerResourceMetric | None = None
    pods: PodsMetric | None = None
    object: ObjectMetric | None = None
    external: ExternalMetric | None = None


class ScalingPolicy(Wire, frozen=True, kw_only=True):
    """How much may change within a time."""

    type: str = ""
    value: int = 0
    period_seconds: int = 0


class ScalingRules(Wire, frozen=True, kw_only=True):
    """How quickly the size may change in one direction."""

    stabilization_window_seconds: int | None = None
    select_policy: str | None = None
    policies: list[ScalingPolicy] = []
    tolerance: QuantityString | None = None


class Behavior(Wire, frozen=True, kw_only=True):
    """How quickly the size may change."""

    scale_up: ScalingRules | None = None
    scale_down: ScalingRules | None = None


class HorizontalPodAutoscalerSpec(Wire, frozen=True, kw_only=True):
    """What to size, between which bounds, and by what."""

    scale_target_ref: ObjectReference = ObjectReference()
    min_replicas: int | None = None
    max_replicas: int = 0
    metrics: list[MetricSpec] = []
    behavior: Behavior | None = None


class MetricValue(Wire, frozen=True, kw_only=True):
    """What a metric is."""

    value: QuantityString | None = None
    average_value: QuantityString | None = None
    average_utilization: int | None = None


class ResourceMetricStatus(Wire, frozen=True, kw_only=True):
    """How much of a resource pods use."""

    name: str = ""
    current: MetricValue = msgspec.field(default_factory=MetricValue)


class ContainerResourceMetricStatus(Wire, frozen=True, kw_only=True):
    """How much of a resource one container of each pod uses."""

    name: str = ""
    container: str = ""
    current: MetricValue = msgspec.field(default_factory=MetricValue)


class PodsMetricStatus(Wire, frozen=True, kw_only=True):
    """What a metric of each pod is."""

    metric: MetricIdentifier = MetricIdentifier()
    current: MetricValue = msgspec.field(default_factory=MetricValue)


class ObjectMetricStatus(Wire, frozen=True, kw_only=True):
    """What a metric of another object is."""

    described_object: ObjectReference = ObjectReference()
    metric: MetricIdentifier = MetricIdentifier()
    current: MetricValue = msgspec.field(default_factory=MetricValue)


class ExternalMetricStatus(Wire, frozen=True, kw_only=True):
    """What a metric of something outside the cluster is."""

    metric: MetricIdentifier = MetricIdentifier()
    current: MetricValue = msgspec.field(default_factory=MetricValue)


class MetricStatus(Wire, frozen=True, kw_only=True):
    """What one metric was when it was last read; one that could not be read has no type either."""

    type: str = msgspec.field(default_factory=str)
    resource: ResourceMetricStatus | None = None
    container_resource: ContainerResourceMetricStatus | None = None
    pods: PodsMetricStatus | None = None
    object: ObjectMetricStatus | None = None
    external: ExternalMetricStatus | None = None


class HorizontalPodAutoscalerStatus(Wire, frozen=True, kw_only=True):
    """What was found and decided."""

    last_scale_time: datetime | None = None
    current_replicas: int = 0
    desired_replicas: int = 0
    current_metrics: list[MetricStatus] | None = None
    conditions: list[Condition] = []


class HorizontalPodAutoscaler(Object, frozen=True, kw_only=True):
    """Keeps a workload at the size that its use asks for."""

    spec: HorizontalPodAutoscalerSpec = HorizontalPodAutoscalerSpec()
    status: HorizontalPodAutoscalerStatus = HorizontalPodAutoscalerStatus()


HORIZONTAL_POD_AUTOSCALERS = Resource(
    type=HorizontalPodAutoscaler,
    group="autoscaling",
    version="v2",
    kind="HorizontalPodAutoscaler",
    plural="horizontalpodautoscalers",
)
