"""A job: one gang with its pods, as a tree of subgroups whose leaves (pod sets) hold the pods."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from shoal.scheduler.model.statuses import ACTIVE_ALLOCATED, ACTIVE_USED, ALIVE, ALLOCATED, Status
from shoal.scheduler.model.tasks import Task

DEFAULT_POD_SET: Final = "default"


@dataclass(frozen=True, slots=True)
class TopologyWish:
    """How near to each other the pods of a subgroup are to be."""

    topology: str
    required: str = ""
    """The node label of the level, or ""."""
    preferred: str = ""


@dataclass(slots=True, eq=False)
class PodSet:
    """A leaf: pods of which so many are needed. It counts its pods by what rules ask of them."""

    name: str
    min_member: int
    topology: TopologyWish | None = None
    tasks: dict[str, Task] = field(default_factory=dict)
    pending: int = 0
    gated: int = 0
    allocated: int = 0
    active_allocated: int = 0
    active_used: int = 0
    alive: int = 0
    pipelined: int = 0

    def count(self, status: Status, by: int) -> None:
        """Takes a pod of this status in (1) or out (-1)."""
        if status is Status.PENDING:
            self.pending += by
        elif status is Status.GATED:
            self.gated += by
        elif status is Status.PIPELINED:
            self.pipelined += by
        if status in ALLOCATED:
            self.allocated += by
        if status in ACTIVE_ALLOCATED:
            self.active_allocated += by
        if status in ACTIVE_USED:
            self.active_used += by
        if status in ALIVE:
            self.alive += by

    @property
    def is_satisfied(self) -> bool:
        """Whether as many as are needed have a place, or the promise of one."""
        return self.active_allocated >= self.min_member

    @property
    def is_ready(self) -> bool:
        """Whether as many as are needed exist and may start."""
        return self.alive - self.gated >= self.min_member

    @property
    def is_elastic(self) -> bool:
        """Whether it may lose a pod without falling below its minimum."""
        return self.active_allocated > self.min_member


@dataclass(slots=True, eq=False)
class SubGroup:
    """An inner place of the tree."""

    name: str
    min_children: int | None = None
    """How many of its children are needed; None: all."""
    topology: TopologyWish | None = None
    groups: list[SubGroup] = field(default_factory=list)
    pod_sets: list[PodSet] = field(default_factory=list)

    @property
    def children(self) -> list[SubGroup | PodSet]:
        """Its inner places, then its leaves."""
        return [*self.groups, *self.pod_sets]

    @property
    def needed(self) -> int:
        """How many children it needs."""
        count = len(self.groups) + len(self.pod_sets)
        return count if self.min_children is None else min(self.min_children, count)

    def all_pod_sets(self) -> Iterator[PodSet]:
        """The leaves below it."""
        for group in self.groups:
            yield from group.all_pod_sets()
        yield from self.pod_sets

    @property
    def satisfied_children(self) -> int:
        """How many children have what they need."""
        return sum(child.is_satisfied for child in self.groups) + sum(child.is_satisfied for child in self.pod_sets)

    @property
    def is_satisfied(self) -> bool:
        """Whether as many children as are needed have what they need."""
        return self.satisfied_children >= self.needed

    @property
    def is_ready(self) -> bool:
        """Whether as many children as are needed have enough pods that may start."""
        ready = sum(child.is_ready for child in self.groups) + sum(child.is_ready for child in self.pod_sets)
        return ready >= self.needed


@dataclass(slots=True, eq=False)
class Job:
    """One gang. Everything that a rule reads of it is here."""

    uid: str
    name: str
    namespace: str
    queue: str
    priority: int
    is_preemptible: bool
    created: float
    root: SubGroup
    preemption_delay: float = 0.0
    staleness_grace: float | None = None
    """Seconds; None: the scheduler's own; negative: never stale."""
    last_start: float | None = None
    last_eviction: float | None = None
    stale_since: float | None = None
    is_backed_off: bool = False
    """Once marked unschedulable, it is left alone until it changes."""
    marks_unschedulable: bool = True
    pod_sets: dict[str, PodSet] = field(init=False)
    tasks: dict[str, Task] = field(default_factory=dict)
    succeeded: int = 0
    version: int = 0
    """Grows with every change, so that what was derived of the job is known to be old."""

    def __post_init__(self) -> None:
        self.pod_sets = {pod_set.name: pod_set for pod_set in self.root.all_pod_sets()}

    @property
    def key(self) -> tuple[str, str]:
        """Its namespace and name."""
        return self.namespace, self.name

    def add(self, task: Task) -> None:
        """Takes a task in; one of an unknown subgroup belongs to the first, so that it is not lost."""
        name = task.subgroup or DEFAULT_POD_SET
        pod_set = self.pod_sets.get(name) or next(iter(self.pod_sets.values()))
        task.job, task.pod_set = self, pod_set
        self.tasks[task.uid] = pod_set.tasks[task.uid] = task
        pod_set.count(task.status, 1)
        self.succeeded += task.status is Status.SUCCEEDED
        self.version += 1

    def remove(self, task: Task) -> None:
        """Forgets a task."""
        del self.tasks[task.uid], task.pod_set.tasks[task.uid]
        task.pod_set.count(task.status, -1)
        self.succeeded -= task.status is Status.SUCCEEDED
        self.version += 1

    def change(self, task: Task, status: Status) -> None:
        """Counts a task under another status."""
        task.pod_set.count(task.status, -1)
        self.succeeded += (status is Status.SUCCEEDED) - (task.status is Status.SUCCEEDED)
        task.status = status
        task.pod_set.count(status, 1)
        self.version += 1

    @property
    def is_ready(self) -> bool:
        """Whether enough of its pods exist and may start."""
        return self.root.is_ready

    @property
    def pending(self) -> int:
        """How many of its pods wait for a node."""
        return sum(pod_set.pending for pod_set in self.pod_sets.values())

    @property
    def active_allocated(self) -> int:
        """How many of its pods have a place or the promise of one."""
        return sum(pod_set.active_allocated for pod_set in self.pod_sets.values())

    @property
    def allocated(self) -> int:
        """How many of its pods have a place."""
        return sum(pod_set.allocated for pod_set in self.pod_sets.values())

    @property
    def active_used(self) -> int:
        """How many of its pods occupy a node."""
        return sum(pod_set.active_used for pod_set in self.pod_sets.values())


def single_pod_set(min_member: int, topology: TopologyWish | None = None) -> SubGroup:
    """The tree of a gang without subgroups."""
    return SubGroup(name="", topology=topology, pod_sets=[PodSet(name=DEFAULT_POD_SET, min_member=min_member)])


def by_key(jobs: Iterable[Job]) -> Mapping[tuple[str, str], Job]:
    """Jobs by namespace and name."""
    return {job.key: job for job in jobs}
