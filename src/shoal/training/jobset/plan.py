"""All that one reconcile of a JobSet does, decided at once: from what is seen to what is to be written.

The order is the rule: a JobSet that has ended is only tidied up; what is left of earlier attempts goes; failed Jobs
come before successful ones; and only where neither decides anything are Jobs made, suspended or resumed.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from msgspec.structs import replace

from shoal.api.batch import Job
from shoal.api.core import Pod
from shoal.api.jobset import JobSet, JobSetStatus, reasons
from shoal.api.jobset.job_sets import BLOCKING_RECREATE
from shoal.training.jobset.buckets import Buckets, replicated_job_of, sorted_out
from shoal.training.jobset.claims import WantedClaim, wanted_claims
from shoal.training.jobset.conditions import Report, Said, finish_of
from shoal.training.jobset.counters import are_all_ready, counted
from shoal.training.jobset.failure import after_failure
from shoal.training.jobset.in_place import after_attempts, is_restarted_in_place
from shoal.training.jobset.jobs import missing_jobs
from shoal.training.jobset.resuming import resumed_spec
from shoal.training.jobset.services import wanted_service
from shoal.training.jobset.settings import JobSetSettings
from shoal.training.jobset.startup import Startup, startup_of
from shoal.training.jobset.success import has_succeeded


@dataclass(frozen=True, kw_only=True)
class Seen:
    """What there is of a JobSet."""

    jobs: Sequence[Job] = ()
    has_service: bool = False
    claims: frozenset[str] = frozenset()
    """The claims of the namespace, by name."""
    pods: Sequence[Pod] = ()
    """Looked at for restarts in place alone."""


@dataclass(frozen=True)
class Resumption:
    """A Job that goes on, and what is patched into it."""

    job: Job
    spec: dict[str, Any]


@dataclass(frozen=True, kw_only=True)
class Work:
    """What is to be made, stopped or let go on."""

    service: dict[str, Any] | None = None
    claims: tuple[WantedClaim, ...] = ()
    create: tuple[dict[str, Any], ...] = ()
    suspend: tuple[Job, ...] = ()
    resume: tuple[Resumption, ...] = ()


NOTHING = Work()


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What is to be written: deletions first, then the work, then the status; and at last the events."""

    status: JobSetStatus
    counted: JobSetStatus
    """The status with its counters alone brought up to date: what is true even where the rest could not be done."""
    delete: tuple[Job, ...] = ()
    work: Work = NOTHING
    events: tuple[Said, ...] = ()
    is_expired: bool = False
    """Whether the JobSet itself is to go."""
    again_after: float | None = None


def plan_of(job_set: JobSet, seen: Seen, settings: JobSetSettings, now: datetime) -> Plan:
    """What to do for a JobSet with its defaults filled in."""
    jobs = sorted_out(job_set, seen.jobs, restarts_single_jobs=settings.restarts_single_jobs)
    status = replace(job_set.status, replicated_jobs_status=counted(job_set, jobs))
    if finish_of(status) is not None:
        return _tidied_up(job_set, jobs, status, now)
    report, work = _decided(jobs, seen, Report(job_set=job_set, status=status, now=now), settings)
    return Plan(status=report.status, counted=status, delete=jobs.previous, work=work, events=report.events)


def until_expiry(job_set: JobSet, now: datetime) -> float | None:
    """Seconds until a JobSet that has ended is to go, none or less where it is time; None where it stays."""
    ttl, end = job_set.spec.ttl_seconds_after_finished, finish_of(job_set.status)
    if ttl is None or end is None or end.last_transition_time is None:
        return None
    return (end.last_transition_time + timedelta(seconds=ttl) - now).total_seconds()


def _tidied_up(job_set: JobSet, jobs: Buckets, status: JobSetStatus, now: datetime) -> Plan:
    left = until_expiry(job_set, now)
    return Plan(
        status=status,
        counted=status,
        delete=(*jobs.active, *jobs.previous),
        is_expired=left is not None and left <= 0,
        again_after=left if left is not None and left > 0 else None,
    )


def _decided(jobs: Buckets, seen: Seen, report: Report, settings: JobSetSettings) -> tuple[Report, Work]:
    job_set, statuses = report.job_set, report.status.replicated_jobs_status
    if not job_set.spec.is_suspended and are_all_ready(job_set, statuses):
        report = report.no_longer_restarting(reasons.JOBS_READY, reasons.JOBS_READY_MESSAGE)
    if jobs.failed:
        return after_failure(report, jobs.failed, restarts_single_jobs=settings.restarts_single_jobs), NOTHING
    if jobs.successful and has_succeeded(job_set, jobs.successful):
        return report.completed(), NOTHING

    startup = startup_of(job_set, statuses)
    work = Work(
        service=None if seen.has_service else wanted_service(job_set),
        claims=tuple(claim for claim in wanted_claims(job_set) if claim.name not in seen.claims),
        create=tuple(_missing(job_set, jobs, startup, settings)),
        suspend=tuple(_to_suspend(job_set, jobs)),
        resume=tuple(_to_resume(job_set, jobs, startup)),
    )
    report = _startup_told(report, startup)
    if settings.restarts_in_place and is_restarted_in_place(job_set):
        report = after_attempts(report, seen.pods)
    return report, work


def _missing(job_set: JobSet, jobs: Buckets, startup: Startup, settings: JobSetSettings) -> Iterator[dict[str, Any]]:
    """The Jobs to make: each once its namesake of an earlier attempt is gone, or once all of those are."""
    policy = job_set.spec.failure_policy
    if jobs.previous and policy is not None and policy.restart_strategy == BLOCKING_RECREATE:
        return
    taken, single = jobs.names, settings.restarts_single_jobs
    for replicated_job in startup.may_start:
        yield from missing_jobs(job_set, replicated_job, taken, restarts_single_jobs=single)


def _to_suspend(job_set: JobSet, jobs: Buckets) -> Iterator[Job]:
    if job_set.spec.is_suspended:
        yield from (job for job in jobs.active if not job.spec.suspend and not job.metadata.is_deleting)


def _to_resume(job_set: JobSet, jobs: Buckets, startup: Startup) -> Iterator[Resumption]:
    if job_set.spec.is_suspended:
        return
    templates = {each.name: each.pod_template for each in startup.may_start}
    for job in jobs.active:
        template = templates.get(replicated_job_of(job))
        if job.spec.suspend and template is not None and not job.metadata.is_deleting:
            yield Resumption(job, resumed_spec(job, template))


def _startup_told(report: Report, startup: Startup) -> Report:
    spec = report.job_set.spec
    if spec.is_suspended:
        return report.suspended()
    if startup.waits_in_order:
        return report.starting_in_order()
    if spec.starts_in_order:
        report = report.started_in_order()
    return report.resumed()
