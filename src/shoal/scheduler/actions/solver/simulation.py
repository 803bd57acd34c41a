"""What would become of everybody if some tasks were ended: the model itself is changed, through a statement."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from shoal.scheduler.actions.pools import Pools
from shoal.scheduler.actions.waiting import in_turns_among, in_turns_with
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.resources import Mask
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.session.allocating import allocate_job
from shoal.scheduler.session.session import Session
from shoal.scheduler.session.statement import Reason, Statement
from shoal.scheduler.shares.job_order import JobsByQueue


@dataclass(frozen=True, slots=True, eq=False)
class Outcome:
    """Who lost what in a simulation that found room."""

    job: Job
    tasks: Sequence[Task]
    """What was placed for it."""
    victims: Sequence[Task]
    """All that were evicted at first, whether they found another place or not."""

    @property
    def ended(self) -> list[Task]:
        """Those that found no place, or lost the promise of one."""
        return [task for task in self.victims if task.status in (Status.RELEASING, Status.PENDING)]

    @property
    def moved(self) -> list[Task]:
        """Those that are to run elsewhere."""
        return [task for task in self.victims if task.status is Status.PIPELINED]


Validator = Callable[[Outcome], bool]


def simulate(
    session: Session,
    pools: Pools,
    statement: Statement,
    job: Job,
    tasks: Sequence[Task],
    victims: Sequence[Task],
    *,
    nodes: Mask,
    reason: Reason,
    is_valid: Validator,
) -> Outcome | None:
    """Ends the victims, then places the job and, in fair turns with it, the victims again; None where that fails.

    A victim whose queue is more entitled comes first, and may leave no room for the job: so a decision never helps
    somebody who would lose it again in the next cycle. As there, a victim that got one thing back and had more stands
    in line again; what it had not is not its due.
    """
    losers = {victim.job.key: victim.job for victim in victims}
    had = {key: loser.active_allocated for key, loser in losers.items()}
    for victim in victims:
        statement.evict(victim, reason)
    allowed = nodes.copy()
    allowed[[victim.hold.node for victim in victims if victim.hold is not None]] = True
    players = losers | {job.key: job}
    asked = {job.key: session.amounts(tasks)}
    line = in_turns_with(session, pools, players.values(), takes_part=frozenset(players), asked=asked)
    while players and line:
        turn = line.pop()
        if turn.key not in players:
            line.pass_by(turn.queue, players)
        elif turn is not job:
            if _place_again(session, statement, turn, allowed) and turn.active_allocated < had[turn.key]:
                line.push(turn)
            else:
                del players[turn.key]
        elif allocate_job(session, statement, job, allowed, promises_only=True, tasks=tasks):
            del players[job.key]
            line = _rest_of(line, session, players)
        else:
            return None
    if job.key in players:
        return None
    outcome = Outcome(job, tasks, victims)
    return outcome if is_valid(outcome) else None


def _rest_of(line: JobsByQueue, session: Session, players: Mapping[tuple[str, str], Job]) -> JobsByQueue:
    """What of a line still matters to these: the order of one queue's jobs is their own, so nobody else then does."""
    queues = {player.queue for player in players.values()}
    if len(queues) <= 1:
        return in_turns_among(session, players.values())
    line.confine(queues)
    return line


def _place_again(session: Session, statement: Statement, loser: Job, allowed: Mask) -> bool:
    start = statement.checkpoint
    if allocate_job(session, statement, loser, allowed, promises_only=True):
        return True
    statement.roll_back(start)
    return False


def candidate_nodes(session: Session, job: Job) -> Mask:
    """[nodes] where a job may find room without victims: for a job of GPUs those that have some, or will have."""
    nodes = session.nodes
    if not all(task.request.wants_gpu for task in job.tasks.values()):
        return np.ones(len(nodes), dtype=np.bool_)
    mask: Mask = (nodes.free_gpus() > 0) | (nodes.releasing_gpus() > 0)
    return mask
