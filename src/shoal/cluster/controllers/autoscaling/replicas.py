"""What size a metric asks for: pure functions over what pods use and what is aimed at.

The size follows the ratio of the two. Pods that have no metric, or are not ready, are counted so that they dampen the
change, never so that they turn its direction: as if they used nothing when more are wanted, as if they used all of what
they may when fewer are.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shoal.api.core import FAILED, PENDING, RUNNING, Container, Pod, is_ready, pod_condition
from shoal.api.meta import parse_quantity
from shoal.cluster.pod_resources import pod_requests

LARGEST = 2**31 - 1


class CannotCompute(Exception):
    """A size cannot be told; says why."""


@dataclass(frozen=True, slots=True)
class Sample:
    """What a pod used, in thousandths, over a window that ended at a time."""

    value: int
    at: datetime
    window: timedelta = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class Tolerance:
    """How far off the ratio may be before the size changes."""

    down: float
    up: float

    def allows(self, ratio: float) -> bool:
        """Whether a ratio is near enough to one."""
        return 1.0 - self.down <= ratio <= 1.0 + self.up


@dataclass(frozen=True, slots=True)
class Readiness:
    """How long a pod's start may distort its use of processors."""

    initialization: timedelta
    delay: timedelta


@dataclass(frozen=True, slots=True)
class Proposal:
    """The size that a metric asks for, and what the metric is."""

    replicas: int
    usage: int
    """In thousandths, for each pod or as a whole, as the target is."""
    utilization: int | None = None


@dataclass(frozen=True, slots=True)
class Grouped:
    """Pods by what can be said of their use."""

    ready: int
    unready: frozenset[str]
    missing: frozenset[str]
    ignored: frozenset[str]


def by_utilization(
    current: int,
    target: int,
    pods: Sequence[Pod],
    samples: Mapping[str, Sample],
    *,
    resource: str,
    container: str,
    tolerance: Tolerance,
    readiness: Readiness,
    now: datetime,
) -> Proposal:
    """The size for a use in percent of what pods ask for."""
    grouped, used = _used(pods, samples, resource, readiness, now)
    requests = {pod.metadata.name: request_of(pod, resource, container) for pod in pods}
    utilization, average = _utilization(used, requests)
    fallback = max(100, target)
    replicas = _size(
        current,
        used,
        grouped,
        ratio_of=lambda values: _utilization(values, requests)[0] / target,
        when_missing=lambda name: _quotient(requests[name] * fallback, 100),
        tolerance=tolerance,
    )
    return Proposal(replicas, average, utilization)


def by_average(
    current: int,
    target: int,
    pods: Sequence[Pod],
    samples: Mapping[str, Sample],
    *,
    resource: str = "",
    tolerance: Tolerance,
    readiness: Readiness,
    now: datetime,
) -> Proposal:
    """The size for a use of so many thousandths by each pod."""
    grouped, used = _used(pods, samples, resource, readiness, now)
    replicas = _size(
        current,
        used,
        grouped,
        ratio_of=lambda values: _average(values) / target,
        when_missing=lambda name: target,
        tolerance=tolerance,
    )
    return Proposal(replicas, _average(used))


def by_value(current: int, target: int, usage: int, pods: Sequence[Pod], *, tolerance: Tolerance) -> Proposal:
    """The size for a metric that is one for all pods."""
    ratio = usage / target
    if current == 0:
        return Proposal(math.ceil(ratio), usage)
    if tolerance.allows(ratio):
        return Proposal(current, usage)
    if not pods:
        raise CannotCompute(
            "unable to calculate ready pods: no pods returned by selector while calculating replica count"
        )
    ready = sum(1 for pod in pods if pod.status.phase == RUNNING and is_ready(pod))
    return Proposal(min(LARGEST, math.ceil(ratio * ready)), usage)


def by_value_per_pod(status_replicas: int, target: int, usage: int, *, tolerance: Tolerance) -> Proposal:
    """The size for a metric of which each pod is to have so much."""
    replicas = status_replicas
    if not replicas or not tolerance.allows(usage / (target * replicas)):
        replicas = min(LARGEST, math.ceil(usage / target))
    return Proposal(replicas, math.ceil(usage / status_replicas) if status_replicas else usage)


