"""How many Jobs of each replicated job are ready, active, suspended, done or failed."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from shoal.api.batch import Job
from shoal.api.jobset import JobSet, ReplicatedJobStatus
from shoal.training.jobset.buckets import Buckets, replicated_job_of

Counters = Mapping[str, ReplicatedJobStatus]


def counted(job_set: JobSet, jobs: Buckets) -> list[ReplicatedJobStatus]:
    """The status of each replicated job, by name, the last name first."""
    known = {each.name: each for each in job_set.status.replicated_jobs_status}
    wanted = sorted((each.name for each in job_set.spec.replicated_jobs), reverse=True)
    active, successful, failed = map(_by_replicated_job, (jobs.active, jobs.successful, jobs.failed))
    return [
        ReplicatedJobStatus(
            name=name,
            ready=sum(map(is_ready, active.get(name, ()))),
            succeeded=len(successful.get(name, ())),
            failed=len(failed.get(name, ())),
            active=sum(job.status.active > 0 for job in active.get(name, ())),
            suspended=sum(job.spec.suspend for job in active.get(name, ())),
            job_restarts=known[name].job_restarts if name in known else [],
            job_restarts_count_towards_max=known[name].job_restarts_count_towards_max if name in known else [],
        )
        for name in wanted
    ]


def is_ready(job: Job) -> bool:
    """Whether as many pods of a Job are ready, or done, as may run at once."""
    at_once = job.spec.parallelism
    if job.spec.completions is not None:
        at_once = min(at_once, job.spec.completions)
    return job.status.succeeded + (job.status.ready or 0) >= at_once


def are_all_ready(job_set: JobSet, statuses: Sequence[ReplicatedJobStatus]) -> bool:
    """Whether every Job of the JobSet is ready or done."""
    return sum(each.ready + each.succeeded for each in statuses) == job_set.spec.total


def _by_replicated_job(jobs: Iterable[Job]) -> dict[str, list[Job]]:
    found: dict[str, list[Job]] = {}
    for job in jobs:
        found.setdefault(replicated_job_of(job), []).append(job)
    return found
