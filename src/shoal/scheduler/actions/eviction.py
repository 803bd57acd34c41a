"""What reclaim, preempt and consolidation have in common: who may cause evictions, and whom it is no use to try."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable

from shoal.scheduler.actions.pools import Pools, waits
from shoal.scheduler.actions.solver.room import EmptyCluster
from shoal.scheduler.actions.solver.search import Effort, Search
from shoal.scheduler.actions.solver.simulation import Validator
from shoal.scheduler.actions.solver.victims import Victims
from shoal.scheduler.actions.waiting import in_turns
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.session.failures import Missing, NotNear
from shoal.scheduler.session.measures import Tried
from shoal.scheduler.session.session import Session
from shoal.scheduler.session.signatures import Failed
from shoal.scheduler.session.statement import Reason


def evict_for_each(
    session: Session,
    pools: Pools,
    *,
    action: str,
    may_try: Callable[[Job], bool],
    victims_of: Callable[[Job], Victims],
    validator_of: Callable[[Job], Validator],
    apart: Callable[[Job], Hashable] = lambda job: None,
) -> None:
    """Looks for victims for every job that waits, in fair turns.

    ``apart``: among which jobs one that found nothing speaks for others that are just like it.
    """
    settings = session.settings
    failed: dict[Hashable, Failed] = {}
    empty = EmptyCluster(session)
    length = settings.budgets.of_action(action)
    deadline = time.monotonic() + length if length else float("inf")
    line = in_turns(session, pools, action=action)
    while line and time.monotonic() < deadline:
        job = line.pop()
        if not waits(job) or not _may_evict(session, job) or not may_try(job):
            continue  # it may have lost its core since it came in line: then what is left of it is of no use to it
        if not empty.could_hold(session.next_tasks(job, for_real=False)):
            continue
        alike = failed.setdefault(apart(job), Failed())
        if settings.uses_signatures and not alike.is_easier(job):
            continue
        search = Search(
            session=session,
            pools=pools,
            job=job,
            victims=victims_of(job),
            is_valid=validator_of(job),
            reason=Reason(action=action, evictor=job.key),
            effort=Effort(deadline=min(deadline, _job_deadline(session))),
        )
        is_cut_short = deadline - time.monotonic() < settings.budgets.job
        statement = search.run()
        session.effort[action] = session.effort.get(action, 0) + search.effort.simulated
        _measure(session, action, search, is_solved=statement is not None, is_cut_short=is_cut_short)
        if statement is None:
            alike.note(job)
        else:
            statement.commit()
            session.failures.pop(job.key, None)
    if time.monotonic() >= deadline:
        session.measures.exhausted[action] += 1


def _measure(session: Session, action: str, search: Search, *, is_solved: bool, is_cut_short: bool) -> None:
    measures = session.measures
    left_off = "deadline_exhausted" if search.effort.is_over else "generators_exhausted"
    measures.searches[Tried(action, "solved" if is_solved else left_off, is_cut_short)] += 1
    measures.sought[action] += 1
    measures.served[action] += is_solved
    measures.filtered[action] += search.effort.filtered


def _may_evict(session: Session, job: Job) -> bool:
    """Whether a job has waited long enough, and an eviction could help it at all."""
    failure = session.failures.get(job.key)
    if isinstance(failure, Missing) or (isinstance(failure, NotNear) and failure.is_hopeless):
        return False
    since = max(job.created, job.last_eviction or job.created)
    return session.now >= since + job.preemption_delay


def _job_deadline(session: Session) -> float:
    length = session.settings.budgets.job
    return time.monotonic() + length if length else float("inf")
