"""Preempt: within one queue the more important job takes the place of less important ones."""

from __future__ import annotations

from shoal.scheduler.actions.eviction import evict_for_each
from shoal.scheduler.actions.pools import Pools
from shoal.scheduler.actions.solver.simulation import Outcome, Validator
from shoal.scheduler.actions.solver.victims import Victims
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.session.session import Session
from shoal.scheduler.shares.capacity import over_quota
from shoal.scheduler.shares.min_runtime import is_protected, keeps_minimum, may_be_victim

NAME = "preempt"


def run(session: Session, pools: Pools) -> None:
    """For every job that waits."""
    evict_for_each(
        session,
        pools,
        action=NAME,
        may_try=lambda job: _may_preempt(session, job),
        victims_of=lambda job: _victims(session, pools, job),
        validator_of=lambda job: _validator(session),
        apart=lambda job: job.queue,
    )


def _may_preempt(session: Session, job: Job) -> bool:
    """One that cannot be evicted again must fit into its queue's quota."""
    if job.is_preemptible or not session.settings.has("proportion"):
        return True
    amounts = session.amounts(session.next_tasks(job, for_real=False), memory_of_gpu=session.largest_gpu)
    return over_quota(session.shares, job.queue, amounts) is None


def _victims(session: Session, pools: Pools, job: Job) -> Victims:
    return Victims(
        session,
        [(job.queue, pools.givers.of(job.queue))],
        lambda other: (
            other.priority < job.priority
            and may_be_victim(session.shares, other, now=session.now, settings=session.min_runtimes)
        ),
    )


def _validator(session: Session) -> Validator:
    def is_valid(outcome: Outcome) -> bool:
        lost: dict[tuple[str, str], list[Task]] = {}
        for task in outcome.ended:
            lost.setdefault(task.job.key, []).append(task)
        return all(
            keeps_minimum(tasks[0].job, tasks)
            for tasks in lost.values()
            if is_protected(session.shares, tasks[0].job, now=session.now, settings=session.min_runtimes)
        )

    return is_valid
