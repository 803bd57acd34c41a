"""The rules for queues.

A queue says its part of each resource, and one with queues below it stays. Quotas that a parent does not cover are no
mistake that could be refused (a parent is made before or after its children, and changed without them), but they are
promises that nobody can keep: they are warned of where that is wanted.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from operator import attrgetter

from shoal.api.scheduling_run_ai import Queue
from shoal.kube.admission import Denied, FieldProblem, Warn, required
from shoal.scheduler.admission.durations import duration_problems

_RESOURCES = ("gpu", "cpu", "memory")


def queue_problems(queue: Queue) -> Iterator[FieldProblem]:
    """What a queue cannot be without, and what nobody could read, on creation and on every update."""
    if queue.spec.resources is None:
        yield required(
            "spec.resources", "say the queue's part of gpu, cpu and memory: what is left out is a limit of 0"
        )
    yield from duration_problems("spec.preemptMinRuntime", queue.spec.preempt_min_runtime)
    yield from duration_problems("spec.reclaimMinRuntime", queue.spec.reclaim_min_runtime)


def queue_warnings(queue: Queue) -> Iterator[Warn]:
    """What a queue may be, and most likely was not meant to be."""
    if queue.metadata.name and queue.spec.parent_queue == queue.metadata.name:
        yield Warn(f"queue {queue.metadata.name!r} is its own parent, so nothing runs in it: name another, or none")


def blocked_deletion(queue: Queue) -> Denied | None:
    """Why a queue has to stay: the queues below it would run nothing any more."""
    if not queue.status.child_queues:
        return None
    below = ", ".join(sorted(queue.status.child_queues))
    return Denied(f"queue {queue.metadata.name!r} has queues below it ({below}): delete them or move them first")


def quota_warnings(queue: Queue, others: Iterable[Queue]) -> Iterator[Warn]:
    """Where this queue has more than its parent, or queues together have more than the one above them."""
    known = {other.metadata.name: other for other in others} | {queue.metadata.name: queue}
    parent = known.get(queue.spec.parent_queue)
    if parent is not None and parent is not queue:
        yield from _beyond(parent, [queue])
        yield from _beyond_together(parent, known.values())
    yield from _beyond_together(queue, known.values())


def _beyond(parent: Queue, children: Iterable[Queue]) -> Iterator[Warn]:
    for child in children:
        for resource in _RESOURCES:
            of_child, of_parent = _quota(child, resource), _quota(parent, resource)
            if of_child > of_parent:
                yield Warn(
                    f"queue {child.metadata.name!r} has a {resource} quota of {_shown(of_child)}, "
                    f"more than the {_shown(of_parent)} of its parent {parent.metadata.name!r}"
                )


def _beyond_together(parent: Queue, known: Iterable[Queue]) -> Iterator[Warn]:
    name = parent.metadata.name
    children = [other for other in known if other.spec.parent_queue == name and other is not parent]
    for resource in _RESOURCES if children else ():
        together, own = sum(_quota(child, resource) for child in children), _quota(parent, resource)
        if together > own:
            yield Warn(
                f"the queues in {name!r} have {resource} quotas of {_shown(together)} together, "
                f"more than its own {_shown(own)}"
            )


def _quota(queue: Queue, resource: str) -> float:
    if queue.spec.resources is None:
        return 0.0
    quota: float | None = attrgetter(resource)(queue.spec.resources).quota
    return math.inf if quota is not None and quota < 0 else quota or 0.0


def _shown(quota: float) -> str:
    return "unlimited" if quota == math.inf else f"{quota:.10g}"
