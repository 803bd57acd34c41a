"""The search for victims: with ever more of a job's tasks, each step keeping the victims of the one before.

Two ways are tried, each to its end. Near ones first: whenever a batch of victims is added, only those batches count
that have something on one and the same node as the batch's job. Then far ones: whenever a batch is added, all batches
so far by nodes, the nodes with least to spare first, and as few nodes as can hold the job.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain
from operator import itemgetter
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shoal.scheduler.actions.pools import Pools
from shoal.scheduler.actions.solver.room import Room
from shoal.scheduler.actions.solver.simulation import Outcome, Validator, candidate_nodes, simulate
from shoal.scheduler.actions.solver.victims import Batch, Victims, has_what_it_needs_without
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.resources import Mask
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.session.measures import Attempt
from shoal.scheduler.session.session import Session
from shoal.scheduler.session.statement import Reason, Statement

_DUST: Final = 1e-6
NEAR: Final = "NodeLocalGreedy"
FAR: Final = "MultiNodeGang"
"""The ways, as KAI calls them."""

_Group = Sequence[Task]
"""Victims of one job that go together or not at all."""


@dataclass(slots=True)
class Effort:
    """How much was tried, and until when it may go on."""

    deadline: float = float("inf")
    simulated: int = 0
    filtered: int = 0

    @property
    def is_over(self) -> bool:
        """Whether time is up."""
        return time.monotonic() > self.deadline


@dataclass(slots=True, eq=False)
class _Solved:
    statement: Statement
    groups: Sequence[_Group]
    touched: Sequence[_Group]
    """Those of which a task ended or moves."""

    @property
    def stands(self) -> bool:
        """Whether it would come out the same with those alone whom it touches.

        Victims that got back what they had made no room. Where the job has its turn only because they seemed to be
        gone, others will have theirs before it in the next cycle, and the room with it.
        """
        return len(self.touched) in (0, len(self.groups))


@dataclass(slots=True, eq=False)
class Search:
    """One job's search."""

    session: Session
    pools: Pools
    job: Job
    victims: Victims
    is_valid: Validator
    reason: Reason
    effort: Effort = field(default_factory=Effort)
    tried: set[tuple[int, frozenset[str]]] = field(default_factory=set)
    """With how many tasks what victims were of no use."""
    generator: str = ""
    """The way that is being tried."""
    is_rejected: bool = False
    """Whether the last simulation found room, and it would not be fair."""
    since: float = 0.0
    """When the last scenario was done with."""

    until: float = float("inf")
    """How long this way may be tried."""

    def run(self) -> Statement | None:
        """A statement that places all of the job's next tasks; None where there is none."""
        tasks = self.session.next_tasks(self.job, for_real=False)
        for generator, way in ((NEAR, self._near), (FAR, self._far)):
            self.generator = generator
            length = self.session.settings.budgets.of_generator(generator)
            self.until = min(self.effort.deadline, time.monotonic() + (length or float("inf")))
            if tasks and not self.effort.is_over and (statement := self._all_by(way, tasks)) is not None:
                return statement
        return None

    def _all_by(self, way: _Way, tasks: Sequence[Task]) -> Statement | None:
        """All tasks, by one way: with twice as many as long as that works, then with as many as work; and then all."""
        recorded: Sequence[_Group] = ()
        solved_count, failed_count, count = 0, len(tasks) + 1, 1
        while failed_count - solved_count > 1:
            solved = self._solve(way, tasks[:count], recorded)
            if solved is None:
                failed_count = count
            else:
                if count == len(tasks) and solved.stands and (solved.touched or not recorded):
                    return solved.statement
                solved.statement.roll_back()
                solved_count, recorded = count, solved.touched
            count = 2 * solved_count if failed_count > len(tasks) else (solved_count + failed_count) // 2
            count = min(count, len(tasks))
        solved = self._solve(way, tasks, recorded, is_last=True) if solved_count else None
        return solved.statement if solved is not None else None

    def _solve(
        self, way: _Way, tasks: Sequence[Task], recorded: Sequence[_Group], *, is_last: bool = False
    ) -> _Solved | None:
        """The first choice of victims that makes room for these tasks; ``is_last``: and that stands."""
        nodes = candidate_nodes(self.session, self.job)
        kept = [task for group in recorded for task in group]
        room = Room(self.session, tasks, kept)
        self.since = time.perf_counter()
        for groups in chain([()] if recorded else [], way(tasks, kept, room)):
            if time.monotonic() > self.until:
                return None
            if not recorded and not groups:
                continue
            solved: _Solved | None = None
            if self._is_new(tasks, [*recorded, *groups]):
                if not room.could_hold(task for group in groups for task in group):
                    self.effort.filtered += 1
                    continue
                solved = self._simulated(tasks, [*recorded, *groups], nodes)
            while is_last and solved is not None and not solved.stands:
                solved.statement.roll_back()
                is_new = self._is_new(tasks, solved.touched)
                solved = self._simulated(tasks, solved.touched, nodes) if is_new else None
            if solved is not None:
                return solved
        self._done("generators_exhausted")
        return None

    def _is_new(self, tasks: Sequence[Task], groups: Sequence[_Group]) -> bool:
        """Whether nobody knows yet that these victims are of no use."""
        is_new = _names(tasks, groups) not in self.tried
        if not is_new:
            self._done("duplicate", "emitted", "duplicate")
        return is_new

    def _simulated(self, tasks: Sequence[Task], groups: Sequence[_Group], nodes: Mask) -> _Solved | None:
        self.effort.simulated += 1
        self.is_rejected = False
        statement = self.session.statement()
        outcome = simulate(
            self.session,
            self.pools,
            statement,
            self.job,
            tasks,
            [task for group in groups for task in group],
            nodes=nodes,
            reason=self.reason,
            is_valid=self._accepts,
        )
        if outcome is not None:
            self._done("solved", "emitted", "simulated")
            return _Solved(statement, groups, _touched(groups, outcome))
        statement.roll_back()
        self.tried.add(_names(tasks, groups))
        if self.is_rejected:
            self._done("validator_rejected", "emitted", "simulated", "validator_rejected")
        else:
            self._done("unsolved", "emitted", "simulated")
        return None

    def _accepts(self, outcome: Outcome) -> bool:
        is_valid = self.is_valid(outcome)
        self.is_rejected = not is_valid
        return is_valid

    def _done(self, result: str, *states: str) -> None:
        """Counts what became of a scenario, and how long it took."""
        now, measures, action = time.perf_counter(), self.session.measures, self.reason.action
        for state in states:
            measures.scenarios[Attempt(action, self.generator, state)] += 1
        measures.attempted(action, self.generator, result, now - self.since)
        self.since = now

    def _near(self, tasks: Sequence[Task], recorded: Sequence[Task], room: Room) -> Iterator[Sequence[_Group]]:
        batches = _Batches()
        for batch in self.victims.beside(recorded):
            batches.add(batch)
            for row in sorted(task.hold.node for task in batch.job.tasks.values() if task.hold is not None):
                if near := batches.near(row):
                    yield near

    def _far(self, tasks: Sequence[Task], recorded: Sequence[Task], room: Room) -> Iterator[Sequence[_Group]]:
        smallest = min(_gpus_of(task) for task in tasks)
        demand = sum(_gpus_of(task) for task in tasks)
        spare = room.gpus
        elsewhere = float(spare[spare > 0].sum())
        batches = _Batches()
        room_of_victims = 0.0
        for batch in self.victims.beside(recorded):
            rows_of_batch = batch.rows
            for row in (row for row in rows_of_batch if row not in batches.rows):
                elsewhere -= max(0.0, float(spare[row]))
            room_of_victims -= batches.room_on(rows_of_batch, spare, smallest)
            batches.add(batch)
            room_of_victims += batches.room_on(rows_of_batch, spare, smallest)
            if room_of_victims + elsewhere + _DUST < demand:
                continue
            for count in _counts(rows := batches.by_room(spare, smallest), demand - elsewhere):
                yield batches.on(list(rows)[:count], recorded)


