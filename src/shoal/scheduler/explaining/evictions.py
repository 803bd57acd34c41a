"""What is said of a pod that has to go."""

from __future__ import annotations

from shoal.scheduler.actions import consolidation, preempt, reclaim, stale_gangs
from shoal.scheduler.explaining.words import listed
from shoal.scheduler.model.amounts import UNLIMITED, Amounts
from shoal.scheduler.model.jobs import DEFAULT_POD_SET
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.session.session import Eviction, Session
from shoal.scheduler.shares.reclaim import where_they_part
from shoal.scheduler.shares.tree import Share


def eviction_message(session: Session, eviction: Eviction) -> str:
    """Why a pod is evicted, and for whom. Queues are told as the session has them when it is asked."""
    task, reason = eviction.task, eviction.reason
    pod = f"pod {task.namespace}/{task.name}"
    evictor = "/".join(reason.evictor) if reason.evictor else "another workload"
    match reason.action:
        case preempt.NAME:
            return f"{pod} makes room for workload {evictor} of its queue, which has a higher priority"
        case reclaim.NAME:
            return "; ".join([f"{pod} makes room for workload {evictor} of another queue", *_queues(session, eviction)])
        case consolidation.NAME:
            return f"{pod} moves to another node, so that workloads lie closer together and {evictor} finds room"
        case stale_gangs.NAME:
            return f"{pod} ends with its gang, which has fewer than {_minimum(task)} that it needs"
        case _:
            return reason.message or f"{pod} is evicted by {reason.action}"


def _queues(session: Session, eviction: Eviction) -> list[str]:
    """The two queues where the ancestries of the two jobs part."""
    shares = session.shares
    job = session.cluster.jobs.get(eviction.reason.evictor) if eviction.reason.evictor else None
    loser = shares.get(eviction.task.job.queue)
    winner = shares.get(job.queue) if job is not None else None
    if loser is None or winner is None:
        return []
    own, other = where_they_part(winner, loser)
    return [_told(other), _told(own)]


def _told(share: Share) -> str:
    queue = share.queue
    known = (has or (may if may != UNLIMITED else 0.0) for has, may in zip(share.allocated, queue.quota, strict=True))
    some = Amounts(*known)
    return (
        f"queue {queue.title or queue.name} uses {listed(share.allocated, some)}, with a quota of "
        f"{listed(queue.quota, some)}, a fair share of {listed(share.fair_share, some)} and priority {queue.priority}"
    )


def _minimum(task: Task) -> str:
    pod_set = task.pod_set
    where = "" if pod_set.name == DEFAULT_POD_SET else f" in subgroup {pod_set.name}"
    return f"the {pod_set.min_member} pods{where}"
