"""The view of the cluster that the scheduler publishes at the end of a cycle, and that others read.

A view never changes: the next cycle publishes another one. What did not change from one to the next is the same object
in both (`ClusterView.followed_by` sees to it, for whole mappings too), so that a reader who has made something of
an object knows without looking into it that it may be used again, and finds what is new in the time that the new takes.

These are the scheduler's words, not those of any page: how a view is shown is the reader's business.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from enum import Enum
from types import MappingProxyType
from typing import Final, TypeVar

import msgspec


class Unlimited(Enum):
    """The bound that there is none: a value of its own, so that nobody reckons with it by mistake."""

    UNLIMITED = "unlimited"


UNLIMITED: Final = Unlimited.UNLIMITED
Bound = float | Unlimited
NOTHING: Final[Mapping[str, float]] = MappingProxyType({})


class TaskStatus(Enum):
    """What has become of a pod, as the scheduler sees it; the values are the names that KAI gives."""

    PENDING = "Pending"
    GATED = "Gated"
    ALLOCATED = "Allocated"
    PIPELINED = "Pipelined"
    BINDING = "Binding"
    BOUND = "Bound"
    RUNNING = "Running"
    RELEASING = "Releasing"
    STUCK_IN_RELEASING = "StuckInReleasing"
    SUCCEEDED = "Succeeded"
    FAILED = "Failed"
    UNKNOWN = "Unknown"

    __hash__ = object.__hash__
    """There is one of each: they are told apart by that, and not by a walk through their names."""


class View(msgspec.Struct, frozen=True, kw_only=True, gc=False):
    """The base of all parts of a view: frozen, and without cycles for the collector to look for."""


class Amounts(View, frozen=True, kw_only=True):
    """So much of each resource."""

    milli_cpu: float = 0
    memory: float = 0
    """Bytes."""
    gpus: float = 0
    """Devices; a shared one counts by its portion."""
    extended: Mapping[str, float] = NOTHING
    """Everything else that nodes offer, by its name in Kubernetes, in units."""


class Bounds(View, frozen=True, kw_only=True):
    """So much of each resource and no more (or no less); nothing unless said otherwise, as in a Queue."""

    milli_cpu: Bound = 0
    memory: Bound = 0
    gpus: Bound = 0


class Weights(View, frozen=True, kw_only=True):
    """A queue's weight when the surplus of each resource is divided."""

    milli_cpu: float = 0
    memory: float = 0
    gpus: float = 0


class Sharer(View, frozen=True, kw_only=True):
    """A pod that has a portion of a device."""

    namespace: str
    name: str
    uid: str
    portion: float
    started: datetime | None = None


class SharedGpu(View, frozen=True, kw_only=True):
    """A device that pods share, known by its group."""

    group: str
    sharers: tuple[Sharer, ...]
    index: int | None = None
    """Which device of the node it is, once the reservation has told."""


class WholeGpus(View, frozen=True, kw_only=True):
    """A pod that has devices for itself; which ones, only the kubelet knows."""

    namespace: str
    name: str
    uid: str
    gpus: int
    started: datetime | None = None


class NodeView(View, frozen=True, kw_only=True):
    """A node, and who is on its GPUs."""

    name: str
    ready: bool
    allocatable: Amounts
    used: Amounts
    """By all pods that hold something of it, terminating ones included."""
    schedulable: bool = True
    """False where it is cordoned."""
    pods: int = 0
    pod_limit: int | None = None
    """How many pods it takes; None where it does not say."""
    gpu_count: int = 0
    """How many devices it has by its label, or else how many it offers."""
    gpu_model: str = ""
    shared_gpus: tuple[SharedGpu, ...] = ()
    whole_gpus: tuple[WholeGpus, ...] = ()


class QueueView(View, frozen=True, kw_only=True):
    """A queue, what it is entitled to and what it has; with all queues below it."""

    name: str
    """Of the object; queues are linked by it."""
    display_name: str = ""
    parent: str = ""
    priority: int = 100
    quota: Bounds = Bounds()
    limit: Bounds = Bounds()
    over_quota_weight: Weights = Weights()
    fair_share: Amounts = Amounts()
    allocated: Amounts = Amounts()
    requested: Amounts = Amounts()
    """What it has and what its pending pods ask for."""
    allocated_non_preemptible: Amounts = Amounts()


class TaskView(View, frozen=True, kw_only=True):
    """One pod of a job."""

    uid: str
    name: str
    status: TaskStatus
    node: str = ""
    requested: Amounts = Amounts()
    gpu_groups: tuple[str, ...] = ()


