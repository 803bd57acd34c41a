"""What was given in this cycle and taken back again is free at once: whoever is promised it in the end gets it now.

Otherwise two jobs could wait for ever: each cycle gives the one a place first, and then promises it to the other, who
has to wait until nobody ends there.
"""

from __future__ import annotations

from collections.abc import Sequence

from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.session.allocating import waits_for_others
from shoal.scheduler.session.session import Session
from shoal.scheduler.session.statement import Statement

_DUST = 1e-6


def give_what_is_free(session: Session) -> None:
    """For the end of a cycle: turns promises of what is free into places, gangs whole or not at all."""
    taken_back = session.taken_back
    if not taken_back:
        return
    statement = session.statement()
    for task in taken_back:
        statement.vacate(task)
    promised: dict[tuple[str, str], list[Task]] = {}
    for task in session.promised:
        promised.setdefault(task.job.key, []).append(task)
    started = [job for tasks in promised.values() if (job := _give(session, statement, tasks)) is not None]
    statement.commit()
    for job in started:
        session.started[job.key] = session.now
        session.failures.pop(job.key, None)


def _give(session: Session, statement: Statement, tasks: Sequence[Task]) -> Job | None:
    """Gives a job's tasks what they are promised, where it is free; the job, if these are the first that it has."""
    job = tasks[0].job
    had_some, start = job.allocated > 0, statement.checkpoint
    for task in tasks:
        before = statement.checkpoint
        if task.hold is None or task.hold.left is not None or session.pods.mask(task) is not None:
            continue  # it still runs elsewhere, or who is near decides, and some of those may be ending
        statement.give(task)
        if not _is_there(session, task):
            statement.roll_back(before)
    if waits_for_others(job):
        statement.roll_back(start)
    return job if job.allocated and not had_some else None


def _is_there(session: Session, task: Task) -> bool:
    """Whether a task that was given a place has taken nothing that somebody else still has."""
    hold = task.hold
    assert hold is not None
    node = session.nodes.nodes[hold.node]
    is_on_devices = all(node.shared[group].allocated <= node.gpu_memory for group in hold.gpu_groups)
    is_on_devices = is_on_devices and (session.numa is None or session.numa.is_there(hold))
    return is_on_devices and bool((session.nodes.idle[hold.node] >= -_DUST).all())
