"""Which nodes a task may go to by what is placed there already: ports of the host, and pods near it or apart from it.

The index is told of every pod that gets a place and of every pod that leaves one, and answers for all nodes at once.
Pods that ask nothing of each other cost next to nothing: they are remembered, and looked at once somebody asks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shoal.scheduler.model.nodes import Nodes
from shoal.scheduler.model.resources import Mask
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.session.affinity import AffinityIndex
from shoal.scheduler.session.labels import LabelIndex
from shoal.scheduler.session.placed_pods import PlacedPods
from shoal.scheduler.session.ports import PortIndex

PORT_TAKEN: Final = "has no free port for the pod"


class PodIndex:
    """The pods that have a place, and what they mean to those that look for one."""

    def __init__(self, nodes: Nodes, namespaces: Mapping[str, Mapping[str, str]] | None = None) -> None:
        """``namespaces``: labels of each namespace, by its name."""
        self._size = len(nodes)
        self._placed = PlacedPods()
        self._ports = PortIndex(self._size)
        self._affinity = AffinityIndex(LabelIndex(nodes), self._size, self._placed, namespaces or {})

    def add(self, task: Task, row: int) -> None:
        """A pod gets a place. One that moves has two until it has left the old one."""
        self._placed.add(task, row)
        self._count(task, row, 1)

    def remove(self, task: Task, row: int) -> None:
        """A pod leaves a place."""
        self._placed.remove(task, row)
        self._count(task, row, -1)

    def mask(self, task: Task) -> Mask | None:
        """[nodes] where what is placed leaves room for a task; None where nothing could refuse it."""
        if not self._concerns(task):
            return None
        allowed = np.ones(self._size, dtype=np.bool_)
        for _, mask in self._refused(task):
            allowed &= ~mask
        return allowed

    def why_not(self, task: Task, row: int) -> str:
        """Why a node will not do, to be read after its name; "" where it will."""
        return next((reason for reason, mask in self._refused(task) if mask[row]), "")

    def reasons(self, task: Task, among: Mask | None = None) -> dict[str, int]:
        """How many nodes will not do, by the first reason of each."""
        left = np.ones(self._size, dtype=np.bool_) if among is None else among.copy()
        counts: dict[str, int] = {}
        for reason, mask in self._refused(task):
            if count := int(np.count_nonzero(mask & left)):
                counts[reason] = counts.get(reason, 0) + count
                left &= ~mask
        return counts

    def scores(self, task: Task) -> NDArray[np.float64] | None:
        """[nodes] how much a task is drawn to each, as Kubernetes counts it; None where nothing draws it."""
        if not self._affinity.scores_any(task.constraints):
            return None
        with self._without(task):
            return self._affinity.scores(task)

    def _concerns(self, task: Task) -> bool:
        return bool(task.constraints.ports) or self._affinity.concerns(task.constraints)

    def _refused(self, task: Task) -> list[tuple[str, Mask]]:
        """[nodes] what each rule refuses."""
        if not self._concerns(task):
            return []
        with self._without(task):
            refused = list(self._affinity.refused(task))
            if task.constraints.ports:
                refused.insert(0, (PORT_TAKEN, self._ports.taken(task.constraints.ports)))
        return refused

    def _count(self, task: Task, row: int, by: int) -> None:
        if task.constraints.ports:
            self._ports.add(task.constraints.ports, row, by)
        self._affinity.count(task, row, by)

    @contextmanager
    def _without(self, task: Task) -> Iterator[None]:
        """Meanwhile a task has no place: one that is to move is not in its own way."""
        rows = list(self._placed.rows(task))
        for row in rows:
            self.remove(task, row)
        try:
            yield
        finally:
            for row in rows:
                self.add(task, row)
