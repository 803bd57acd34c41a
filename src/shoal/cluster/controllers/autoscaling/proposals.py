"""What each of an autoscaler's metrics asks for, in words that its conditions and events repeat."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shoal.api.autoscaling import (
    CONTAINER_RESOURCE,
    EXTERNAL,
    OBJECT,
    PODS,
    RESOURCE,
    ContainerResourceMetricStatus,
    ExternalMetricStatus,
    MetricSpec,
    MetricStatus,
    MetricTarget,
    MetricValue,
    ObjectMetricStatus,
    PodsMetricStatus,
    ResourceMetricStatus,
)
from shoal.api.core import Pod
from shoal.api.meta import Quantity, QuantityFormat, QuantityString, Selector, parse_quantity
from shoal.cluster.controllers.autoscaling.metrics import Metrics
from shoal.cluster.controllers.autoscaling.replicas import (
    CannotCompute,
    Proposal,
    Readiness,
    Tolerance,
    by_average,
    by_utilization,
    by_value,
    by_value_per_pod,
)
from shoal.cluster.controllers.selections import shown


@dataclass(frozen=True, kw_only=True)
class Target:
    """What is sized, as it is now."""

    namespace: str
    selector: Selector
    pods: Sequence[Pod]
    spec_replicas: int
    status_replicas: int
    tolerance: Tolerance
    readiness: Readiness
    now: datetime


@dataclass(frozen=True, kw_only=True)
class Wish:
    """The size that one metric asks for, its name in messages, and what it is."""

    replicas: int
    metric: str
    status: MetricStatus


class MetricFailed(Exception):
    """A metric could not be had: the reason for the condition, the problem, and the whole of the error around it."""

    def __init__(self, reason: str, problem: str, whole: str) -> None:
        self.reason = reason
        self.problem = problem
        super().__init__(whole)


async def wish_of(spec: MetricSpec, target: Target, metrics: Metrics) -> Wish:
    """What one metric asks for; raises MetricFailed."""
    match spec.type:
        case "Resource" if spec.resource is not None:
            name = spec.resource.name
            try:
                proposal, words = await _by_resource(name, "", spec.resource.target, target, metrics)
            except CannotCompute as error:
                whole = f"failed to get {name} resource metric value: {error}"
                raise MetricFailed("FailedGetResourceMetric", str(error), whole) from error
            found = ResourceMetricStatus(name=name, current=_resource_value(name, proposal))
            return Wish(replicas=proposal.replicas, metric=words, status=MetricStatus(type=RESOURCE, resource=found))
        case "ContainerResource" if spec.container_resource is not None:
            name, container = spec.container_resource.name, spec.container_resource.container
            try:
                proposal, words = await _by_resource(name, container, spec.container_resource.target, target, metrics)
            except CannotCompute as error:
                whole = f"failed to get {container} container metric value: {error}"
                raise MetricFailed("FailedGetContainerResourceMetric", str(error), whole) from error
            current = _resource_value(name, proposal)
            used = ContainerResourceMetricStatus(name=name, container=container, current=current)
            status = MetricStatus(type=CONTAINER_RESOURCE, container_resource=used)
            return Wish(replicas=proposal.replicas, metric=words, status=status)
        case "Pods" if spec.pods is not None:
            return await _by_pods(spec, target, metrics)
        case "Object" if spec.object is not None:
            return await _by_object(spec, target, metrics)
        case "External" if spec.external is not None:
            return await _by_external(spec, target, metrics)
    problem = f'unknown metric source type "{spec.type}"'
    raise MetricFailed("InvalidMetricSourceType", problem, problem)


async def _by_resource(
    resource: str, container: str, aim: MetricTarget, target: Target, metrics: Metrics
) -> tuple[Proposal, str]:
    if aim.average_value is None and aim.average_utilization is None:
        raise CannotCompute(
            "invalid resource metric source: neither an average utilization target nor an average value (usage) "
            "target was set"
        )
    what = "usage" if aim.average_value is not None else "utilization"
    try:
        try:
            samples = await metrics.of_resource(resource, target.namespace, target.selector, container)
        except CannotCompute as error:
            raise CannotCompute(f"unable to get metrics for resource {resource}: {error}") from error
        if aim.average_value is not None:
            proposal = by_average(
                target.spec_replicas, _milli(aim.average_value), target.pods, samples, resource=resource,
                tolerance=target.tolerance, readiness=target.readiness, now=target.now,
            )  # fmt: skip
            return proposal, f"{resource} resource"
        assert aim.average_utilization is not None
        proposal = by_utilization(
            target.spec_replicas, aim.average_utilization, target.pods, samples, resource=resource,
            container=container, tolerance=target.tolerance, readiness=target.readiness, now=target.now,
        )  # fmt: skip
    except CannotCompute as error:
        raise CannotCompute(f"failed to get {resource} {what}: {error}") from error
    kind = "container resource" if container else "resource"
    return proposal, f"{resource} {kind} utilization (percentage of request)"


async def _by_pods(spec: MetricSpec, target: Target, metrics: Metrics) -> Wish:
    assert spec.pods is not None
    metric = spec.pods.metric
    try:
        try:
            samples = await metrics.of_pods(metric, target.namespace, target.selector)
        except CannotCompute as error:
            raise CannotCompute(f"unable to get metric {metric.name}: {error}") from error
        proposal = by_average(
            target.spec_replicas, _milli(spec.pods.target.average_value), target.pods, samples,
            tolerance=target.tolerance, readiness=target.readiness, now=target.now,
        )  # fmt: skip
    except CannotCompute as error:
        whole = f"failed to get pods metric value: {error}"
        raise MetricFailed("FailedGetPodsMetric", str(error), whole) from error
    found = PodsMetricStatus(metric=metric, current=MetricValue(average_value=_decimal(proposal.usage)))
    status = MetricStatus(type=PODS, pods=found)
    return Wish(replicas=proposal.replicas, metric=f"pods metric {metric.name}", status=status)


async def _by_object(spec: MetricSpec, target: Target, metrics: Metrics) -> Wish:
    assert spec.object is not None
    metric, described, aim = spec.object.metric, spec.object.described_object, spec.object.target
    is_average = aim.type == "AverageValue" and aim.average_value is not None
    around = f"failed to get {metric.name} object metric: " if is_average else ""
    try:
        if not is_average and not (aim.type == "Value" and aim.value is not None):
            raise CannotCompute(
                "invalid object metric source: neither a value target nor an average value target was set"
            )
        try:
            usage = await metrics.of_object(metric, target.namespace, described)
        except CannotCompute as error:
            # The words stand in Kubernetes' own order, odd as it is.
            words = f"unable to get metric {metric.name}: {described.kind} on {target.namespace} {described.name}/"
            raise CannotCompute(f"{words}{error}") from error
        proposal, current = _sized(aim, usage, target, is_average=is_average)
    except CannotCompute as error:
        whole = f"failed to get object metric value: {around}{error}"
        raise MetricFailed("FailedGetObjectMetric", str(error), whole) from error
    name = (
        f"external metric {metric.name}({shown(metric.selector)})"
        if is_average
        else f"{described.kind} metric {metric.name}"
    )
    found = ObjectMetricStatus(described_object=described, metric=metric, current=current)
    return Wish(replicas=proposal.replicas, metric=name, status=MetricStatus(type=OBJECT, object=found))


async def _by_external(spec: MetricSpec, target: Target, metrics: Metrics) -> Wish:
    assert spec.external is not None
    metric, aim = spec.external.metric, spec.external.target
    is_average = aim.average_value is not None
    around = ""
    try:
        if not is_average and aim.value is None:
            raise CannotCompute(
                "invalid external metric source: neither a value target nor an average value target was set"
            )
        around = f"failed to get {metric.name} external metric: "
        if not is_average:
            around = f"failed to get external metric {metric.name}: "
        try:
            usage = await metrics.of_outside(metric, target.namespace)
        except CannotCompute as error:
            place = f"{target.namespace}/{metric.name}/{shown(metric.selector)}"
            raise CannotCompute(f"unable to get external metric {place}: {error}") from error
        proposal, current = _sized(aim, usage, target, is_average=is_average)
    except CannotCompute as error:
        whole = f"failed to get {metric.name} external metric value: {around}{error}"
        raise MetricFailed("FailedGetExternalMetric", str(error), whole) from error
    found = ExternalMetricStatus(metric=metric, current=current)
    return Wish(
        replicas=proposal.replicas,
        metric=f"external metric {metric.name}({shown(metric.selector)})",
        status=MetricStatus(type=EXTERNAL, external=found),
    )


def _sized(aim: MetricTarget, usage: int, target: Target, *, is_average: bool) -> tuple[Proposal, MetricValue]:
    if is_average:
        wanted = _milli(aim.average_value)
        proposal = by_value_per_pod(target.status_replicas, wanted, usage, tolerance=target.tolerance)
        return proposal, MetricValue(average_value=_decimal(proposal.usage))
    proposal = by_value(target.spec_replicas, _milli(aim.value), usage, target.pods, tolerance=target.tolerance)
    return proposal, MetricValue(value=_decimal(proposal.usage))


def _resource_value(resource: str, proposal: Proposal) -> MetricValue:
    form = QuantityFormat.BINARY_SI if resource == "memory" else QuantityFormat.DECIMAL_SI
    average = str(Quantity.of_milli(proposal.usage, form))
    return MetricValue(average_value=average, average_utilization=proposal.utilization)


def _decimal(milli: int) -> str:
    return str(Quantity.of_milli(milli))


def _milli(quantity: QuantityString | None) -> int:
    return parse_quantity(quantity if quantity is not None else 0).milli_value()
