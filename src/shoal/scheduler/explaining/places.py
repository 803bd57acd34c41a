"""The order of those that wait: a job's place in its queue and among all, as the next cycle would take them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Final, NamedTuple

from shoal.scheduler.actions.pools import Key, Pools, waits
from shoal.scheduler.actions.waiting import in_turns
from shoal.scheduler.explaining.explanation import Position
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.session.session import Session

MOST_COUNTED: Final = 20_000
"""So many jobs are counted before a job's place among all; beyond it, the number says nothing to anybody."""


def position_of(session: Session, job: Job) -> Position | None:
    """A job's place; None where it does not stand in line."""
    if not waits(job) or job.queue not in session.shares:
        return None
    job_rank = session.ordering.job_rank
    rank = job_rank(job)
    before = of_queue = of_all = 0
    for other in session.cluster.jobs.values():
        if not waits(other):
            continue
        of_all += 1
        if other.queue == job.queue:
            of_queue += 1
            before += job_rank(other) < rank
    overall = None
    for place, other in enumerate(in_order(session), start=1):
        if other is job:
            overall = place
        if overall is not None or place >= MOST_COUNTED:
            break
    return Position(in_queue=before + 1, of_queue=of_queue, overall=overall, of_all=of_all)


class Place(NamedTuple):
    """Where a job stands; the first is 1."""

    in_queue: int
    overall: int | None
    """None where so many are before it that nobody counted."""


def places_of(session: Session, pools: Pools, *, most: int) -> dict[Key, Place]:
    """Where everybody stands who waits, by ``pools`` that are up to date; among all, only the first so many."""
    overall = {job.key: place for place, job in enumerate(islice(in_order(session, pools), most), start=1)}
    return {
        job.key: Place(place, overall.get(job.key))
        for queue, ranked in pools.waiting.queues()
        if (share := session.shares.get(queue)) is not None and share.is_leaf
        for place, (_, job) in enumerate(ranked, start=1)
    }


def in_order(session: Session, pools: Pools | None = None) -> Iterator[Job]:
    """All jobs that wait, in fair turns, as if none of them got anything."""
    if pools is None:
        pools = Pools(session.cluster.jobs.values(), rank=session.ordering.job_rank)
    line = in_turns(session, pools, action="allocate")
    while line:
        yield line.pop()
