"""What a cycle has decided so far. Later actions may think better of what earlier ones gave: only what stands counts.

A task that was given a place in this cycle has not started. If its place is wanted for somebody else before the cycle
is over, it is not evicted: it is simply not bound. What is left of its gang waits with it. The place is free, so that
whoever is promised it in the end need not wait for anybody (see ``actions/giving``).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from shoal.scheduler.model.jobs import Job, PodSet, SubGroup
from shoal.scheduler.model.nodes import Hold
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.numa import Zones
from shoal.scheduler.session.statement import Operation, Reason, Verb


@dataclass(frozen=True, slots=True)
class Bind:
    """A task gets a place."""

    task: Task
    node: str
    gpu_groups: tuple[str, ...]
    zones: Zones = ()
    """The NUMA zones that it is expected on."""


@dataclass(frozen=True, slots=True)
class Promise:
    """A task gets a place as soon as others are gone."""

    task: Task
    node: str


@dataclass(frozen=True, slots=True)
class Eviction:
    """A task has to go."""

    task: Task
    reason: Reason


Decision = Bind | Promise | Eviction


@dataclass(slots=True)
class Calls:
    """How often each thing was decided."""

    binds: int = 0
    evictions: int = 0
    pipelines: int = 0


class Decisions:
    """Those of one cycle."""

    def __init__(self) -> None:
        self._evicted: dict[str, Eviction] = {}
        self._placed: dict[str, Bind | Promise] = {}
        """By task: where it goes."""
        self._given: dict[str, Task] = {}
        """Tasks that were given a place in this cycle, whether that still stands or not."""

    @property
    def all(self) -> list[Decision]:
        """Whoever has to go, then whoever gets a place, each in the order in which it was decided."""
        return [*self._evicted.values(), *self._placed.values()]

    @property
    def calls(self) -> Calls:
        """How many of each there are."""
        binds = sum(isinstance(one, Bind) for one in self._placed.values())
        return Calls(binds, len(self._evicted), len(self._placed) - binds)

    @property
    def taken_back(self) -> list[Task]:
        """Tasks that were given a place in this cycle and lost it: they seem to be ending where they never were."""
        return [task for task in self._given.values() if task.hold is not None and _is_ending(task.hold)]

    @property
    def promised(self) -> list[Task]:
        """Tasks that get a place later, in the order in which it was decided."""
        return [one.task for one in self._placed.values() if isinstance(one, Promise)]

    def take(self, operations: Sequence[Operation]) -> Collection[Job]:
        """Takes in the outcome of a statement; says which jobs it changed."""
        firsts: dict[str, Operation] = {}
        reasons: dict[str, Reason] = {}
        for operation in operations:
            firsts.setdefault(operation.task.uid, operation)
            if operation.reason is not None:
                reasons[operation.task.uid] = operation.reason
        for first in firsts.values():
            self._decide(first, reasons)
        jobs = {id(first.task.job): first.task.job for first in firsts.values()}.values()
        for job in jobs:
            self._keep_together(job)
        return jobs

    def _decide(self, first: Operation, reasons: Mapping[str, Reason]) -> None:
        task = first.task
        uid = task.uid
        lost_it = task.status is Status.RELEASING or task.status is Status.PIPELINED or task.status is Status.PENDING
        if first.verb in (Verb.EVICT, Verb.REVOKE) and lost_it:
            self._placed.pop(uid, None)
            if first.verb is Verb.EVICT and uid not in self._given:
                self._evicted[uid] = Eviction(task, reasons[uid])
        if task.status is Status.ALLOCATED:
            zones = task.hold.zones if task.hold is not None else None
            self._placed[uid] = Bind(task, task.node, task.gpu_groups, zones or ())
            self._given[uid] = task
            task.become(Status.BINDING)
        elif task.status is Status.PIPELINED:
            self._placed[uid] = Promise(task, task.node)
        task.is_virtual = False
        task.job.version += 1  # what is to be placed next is another thing: what was evicted just now is gone for good

    def _keep_together(self, job: Job) -> None:
        """Of a gang of which a part was given a place in this cycle and has lost it again, nothing is bound."""
        if self._given.keys().isdisjoint(job.tasks) or _has_what_it_needs(job.root):
            return
        for task in job.tasks.values():
            if isinstance(self._placed.get(task.uid), Bind):
                self._placed[task.uid] = Promise(task, task.node)
                task.become(Status.PIPELINED)


def _is_ending(hold: Hold) -> bool:
    return hold.status is Status.RELEASING or (hold.left is not None and hold.left.status is Status.RELEASING)


def _has_what_it_needs(place: SubGroup | PodSet) -> bool:
    """Whether enough of its tasks have a place, promises not counted."""
    if isinstance(place, PodSet):
        return place.allocated >= place.min_member
    return sum(map(_has_what_it_needs, place.children)) >= place.needed
