"""How long a job may run before others may have it evicted: the queues' own word, or that of their ancestors.

Within a queue, the nearest ancestor that says something counts, the queue itself first. Between queues, by ``queue``,
the same; by ``lca``, what counts is said where the two ancestries part, on the victim's side, or above: teams of one
department agree among themselves, and departments with each other.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from shoal.scheduler.model.jobs import Job, PodSet, SubGroup
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.shares.job_order import has_surplus
from shoal.scheduler.shares.reclaim import where_they_part
from shoal.scheduler.shares.tree import QueueTree


class Method(Enum):
    """Who is asked how long a job is protected from other queues."""

    LCA = "lca"
    QUEUE = "queue"


@dataclass(frozen=True, slots=True, kw_only=True)
class MinRuntimes:
    """What counts where no queue says anything, in seconds."""

    preempt: float = 0.0
    reclaim: float = 0.0
    method: Method = Method.LCA
    is_enabled: bool = True
    """Whether anybody is protected at all, whatever queues say."""


def preempt_min_runtime(tree: QueueTree, victim_queue: str, settings: MinRuntimes) -> float:
    """How long jobs of a queue are protected from more important ones of the same queue."""
    for share in tree[victim_queue].path:
        if share.queue.preempt_min_runtime is not None:
            return share.queue.preempt_min_runtime
    return settings.preempt


def reclaim_min_runtime(tree: QueueTree, reclaimer_queue: str, victim_queue: str, settings: MinRuntimes) -> float:
    """How long jobs of a queue are protected from those of another."""
    victim = tree[victim_queue]
    path = victim.path
    if settings.method is Method.LCA:
        _, start = where_they_part(tree[reclaimer_queue], victim)
        path = start.path
    for share in path:
        if share.queue.reclaim_min_runtime is not None:
            return share.queue.reclaim_min_runtime
    return settings.reclaim


def is_protected(
    tree: QueueTree, victim: Job, *, now: float, settings: MinRuntimes, reclaimer_queue: str | None = None
) -> bool:
    """Whether a job has not run for long enough: against another queue, or (None) against its own."""
    if victim.last_start is None or victim.queue not in tree or not settings.is_enabled:
        return False
    if reclaimer_queue is None:
        length = preempt_min_runtime(tree, victim.queue, settings)
    else:
        length = reclaim_min_runtime(tree, reclaimer_queue, victim.queue, settings)
    return now < victim.last_start + length


def may_be_victim(
    tree: QueueTree, job: Job, *, now: float, settings: MinRuntimes, reclaimer_queue: str | None = None
) -> bool:
    """Whether a job is to be looked at: one that may lose pods and go on always is, see ``keeps_minimum``."""
    if has_surplus(job.root):
        return True
    return not is_protected(tree, job, now=now, settings=settings, reclaimer_queue=reclaimer_queue)


def keeps_minimum(job: Job, evicted: Iterable[Task]) -> bool:
    """Whether a job goes on without these tasks, which are all that a protected one may lose.

    Tasks count while they occupy a node: those that are evicted in a simulation are still among them.
    """
    lost = Counter(task.pod_set.name for task in evicted)
    return all(_is_pod_set_kept(job.pod_sets[name], lost) for name in lost) or _is_kept(job.root, lost)


def _is_kept(group: SubGroup, lost: Counter[str]) -> bool:
    kept = sum(_is_kept(inner, lost) for inner in group.groups)
    kept += sum(_is_pod_set_kept(pod_set, lost) for pod_set in group.pod_sets)
    return kept >= group.needed


def _is_pod_set_kept(pod_set: PodSet, lost: Counter[str]) -> bool:
    return pod_set.active_used - lost[pod_set.name] >= pod_set.min_member
