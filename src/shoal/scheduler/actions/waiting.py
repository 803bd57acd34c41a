"""Who waits for a place, in what order."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from types import MappingProxyType
from typing import Final

from shoal.scheduler.actions.pools import Pools, waits
from shoal.scheduler.model.amounts import Amounts
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.session.session import Session
from shoal.scheduler.shares.job_order import JobsByQueue

_NOTHING: Final[Mapping[tuple[str, str], Amounts]] = MappingProxyType({})


def in_turns(session: Session, pools: Pools, *, action: str) -> JobsByQueue:
    """The jobs that wait now, queue by queue in fair turns. It is their own list: they may change meanwhile."""
    line = _line(session, for_real=action == "allocate", depth=session.settings.queue_depths.get(action))
    for job in pools.waiting:
        if session.may_start(job):
            line.push(job)
    return line


def in_turns_with(
    session: Session,
    pools: Pools,
    jobs: Collection[Job],
    *,
    takes_part: Collection[tuple[str, str]],
    asked: Mapping[tuple[str, str], Amounts],
) -> JobsByQueue:
    """Jobs among all those that wait. Who does not take part is in line all the same: it keeps its queue's turn.

    ``asked``: who asks for something else now than for all that it places next.
    """
    line = _line(session, for_real=False, depth=None, asked=asked)
    for queue, ranked in pools.waiting.queues():
        line.lay(queue, ranked, lambda job: job.key not in takes_part and waits(job) and session.may_start(job))
    for job in jobs:
        line.push(job)
    return line


def in_turns_among(session: Session, jobs: Iterable[Job]) -> JobsByQueue:
    """These jobs and no others, in fair turns."""
    line = _line(session, for_real=False, depth=None)
    for job in jobs:
        line.push(job)
    return line


def _line(
    session: Session, *, for_real: bool, depth: int | None, asked: Mapping[tuple[str, str], Amounts] = _NOTHING
) -> JobsByQueue:
    def next_amounts(job: Job) -> Amounts:
        return asked.get(job.key) or session.next_amounts(job, for_real=for_real)

    return JobsByQueue(
        session.shares,
        next_amounts=next_amounts,
        job_key=session.ordering.job_rank,
        depth=depth,
        is_by_age=not session.settings.has("proportion"),
    )
