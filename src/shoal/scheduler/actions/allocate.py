"""Allocate: give what is free to those who wait, queue by queue in fair turns."""

from __future__ import annotations

from typing import Final

from shoal.scheduler.actions.pools import Pools
from shoal.scheduler.actions.waiting import in_turns
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.session.allocating import allocate_job
from shoal.scheduler.session.reserving import reservation_for
from shoal.scheduler.session.session import Session

NAME = "allocate"
_MOST_TRIED: Final = 4
"""Jobs for which room to keep is sought in one cycle; those for which there never will be any are not that many."""


def run(session: Session, pools: Pools) -> None:
    """Tries every job that waits; one that got something and wants more stands in line again."""
    line = in_turns(session, pools, action=NAME)
    left = _MOST_TRIED if session.settings.reserves_for_large_gangs else 0
    while line:
        job = line.pop()
        if _give(session, job):
            if job.pending and session.next_tasks(job, for_real=True):
                line.push(job)
        elif left and session.reservation is None:
            session.reservation = reservation_for(session, job)
            left -= 1


def _give(session: Session, job: Job) -> bool:
    had_some = job.allocated > 0
    statement = session.statement()
    if not allocate_job(session, statement, job):
        statement.roll_back()
        return False
    statement.commit()
    session.measures.served[NAME] += 1
    session.failures.pop(job.key, None)
    if job.allocated and not had_some:
        session.started[job.key] = session.now
    return True
