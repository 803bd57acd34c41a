"""Jobs that are alike: when one found nothing, another that is no easier to place need not be tried."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, field

import numpy as np

from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.resources import Vector
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import Request


def signature(job: Job) -> Hashable:
    """What decides where a job's pods may go, and who would have to go for it."""
    wishes = frozenset(
        (task.pod_set.name, id(task.constraints), id(task.request.numa))
        for task in job.tasks.values()
        if task.status is Status.PENDING
    )
    tree = tuple((pod_set.name, pod_set.topology) for pod_set in job.pod_sets.values())
    return job.priority, job.is_preemptible, wishes, tree, job.root.topology


@dataclass(slots=True)
class Failed:
    """The least demanding jobs that found nothing, by signature."""

    _least: dict[Hashable, list[Request]] = field(default_factory=dict)

    def is_easier(self, job: Job) -> bool:
        """Whether a job may succeed where those like it failed."""
        least = self._least.get(signature(job))
        if least is None:
            return True
        own = _requests(job)
        if not own or len(least) > len(own):
            return bool(own)
        for mine, other in zip(own, least, strict=False):
            if _is_at_most(mine, other) and not _is_at_most(other, mine):
                return True
        return False

    def note(self, job: Job) -> None:
        """Remembers that a job found nothing."""
        key, own = signature(job), _requests(job)
        least = self._least.get(key)
        if least is None or (len(own) <= len(least) and all(map(_is_at_most, own, least))):
            self._least[key] = own


def _requests(job: Job) -> list[Request]:
    waiting = [task.request for task in job.tasks.values() if task.status is Status.PENDING]
    return sorted(waiting, key=_weight)


def _weight(request: Request) -> tuple[float, ...]:
    vector: Vector = request.vector
    return request.gpu.gpus, request.gpu.memory * request.gpu.devices, *(float(amount) for amount in vector)


def _is_at_most(left: Request, right: Request) -> bool:
    if left is right:
        return True
    width = min(len(left.vector), len(right.vector))
    return (
        bool(np.all(left.vector[:width] <= right.vector[:width]))
        and left.gpu.gpus <= right.gpu.gpus
        and left.gpu.memory <= right.gpu.memory
    )
