"""What a cycle came to, for those who only look: a view that never changes, made of what changed since the last one.

It is made in the cycle's thread before the model is put back, so that it shows what was just decided too. Whatever the
cycle touched is looked at again after the next one, when the cluster has caught up with it, or has not.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from typing import Final

from shoal.api import visualizer as view
from shoal.api.kai_names import GPU_GROUP, NODE_GPU_PRODUCT, RESERVED_GPU_INDEX
from shoal.scheduler.explaining.places import Place, places_of
from shoal.scheduler.model.amounts import UNLIMITED, Amounts
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.nodes import Node
from shoal.scheduler.model.resources import CPU, GPU, MEMORY, PODS, ResourceNames, Vector
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import Request, Task
from shoal.scheduler.session.session import Session
from shoal.scheduler.shares.tree import Share
from shoal.scheduler.watching.cycles import Outcome
from shoal.scheduler.watching.mirror import Key, Mirror

Why = Callable[[Session, Job], str]
"""Why a job waits, in a sentence."""

MOST_COUNTED: Final = 1000
"""Of so many jobs that wait it is shown where they stand among all."""


class Publishing:
    """Publishes a view after every cycle."""

    def __init__(
        self,
        mirror: Mirror,
        publish: view.Publish,
        why: Why = lambda session, job: "",
        *,
        most_counted: int = MOST_COUNTED,
    ) -> None:
        self._mirror = mirror
        self._publish = publish
        self._why = why
        self._most_counted = most_counted
        self._last: view.ClusterView | None = None
        self._jobs: dict[Key, tuple[str, str]] = {}
        """What was shown of each job: its namespace and uid."""
        self._places: dict[Key, Place] = {}
        """Where those that wait were shown to stand."""
        self._again: tuple[set[Key], set[str]] = (set(), set())
        self._requests: dict[int, tuple[Request, view.Amounts]] = {}

    def after(self, outcome: Outcome) -> None:
        """Makes the view of a cycle, and publishes it."""
        session = outcome.session
        touched = {decision.task.job.key for decision in session.decisions}
        on = {decision.task.node for decision in session.decisions if decision.task.node}
        jobs = outcome.changed_jobs | touched | self._again[0] | set(session.failures) | self._moved(outcome)
        nodes = outcome.changed_nodes | on | self._again[1]
        self._again = touched | set(session.failures), on
        at = datetime.fromtimestamp(outcome.at, UTC)
        last = self._last or view.ClusterView(cycle=0, at=at)
        gone = [self._jobs.pop(key) for key in jobs if self._is_gone(session, key)]
        self._last = last.followed_by(
            cycle=outcome.number,
            at=at,
            nodes=list(self._node_views(session, nodes)),
            gone_nodes=[name for name in last.nodes if name not in session.nodes.index],
            queues=[queue_view(share) for share in session.shares],
            gone_queues=[name for name in last.queues if name not in session.shares],
            jobs=list(self._job_views(session, jobs)),
            gone_jobs=gone,
        )
        self._publish(self._last)

    def _moved(self, outcome: Outcome) -> set[Key]:
        """The jobs that stand elsewhere in line than was shown, or no longer."""
        before, self._places = self._places, places_of(outcome.session, outcome.pools, most=self._most_counted)
        return {key for key, place in self._places.items() if before.get(key) != place} | (
            before.keys() - self._places.keys()
        )

    def _is_gone(self, session: Session, key: Key) -> bool:
        """Whether a job that was shown is no more; one that was made anew under the same name is another."""
        shown, job = self._jobs.get(key), session.cluster.jobs.get(key)
        return shown is not None and (job is None or job.uid != shown[1])

    def _node_views(self, session: Session, names: Iterable[str]) -> Iterator[view.NodeView]:
        nodes = session.nodes
        for name in names:
            row = nodes.index.get(name)
            if row is not None:
                used = nodes.allocatable[row] - nodes.idle[row]
                node = nodes.nodes[row]
                yield node_view(node, nodes.allocatable[row], used, nodes.resources, devices=self._devices(node))

    def _devices(self, node: Node) -> dict[str, int]:
        """Which devices the groups of a node have, as far as their reservations tell by number."""
        devices: dict[str, int] = {}
        for hold in node.holds.values() if node.shared else ():
            pod = self._mirror.pod(hold.task.key) if hold.task.is_reservation else None
            told = pod.metadata.annotations.get(RESERVED_GPU_INDEX, "") if pod is not None else ""
            if told.isascii() and told.isdecimal() and len(told) < 6:
                devices[hold.task.labels.get(GPU_GROUP, "")] = int(told)
        return devices

    def _job_views(self, session: Session, keys: Iterable[Key]) -> Iterator[view.JobView]:
        for key in keys:
            job = session.cluster.jobs.get(key)
            if job is None:
                continue
            self._jobs[key] = job.namespace, job.uid
            place = self._places.get(key)
            yield view.JobView(
                uid=job.uid,
                name=job.name,
                namespace=job.namespace,
                queue=job.queue,
                created=datetime.fromtimestamp(job.created, UTC),
                priority=job.priority,
                preemptible=job.is_preemptible,
                tasks=tuple(self._task_view(task) for task in sorted(job.tasks.values(), key=lambda task: task.order)),
                waits=self._why(session, job) if job.pending else "",
                position=None if place is None else place.in_queue,
                overall=None if place is None else place.overall,
            )

    def _task_view(self, task: Task) -> view.TaskView:
        return view.TaskView(
            uid=task.uid,
            name=task.name,
            status=view.TaskStatus(task.status.word),
            node=task.node,
            requested=self._requested(task.request),
            gpu_groups=task.gpu_groups,
        )

    def _requested(self, request: Request) -> view.Amounts:
        found = self._requests.get(id(request))
        if found is None:
            amounts = request.amounts(self._mirror.smallest_gpu)
            shown = view.Amounts(milli_cpu=amounts.cpu, memory=amounts.memory, gpus=amounts.gpu)
            found = self._requests[id(request)] = request, shown
        return found[1]


def node_view(
    node: Node, allocatable: Vector, used: Vector, resources: ResourceNames, *, devices: Mapping[str, int]
) -> view.NodeView:
    """A node, and who is on its GPUs. ``devices``: which one a group has, where that is known."""
    holders = [hold.task for hold in node.holds.values() if hold.status is not Status.PIPELINED]
    shared: dict[str, list[Task]] = {}
    for task in holders:
        for group in task.gpu_groups:
            shared.setdefault(group, []).append(task)
    return view.NodeView(
        name=node.name,
        ready=node.is_ready,
        schedulable=not node.is_unschedulable,
        allocatable=_amounts(allocatable, resources.known()),
        used=_amounts(used, resources.known()),
        pods=len(holders),
        pod_limit=int(allocatable[PODS]),
        gpu_count=node.gpu_count,
        gpu_model=node.labels.get(NODE_GPU_PRODUCT, ""),
        shared_gpus=tuple(
            view.SharedGpu(
                group=group,
                sharers=tuple(_sharer(task, node) for task in sorted(tasks, key=_age)),
                index=devices.get(group),
            )
            for group, tasks in sorted(shared.items())
        ),
        whole_gpus=tuple(
            view.WholeGpus(
                namespace=task.namespace,
                name=task.name,
                uid=task.uid,
                gpus=int(task.request.whole_gpus),
                started=_moment(task.started),
            )
            for task in sorted(holders, key=_age)
            if task.request.whole_gpus >= 1
        ),
    )


def queue_view(share: Share) -> view.QueueView:
    """A queue, with what it has at the end of a cycle."""
    queue = share.queue
    return view.QueueView(
        name=queue.name,
        display_name=queue.title,
        parent=queue.parent,
        priority=queue.priority,
        quota=_bounds(queue.quota),
        limit=_bounds(queue.limit),
        over_quota_weight=view.Weights(milli_cpu=queue.weight.cpu, memory=queue.weight.memory, gpus=queue.weight.gpu),
        fair_share=_shown(share.fair_share),
        allocated=_shown(share.allocated),
        requested=_shown(share.request),
        allocated_non_preemptible=_shown(share.allocated_non_preemptible),
    )


def _sharer(task: Task, node: Node) -> view.Sharer:
    portion = task.request.memory_on(node.gpu_memory) / node.gpu_memory
    return view.Sharer(
        namespace=task.namespace, name=task.name, uid=task.uid, portion=portion, started=_moment(task.started)
    )


def _age(task: Task) -> tuple[float, str]:
    return task.started, task.uid


def _moment(seconds: float) -> datetime | None:
    return datetime.fromtimestamp(seconds, UTC) if seconds else None


def _amounts(vector: Vector, places: Mapping[str, int]) -> view.Amounts:
    fixed = ("cpu", "memory", "gpu", "pods")
    extended = {
        name: float(vector[place])
        for name, place in places.items()
        if name not in fixed and place < len(vector) and vector[place]
    }
    return view.Amounts(
        milli_cpu=float(vector[CPU]),
        memory=float(vector[MEMORY]),
        gpus=float(vector[GPU]),
        extended=extended or view.NOTHING,
    )


def _bounds(amounts: Amounts) -> view.Bounds:
    return view.Bounds(milli_cpu=_bound(amounts.cpu), memory=_bound(amounts.memory), gpus=_bound(amounts.gpu))


def _bound(amount: float) -> view.Bound:
    return view.UNLIMITED if amount == UNLIMITED else amount


def _shown(amounts: Amounts) -> view.Amounts:
    return view.Amounts(milli_cpu=amounts.cpu, memory=amounts.memory, gpus=amounts.gpu)
