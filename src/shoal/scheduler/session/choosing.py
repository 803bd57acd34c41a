"""Which of a job's tasks are to be placed next, and in what order.

A gang that lacks something it needs takes all that it lacks, at once or not at all. A gang that has what it needs takes
one thing more: one task, or one optional subgroup. So gangs start whole, and what is beyond a gang's need is given out
one by one, in fair turns with everybody else.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import compress

from shoal.scheduler.model.jobs import Job, PodSet, SubGroup
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.session.ordering import Ordering


def tasks_to_place(job: Job, ordering: Ordering, *, for_real: bool) -> list[Task]:
    """The tasks that are placed together next."""
    return _wanted(job.root, ordering, for_real=for_real)


def _wanted(place: SubGroup | PodSet, ordering: Ordering, *, for_real: bool) -> list[Task]:
    if isinstance(place, PodSet):
        waiting = sorted((t for t in place.tasks.values() if t.is_to_place(for_real=for_real)), key=ordering.task_rank)
        return waiting[: max(1, place.min_member - place.active_allocated)]
    children = in_order(place.children, ordering)
    lacking = place.needed - place.satisfied_children
    if lacking <= 0:
        return next((tasks for child in children if (tasks := _wanted(child, ordering, for_real=for_real))), [])
    chosen: list[Task] = []
    for child in _likely(children, for_real=for_real):
        if lacking and (tasks := _wanted(child, ordering, for_real=for_real)):
            chosen += tasks
            lacking -= 1
    return chosen


def _likely(children: Iterable[SubGroup | PodSet], *, for_real: bool) -> Iterator[SubGroup | PodSet]:
    """Those that lack something: first such as have all the pods that they need, so that no other is begun in vain."""
    unsatisfied = [child for child in children if not child.is_satisfied]
    able = [_can_be_satisfied(child, for_real=for_real) for child in unsatisfied]
    yield from compress(unsatisfied, able)
    yield from compress(unsatisfied, (not is_able for is_able in able))


def _can_be_satisfied(place: SubGroup | PodSet, *, for_real: bool) -> bool:
    """Whether it would have what it needs with all that can be placed; within a simulation also with what lost a place.

    A pod that is ending anyway counts for nothing: what is left of its subgroup is no more than that.
    """
    if isinstance(place, PodSet):
        lacking = place.min_member - place.active_allocated
        return lacking <= sum(task.is_to_place(for_real=for_real) for task in place.tasks.values())
    return sum(_can_be_satisfied(child, for_real=for_real) for child in place.children) >= place.needed


def in_order(children: Iterable[SubGroup | PodSet], ordering: Ordering) -> list[SubGroup | PodSet]:
    """Which subgroup is served first."""
    return sorted(children, key=_rank if ordering.ranks_subgroups else _name)


def _name(place: SubGroup | PodSet) -> str:
    return place.name


def _rank(place: SubGroup | PodSet) -> tuple[int, int, float, str]:
    if not place.is_satisfied:
        return 0, 0, 0.0, place.name
    needed = place.min_member if isinstance(place, PodSet) else place.needed
    has = place.active_allocated if isinstance(place, PodSet) else place.satisfied_children
    if not needed:
        return 1, 1, float(has), place.name
    return 1, 0, has / needed, place.name
