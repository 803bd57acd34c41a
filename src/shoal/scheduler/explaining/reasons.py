"""What stands in a job's way, as the last cycle found it: a reason in one word, and a sentence.

Cheap enough to be asked of every job that waits in every cycle: what takes time is counted once for all tasks that are
alike, and kept as long as no node has changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final
from weakref import WeakKeyDictionary

from shoal.api.scheduling_run_ai import QueueDetails
from shoal.scheduler.explaining.explanation import State
from shoal.scheduler.explaining.shortage import Shortage, shortage_of
from shoal.scheduler.explaining.states import not_ready_message, state_of
from shoal.scheduler.explaining.words import counted, moment_words
from shoal.scheduler.model.jobs import DEFAULT_POD_SET, Job
from shoal.scheduler.model.tasks import Constraints, Request, Task
from shoal.scheduler.session.failures import Failure, Missing, NoRoom, NotNear, OverCapacity, Refused
from shoal.scheduler.session.session import Session

QUEUE_DOES_NOT_EXIST: Final = "QueueDoesNotExist"
POD_SCHEDULING_ERRORS: Final = "PodSchedulingErrors"
PREEMPTION_DELAY_NOT_ELAPSED: Final = "PreemptionDelayNotElapsed"
NOT_READY: Final = "NotReady"
BACKED_OFF: Final = "BackedOff"
"""The last two are no reasons of a PodGroup's condition: such a job is not tried at all."""

_ELSEWHERE: Final = "has room, but not beside the pods that are there or not where the pod has to be"


@dataclass(frozen=True, slots=True)
class Cause:
    """One thing that stands in the way."""

    reason: str
    message: str
    details: QueueDetails | None = None


def short(session: Session, job: Job) -> str:
    """Why a job waits, in a sentence; empty where it does not. To be asked before the session is closed."""
    failure = failure_of(session, job)
    if failure is not None and not any(one.pipelined for one in job.pod_sets.values()):
        return waiting_message(session, job, failure)  # it was tried: there is no need to ask how far it is
    state = state_of(job, session.shares)
    if state is State.WAITING:
        return waiting_message(session, job, failure)
    if state is State.NOT_READY:
        return not_ready_message(job)
    if state is State.UNKNOWN_QUEUE:
        return queue_message(session, job)
    if state is State.BACKED_OFF:
        return "it is left alone for now: it could not be placed, or not be bound, a moment ago"
    if state is State.PROMISED:
        return "it has its places, and waits for the pods there to end"
    return ""


def causes(session: Session, job: Job) -> list[Cause]:
    """Everything that stood in the way of a job that waits, the main thing first."""
    state = state_of(job, session.shares)
    if state is State.UNKNOWN_QUEUE:
        return [Cause(QUEUE_DOES_NOT_EXIST, queue_message(session, job))]
    if state is State.NOT_READY:
        return [Cause(NOT_READY, not_ready_message(job))]
    if state is State.BACKED_OFF:
        return [Cause(BACKED_OFF, short(session, job))]
    failure = failure_of(session, job)
    if state is not State.WAITING or failure is None:
        return []
    if isinstance(failure, OverCapacity):
        return [Cause(failure.excess.reason, failure.excess.message(), failure.excess.details())]
    found = [Cause(POD_SCHEDULING_ERRORS, failure_message(session, job, failure))]
    until = evicts_from(job)
    if session.now < until and isinstance(failure, NoRoom | NotNear):
        message = f"it evicts nobody before {moment_words(until)}, by its own preemption delay"
        found.append(Cause(PREEMPTION_DELAY_NOT_ELAPSED, message))
    return found


def waiting_message(session: Session, job: Job, failure: Failure | None) -> str:
    """Why a job waits that could start."""
    if failure is None:
        depth = session.settings.queue_depths.get("allocate")
        first = f": of each queue only the first {depth} are" if depth is not None else ""
        return f"it was not tried in the last cycle{first}"
    message = failure_message(session, job, failure)
    until = evicts_from(job)
    if session.now < until and isinstance(failure, NoRoom | NotNear):
        return f"{message}; it evicts nobody before {moment_words(until)}"
    return message


