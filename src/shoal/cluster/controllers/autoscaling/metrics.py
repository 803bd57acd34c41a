"""Reads metrics: what pods use (metrics.k8s.io), and what others measure (custom and external metrics)."""

from __future__ import annotations

from datetime import datetime, timedelta
from urllib.parse import quote

import msgspec

from shoal.api.autoscaling import MetricIdentifier, ObjectReference
from shoal.api.meta import (
    InvalidSelector,
    ObjectMeta,
    QuantityString,
    ResourceList,
    Selector,
    Wire,
    parse_duration,
    parse_quantity,
)
from shoal.cluster.controllers.autoscaling.replicas import CannotCompute, Sample
from shoal.cluster.controllers.scales import Scales, UnknownKind
from shoal.kube import ApiError, Client, ConnectionFault, NotFound

CUSTOM, EXTERNAL = "custom.metrics.k8s.io", "external.metrics.k8s.io"
_WINDOW = timedelta(minutes=1)
"""What a custom metric that does not say so was measured over."""


class Metrics:
    """Asks the server, and whoever stands behind it, for metrics."""

    def __init__(self, client: Client, scales: Scales) -> None:
        self._client = client
        self._scales = scales

    async def of_resource(self, resource: str, namespace: str, selector: Selector, container: str) -> dict[str, Sample]:
        """What pods use of a resource; pods of which it is not known are left out."""
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{namespace}/pods"
        try:
            answer = await self._client.read_path(path, {"labelSelector": str(selector)})
        except (ApiError, ConnectionFault) as error:
            words = _words(error, "pods.metrics.k8s.io")
            raise CannotCompute(f"unable to fetch metrics from resource metrics API: {words}") from error
        items = msgspec.json.decode(answer, type=_PodMetricsList).items
        if not items:
            raise CannotCompute("no metrics returned from resource metrics API")
        found = {}
        for item in items:
            value = item.usage_of(resource, container)
            if value is not None:
                window = parse_duration(item.window or "0s").to_timedelta()
                found[item.metadata.name] = Sample(value, item.timestamp, window)
        return found

    async def of_pods(self, metric: MetricIdentifier, namespace: str, selector: Selector) -> dict[str, Sample]:
        """A custom metric of each pod."""
        items = await self._custom(metric, f"namespaces/{namespace}/pods/*", {"labelSelector": str(selector)})
        return {
            item.described_object.name: Sample(parse_quantity(item.value).milli_value(), item.timestamp, item.measured)
            for item in items
        }

    async def of_object(self, metric: MetricIdentifier, namespace: str, described: ObjectReference) -> int:
        """A custom metric of one object, in thousandths."""
        if described.kind == "Namespace" and "/" not in described.api_version:
            place = f"namespaces/{namespace}/metrics"
        else:
            try:
                kind = await self._scales.kind(described.api_version or "v1", described.kind)
            except UnknownKind as error:
                raise CannotCompute(f"unable to fetch metrics from custom metrics API: {error}") from error
            place = f"namespaces/{namespace}/{kind.group_resource}/{quote(described.name)}"
        items = await self._custom(metric, place, {})
        return parse_quantity(items[0].value).milli_value()

    async def of_outside(self, metric: MetricIdentifier, namespace: str) -> int:
        """The sum of all values of an external metric, in thousandths."""
        path = f"/apis/{EXTERNAL}/v1beta1/namespaces/{namespace}/{quote(metric.name)}"
        try:
            chosen = _selected(metric)
            answer = await self._client.read_path(path, {"labelSelector": chosen} if chosen else {})
        except (ApiError, ConnectionFault) as error:
            words = _words(error, f"{metric.name}.{EXTERNAL}")
            raise CannotCompute(f"unable to fetch metrics from external metrics API: {words}") from error
        items = msgspec.json.decode(answer, type=_ValueList).items
        if not items:
            raise CannotCompute("no metrics returned from external metrics API")
        return min(2**63 - 1, sum(parse_quantity(item.value).milli_value() for item in items))

    async def _custom(self, metric: MetricIdentifier, place: str, query: dict[str, str]) -> list[_Value]:
        try:
            version = await self._custom_version()
            chosen = _selected(metric)
            path = f"/apis/{CUSTOM}/{version}/{place}/{quote(metric.name)}"
            answer = await self._client.read_path(path, query | ({"metricLabelSelector": chosen} if chosen else {}))
        except (ApiError, ConnectionFault) as error:
            words = _words(error, CUSTOM)
            raise CannotCompute(f"unable to fetch metrics from custom metrics API: {words}") from error
        items = msgspec.json.decode(answer, type=_ValueList).items
        if not items:
            raise CannotCompute("no metrics returned from custom metrics API")
        return items

    async def _custom_version(self) -> str:
        try:
            answer = await self._client.read_path(f"/apis/{CUSTOM}")
        except NotFound:
            raise CannotCompute(
                f"unable to fetch metrics from custom metrics API: no custom metrics API ({CUSTOM}) registered"
            ) from None
        return msgspec.json.decode(answer, type=_Group).preferred_version.version


class _ContainerUsage(Wire, frozen=True, kw_only=True):
    name: str = ""
    usage: ResourceList = {}


class _PodMetrics(Wire, frozen=True, kw_only=True):
    metadata: ObjectMeta
    timestamp: datetime
    window: str = ""
    containers: list[_ContainerUsage] = []

    def usage_of(self, resource: str, container: str) -> int | None:
        """What the pod, or one container of it, used; None where that is not known of all that count."""
        counted = [one for one in self.containers if not container or one.name == container]
        if not counted or any(resource not in one.usage for one in counted):
            return None
        return sum(parse_quantity(one.usage[resource]).milli_value() for one in counted)


class _PodMetricsList(Wire, frozen=True, kw_only=True):
    items: list[_PodMetrics] = []


class _Value(Wire, frozen=True, kw_only=True):
    timestamp: datetime
    value: QuantityString
    described_object: ObjectReference = ObjectReference()
    window_seconds: int | None = None
    window: int | None = None

    @property
    def measured(self) -> timedelta:
        """Over which time it was measured."""
        seconds = self.window_seconds if self.window_seconds is not None else self.window
        return _WINDOW if seconds is None else timedelta(seconds=seconds)


class _ValueList(Wire, frozen=True, kw_only=True):
    items: list[_Value] = []


class _Version(Wire, frozen=True, kw_only=True):
    version: str = ""


class _Group(Wire, frozen=True, kw_only=True):
    preferred_version: _Version = _Version()


def _selected(metric: MetricIdentifier) -> str:
    if metric.selector is None:
        return ""
    try:
        return str(Selector.of(metric.selector))
    except InvalidSelector as error:
        raise CannotCompute(str(error)) from error


def _words(error: Exception, resource: str) -> str:
    # Of a path that it does not serve at all a server says so in plain words, and not by a Status with a reason.
    if isinstance(error, NotFound) and (not error.reason or "could not find the requested resource" in error.message):
        return f"the server could not find the requested resource (get {resource})"
    return error.message if isinstance(error, ApiError) and error.message else str(error)
