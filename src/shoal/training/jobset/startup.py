"""Which replicated jobs may start now: those whose dependencies are met, and, in order, one after the other."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from shoal.api.jobset import JobSet, ReplicatedJob, ReplicatedJobStatus
from shoal.api.jobset.job_sets import COMPLETE, DependsOn


@dataclass(frozen=True, kw_only=True)
class Startup:
    """What may start."""

    may_start: tuple[ReplicatedJob, ...] = ()
    """In the order of the JobSet; those among them that have started stay."""
    waits_in_order: bool = False
    """Whether others wait until the last one of these has started."""


def startup_of(job_set: JobSet, statuses: Iterable[ReplicatedJobStatus]) -> Startup:
    """What may be made, or resumed.

    In order, a replicated job that has started is done with, and the first one that has not keeps the rest waiting. A
    suspended JobSet has nothing to wait for: all of it is made.
    """
    known = {each.name: each for each in statuses}
    replicas = {each.name: each.count for each in job_set.spec.replicated_jobs}
    in_order = job_set.spec.starts_in_order and not job_set.spec.is_suspended
    may_start: list[ReplicatedJob] = []
    for each in job_set.spec.replicated_jobs:
        if not all(_is_met(wanted, known.get(wanted.name), replicas) for wanted in each.depends_on):
            continue
        if in_order and has_started(each.count, known.get(each.name)):
            continue
        may_start.append(each)
        if in_order:
            return Startup(may_start=tuple(may_start), waits_in_order=True)
    return Startup(may_start=tuple(may_start))


def has_started(replicas: int, status: ReplicatedJobStatus | None) -> bool:
    """Whether all Jobs of a replicated job run, or have run."""
    found = status or ReplicatedJobStatus(name="")
    return replicas == found.ready + found.failed + found.succeeded


def _is_met(wanted: DependsOn, status: ReplicatedJobStatus | None, replicas: dict[str, int]) -> bool:
    if status is None or wanted.name not in replicas:
        return False
    if wanted.status == COMPLETE:
        return status.succeeded == replicas[wanted.name]
    return has_started(replicas[wanted.name], status)
