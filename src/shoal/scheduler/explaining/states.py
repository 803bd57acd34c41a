"""How far a job is, and how many pods it has and needs."""

from __future__ import annotations

from shoal.scheduler.explaining.explanation import Part, PodCounts, State
from shoal.scheduler.explaining.words import counted
from shoal.scheduler.model.jobs import DEFAULT_POD_SET, Job, PodSet, SubGroup
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.shares.tree import QueueTree


def state_of(job: Job, shares: QueueTree) -> State:
    """The state of a job, as a cycle left it."""
    sets = job.pod_sets.values()
    pending, gated = sum(one.pending for one in sets), sum(one.gated for one in sets)
    if not any(one.alive or one.active_used for one in sets):
        return State.NOT_READY if not job.tasks else State.FINISHED
    if pending or gated:
        if not job.is_ready:
            return State.NOT_READY
        share = shares.get(job.queue)
        if share is None or not share.is_leaf:
            return State.UNKNOWN_QUEUE
    if any(one.pipelined for one in sets):
        return State.PROMISED
    if pending:
        return State.BACKED_OFF if job.is_backed_off else State.WAITING
    if any(task.status is Status.RUNNING for task in job.tasks.values()):
        return State.RUNNING
    return State.STARTING


def pod_counts(job: Job) -> PodCounts:
    """How many pods a job has."""
    sets = job.pod_sets.values()
    return PodCounts(
        needed=needed_pods(job.root),
        existing=sum(one.alive for one in sets),
        gated=sum(one.gated for one in sets),
        waiting=sum(one.pending for one in sets),
        promised=sum(one.pipelined for one in sets),
        placed=sum(one.active_allocated - one.pipelined for one in sets),
    )


def needed_pods(place: SubGroup | PodSet) -> int:
    """The fewest pods that a group can start with."""
    if isinstance(place, PodSet):
        return place.min_member
    return sum(sorted(map(needed_pods, place.children))[: place.needed])


def lacking_parts(job: Job) -> list[Part]:
    """The subgroups that have too few pods that may start."""
    return [
        Part(name=one.name, needed=one.min_member, existing=one.alive, gated=one.gated)
        for one in job.pod_sets.values()
        if not one.is_ready
    ]


def not_ready_message(job: Job) -> str:
    """What a job lacks that is not ready."""
    parts = lacking_parts(job)
    if not parts:
        return ""
    said = []
    for part in parts:
        where = "" if part.name == DEFAULT_POD_SET and len(job.pod_sets) == 1 else f"subgroup {part.name}: "
        gated = f", {part.gated} of them held back by gates" if part.gated else ""
        said.append(f"{where}{counted(part.needed, 'pod')} needed, {part.existing} there{gated}")
    return f"not all pods that must start together can start: {'; '.join(said)}"
