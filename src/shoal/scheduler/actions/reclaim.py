"""Reclaim: a queue that has less than its share takes back from those that have more than theirs."""

from __future__ import annotations

from shoal.scheduler.actions.eviction import evict_for_each
from shoal.scheduler.actions.pools import Pools
from shoal.scheduler.actions.solver.simulation import Outcome, Validator
from shoal.scheduler.actions.solver.victims import Victims, chunks
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.session.session import Session
from shoal.scheduler.shares.min_runtime import is_protected, keeps_minimum, may_be_victim
from shoal.scheduler.shares.reclaim import is_candidate, is_fair, may_reclaim

NAME = "reclaim"


def run(session: Session, pools: Pools) -> None:
    """For every job that waits in a queue below its share."""
    evict_for_each(
        session,
        pools,
        action=NAME,
        may_try=lambda job: _may_reclaim(session, job),
        victims_of=lambda job: _victims(session, pools, job),
        validator_of=lambda job: _validator(session, job),
        apart=lambda job: job.queue,
    )


def _may_reclaim(session: Session, job: Job) -> bool:
    if not session.settings.has("proportion"):
        return False
    amounts = session.next_amounts(job, for_real=False)
    return may_reclaim(session.shares, job.queue, amounts, is_preemptible=job.is_preemptible)


def _victims(session: Session, pools: Pools, job: Job) -> Victims:
    shares = session.shares
    amounts = session.next_amounts(job, for_real=False)

    def is_open(queue: str) -> bool:
        return queue in shares and queue != job.queue and is_candidate(shares, job.queue, amounts, queue)

    return Victims(
        session,
        ((queue, ranked) for queue, ranked in pools.givers.queues() if is_open(queue)),
        lambda other: may_be_victim(
            shares, other, now=session.now, settings=session.min_runtimes, reclaimer_queue=job.queue
        ),
    )


def _validator(session: Session, job: Job) -> Validator:
    before = session.shares.copy_of_amounts()

    def is_valid(outcome: Outcome) -> bool:
        lost: dict[tuple[str, str], list[Task]] = {}
        counted = outcome.ended if session.settings.allows_consolidating_reclaim else [*outcome.ended, *outcome.moved]
        for task in counted:
            lost.setdefault(task.job.key, []).append(task)
        victims = [(tasks[0].job, tasks) for tasks in lost.values()]
        for victim, tasks in victims:
            if is_protected(
                session.shares, victim, now=session.now, settings=session.min_runtimes, reclaimer_queue=job.queue
            ) and not keeps_minimum(victim, tasks):
                return False
        return is_fair(
            session.shares,
            (job.queue, session.amounts(outcome.tasks), job.is_preemptible),
            [(victim.queue, chunks(tasks), True) for victim, tasks in victims],
            saturation_multiplier=session.settings.saturation_multiplier,
            at=before,
        )

    return is_valid