_Way = Callable[[Sequence[Task], Sequence[Task], Room], Iterator[Sequence[_Group]]]


def _touched(groups: Sequence[_Group], outcome: Outcome) -> list[_Group]:
    """Those of which a task ended or moves: whole, for what is left of a gang without it is of no use to anybody."""
    names = {task.uid for task in chain(outcome.ended, outcome.moved)}
    return [group for group in groups if any(task.uid in names for task in group)]


def _names(tasks: Sequence[Task], groups: Sequence[_Group]) -> tuple[int, frozenset[str]]:
    """What tells one scenario of a job from another: how many of its tasks, and which victims."""
    return len(tasks), frozenset(task.uid for group in groups for task in group)


def _gpus_of(task: Task) -> float:
    """What a task asks for that counts as GPUs wherever it goes."""
    return task.request.amounts(0).gpu


def _counts(rows: Mapping[int, float], demand: float) -> Iterator[int]:
    """How many nodes to try: as few as have what is asked for, then one more, three more, seven more …, and all."""
    count, step = 0, 1
    for gpus in rows.values():
        if demand <= _DUST:
            break
        demand -= gpus
        count += 1
    if demand > _DUST:
        return
    while count < len(rows):
        yield count
        count, step = count + step, step * 2
    yield len(rows)


