"""Room that is kept for a job which finds none, so that those behind it do not take it bit by bit for ever.

Where it would fit soonest is found by trying: pods are taken away in the order in which they end, as far as that is
known, and then, node by node, whatever is on the nodes that have least left on them, until the job has its places. As
long as it waits, the nodes of these places give to others only what the job does not need, unless somebody is known to
be gone by the time the job could start. The next cycle finds the same nodes again, or better ones: what was kept on
them only grows.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.nodes import Nodes
from shoal.scheduler.model.resources import GPU, Mask, Matrix, Vector, widened
from shoal.scheduler.model.statuses import ACTIVE_ALLOCATED
from shoal.scheduler.model.tasks import Request, Task
from shoal.scheduler.session.allocating import allocate_job
from shoal.scheduler.session.failures import NoRoom, NotNear
from shoal.scheduler.session.session import Session
from shoal.scheduler.session.statement import Reason, Statement

UNKNOWN: Final = math.inf
"""When something ends of which nobody says it."""
_REASON: Final = Reason(action="reservation", message="only tried, never carried out")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Reservation:
    """Room that is kept for a job."""

    job: Job
    at: float
    """When it was made."""
    when: float
    """When the job can start at the latest, if all ends in time; or UNKNOWN."""
    rows: Mask
    """[nodes] where something is kept."""
    kept: Matrix
    """[nodes, resources] how much of what is free, or becomes free."""

    def binds(self, job: Job) -> bool:
        """Whether a job has to leave it alone: any other, as long as the one that it is for waits."""
        return job is not self.job and not self.job.root.is_satisfied

    def open_to(self, task: Task, nodes: Nodes) -> Mask | None:
        """[nodes] where a task takes nothing of what is kept; None: it may go anywhere, as it ends in time."""
        if self.when < UNKNOWN and task.longest_run is not None and self.at + task.longest_run <= self.when:
            return None
        asked = _whole(task.request, nodes.idle.shape[1])
        rows = np.flatnonzero(self.rows)
        left = nodes.idle[rows] + nodes.releasing[rows] - self.kept[rows]
        mask = np.ones(len(nodes), dtype=np.bool_)
        mask[rows] = (left[:, asked > 0] >= asked[asked > 0]).all(axis=1)
        return mask


def reservation_for(session: Session, job: Job) -> Reservation | None:
    """What to keep for a job that was just tried; None for one that lacks no room, or will never have enough."""
    failure = session.failures.get(job.key)
    lacks_room = isinstance(failure, NoRoom) or (isinstance(failure, NotNear) and not failure.is_hopeless)
    tasks = session.next_tasks(job, for_real=True)
    is_possible = bool(tasks) and not any(task.constraints.missing for task in tasks)
    if not lacks_room or job.root.is_satisfied or not is_possible or not _has_room_when_empty(session, tasks):
        return None
    return _Trial(session, job, tasks).reservation()


def expected_end(task: Task, now: float) -> float:
    """When a task that has a place ends at the latest; one that is overdue ends at any moment."""
    return UNKNOWN if task.longest_run is None else max(now, (task.started or now) + task.longest_run)


@dataclass(slots=True, eq=False)
class _Trial:
    """One search. All that it does to the model it takes back."""

    session: Session
    job: Job
    tasks: Sequence[Task]
    statement: Statement = field(init=False)
    free: Matrix = field(init=False)
    """[nodes, resources] what is free now, or becomes free anyway."""

    def __post_init__(self) -> None:
        nodes = self.session.nodes
        self.statement = self.session.statement()
        self.free = nodes.idle + nodes.releasing

    def reservation(self) -> Reservation | None:
        try:
            return self._by_time() or self._by_node()
        finally:
            self.statement.roll_back()

    def _by_time(self) -> Reservation | None:
        now = self.session.now
        ending = sorted((end, task.uid, task) for task in self._others() if (end := expected_end(task, now)) < UNKNOWN)
        count = self._fewest(len(ending), lambda begin, end: [task for _, _, task in ending[begin:end]])
        if count is None:
            return None
        return self._made(ending[count - 1][0] if count else now)

    def _by_node(self) -> Reservation | None:
        on_node: dict[int, list[Task]] = {}
        for task in self._others():
            if task.hold is not None:
                on_node.setdefault(task.hold.node, []).append(task)
        held = {row: sum(task.accepted.gpu for task in tasks) for row, tasks in on_node.items()}
        order = sorted(on_node, key=lambda row: (held[row], len(on_node[row]), row))
        count = self._fewest(len(order), lambda begin, end: [task for row in order[begin:end] for task in on_node[row]])
        return None if count is None else self._made(UNKNOWN)

    def _others(self) -> list[Task]:
        """Everything that has a place where the job could go, or the promise of one."""
        usable = np.zeros(len(self.session.nodes), dtype=np.bool_)
        for task in _kinds(self.tasks):
            usable |= self.session.field(task).static
        return [
            task
            for job in self.session.cluster.jobs.values()
            if job is not self.job
            for task in job.tasks.values()
            if task.status in ACTIVE_ALLOCATED and task.hold is not None and usable[task.hold.node]
        ]

    def _fewest(self, most: int, between: Callable[[int, int], Sequence[Task]]) -> int | None:
        """How many of these must go at least; the job then has its places. None where all are not enough.

        More that go never mean less room, so the number is doubled, then halved. Those that went stay away.
        """
        if self._fits():
            return 0
        low, high, step = 0, 0, 1
        is_placed = False
        while not is_placed:
            if low == most:
                return None
            mark, high = self.statement.checkpoint, min(most, low + step)
            self._take_away(between(low, high))
            is_placed = self._fits()
            if not is_placed:
                low, step = high, step * 2
        while high - low > 1:
            if is_placed:
                self.statement.roll_back(mark)
            middle = (low + high) // 2
            self._take_away(between(low, middle))
            is_placed = self._fits()
            if is_placed:
                high = middle
            else:
                low, mark = middle, self.statement.checkpoint
        if not is_placed:
            self._take_away(between(low, high))
            self._fits()
        return high

    def _take_away(self, tasks: Sequence[Task]) -> None:
        for task in tasks:
            self.statement.evict(task, _REASON)

    def _fits(self) -> bool:
        start = self.statement.checkpoint
        if allocate_job(self.session, self.statement, self.job, promises_only=True, tasks=self.tasks):
            return True
        self.statement.roll_back(start)
        return False

    def _made(self, when: float) -> Reservation:
        """The places that the job has now. Of those where all that ends is known, what is left over is free to use."""
        nodes = self.session.nodes
        rows = np.zeros(len(nodes), dtype=np.bool_)
        needed = np.zeros_like(self.free)
        for task in self.tasks:
            assert task.hold is not None
            rows[task.hold.node] = True
            needed[task.hold.node] += _whole(task.request, needed.shape[1])
        left_over = nodes.idle + nodes.releasing
        kept = self.free - left_over if when < UNKNOWN else np.minimum(self.free, needed)
        return Reservation(
            job=self.job,
            at=self.session.now,
            when=when,
            rows=rows,
            kept=np.where(rows[:, np.newaxis], kept.clip(0), 0.0),
        )


def _has_room_when_empty(session: Session, tasks: Sequence[Task]) -> bool:
    """Whether tasks of each kind had room on nodes with nothing on them; cheap, and no more than a first look."""
    nodes = session.nodes
    for one in _kinds(tasks):
        asked = _whole(one.request, nodes.idle.shape[1])
        rooms = (nodes.allocatable[:, asked > 0] // asked[asked > 0]).min(axis=1, initial=len(tasks))
        count = sum(task.request is one.request and task.constraints is one.constraints for task in tasks)
        if not one.request.is_shared and rooms[session.field(one).static].sum() < count:
            return False
    return True


def _kinds(tasks: Sequence[Task]) -> list[Task]:
    """One task of each kind."""
    return list({(id(task.request), id(task.constraints)): task for task in tasks}.values())


def _whole(request: Request, width: int) -> Vector:
    """[resources] what a task takes at the most: of GPUs that it shares, all of each."""
    vector = widened(request.vector, width)
    if request.is_shared:
        vector = vector.copy()
        vector[GPU] += request.gpu.devices
    return vector
