"""One cycle's working state: the model, what queues have of it, and the decisions made so far.

Everything that an action does to the model goes through a `Statement`. What is committed becomes a `Decision`; when
the cycle is over, `close` puts the model back as it was found, and whoever carries decisions out tells it what came of
them.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from shoal.scheduler.model.amounts import NONE, Amounts
from shoal.scheduler.model.cluster import Cluster
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.nodes import Hold, gpu_weights
from shoal.scheduler.model.resources import CPU, MEMORY, Mask
from shoal.scheduler.model.statuses import ALLOCATED, Status
from shoal.scheduler.model.tasks import Constraints, Request, Task
from shoal.scheduler.numa import NumaTable, Zones
from shoal.scheduler.plugins.asking import NO_PLUGINS, Plugins
from shoal.scheduler.plugins.surface import NodeTable
from shoal.scheduler.session.choosing import tasks_to_place
from shoal.scheduler.session.decisions import Bind, Calls, Decision, Decisions, Eviction, Promise
from shoal.scheduler.session.failures import Failure, Refused
from shoal.scheduler.session.filters import Filters, FilterSettings
from shoal.scheduler.session.measures import Measures
from shoal.scheduler.session.ordering import Ordering
from shoal.scheduler.session.placing import Field
from shoal.scheduler.session.pod_index import PodIndex
from shoal.scheduler.session.settings import Settings
from shoal.scheduler.session.statement import Operation, Statement
from shoal.scheduler.shares.min_runtime import Method, MinRuntimes
from shoal.scheduler.shares.tree import QueueTree

if TYPE_CHECKING:
    from shoal.scheduler.session.reserving import Reservation


__all__ = ["Bind", "Calls", "Decision", "Eviction", "Promise", "Session", "everywhere", "shares_of", "total_of"]


@dataclass(slots=True, eq=False)
class _Next:
    """What a job would place next, as long as its version stands."""

    version: int
    tasks: list[Task]
    amounts: Amounts


class Session:
    """The state that actions work on."""

    def __init__(
        self,
        cluster: Cluster,
        settings: Settings,
        *,
        now: float,
        filters: Filters | None = None,
        pods: PodIndex | None = None,
        shares: QueueTree | None = None,
        plugins: Plugins = NO_PLUGINS,
        numa: NumaTable | None = None,
    ) -> None:
        self.cluster = cluster
        self.nodes = cluster.nodes
        self.settings = settings
        self.now = now
        self.filters = filters or Filters(cluster.nodes, FilterSettings())
        self.plugins = plugins
        self.numa = numa
        self.ordering = Ordering(settings, plugins)
        self.reservation: Reservation | None = None
        """What is kept for a job that found no room, where the settings ask for it."""
        self.pods = pods if pods is not None else _index_of(cluster)
        self.smallest_gpu, self.largest_gpu = cluster.gpu_memory_range
        self.total = total_of(cluster)
        self.shares = shares if shares is not None else shares_of(cluster, settings, self.smallest_gpu)
        self.measures = Measures()
        begin = time.perf_counter()
        self.shares.divide(self.total, k=settings.k_value)
        self.measures.dividing = time.perf_counter() - begin
        self._decided = Decisions()
        self.failures: dict[tuple[str, str], Failure] = {}
        """Why a job was left waiting, by the last action that tried it."""
        self.without_queue: list[Job] = []
        """Jobs that wait in a queue which is not there, or has queues below it: no action looks at them."""
        self.started: dict[tuple[str, str], float] = {}
        """Jobs whose first tasks were placed in this session."""
        self.stale: dict[tuple[str, str], float | None] = {}
        """Since when a gang is stale, or None for one that is so no longer, where that is news."""
        self.effort: dict[str, int] = {}
        """Simulations by action."""
        self.min_runtimes = MinRuntimes(
            preempt=settings.preempt_min_runtime,
            reclaim=settings.reclaim_min_runtime,
            method=Method.LCA if settings.reclaim_resolves_by_ancestor else Method.QUEUE,
            is_enabled=settings.has("minruntime"),
        )
        self._refused: dict[tuple[str, str], Refused | None] = {}
        self._fields: dict[tuple[int, int], Field] = {}
        self._kept: list[Request | Constraints] = []
        self._weights: dict[tuple[int, int], Amounts] = {}
        """What a request weighs on a node, by the memory of its GPUs."""
        self._next: dict[tuple[tuple[str, str], bool], _Next] = {}
        self._log: list[Operation] = []
        self.on_change: list[Callable[[Job], None]] = []
        """Told of every job that a committed statement changed, and again when it is put back as it was."""
        self.nodes.changes.clear()

    @property
    def decisions(self) -> list[Decision]:
        """What is to be carried out, as it stands."""
        return self._decided.all

    @property
    def taken_back(self) -> list[Task]:
        """Tasks that were given a place in this cycle and lost it again."""
        return self._decided.taken_back

    @property
    def promised(self) -> list[Task]:
        """Tasks that get a place later, in the order in which it was decided."""
        return self._decided.promised

    @property
    def calls(self) -> Calls:
        """How much of each that is."""
        return self._decided.calls

    def statement(self) -> Statement:
        """A new list of things to do."""
        return Statement(self)

    def field(self, task: Task) -> Field:
        """What all nodes are to a task and to all that are alike, up to date."""
        key = id(task.request), id(task.constraints)
        found = self._fields.get(key)
        if found is None:
            zones = None if self.numa is None else self.numa.field(task.request.numa)
            found = self._fields[key] = Field(
                task.request, task.constraints, self.nodes, self.filters, self.settings, zones
            )
            self._kept += (task.request, task.constraints)
        found.refresh()
        return found

    @cached_property
    def node_table(self) -> NodeTable:
        """All nodes as plugins see them."""
        return NodeTable(self.nodes)

    def may_start(self, job: Job) -> bool:
        """Whether no plugin says that a job must get nothing for now. Each job is asked about once."""
        if not self.plugins.validate_jobs:
            return True
        if job.key not in self._refused:
            no = self.plugins.refusal(job)
            self._refused[job.key] = refused = Refused(no.plugin, no.message) if no else None
            if refused is not None:
                self.failures[job.key] = refused
        return self._refused[job.key] is None

    def next_tasks(self, job: Job, *, for_real: bool) -> list[Task]:
        """The tasks that a job places together next."""
        return self._next_of(job, for_real=for_real).tasks

    def next_amounts(self, job: Job, *, for_real: bool = True) -> Amounts:
        """What those tasks weigh for the job's queue, wherever they are placed."""
        return self._next_of(job, for_real=for_real).amounts

    def amounts(self, tasks: Iterable[Task], *, memory_of_gpu: float | None = None) -> Amounts:
        """What tasks weigh; requests of GPU memory as on the smallest GPU, if nothing else is said."""
        size = self.smallest_gpu if memory_of_gpu is None else memory_of_gpu
        total, last, count = NONE, None, 0
        for task in tasks:
            if task.request is last:
                count += 1
                continue
            if last is not None:
                total = total.plus(last.amounts(size).times(count))
            last, count = task.request, 1
        return total if last is None else total.plus(last.amounts(size).times(count))

    def take(self, task: Task, row: int) -> None:
        """Counts a task for its queue, as it weighs on this node."""
        key = id(task.request), self.nodes.nodes[row].gpu_memory
        weight = self._weights.get(key)
        if weight is None:
            weight = self._weights[key] = task.request.amounts_on(key[1])
            self._kept.append(task.request)
        self.take_again(task, weight)

    def take_again(self, task: Task, amounts: Amounts) -> None:
        """Counts a task for its queue."""
        task.accepted = amounts
        if task.job.queue in self.shares:
            self.shares.take(task.job.queue, amounts, is_preemptible=task.job.is_preemptible)

    def give_back(self, task: Task) -> None:
        """Counts a task for its queue no longer."""
        if task.job.queue in self.shares:
            self.shares.give_back(task.job.queue, task.accepted, is_preemptible=task.job.is_preemptible)

    def zones(self, task: Task, row: int, *, is_promise: bool) -> Zones:
        """The NUMA zones that a task is expected on, if it is placed there next."""
        return () if self.numa is None else self.numa.zones(task.request.numa, row, is_promise=is_promise)

    def may_stay(self, hold: Hold, gpu_groups: tuple[str, ...]) -> bool:
        """Whether a task that is to be on these devices of its node may stay where it is."""
        is_on_them = not hold.task.request.is_shared or gpu_groups == hold.gpu_groups
        return is_on_them and (self.numa is None or self.numa.may_stay(hold))

    def note(self, hold: Hold) -> None:
        """A task holds something on a node, or is promised it."""
        self.nodes.add(hold)
        self.pods.add(hold.task, hold.node)

    def forget(self, hold: Hold) -> None:
        """It holds it no longer."""
        self.nodes.remove(hold)
        self.pods.remove(hold.task, hold.node)

    def carry_out(self, operations: Sequence[Operation]) -> None:
        """Turns the outcome of a statement into decisions."""
        self._log += operations
        jobs = self._decided.take(operations)
        for job in jobs:
            if not job.allocated:
                self.started.pop(job.key, None)
        self._tell(jobs)

    def close(self) -> None:
        """Puts the model back as it was found."""
        statement = Statement(self)
        statement.operations, self._log = self._log, []
        jobs = {id(done.task.job): done.task.job for done in statement.operations}
        statement.roll_back()
        self._tell(jobs.values())

    def _tell(self, jobs: Iterable[Job]) -> None:
        for job in jobs:
            for tell in self.on_change:
                tell(job)

    def _next_of(self, job: Job, *, for_real: bool) -> _Next:
        found = self._next.get((job.key, for_real))
        if found is None or found.version != job.version:
            tasks = tasks_to_place(job, self.ordering, for_real=for_real)
            found = self._next[job.key, for_real] = _Next(job.version, tasks, self.amounts(tasks))
        return found