class JobView(View, frozen=True, kw_only=True):
    """Pods that are scheduled together, and why those that wait do."""

    uid: str
    name: str
    namespace: str
    queue: str
    created: datetime
    priority: int = 50
    preemptible: bool = True
    tasks: tuple[TaskView, ...] = ()
    """Nearly all of a job: from view to view it is the same tuple for as long as it says the same."""
    waits: str = ""
    """Why it waits, in a sentence; empty where it does not."""
    position: int | None = None
    """Its place among those that wait in its queue, the first being 1; None where it does not wait."""
    overall: int | None = None
    """Its place among all that wait, in the order in which they are tried; None also where nobody counts that far."""


Part = TypeVar("Part", bound=View)


class ClusterView(View, frozen=True, kw_only=True):
    """Everything, at the end of one cycle."""

    cycle: int
    at: datetime
    nodes: Mapping[str, NodeView] = MappingProxyType({})
    """By name."""
    queues: Mapping[str, QueueView] = MappingProxyType({})
    """By the object's name."""
    jobs: Mapping[str, Mapping[str, JobView]] = MappingProxyType({})
    """By uid, for each namespace that has any."""

    @classmethod
    def of(
        cls,
        *,
        cycle: int,
        at: datetime,
        nodes: Iterable[NodeView] = (),
        queues: Iterable[QueueView] = (),
        jobs: Iterable[JobView] = (),
    ) -> ClusterView:
        """A first view; those after it are better made by `followed_by`."""
        return cls(cycle=cycle, at=at).followed_by(cycle=cycle, at=at, nodes=nodes, queues=queues, jobs=jobs)

    def followed_by(
        self,
        *,
        cycle: int,
        at: datetime,
        nodes: Iterable[NodeView] = (),
        gone_nodes: Iterable[str] = (),
        queues: Iterable[QueueView] = (),
        gone_queues: Iterable[str] = (),
        jobs: Iterable[JobView] = (),
        gone_jobs: Iterable[tuple[str, str]] = (),
    ) -> ClusterView:
        """The next view: this one with what is new or changed put in, and what is gone (jobs by namespace and uid)
        taken out.

        What is not named is shared with this view, and so is what turns out to be equal, the tasks of a job that has
        changed otherwise included. Of the mappings only those are copied that something has changed in; for jobs,
        those of their namespaces.
        """
        upserted: dict[str, list[JobView]] = {}
        for job in jobs:
            was = self.jobs.get(job.namespace, {}).get(job.uid)
            upserted.setdefault(job.namespace, []).append(job if was is None else _with_known_tasks(job, was))
        gone: dict[str, list[str]] = {}
        for namespace, uid in gone_jobs:
            gone.setdefault(namespace, []).append(uid)
        of_namespaces: dict[str, Mapping[str, JobView]] = dict(self.jobs)
        for namespace in upserted.keys() | gone.keys():
            before: Mapping[str, JobView] = self.jobs.get(namespace, {})
            after = _changed(before, upserted.get(namespace, ()), gone.get(namespace, ()), lambda job: job.uid)
            if after:
                of_namespaces[namespace] = after
            else:
                of_namespaces.pop(namespace, None)
        same_jobs = len(of_namespaces) == len(self.jobs) and all(
            self.jobs.get(namespace) is jobs_of_it for namespace, jobs_of_it in of_namespaces.items()
        )
        return ClusterView(
            cycle=cycle,
            at=at,
            nodes=_changed(self.nodes, nodes, gone_nodes, lambda node: node.name),
            queues=_changed(self.queues, queues, gone_queues, lambda queue: queue.name),
            jobs=self.jobs if same_jobs else MappingProxyType(of_namespaces),
        )


Publish = Callable[[ClusterView], None]
"""What a scheduler does with a view: returns at once, from whichever thread it is called."""


def _with_known_tasks(job: JobView, was: JobView) -> JobView:
    if job.tasks is was.tasks or job.tasks != was.tasks:
        return job
    return msgspec.structs.replace(job, tasks=was.tasks)


def _changed(
    before: Mapping[str, Part], upserted: Iterable[Part], deleted: Iterable[str], key: Callable[[Part], str]
) -> Mapping[str, Part]:
    """A mapping with some changes; itself where they change nothing."""
    named = {key(part): part for part in upserted}
    new = {name: part for name, part in named.items() if before.get(name) != part}
    gone = [name for name in deleted if name in before and name not in named]
    if not new and not gone:
        return before
    # A proxy copies the dictionary behind it in one go; to read everything through it would take twenty times as long.
    after = before.copy() if isinstance(before, MappingProxyType) else dict(before)
    after.update(new)
    for name in gone:
        after.pop(name, None)
    return MappingProxyType(after)
