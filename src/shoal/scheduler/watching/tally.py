"""What queues hold and ask for, kept task by task: what changes is taken out as it was counted and counted anew."""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

from shoal.scheduler.model.amounts import NONE, Amounts
from shoal.scheduler.model.cluster import Cluster
from shoal.scheduler.model.statuses import ALLOCATED, Status
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.shares.tree import QueueTree

Key = tuple[str, str]


class _Counted(NamedTuple):
    """As what a task was counted."""

    status: Status
    queue: str | None
    """None: for somebody else."""
    amounts: Amounts
    is_preemptible: bool


class Tally:
    """Counts tasks for their queues, and those of others as what there is not to share."""

    def __init__(self, cluster: Cluster, *, full_hierarchy: bool) -> None:
        self._cluster = cluster
        self._full_hierarchy = full_hierarchy
        self._counted: dict[Key, _Counted] = {}
        self.smallest_gpu = cluster.gpu_memory_range[0]
        self.shares = QueueTree.of({})

    def begin_anew(self, tasks: Iterable[tuple[Task, bool]]) -> None:
        """Counts all: the queues are others, or the nodes are. With each task, whether it is one of ours."""
        cluster = self._cluster
        self.shares = QueueTree.of(cluster.queues, full_hierarchy=self._full_hierarchy)
        self.smallest_gpu = cluster.gpu_memory_range[0]
        cluster.foreign = NONE
        self._counted.clear()
        for task, is_ours in tasks:
            self.count(task, is_ours=is_ours)

    def count(self, task: Task, *, is_ours: bool) -> None:
        """Counts a task as what it is now, and no longer as what it was."""
        self.forget(task.key)
        if task.status in ALLOCATED or (not is_ours and task.hold is not None):
            amounts = task.accepted
        elif task.status is Status.PENDING and is_ours:
            amounts = task.request.amounts(self.smallest_gpu)
        else:
            return
        if not is_ours:
            row = task.hold.node if task.hold is not None else -1
            if row < 0 or task.is_reservation or not self._cluster.nodes.is_ready[row]:
                return
        counted = _Counted(task.status, task.job.queue if is_ours else None, amounts, task.job.is_preemptible)
        self._counted[task.key] = counted
        self._add(counted, 1)

    def forget(self, key: Key) -> None:
        """Counts a task no longer."""
        if (counted := self._counted.pop(key, None)) is not None:
            self._add(counted, -1)

    def _add(self, counted: _Counted, by: int) -> None:
        status, queue, amounts, is_preemptible = counted
        if queue is None:
            self._cluster.foreign = self._cluster.foreign.plus(amounts.times(by))
        elif status is Status.PENDING:
            (self.shares.ask if by > 0 else self.shares.unask)(queue, amounts)
        else:
            change = self.shares.take if by > 0 else self.shares.give_back
            change(queue, amounts, is_preemptible=is_preemptible)
