"""Victims in batches, the least entitled first: what a gang has beyond its need goes bit by bit, its core at once."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from shoal.scheduler.model.amounts import NONE, Amounts
from shoal.scheduler.model.jobs import Job, PodSet, SubGroup
from shoal.scheduler.model.statuses import ACTIVE_ALLOCATED
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.session.ordering import Ordering
from shoal.scheduler.session.session import Session
from shoal.scheduler.shares.job_order import JobsByQueue, Ranked


@dataclass(frozen=True, slots=True, eq=False)
class Batch:
    """Tasks of one job that go together."""

    job: Job
    tasks: tuple[Task, ...]

    @property
    def rows(self) -> set[int]:
        """The nodes that they are on."""
        return {task.hold.node for task in self.tasks if task.hold is not None}


class Victims:
    """Who might have to go, in the order in which they would. Batches are made as they are asked for, and kept."""

    def __init__(
        self,
        session: Session,
        queues: Iterable[tuple[str, Sequence[Ranked]]],
        keeps: Callable[[Job], bool],
        taken: frozenset[str] = frozenset(),
    ) -> None:
        """``taken``: tasks that go in any case, and come in no batch."""
        self._session = session
        self._queues = list(queues)
        self._keeps = keeps
        self._taken = taken
        self._ordering = session.ordering
        self._left: dict[tuple[str, str], _Left] = {}
        self._line = JobsByQueue(
            session.shares,
            next_amounts=self._amounts,
            job_key=self._rank,
            is_for_victims=True,
            is_by_age=not session.settings.has("proportion"),
        )
        self._made: list[Batch] = []
        for queue, ranked in self._queues:
            self._line.lay(queue, ranked, keeps)

    def beside(self, taken: Collection[Task]) -> Victims:
        """The same without tasks that go in any case: what is left of their jobs comes when its own turn does."""
        return Victims(self._session, self._queues, self._keeps, frozenset(t.uid for t in taken)) if taken else self

    def __iter__(self) -> Iterator[Batch]:
        place = 0
        while place < len(self._made) or self._line:
            if place < len(self._made):
                yield self._made[place]
                place += 1
            elif batch := self._next():
                self._made.append(batch)

    def _next(self) -> Batch | None:
        job = self._line.pop()
        left = self._left.get(job.key) or self._left.setdefault(job.key, _Left(job, self._ordering))
        tasks = left.next()
        is_new = self._taken.isdisjoint(task.uid for task in tasks)
        left.remove({task.uid for task in tasks} if is_new else self._taken)
        if left:
            self._line.push(job)
            self._line.touched(job.queue)
        return Batch(job, tuple(tasks)) if is_new else None

    def _amounts(self, job: Job) -> Amounts:
        left = self._left.get(job.key)
        return left.amounts if left is not None else held(job)

    def _rank(self, job: Job) -> tuple[Any, ...]:
        return self._ordering.job_rank_with(job, self._left[job.key].elastic_state)


class _Left:
    """The tasks of a job that are not taken yet."""

    def __init__(self, job: Job, ordering: Ordering) -> None:
        self._root = job.root
        self._tasks: dict[int, list[Task]] = {
            id(pod_set): sorted((t for t in pod_set.tasks.values() if is_evictable(t)), key=ordering.task_rank)
            for pod_set in job.pod_sets.values()
        }

    def __bool__(self) -> bool:
        return any(self._tasks.values())

    @property
    def amounts(self) -> Amounts:
        total = NONE
        for tasks in self._tasks.values():
            for task in tasks:
                total = total.plus(task.accepted)
        return total

    @property
    def elastic_state(self) -> int:
        """As of a whole job, by the tree: a subgroup that it can do without is no reason to spare it."""
        if not self._is_satisfied(self._root):
            return 0
        return 2 if self._has_surplus(self._root) else 1

    def remove(self, names: Collection[str]) -> None:
        """Takes these tasks."""
        for place, tasks in self._tasks.items():
            self._tasks[place] = [task for task in tasks if task.uid not in names]

    def next(self) -> list[Task]:
        """One task beyond the need of the pod set that has most beyond it, else one optional subgroup, else all."""
        elastic = [pod_set for pod_set in self._root.all_pod_sets() if self._count(pod_set) > pod_set.min_member]
        if elastic:
            chosen = max(elastic, key=self._rank)
            return self._tasks[id(chosen)][-1:]
        group = self._surplus(self._root)
        pod_sets = self._root.all_pod_sets() if group is None else _leaves(group)
        return [task for pod_set in pod_sets for task in reversed(self._tasks[id(pod_set)])]

    def _surplus(self, group: SubGroup) -> SubGroup | PodSet | None:
        """A child that its parent does not need, the least preferred first."""
        full = [child for child in group.children if self._is_satisfied(child) and self._has_any(child)]
        if len(full) > group.needed:
            return max(full, key=self._rank)
        return next((found for child in group.groups if (found := self._surplus(child)) is not None), None)

    def _has_surplus(self, group: SubGroup) -> bool:
        if any(self._count(pod_set) > pod_set.min_member for pod_set in group.pod_sets):
            return True
        return sum(map(self._is_satisfied, group.children)) > group.needed or any(map(self._has_surplus, group.groups))

    def _is_satisfied(self, place: SubGroup | PodSet) -> bool:
        if isinstance(place, PodSet):
            return self._count(place) >= place.min_member
        return sum(map(self._is_satisfied, place.children)) >= place.needed

    def _has_any(self, place: SubGroup | PodSet) -> bool:
        return any(self._tasks[id(pod_set)] for pod_set in _leaves(place))

    def _count(self, pod_set: PodSet) -> int:
        return len(self._tasks[id(pod_set)])

    def _rank(self, place: SubGroup | PodSet) -> tuple[int, float, str]:
        if isinstance(place, PodSet):
            count, needed = self._count(place), place.min_member
        else:
            count, needed = sum(map(self._is_satisfied, place.children)), place.needed
        return (0, count / needed, place.name) if needed else (1, float(count), place.name)


def is_evictable(task: Task) -> bool:
    """Whether a task has something to give: a place, or the promise of one."""
    return task.status in ACTIVE_ALLOCATED and task.hold is not None


def held(job: Job) -> Amounts:
    """What all tasks of a job weigh that have something to give."""
    total = NONE
    for task in job.tasks.values():
        if is_evictable(task):
            total = total.plus(task.accepted)
    return total


def has_what_it_needs_without(place: SubGroup | PodSet, lost: Mapping[str, int]) -> bool:
    """Whether a job, or a part of it, could go on if each pod set lost so many of those that have something to give."""
    if isinstance(place, PodSet):
        return place.active_allocated - lost.get(place.name, 0) >= place.min_member
    return sum(has_what_it_needs_without(child, lost) for child in place.children) >= place.needed


def chunks(evicted: Sequence[Task]) -> list[Amounts]:
    """What one job loses, as queues are asked about it: what is beyond its need one by one, then its core at once."""
    beyond: list[Amounts] = []
    core = NONE
    by_set: dict[int, list[Task]] = {}
    for task in evicted:
        by_set.setdefault(id(task.pod_set), []).append(task)
    for tasks in by_set.values():
        pod_set = tasks[0].pod_set
        surplus = max(0, pod_set.active_allocated + len(tasks) - pod_set.min_member)
        beyond += [task.accepted for task in tasks[:surplus]]
        for task in tasks[surplus:]:
            core = core.plus(task.accepted)
    return [*beyond, core] if core != NONE else beyond


def _leaves(place: SubGroup | PodSet) -> Iterable[PodSet]:
    return [place] if isinstance(place, PodSet) else place.all_pod_sets()