def failure_of(session: Session, job: Job) -> Failure | None:
    """What went wrong when a job was last tried. That something is missing outweighs that no node has room."""
    failure = session.failures.get(job.key)
    if isinstance(failure, NoRoom) and failure.task.constraints.missing:
        return Missing(failure.task, failure.task.constraints.missing)
    return failure


def failure_message(session: Session, job: Job, failure: Failure) -> str:
    """What went wrong when a job was tried."""
    if isinstance(failure, OverCapacity):
        return failure.excess.message()
    if isinstance(failure, Missing):
        return f"pod {_name(failure.task)} can be placed nowhere: {failure.message}"
    if isinstance(failure, NotNear):
        return failure.message
    if isinstance(failure, Refused):
        return f"plugin {failure.plugin} does not let it start: {failure.message}"
    task = failure.task
    reasons = _notes_of(session).words(session, task, others_placed=failure.placed > 0)
    if failure.kept_for is not None:
        reasons += f"; some nodes that have room are kept for {'/'.join(failure.kept_for)}"
    pod_set = task.pod_set
    if pod_set.is_satisfied or (not failure.placed and pod_set.min_member <= 1):
        return f"no node has room for pod {_name(task)}: {reasons}"
    found = pod_set.active_allocated + failure.placed
    part = "" if pod_set.name == DEFAULT_POD_SET and len(job.pod_sets) == 1 else f" in subgroup {pod_set.name}"
    return (
        f"room was found for {counted(found, 'pod')}{part} while {pod_set.min_member} are required; "
        f"pod {_name(task)} finds none: {reasons}"
    )


def queue_message(session: Session, job: Job) -> str:
    """What is wrong with a job's queue."""
    share = session.shares.get(job.queue)
    if share is not None:
        return f"queue {job.queue} has queues below it, and jobs run in queues without any: choose one of those"
    if job.queue in session.cluster.queues:
        return f"queue {job.queue} hangs in the air: a queue above it does not exist"
    if not job.queue:
        return "it names no queue: set spec.queue of its PodGroup"
    return f"queue {job.queue} does not exist: create it, or name another"


def evicts_from(job: Job) -> float:
    """From when on a job may have others evicted."""
    return max(job.created, job.last_eviction or job.created) + job.preemption_delay


def shortage(session: Session, task: Task) -> Shortage:
    """What the nodes are to a task and all that are alike; counted once."""
    return _notes_of(session).shortage(session, task)


def reason_words(reasons: Mapping[str, int]) -> str:
    """Reasons with how many nodes have each, the most first."""
    ordered = sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
    return "; ".join(f"{reason} ({counted(nodes, 'node')})" for reason, nodes in ordered) or "there are no nodes"


def node_reasons(found: Shortage, *, others_placed: bool) -> dict[str, int]:
    """Nodes by reason; those that have room all the same have a reason of their own."""
    reasons = found.reasons(others_placed=others_placed)
    if not others_placed and found.open_nodes:
        reasons[_ELSEWHERE] = found.open_nodes
    return reasons


@dataclass(slots=True)
class _Notes:
    """What was counted in a session, as long as no node changes."""

    stamp: tuple[int, int]
    shortages: dict[tuple[int, int], Shortage] = field(default_factory=dict)
    sentences: dict[tuple[int, int, bool], str] = field(default_factory=dict)
    kept: list[Request | Constraints] = field(default_factory=list)
    """Kept alive, so that their places in memory stay their names."""

    def shortage(self, session: Session, task: Task) -> Shortage:
        key = id(task.request), id(task.constraints)
        found = self.shortages.get(key)
        if found is None:
            found = self.shortages[key] = shortage_of(session, task)
            self.kept += (task.request, task.constraints)
        return found

    def words(self, session: Session, task: Task, *, others_placed: bool) -> str:
        key = id(task.request), id(task.constraints), others_placed
        found = self.sentences.get(key)
        if found is None:
            reasons = node_reasons(self.shortage(session, task), others_placed=others_placed)
            found = self.sentences[key] = reason_words(reasons)
        return found


_notes: WeakKeyDictionary[Session, _Notes] = WeakKeyDictionary()


def _notes_of(session: Session) -> _Notes:
    stamp = id(session.nodes), len(session.nodes.changes)
    found = _notes.get(session)
    if found is None or found.stamp != stamp:
        found = _notes[session] = _Notes(stamp)
    return found


def _name(task: Task) -> str:
    return f"{task.namespace}/{task.name}"