def grouped_pods(
    pods: Sequence[Pod], samples: Collection[str] | Mapping[str, Sample], resource: str, readiness: Readiness,
    now: datetime,
) -> Grouped:  # fmt: skip
    """Tells the pods whose use counts from those that are starting, have no metric, or are on their way out."""
    unready, missing, ignored = set(), set(), set()
    ready = 0
    for pod in pods:
        name = pod.metadata.name
        if pod.metadata.is_deleting or pod.status.phase == FAILED:
            ignored.add(name)
        elif pod.status.phase == PENDING:
            unready.add(name)
        elif name not in samples:
            missing.add(name)
        elif resource == "cpu" and isinstance(samples, Mapping) and _is_starting(pod, samples[name], readiness, now):
            unready.add(name)
        else:
            ready += 1
    return Grouped(ready, frozenset(unready), frozenset(missing), frozenset(ignored))


def request_of(pod: Pod, resource: str, container: str) -> int:
    """What a pod, or one container of it, asks for, in thousandths; raises CannotCompute where it asks for none."""
    name = pod.metadata.name
    if not container and pod.spec.resources is not None and pod.spec.resources.requests:
        whole = pod_requests(pod).get(resource)
        if whole is None:
            raise CannotCompute(f"missing pod-level request for {resource} in Pod {name}")
        return whole.milli_value()
    lasting: list[Container] = [
        *pod.spec.containers,
        *(one for one in pod.spec.init_containers if one.restart_policy == "Always"),
    ]
    chosen = [one for one in lasting if not container or one.name == container]
    if container and not chosen:
        raise CannotCompute(f"container {container} not found in Pod {name}")
    total = 0
    for one in chosen:
        request = one.resources.requests.get(resource)
        if request is None:
            raise CannotCompute(f"missing request for {resource} in container {one.name} of Pod {name}")
        total += parse_quantity(request).milli_value()
    return total


def _used(
    pods: Sequence[Pod], samples: Mapping[str, Sample], resource: str, readiness: Readiness, now: datetime
) -> tuple[Grouped, dict[str, int]]:
    if not pods:
        raise CannotCompute("no pods returned by selector while calculating replica count")
    grouped = grouped_pods(pods, samples, resource, readiness, now)
    left_out = grouped.ignored | grouped.unready
    used = {name: sample.value for name, sample in samples.items() if name not in left_out}
    if not used:
        raise CannotCompute("did not receive metrics for targeted pods (pods might be unready)")
    return grouped, used


def _size(
    current: int,
    used: Mapping[str, int],
    grouped: Grouped,
    *,
    ratio_of: Callable[[Mapping[str, int]], float],
    when_missing: Callable[[str], int],
    tolerance: Tolerance,
) -> int:
    ratio = ratio_of(used)
    grows_with_unready = bool(grouped.unready) and ratio > 1.0
    if not grows_with_unready and not grouped.missing:
        return current if tolerance.allows(ratio) else math.ceil(ratio * grouped.ready)
    values = dict(used)
    if ratio < 1.0:
        values |= {name: when_missing(name) for name in grouped.missing}
    elif ratio > 1.0:
        values |= dict.fromkeys(grouped.missing, 0)
    if grows_with_unready:
        values |= dict.fromkeys(grouped.unready, 0)
    damped = ratio_of(values)
    if tolerance.allows(damped) or (ratio < 1.0 < damped) or (damped < 1.0 < ratio):
        return current
    replicas = math.ceil(damped * len(values))
    if (damped < 1.0 and replicas > current) or (damped > 1.0 and replicas < current):
        return current
    return replicas


def _utilization(used: Mapping[str, int], requests: Mapping[str, int]) -> tuple[int, int]:
    """The use in percent of what is asked for, and the average use."""
    known = [(value, requests[name]) for name, value in used.items() if name in requests]
    asked = sum(request for _, request in known)
    if asked == 0:
        raise CannotCompute("no metrics returned matched known pods")
    total = sum(value for value, _ in known)
    return _quotient(total * 100, asked), _quotient(total, len(known))


def _average(used: Mapping[str, int]) -> int:
    return _quotient(sum(used.values()), len(used))


def _quotient(number: int, divisor: int) -> int:
    return number // divisor if number >= 0 else -(-number // divisor)


def _is_starting(pod: Pod, sample: Sample, readiness: Readiness, now: datetime) -> bool:
    """Whether what a pod uses of processors may still be the cost of its start."""
    condition, started = pod_condition(pod, "Ready"), pod.status.start_time
    if condition is None or started is None:
        return True
    changed = condition.last_transition_time or started
    if started + readiness.initialization > now:
        return condition.status == "False" or sample.at < changed + sample.window
    return condition.status == "False" and started + readiness.delay > changed
