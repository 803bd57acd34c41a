"""Whether tasks could have room at all, if some victims went: a cheap test, which refuses nothing that is possible.

A simulation costs hundreds of times as much. Nodes are counted by how many tasks of a kind each could hold, of all
that is free, becomes free or would be freed there. Whether tasks of several kinds have room beside each other, and
whose turn it would be, is not asked.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import numpy as np
from numpy.typing import NDArray

from shoal.scheduler.model.nodes import gpu_weights
from shoal.scheduler.model.resources import GPU, Vector, widened
from shoal.scheduler.model.tasks import Request, Task
from shoal.scheduler.session.session import Session

_DUST = 1e-6


class Room:
    """What there is for some tasks, and what there would be without some victims."""

    def __init__(self, session: Session, tasks: Iterable[Task], recorded: Iterable[Task]) -> None:
        """``recorded``: victims that go in any case."""
        self._session = session
        nodes = session.nodes
        self._spare = nodes.idle + nodes.releasing  # [nodes, resources]
        self._spare[:, GPU] = nodes.free_gpus() + nodes.releasing_gpus()
        for row, freed in self.freed_by(recorded).items():
            self._spare[row] += freed
        self._kinds = [_Kind(session, alike[0], len(alike), self._spare) for alike in _by_kind(tasks)]

    @property
    def gpus(self) -> NDArray[np.float64]:
        """[nodes] GPUs and parts of them that are or become free."""
        gpus: NDArray[np.float64] = self._spare[:, GPU]
        return gpus

    def freed_by(self, victims: Iterable[Task]) -> dict[int, Vector]:
        """By row, what victims would free there."""
        width = self._session.nodes.idle.shape[1]
        freed: dict[int, Vector] = {}
        for victim in victims:
            if victim.hold is None:
                continue
            row = victim.hold.node
            if row not in freed:
                freed[row] = np.zeros(width)
            vector = victim.request.vector
            freed[row][: len(vector)] += vector
            freed[row][GPU] += victim.accepted.gpu - vector[GPU]
        return freed

    def could_hold(self, victims: Iterable[Task]) -> bool:
        """Whether the tasks could have room, if these victims went too."""
        freed = self.freed_by(victims)
        return all(kind.count <= kind.total + kind.more(freed, self._spare) for kind in self._kinds)


class EmptyCluster:
    """What there would be if nobody were there: whoever has no room in it need not look for victims."""

    def __init__(self, session: Session) -> None:
        self._session = session
        self._spare = session.nodes.allocatable.copy()
        self._spare[:, GPU] = session.nodes.allocatable @ gpu_weights(session.nodes.resources)
        self._kinds: dict[tuple[int, int], _Kind] = {}

    def could_hold(self, tasks: Iterable[Task]) -> bool:
        """Whether tasks could have room at all."""
        return all(len(alike) <= self._kind(alike[0]).total for alike in _by_kind(tasks))

    def _kind(self, task: Task) -> _Kind:
        key = id(task.request), id(task.constraints)
        if key not in self._kinds:
            self._kinds[key] = _Kind(self._session, task, 1, self._spare)
        return self._kinds[key]


def _by_kind(tasks: Iterable[Task]) -> Collection[list[Task]]:
    kinds: dict[tuple[int, int], list[Task]] = {}
    for task in tasks:
        kinds.setdefault((id(task.request), id(task.constraints)), []).append(task)
    return kinds.values()


class _Kind:
    """Tasks that ask for the same, and may go to the same nodes."""

    def __init__(self, session: Session, task: Task, count: int, spare: NDArray[np.float64]) -> None:
        self.count = count
        asked = least_asked(task.request, session.largest_gpu, spare.shape[1])
        self._places = np.flatnonzero(asked > 0)
        self._asked = asked[self._places]
        self._static = session.field(task).static
        self._had = self._rooms(spare)
        self.total = float(self._had[self._static].sum())

    def more(self, freed: dict[int, Vector], spare: NDArray[np.float64]) -> float:
        """How many more have room by what is freed."""
        rows = [row for row in freed if self._static[row]]
        if not rows:
            return 0.0
        has = spare[rows] + np.array([freed[row] for row in rows])
        return float((self._rooms(has) - self._had[rows]).sum())

    def _rooms(self, spare: NDArray[np.float64]) -> NDArray[np.float64]:
        """[rows] how many fit, by the resource that there is least of."""
        if not len(self._places):
            return np.full(len(spare), np.inf)
        counts: NDArray[np.float64] = ((spare[:, self._places] + _DUST) // self._asked).min(axis=1)
        return np.maximum(counts, 0.0, out=counts)


def least_asked(request: Request, largest_gpu: int, width: int) -> Vector:
    """[resources] what a request takes at least wherever it goes, parts of GPUs counted as such, claimed ones not."""
    asked = widened(request.vector, width).copy()
    asked[GPU] = request.amounts(largest_gpu).gpu - request.claimed_gpus
    return asked
