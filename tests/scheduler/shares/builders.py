"""Trees of queues and pods of jobs in a few words. Amounts are (cpu, memory, gpu); ``ANY`` is without limit."""

from __future__ import annotations

from collections.abc import Sequence

from shoal.scheduler.model.amounts import NONE, UNLIMITED, Amounts
from shoal.scheduler.model.jobs import Job, PodSet, SubGroup
from shoal.scheduler.model.queues import Queue
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.shares.tree import QueueTree
from tests.scheduler.builders import a_model_task

ANY = UNLIMITED


def gpus(count: float) -> Amounts:
    return Amounts(0.0, 0.0, float(count))


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
        task = a_model_task(name, namespace=job.namespace, subgroup=pod_set, status=status)
        job.add(task)
        made.append(task)
    return made


def names(jobs: Sequence[Job]) -> list[str]:
    return [job.name for job in jobs]
