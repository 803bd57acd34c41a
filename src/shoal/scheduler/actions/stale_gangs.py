"""Stale gangs: one that lost members, and does not get them back in time, holds what others could use, and ends."""

from __future__ import annotations

from shoal.scheduler.actions.pools import Pools
from shoal.scheduler.actions.staleness import is_stale
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.statuses import ACTIVE_ALLOCATED
from shoal.scheduler.session.session import Session
from shoal.scheduler.session.statement import Reason

NAME = "stalegangeviction"


def run(session: Session, pools: Pools) -> None:
    """Notes since when gangs are stale, and ends those that are so for too long: those that cannot be evicted, too."""
    for job in pools.unwell:
        if not is_stale(job):
            session.stale[job.key] = None
            continue
        since = job.stale_since
        if since is None:
            since = session.stale[job.key] = session.now
        grace = session.settings.staleness_grace if job.staleness_grace is None else job.staleness_grace
        if grace >= 0 and session.now >= since + grace:
            _end(session, job)


def _end(session: Session, job: Job) -> None:
    tasks = [task for task in job.tasks.values() if task.status in ACTIVE_ALLOCATED and task.hold is not None]
    statement = session.statement()
    for task in tasks:
        statement.evict(task, Reason(action=NAME, gang_size=len(tasks)))
    statement.commit()
