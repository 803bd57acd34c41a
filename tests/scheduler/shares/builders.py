"""Queues, trees and jobs in a few words. Amounts are written as (cpu, memory, gpu); ``ANY`` is without limit."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.scheduler.model.amounts import NONE, UNLIMITED, WITHOUT_LIMIT, Amounts
from shoal.scheduler.model.jobs import Job, PodSet, SubGroup
from shoal.scheduler.model.queues import Queue
from shoal.scheduler.model.resources import ResourceNames
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import Request, Task
from shoal.scheduler.shares.tree import QueueTree

ANY = UNLIMITED
_NO_REQUEST = Request(ResourceNames().vector({}))


def gpus(count: float) -> Amounts:
    return Amounts(0.0, 0.0, float(count))


def a_queue(
    name: str,
    parent: str = "",
    *,
    quota: Amounts = NONE,
    limit: Amounts = WITHOUT_LIMIT,
    weight: Amounts = NONE,
    priority: int = 100,
    created: float = 0.0,
    usage: Amounts = NONE,
    preempt: float | None = None,
    reclaim: float | None = None,
) -> Queue:
    return Queue(
        name=name,
        parent=parent,
        quota=quota,
        limit=limit,
        weight=weight,
        priority=priority,
        created=created,
        usage=usage,
        preempt_min_runtime=preempt,
        reclaim_min_runtime=reclaim,
    )


def a_tree(*queues: Queue) -> QueueTree:
    return QueueTree.of({queue.name: queue for queue in queues})


def set_amounts(
    tree: QueueTree,
    name: str,
    *,
    allocated: Amounts = NONE,
    fair_share: Amounts = NONE,
    non_preemptible: Amounts = NONE,
) -> None:
    """Gives one queue figures that need not agree with those of its parents."""
    share = tree[name]
    share.allocated, share.fair_share, share.allocated_non_preemptible = allocated, fair_share, non_preemptible


def a_job(
    name: str,
    queue: str,
    *,
    priority: int = 50,
    created: float = 0.0,
    root: SubGroup | None = None,
    last_start: float | None = None,
) -> Job:
    return Job(
        uid=name,
        name=name,
        namespace="default",
        queue=queue,
        priority=priority,
        is_preemptible=True,
        created=created,
        root=root or pod_sets(("default", 1)),
        last_start=last_start,
    )


def pod_sets(*sets: tuple[str, int], needed: int | None = None) -> SubGroup:
    """A tree of one level: names and minima of its pod sets."""
    return SubGroup(
        name="", min_children=needed, pod_sets=[PodSet(name=name, min_member=least) for name, least in sets]
    )


def with_pods(job: Job, count: int, status: Status, *, pod_set: str = "default") -> list[Task]:
    """Adds so many pods to a job."""
    made = []
    for _ in range(count):
        name = f"{job.name}-{len(job.tasks)}"
        task = Task(uid=name, name=name, namespace=job.namespace, request=_NO_REQUEST, subgroup=pod_set, status=status)
        job.add(task)
        made.append(task)
    return made


def names(jobs: Sequence[Job]) -> list[str]:
    return [job.name for job in jobs]
