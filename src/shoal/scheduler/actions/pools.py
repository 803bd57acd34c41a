"""Jobs by queue, sorted once and kept so: those that wait, and those that have something to give; and those unwell.

An action asks for them in fair turns thousands of times; what changes in between is a job or two. Whoever keeps the
model keeps them from cycle to cycle, too, so that a cycle without work does not look at a job at all.
"""

from __future__ import annotations

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from shoal.scheduler.actions.staleness import is_stale
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.shares.job_order import Ranked, job_rank

Key = tuple[str, str]
Rank = tuple[Any, ...]


class Pool:
    """Jobs that a rule keeps, by queue."""

    def __init__(
        self, jobs: Iterable[Job], keeps: Callable[[Job], bool], rank: Callable[[Job], Rank] = job_rank
    ) -> None:
        self._keeps = keeps
        self._rank_of = rank
        self._queues: dict[str, list[Ranked]] = {}
        self._places: dict[Key, tuple[str, Rank]] = {}
        """In which queue a job is, and where: both as they were when it was put there."""
        for job in jobs:
            if keeps(job):
                own = self._rank_of(job)
                self._places[job.key] = job.queue, own
                self._queues.setdefault(job.queue, []).append((own, job))
        for ranked in self._queues.values():
            ranked.sort(key=_rank)

    def __iter__(self) -> Iterator[Job]:
        """Queue by queue in the order of their names, so that it says nothing of who came first."""
        return (job for _, ranked in sorted(self._queues.items()) for _, job in ranked)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, job: Job) -> bool:
        return job.key in self._places

    def queues(self) -> Iterator[tuple[str, list[Ranked]]]:
        """The queues that have any, with their jobs in order."""
        return iter(self._queues.items())

    def of(self, queue: str) -> list[Ranked]:
        """The jobs of a queue, in order."""
        return self._queues.get(queue, [])

    def look_again(self, job: Job) -> None:
        """Puts a job that changed where it belongs now."""
        self.forget(job.key)
        if self._keeps(job):
            rank = self._rank_of(job)
            self._places[job.key] = job.queue, rank
            insort(self._queues.setdefault(job.queue, []), (rank, job), key=_rank)

    def forget(self, key: Key) -> None:
        """Leaves a job out, if it is in."""
        place = self._places.pop(key, None)
        if place is not None:
            queue, rank = place
            ranked = self._queues[queue]
            del ranked[bisect_left(ranked, rank, key=_rank)]
            if not ranked:
                del self._queues[queue]


class Pools:
    """All jobs of a cluster, sorted for a cycle's actions and kept so."""

    def __init__(self, jobs: Iterable[Job] = (), *, rank: Callable[[Job], Rank] = job_rank) -> None:
        """``rank``: what jobs of a queue are sorted by (see ``session.ordering``)."""
        known = list(jobs)
        self.waiting = Pool(known, waits, rank)
        self.givers = Pool(known, has_something_to_give, rank)
        self._unwell = {job.key: job for job in known if is_unwell(job)}

    @property
    def unwell(self) -> list[Job]:
        """Gangs that are stale, or were so when somebody last looked: as they are now, whatever happens to them."""
        return [self._unwell[key] for key in sorted(self._unwell)]

    def look_again(self, job: Job) -> None:
        """Puts a job that changed where it belongs now."""
        self.waiting.look_again(job)
        self.givers.look_again(job)
        if is_unwell(job):
            self._unwell[job.key] = job
        else:
            self._unwell.pop(job.key, None)

    def renew(self, jobs: Mapping[Key, Job], changed: Iterable[Key]) -> None:
        """Looks again at what has changed between two cycles: jobs that are new, gone or others."""
        for key in changed:
            job = jobs.get(key)
            if job is not None:
                self.look_again(job)
            else:
                self.waiting.forget(key)
                self.givers.forget(key)
                self._unwell.pop(key, None)


def _rank(ranked: Ranked) -> Any:
    return ranked[0]


def waits(job: Job) -> bool:
    """Whether a job has pods to place, and enough of them."""
    return job.pending > 0 and not job.is_backed_off and job.is_ready


def has_something_to_give(job: Job) -> bool:
    """Whether a job may be made to end, and holds something."""
    return job.is_preemptible and job.active_allocated > 0


def is_unwell(job: Job) -> bool:
    """Whether a job is stale, or somebody believes so."""
    return job.stale_since is not None or is_stale(job)
