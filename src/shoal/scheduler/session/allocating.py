"""Placing a job: all that it needs, or nothing.

Its subgroups are placed one after the other, each on the nodes that its own topology leaves of those of the group
around it; where a set of nodes does not do, what was placed is taken back and the next set is tried.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from shoal.scheduler.model.jobs import Job, PodSet, SubGroup
from shoal.scheduler.model.resources import PODS, Mask
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.session.choosing import in_order
from shoal.scheduler.session.failures import Failure, Missing, NoRoom, NotNear, OverCapacity
from shoal.scheduler.session.gpus import chosen_devices
from shoal.scheduler.session.placing import POD_AFFINITY, Field
from shoal.scheduler.session.session import Session
from shoal.scheduler.session.settings import Strategy
from shoal.scheduler.session.statement import Statement
from shoal.scheduler.session.topology import TopologyProblem, level_scores, node_sets
from shoal.scheduler.shares.capacity import Excess, over_limit, over_quota

Points = np.ndarray[tuple[int], np.dtype[np.float64]]


def allocate_job(
    session: Session,
    statement: Statement,
    job: Job,
    allowed: Mask | None = None,
    *,
    promises_only: bool = False,
    tasks: Sequence[Task] | None = None,
) -> bool:
    """Places what a job places next, on these nodes; whatever it did when it fails is the caller's to take back.

    ``promises_only``: nothing is given now, and tasks that were evicted in this session are placed too.
    ``tasks``: these, instead of all that the job places next.
    """
    if tasks is None:
        tasks = session.next_tasks(job, for_real=not promises_only)
    return _Placing(session, statement, job, promises_only=promises_only).run(tasks, allowed)


class _Placing:
    def __init__(self, session: Session, statement: Statement, job: Job, *, promises_only: bool) -> None:
        self._session = session
        self._statement = statement
        self._job = job
        self._promises_only = promises_only
        self._packs = {"gpupack": True, "gpuspread": False}.get(
            next((name for name in session.settings.plugins if name in ("gpupack", "gpuspread")), "")
        )
        reservation = session.reservation
        self._reservation = reservation if reservation is not None and reservation.binds(job) else None

    def run(self, tasks: Sequence[Task], allowed: Mask | None) -> bool:
        job = self._job
        if not tasks:
            return False
        if excess := self._excess(tasks):
            return self._fail(OverCapacity(excess))
        start = self._statement.checkpoint
        if not self._place_group(job.root, tasks, allowed):
            return False
        if not self._promises_only and waits_for_others(job):
            self._statement.promise_instead(op.task for op in self._statement.operations[start:])
        return True

    def _excess(self, tasks: Sequence[Task]) -> Excess | None:
        session, job = self._session, self._job
        if not session.settings.has("proportion"):
            return None
        amounts = session.amounts(tasks, memory_of_gpu=session.largest_gpu)
        excess = over_limit(session.shares, job.queue, amounts)
        if excess is None and not job.is_preemptible:
            excess = over_quota(session.shares, job.queue, amounts)
        return excess

    def _place_group(self, group: SubGroup | PodSet, tasks: Sequence[Task], allowed: Mask | None) -> bool:
        session, wish = self._session, group.topology
        if wish is None or not session.settings.has("topology"):
            return self._place_members(group, tasks, allowed, None)
        topology = session.cluster.topologies.get(wish.topology)
        around = np.ones(len(session.nodes), dtype=np.bool_) if allowed is None else allowed
        sets = node_sets(
            session.nodes,
            topology,
            wish,
            tasks,
            allowed=around,
            active_rows=_active_rows(group),
            fits=lambda request: session.field(next(t for t in tasks if t.request is request)).rooms(),
        )
        if isinstance(sets, TopologyProblem):
            return self._fail(NotNear(sets.message, is_hopeless=sets.is_misconfigured))
        points = level_scores(session.nodes, topology, wish, tasks, allowed=around)
        for nodes in sets:
            start = self._statement.checkpoint
            if self._place_members(group, tasks, nodes, points):
                return True
            self._statement.roll_back(start)
        return False

    def _place_members(
        self, group: SubGroup | PodSet, tasks: Sequence[Task], allowed: Mask | None, points: Points | None
    ) -> bool:
        if isinstance(group, PodSet):
            return self._place_tasks(tasks, allowed, points)
        if len(group.pod_sets) == 1 and not group.groups and group.pod_sets[0].topology is None:
            return self._place_tasks(tasks, allowed, points)
        ordering = self._session.ordering
        for child in [*in_order(group.groups, ordering), *in_order(group.pod_sets, ordering)]:
            sets = {id(child)} if isinstance(child, PodSet) else {id(pod_set) for pod_set in child.all_pod_sets()}
            own = [task for task in tasks if id(task.pod_set) in sets]
            if not own:
                continue
            if points is not None and child.topology is None:
                if not self._place_members(child, own, allowed, points):
                    return False
            elif not self._place_group(child, own, allowed):
                return False
        return True

    def _place_tasks(self, tasks: Sequence[Task], allowed: Mask | None, points: Points | None) -> bool:
        done = 0
        while done < len(tasks):
            if missing := tasks[done].constraints.missing:
                return self._fail(Missing(tasks[done], missing))
            placed = self._place_run(tasks, done, allowed, points)
            if not placed:
                return self._fail(NoRoom(tasks[done], done, self._kept_for(tasks[done])))
            done += placed
        return True

    def _place_run(self, tasks: Sequence[Task], start: int, allowed: Mask | None, points: Points | None) -> int:
        """Places a task, and as many after it as are alike and go to the same node; says how many."""
        task = tasks[start]
        session = self._session
        field = session.field(task)
        own = session.pods.mask(task) if session.settings.has("predicates") else None
        preferred = session.pods.scores(task) if session.settings.has("podaffinity") else None
        mask = _both(_both(allowed, own), self._affordable(task))
        asks = session.plugins.look_at_nodes
        if asks:
            mask = _both(mask, session.plugins.mask(session.node_table, task))
            points = _sum(points, session.plugins.points(session.node_table, task))
        if self._reservation is not None:
            mask = _both(mask, self._reservation.open_to(task, session.nodes))
        row = _best(field, mask, points, preferred)
        if row < 0:
            return 0
        if task.request.is_shared:
            return self._place_shared(task, field, mask, points, preferred)
        is_now = bool(field.is_free[row]) and not self._promises_only
        count = 1
        if (
            own is None
            and preferred is None
            and not asks
            and field.zones is None
            and self._is_free_of_others(row)
            and _stays_best(session, task)
        ):
            count = self._run_length(tasks, start, field, row, is_now=is_now)
        place = self._statement.allocate if is_now else self._statement.pipeline
        for one in tasks[start : start + count]:
            place(one, row)
        return count

    def _run_length(self, tasks: Sequence[Task], start: int, field: Field, row: int, *, is_now: bool) -> int:
        room = field.room_later(row)
        if is_now:  # what is free now may be promised to others, as long as those that end are not gone
            room = min(room, field.room_now(row))
        first, count = tasks[start], 1
        for one in tasks[start + 1 : start + room]:
            if one.request is not first.request or one.constraints is not first.constraints or one.hold is not None:
                break
            count += 1
        return count if first.hold is None else 1

    def _place_shared(
        self, task: Task, field: Field, mask: Mask | None, points: Points | None, preferred: Points | None
    ) -> int:
        session = self._session
        nodes = session.nodes
        left = np.ones(len(nodes), dtype=np.bool_) if mask is None else mask.copy()
        while (row := _best(field, left, points, preferred)) >= 0:
            is_free = bool(field.is_free[row]) and not self._promises_only
            devices = chosen_devices(
                task,
                nodes.nodes[row],
                nodes.idle[row],
                nodes.releasing[row],
                packs=self._packs,
                is_free=is_free,
            )
            if devices is not None and devices.pods <= nodes.idle[row, PODS] + nodes.releasing[row, PODS]:
                is_now = devices.is_now and devices.pods <= nodes.idle[row, PODS]
                place = self._statement.allocate if is_now else self._statement.pipeline
                place(task, row, devices.groups)
                return 1
            left[row] = False
        return 0

    def _affordable(self, task: Task) -> Mask | None:
        """[nodes] where the queue may have the task, if it weighs differently from node to node."""
        session, job = self._session, self._job
        if not task.request.gpu.memory or not session.settings.has("proportion"):
            return None
        dear = []
        for size in np.unique(session.nodes.gpu_memory):
            amounts = task.request.amounts_on(int(size))
            if over_limit(session.shares, job.queue, amounts) or (
                not job.is_preemptible and over_quota(session.shares, job.queue, amounts)
            ):
                dear.append(size)
        return ~np.isin(session.nodes.gpu_memory, dear) if dear else None

    def _is_free_of_others(self, row: int) -> bool:
        """Whether nothing of a node is kept for somebody else, so that it may be filled in one go."""
        return self._reservation is None or not self._reservation.rows[row]

    def _kept_for(self, task: Task) -> tuple[str, str] | None:
        reservation, nodes = self._reservation, self._session.nodes
        if reservation is None:
            return None
        is_open = reservation.open_to(task, nodes)
        is_kept = is_open is not None and bool((self._session.field(task).fits & ~is_open).any())
        return reservation.job.key if is_kept else None

    def _fail(self, failure: Failure) -> bool:
        if not self._promises_only:
            self._session.failures[self._job.key] = failure
        return False


def _best(field: Field, mask: Mask | None, points: Points | None, preferred: Points | None) -> int:
    if points is None and preferred is None:
        return field.best(mask)
    more = points if points is not None else np.zeros(len(field.score))
    if preferred is not None:
        more = more + preferred * POD_AFFINITY
    return field.best(mask, more)


def _sum(left: Points | None, right: Points | None) -> Points | None:
    if left is None or right is None:
        return right if left is None else left
    return left + right


def _stays_best(session: Session, task: Task) -> bool:
    """Whether the best node for a task stays the best for the next until it is full."""
    strategy = session.settings.gpu_strategy if task.request.wants_gpu else session.settings.cpu_strategy
    return strategy is not Strategy.SPREAD


def waits_for_others(job: Job) -> bool:
    """Whether a pod set has too few tasks that are placed at once: then all of them wait together."""
    return any(
        pod_set.pipelined and pod_set.active_allocated - pod_set.pipelined < pod_set.min_member
        for pod_set in job.pod_sets.values()
    )


def _active_rows(group: SubGroup | PodSet) -> set[int]:
    pod_sets = [group] if isinstance(group, PodSet) else list(group.all_pod_sets())
    return {
        task.hold.node
        for pod_set in pod_sets
        if pod_set.active_allocated
        for task in pod_set.tasks.values()
        if task.hold is not None and not task.is_virtual
    }


def _both(left: Mask | None, right: Mask | None) -> Mask | None:
    if left is None or right is None:
        return right if left is None else left
    both: Mask = left & right
    return both