class _Batches:
    """The batches so far, by job and by node."""

    def __init__(self) -> None:
        self._all: list[Batch] = []
        self._of_job: dict[tuple[str, str], list[Batch]] = {}
        self._jobs_on: dict[int, dict[tuple[str, str], None]] = {}
        self._freed: dict[int, float] = {}
        """By node, in the order in which they came, what GPUs they would free there."""

    @property
    def rows(self) -> Collection[int]:
        """All nodes that they are on."""
        return self._jobs_on.keys()

    def add(self, batch: Batch) -> None:
        """One more."""
        self._all.append(batch)
        self._of_job.setdefault(batch.job.key, []).append(batch)
        for task in batch.tasks:
            if task.hold is not None:
                row = task.hold.node
                self._jobs_on.setdefault(row, {})[batch.job.key] = None
                self._freed[row] = self._freed.get(row, 0.0) + task.accepted.gpu

    def by_room(self, spare: NDArray[np.float64], least: float) -> dict[int, float]:
        """By node, where there is least first, what GPUs there would be; without those that have not enough of them."""
        rooms = {row: float(spare[row]) + freed for row, freed in self._freed.items()}
        return dict(sorted(((row, gpus) for row, gpus in rooms.items() if gpus + _DUST >= least), key=itemgetter(1)))

    def room_on(self, rows: Iterable[int], spare: NDArray[np.float64], least: float) -> float:
        """What GPUs there would be on those of these nodes that have enough of them."""
        rooms = (float(spare[row]) + self._freed[row] for row in rows if row in self._freed)
        return sum(gpus for gpus in rooms if gpus + _DUST >= least)

    def near(self, row: int) -> list[_Group]:
        """The tasks of all jobs that have one on a node, by job."""
        return [[task for batch in self._of_job[key] for task in batch.tasks] for key in self._jobs_on.get(row, ())]

    def on(self, rows: Sequence[int], gone: Sequence[Task]) -> list[_Group]:
        """All batches that have a task on any of these nodes; of a job that could not go on without them, all it has.

        ``gone``: what goes in any case.
        """
        chosen = set(rows)
        lost: dict[tuple[str, str], list[Batch]] = {}
        for batch in self._all:
            if batch.rows & chosen:
                lost.setdefault(batch.job.key, []).append(batch)
        ended = {
            key
            for key, parts in lost.items()
            if len(parts) < len(self._of_job[key]) and not _goes_on(parts[0].job, parts, gone)
        }
        return [batch.tasks for batch in self._all if batch.rows & chosen or batch.job.key in ended]


def _goes_on(job: Job, parts: Iterable[Batch], gone: Iterable[Task]) -> bool:
    """Whether a job has what it needs without these."""
    tasks = chain((task for task in gone if task.job is job), (task for part in parts for task in part.tasks))
    return has_what_it_needs_without(job.root, Counter(task.pod_set.name for task in tasks))
