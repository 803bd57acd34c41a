"""A JobSet's Jobs by what they are to it: of this attempt (active, successful, failed), or of an earlier one."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from shoal.api.batch import COMPLETE, JOBS, Job, JobCondition, finished_condition
from shoal.api.jobset import JobSet, names
from shoal.kube import ReconcileError


class Unreadable(ReconcileError):
    """A Job of the JobSet lost the label that says what it is: acting on a guess could end a good run."""

    def __init__(self, job: Job, label: str) -> None:
        found = job.metadata.labels.get(label)
        said = "is missing" if found is None else f"is {found!r} and must be a number"
        super().__init__(
            f"{JOBS.kind} {job.metadata.namespace}/{job.metadata.name}: label {label} {said}: "
            "restore it, or delete the Job to have it made again"
        )


@dataclass(frozen=True, kw_only=True)
class Buckets:
    """The Jobs of a JobSet."""

    active: tuple[Job, ...] = ()
    successful: tuple[Job, ...] = ()
    failed: tuple[Job, ...] = ()
    previous: tuple[Job, ...] = ()
    """Those of earlier attempts, which are to go."""

    @property
    def names(self) -> frozenset[str]:
        """The names that are taken."""
        return frozenset(job.metadata.name for job in self)

    def __iter__(self) -> Iterator[Job]:
        yield from self.active
        yield from self.successful
        yield from self.failed
        yield from self.previous


def sorted_out(job_set: JobSet, jobs: Iterable[Job], *, restarts_single_jobs: bool) -> Buckets:
    """Sorts Jobs by attempt and end; raises Unreadable where a Job does not say its attempt."""
    active, successful, failed, previous = [], [], [], []
    for job in sorted(jobs, key=lambda job: job.metadata.name):
        if is_previous(job_set, job, restarts_single_jobs=restarts_single_jobs):
            previous.append(job)
        elif (end := finished_condition(job)) is None:
            active.append(job)
        elif end.type == COMPLETE:
            successful.append(job)
        else:
            failed.append(job)
    return Buckets(active=tuple(active), successful=tuple(successful), failed=tuple(failed), previous=tuple(previous))


def is_previous(job_set: JobSet, job: Job, *, restarts_single_jobs: bool) -> bool:
    """Whether a Job belongs to an earlier attempt of the JobSet, or of the Job alone."""
    if number(job, names.RESTART_ATTEMPT) < job_set.status.restarts:
        return True
    # Jobs that were made while single ones were not restarted do not say how often they were.
    if not restarts_single_jobs or names.JOB_RESTART_ATTEMPT not in job.metadata.labels:
        return False
    wanted = job_restarts(job_set).get(replicated_job_of(job), [])
    index = number(job, names.JOB_INDEX)
    return index < len(wanted) and number(job, names.JOB_RESTART_ATTEMPT) < wanted[index]


def job_restarts(job_set: JobSet) -> Mapping[str, list[int]]:
    """How often each Job was restarted by itself, where any of its replicated job was."""
    return {each.name: each.job_restarts for each in job_set.status.replicated_jobs_status if each.job_restarts}


def replicated_job_of(job: Job) -> str:
    """The replicated job that a Job was made for."""
    return job.metadata.labels.get(names.REPLICATED_JOB_NAME, "")


def number(job: Job, label: str) -> int:
    """The number that a label of a Job holds."""
    found = job.metadata.labels.get(label, "")
    if not (found.isascii() and found.isdigit()):
        raise Unreadable(job, label)
    return int(found)


def first_failed(jobs: Iterable[Job]) -> tuple[Job, JobCondition] | None:
    """The Job that failed first, and its Failed condition."""
    ends = [(job, end) for job in jobs if (end := finished_condition(job)) is not None]
    return min(ends, key=lambda each: (str(each[1].last_transition_time), each[0].metadata.name), default=None)
