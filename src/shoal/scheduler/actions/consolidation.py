"""Consolidation: running jobs are moved together so that one that waits finds room. Nobody loses a place by it."""

from __future__ import annotations

from itertools import islice

from shoal.scheduler.actions.eviction import evict_for_each
from shoal.scheduler.actions.pools import Pools
from shoal.scheduler.actions.solver.simulation import Outcome
from shoal.scheduler.actions.solver.victims import Victims
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.session.session import Session

NAME = "consolidation"


def run(session: Session, pools: Pools) -> None:
    """For every preemptible job that waits, as long as there are enough GPUs at all."""
    if session.settings.max_consolidation_victims == 0:
        return
    evict_for_each(
        session,
        pools,
        action=NAME,
        may_try=lambda job: job.is_preemptible and _has_enough(session, job),
        victims_of=lambda job: _victims(session, pools, job),
        validator_of=lambda job: _all_are_placed,
    )


def _has_enough(session: Session, job: Job) -> bool:
    nodes = session.nodes
    free = float((nodes.free_gpus() + nodes.releasing_gpus())[nodes.is_ready].sum())
    asked = sum(task.request.gpu.gpus + task.request.claimed_gpus for task in session.next_tasks(job, for_real=False))
    return free + 1e-6 >= asked


def _victims(session: Session, pools: Pools, job: Job) -> Victims:
    most = session.settings.max_consolidation_victims
    if most is None:
        return Victims(session, pools.givers.queues(), lambda other: other is not job)
    first = {other.key for other in islice((other for other in pools.givers if other is not job), most + 1)}
    return Victims(session, pools.givers.queues(), lambda other: other.key in first)


def _all_are_placed(outcome: Outcome) -> bool:
    return not outcome.ended
