"""A list of things to do that can be taken back: evict a task, give one a place, promise one a place.

What a statement does is done to the model at once, so that the next decision sees it. Taken back, in whole or from a
checkpoint on, it leaves the model as it was. When it is committed only its outcome counts: a task that was evicted and
then put back where it was is left alone.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING

from shoal.scheduler.model.amounts import Amounts
from shoal.scheduler.model.nodes import Hold
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import Task

if TYPE_CHECKING:
    from shoal.scheduler.session.session import Session


class Verb(Enum):
    """What is done to a task."""

    EVICT = "evict"
    REVOKE = "revoke"
    UNEVICT = "unevict"
    ALLOCATE = "allocate"
    PIPELINE = "pipeline"
    VACATE = "vacate"
    GIVE = "give"


@dataclass(frozen=True, slots=True)
class Reason:
    """Why a task is evicted, for people and for those who count."""

    action: str
    message: str = ""
    evictor: tuple[str, str] | None = None
    """The job for which it has to go."""
    gang_size: int = 1


@dataclass(frozen=True, slots=True, eq=False)
class _Before:
    """A task as it was."""

    status: Status
    node: str
    gpu_groups: tuple[str, ...]
    is_virtual: bool
    hold: Hold | None
    hold_status: Status
    accepted: Amounts


@dataclass(frozen=True, slots=True, eq=False)
class Operation:
    """One thing that was done."""

    verb: Verb
    task: Task
    before: _Before
    reason: Reason | None = None
    vacated: Hold | None = None
    """What the task was found not to occupy."""


class Statement:
    """What one decision does. Nothing of it is carried out before `commit`."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self.operations: list[Operation] = []

    def evict(self, task: Task, reason: Reason) -> None:
        """The task ends: what it holds becomes free later, and no longer counts for its queue.

        One that was only promised a place loses the promise, and waits again.
        """
        hold = task.hold
        assert hold is not None, f"{task.name} is on no node"
        before = _before(task)
        self._session.give_back(task)
        if hold.status is Status.PIPELINED:
            self._session.forget(hold)
            task.hold, task.gpu_groups = hold.left, ()
            task.node = self._session.nodes.nodes[hold.left.node].name if hold.left else ""
            self._become(task, Status.RELEASING if hold.left else Status.PENDING)
            self.operations.append(Operation(Verb.REVOKE, task, before, reason))
            return
        self._session.nodes.change(hold, Status.RELEASING)
        self._become(task, Status.RELEASING)
        self.operations.append(Operation(Verb.EVICT, task, before, reason))

    def allocate(self, task: Task, row: int, gpu_groups: tuple[str, ...] = ()) -> None:
        """The task gets what is free now."""
        self._place(Verb.ALLOCATE, task, row, gpu_groups, Status.ALLOCATED)

    def pipeline(self, task: Task, row: int, gpu_groups: tuple[str, ...] = ()) -> None:
        """The task is promised what becomes free. One that was evicted from that very place stays where it is."""
        hold = task.hold
        is_there = hold is not None and hold.node == row and hold.status is Status.RELEASING
        if hold is not None and is_there and self._session.may_stay(hold, gpu_groups):
            evicted = next((op for op in reversed(self.operations) if op.task is task and op.verb is Verb.EVICT), None)
            if evicted is not None:
                self._unevict(task, hold, evicted)
                return
        self._place(Verb.PIPELINE, task, row, gpu_groups, Status.PIPELINED)

    def vacate(self, task: Task) -> None:
        """The task never came to where it is said to be ending: what it has there is free at once.

        For one that was given a place in this cycle, and lost it before anybody heard of it.
        """
        hold = task.hold
        assert hold is not None, f"{task.name} is on no node"
        left = hold.left if hold.status is Status.PIPELINED else hold
        assert left is not None, f"{task.name} is ending nowhere"
        operation = Operation(Verb.VACATE, task, _before(task), vacated=left)
        self._session.forget(left)
        if left is hold:
            task.hold, task.node, task.gpu_groups = None, "", ()
            self._become(task, Status.PENDING)
        else:
            hold.left = None
        self.operations.append(operation)

    def give(self, task: Task) -> None:
        """The task gets at once what it was promised."""
        promise = task.hold
        assert promise is not None, f"{task.name} was promised nothing"
        assert promise.left is None, f"{task.name} is still elsewhere"
        before = _before(task)
        self._session.give_back(task)
        self._session.forget(promise)
        task.hold = Hold(
            task,
            promise.node,
            Status.ALLOCATED,
            promise.gpu_groups,
            new_groups=promise.new_groups,
            zones=promise.zones,
        )
        self._session.note(task.hold)
        self._session.take(task, promise.node)
        self._become(task, Status.ALLOCATED)
        self.operations.append(Operation(Verb.GIVE, task, before))

    def promise_instead(self, tasks: Iterable[Task]) -> None:
        """What these tasks were given in this statement, as the last thing done to them, they are only promised."""
        wanted = {task.uid for task in tasks}
        given = [op for op in self.operations if op.verb is Verb.ALLOCATE and op.task.uid in wanted]
        places = [(op.task, _row(op.task), op.task.gpu_groups) for op in given]
        for op in reversed(given):
            self._undo(op)
        undone = set(map(id, given))
        self.operations = [op for op in self.operations if id(op) not in undone]
        for task, row, groups in places:
            self._place(Verb.PIPELINE, task, row, groups, Status.PIPELINED)

    @property
    def checkpoint(self) -> int:
        """Where it is now."""
        return len(self.operations)

    def roll_back(self, checkpoint: int = 0) -> None:
        """Takes back everything after a checkpoint, the last first."""
        while len(self.operations) > checkpoint:
            self._undo(self.operations.pop())

    def commit(self) -> None:
        """Hands the outcome to the session, which carries it out."""
        self._session.carry_out(self.operations)
        self.operations = []

    def _place(self, verb: Verb, task: Task, row: int, gpu_groups: tuple[str, ...], status: Status) -> None:
        before = _before(task)
        node = self._session.nodes.nodes[row]
        new = frozenset(group for group in gpu_groups if group not in node.shared or node.shared[group].is_new)
        zones = self._session.zones(task, row, is_promise=verb is Verb.PIPELINE)
        task.hold = Hold(task, row, status, gpu_groups, left=task.hold, new_groups=new, zones=zones)
        self._session.note(task.hold)
        task.node, task.gpu_groups = node.name, gpu_groups
        self._session.take(task, row)
        self._become(task, status)
        self.operations.append(Operation(verb, task, before))

    def _unevict(self, task: Task, hold: Hold, evicted: Operation) -> None:
        before = _before(task)
        self._session.nodes.change(hold, evicted.before.hold_status)
        task.gpu_groups = evicted.before.gpu_groups
        self._session.take(task, hold.node)
        self._become(task, evicted.before.status)
        task.is_virtual = evicted.before.is_virtual
        self.operations.append(Operation(Verb.UNEVICT, task, before))

    def _undo(self, op: Operation) -> None:
        task, before, session = op.task, op.before, self._session
        hold = task.hold
        if op.verb is Verb.VACATE:
            assert op.vacated is not None
            session.note(op.vacated)
            if hold is not None:
                hold.left = op.vacated
        elif op.verb is Verb.REVOKE:
            assert before.hold is not None
            session.note(before.hold)
            session.take_again(task, before.accepted)
        elif op.verb is Verb.EVICT:
            assert hold is not None
            session.nodes.change(hold, before.hold_status)
            session.take_again(task, before.accepted)
        else:
            assert hold is not None
            session.give_back(task)
            if op.verb is Verb.UNEVICT:
                session.nodes.change(hold, before.hold_status)
            else:
                session.forget(hold)
            if op.verb is Verb.GIVE:
                assert before.hold is not None
                session.note(before.hold)
                session.take_again(task, before.accepted)
        task.hold = before.hold
        task.node, task.gpu_groups, task.accepted = before.node, before.gpu_groups, before.accepted
        task.become(before.status)
        task.is_virtual = before.is_virtual

    def _become(self, task: Task, status: Status) -> None:
        task.become(status)
        task.is_virtual = True


def _before(task: Task) -> _Before:
    return _Before(
        status=task.status,
        node=task.node,
        gpu_groups=task.gpu_groups,
        is_virtual=task.is_virtual,
        hold=task.hold,
        hold_status=task.hold.status if task.hold is not None else task.status,
        accepted=task.accepted,
    )


def _row(task: Task) -> int:
    assert task.hold is not None
    return task.hold.node