def total_of(cluster: Cluster) -> Amounts:
    """What queues share: all that ready nodes have, without what other schedulers' pods hold."""
    ready = cluster.nodes.allocatable[cluster.nodes.is_ready].sum(axis=0)
    gpus = float(ready @ gpu_weights(cluster.nodes.resources))
    total = Amounts(float(ready[CPU]), float(ready[MEMORY]), gpus)
    return total.minus(cluster.foreign)


def shares_of(cluster: Cluster, settings: Settings, smallest_gpu: int) -> QueueTree:
    """What every queue has and asks for."""
    tree = QueueTree.of(cluster.queues, full_hierarchy=settings.full_hierarchy)
    for job in cluster.jobs.values():
        if job.queue not in tree:
            continue
        for task in job.tasks.values():
            if task.status in ALLOCATED:
                tree.take(job.queue, task.accepted, is_preemptible=job.is_preemptible)
            elif task.status is Status.PENDING:
                tree.ask(job.queue, task.request.amounts(smallest_gpu))
    return tree


def everywhere(session: Session) -> Mask:
    """[nodes] all of them."""
    return np.ones(len(session.nodes), dtype=np.bool_)


def _index_of(cluster: Cluster) -> PodIndex:
    index = PodIndex(cluster.nodes)
    for row, node in enumerate(cluster.nodes.nodes):
        for hold in node.holds.values():
            index.add(hold.task, row)
    return index
