"""Which pods of a Job to make and which to delete, so that as many run as should."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby

from shoal.api.batch import Job, JobSpec
from shoal.api.core import PENDING, RUNNING, Pod, is_ready, pod_condition
from shoal.cluster.controllers.jobs.backoff import Streak, finished_at
from shoal.cluster.controllers.jobs.indexes import Indexes
from shoal.cluster.controllers.jobs.observed import (
    Observed,
    completion_index,
    failure_counts,
    is_indexed,
    is_terminating,
    replaces_only_failed,
)

AT_ONCE = 500
"""So many pods are made or deleted before the Job's status is written again."""
_PHASES = {PENDING: 0, RUNNING: 2}


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do about a Job's pods: delete some, or make some, or wait."""

    delete: Sequence[Pod] = ()
    create: Sequence[int | None] = ()
    """The index of each pod to make; None for pods that have none."""
    wait: float = 0.0
    """Seconds until a failed pod may be replaced; 0 where none waits."""


def plan_pods(job: Job, seen: Observed, streak: Streak, now: datetime) -> Plan:
    """What to do about the pods of a Job that goes on."""
    spec = job.spec
    if spec.suspend:
        return Plan(delete=_to_delete(spec, seen.active, len(seen.active)))
    wanted = _wanted(spec, seen)
    surplus = _to_delete(spec, seen.active, max(0, len(seen.active) - wanted))
    if surplus:
        return Plan(delete=surplus[:AT_ONCE])
    leaving = seen.terminating if replaces_only_failed(spec) else 0
    missing = wanted - leaving - len(seen.active)
    if missing <= 0:
        return Plan()
    if spec.backoff_limit_per_index is None and (wait := streak.wait(now)) > 0:
        return Plan(wait=wait)
    missing = min(missing, AT_ONCE)
    if not is_indexed(spec):
        return Plan(create=[None] * missing)
    indexes = _pending_indexes(spec, seen, missing)
    if seen.replaceable is None:
        return Plan(create=indexes)
    waits = {index: _index_wait(seen.replaceable.get(index), now) for index in indexes}
    due = [index for index, wait in waits.items() if wait <= 0]
    return Plan(create=due, wait=0.0 if due else min(waits.values(), default=0.0))


def _wanted(spec: JobSpec, seen: Observed) -> int:
    """How many pods are to run now."""
    if spec.completions is None:
        # A work queue makes no new pods once one has succeeded: those that run will end by themselves.
        return len(seen.active) if seen.succeeded else spec.parallelism
    return max(0, min(spec.completions - seen.succeeded, spec.parallelism))


def _pending_indexes(spec: JobSpec, seen: Observed, count: int) -> list[int]:
    busy = [pod for pod in seen.pods if replaces_only_failed(spec) and is_terminating(pod)]
    running = {index for pod in [*seen.active, *busy] if (index := completion_index(pod)) is not None}
    taken = seen.succeeded_indexes | Indexes.of(running) | (seen.failed_indexes or Indexes())
    return taken.first_missing(count, below=spec.completions or 0)


def _index_wait(last: Pod | None, now: datetime) -> float:
    return Streak(sum(failure_counts(last)) + 1, finished_at(last)).wait(now) if last else 0.0


def _to_delete(spec: JobSpec, active: Sequence[Pod], at_least: int) -> list[Pod]:
    """The pods that have no place in the Job, and then those whose end loses the least."""
    surplus: list[Pod] = []
    left = list(active)
    if is_indexed(spec):
        surplus, left = _doubles(active, spec.completions or 0)
    if len(surplus) < at_least:
        surplus += sorted(left, key=_worth)[: at_least - len(surplus)]
    return surplus


def _doubles(active: Sequence[Pod], completions: int) -> tuple[list[Pod], list[Pod]]:
    """The pods without a valid index, and all but the best of each index; and the rest."""
    surplus: list[Pod] = []
    left: list[Pod] = []
    by_index = sorted(active, key=_index_or_none)
    for index, same in groupby(by_index, key=_index_or_none):
        pods = sorted(same, key=_worth)
        keep = 0 <= index < completions
        surplus += pods[:-1] if keep else pods
        left += pods[-1:] if keep else []
    return surplus, left


def _index_or_none(pod: Pod) -> int:
    index = completion_index(pod)
    return -1 if index is None else index


def _worth(pod: Pod) -> tuple[float, ...]:
    """What is lost with an active pod: nothing where it has no node, little where it has just begun."""
    condition = pod_condition(pod, "Ready")
    since = condition.last_transition_time if condition and is_ready(pod) else None
    restarts = max((status.restart_count for status in pod.status.container_statuses), default=0)
    sidecars = {container.name for container in pod.spec.init_containers if container.restart_policy == "Always"}
    sidecar_restarts = max(
        (status.restart_count for status in pod.status.init_container_statuses if status.name in sidecars), default=0
    )
    return (
        bool(pod.spec.node_name),
        _PHASES.get(pod.status.phase, 1),
        is_ready(pod),
        _youth(since) if is_ready(pod) else 0,
        -restarts,
        -sidecar_restarts,
        _youth(pod.metadata.creation_timestamp),
    )


def _youth(since: datetime | None) -> float:
    """Orders what began late before what began early, and what has not begun before both."""
    return -since.timestamp() if since else -math.inf
