"""What would let a job start: how much more room and where, a higher limit, a moment to wait for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from shoal.scheduler.explaining.explanation import Holder, Remedy, State, TopologyShortage, WhyKept
from shoal.scheduler.explaining.reasons import evicts_from, failure_of, shortage
from shoal.scheduler.explaining.reservations import reservation_remedy
from shoal.scheduler.explaining.states import lacking_parts, state_of
from shoal.scheduler.explaining.words import ALIGNED_ROOM, amount_words, counted, listed, moment, moment_words, so_many
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.session.failures import Failure, Missing, NoRoom, NotNear, OverCapacity, Refused
from shoal.scheduler.session.session import Session
from shoal.scheduler.shares.capacity import Bound, Excess


def remedies_of(
    session: Session, job: Job, topology: Sequence[TopologyShortage], holders: Sequence[Holder]
) -> list[Remedy]:
    """What would help, the most direct first."""
    state = state_of(job, session.shares)
    if state is State.NOT_READY:
        return list(_missing_pods(job))
    if state is State.UNKNOWN_QUEUE:
        return [Remedy(what="Queue", message=f"create queue {job.queue} as a leaf, or move the job to one that exists")]
    if state is State.BACKED_OFF:
        return [Remedy(what="Change", message="wait until it is tried again, or change its PodGroup")]
    if state is State.PROMISED:
        return [Remedy(what="Wait", message="wait until the pods on its nodes have ended")]
    failure = failure_of(session, job)
    if state is not State.WAITING or failure is None:
        return []
    kept = reservation_remedy(session, job)
    own_room = [] if kept is None else [kept]
    return [*own_room, *_of_failure(session, job, failure, topology), *_of_time(session, job, failure, holders)]


def _missing_pods(job: Job) -> Iterator[Remedy]:
    for part in lacking_parts(job):
        where = f" in subgroup {part.name}" if len(job.pod_sets) > 1 else ""
        absent = max(0, part.needed - part.existing)
        if absent:
            yield Remedy(what="Pods", message=f"create {counted(absent, 'more pod')}{where}")
        held_back = min(part.gated, part.needed - absent - (part.existing - part.gated))
        if held_back > 0:
            yield Remedy(what="Gates", message=f"lift the gates of {counted(held_back, 'pod')}{where}")


def _of_failure(session: Session, job: Job, failure: Failure, topology: Sequence[TopologyShortage]) -> Iterator[Remedy]:
    if isinstance(failure, OverCapacity):
        yield from _of_excess(failure.excess)
    elif isinstance(failure, Missing):
        yield Remedy(what="Object", message=f"provide what pod {failure.task.name} refers to: {failure.message}")
    elif isinstance(failure, NotNear):
        if failure.is_hopeless:
            yield Remedy(what="Topology", message=f"correct the topology: {failure.message}")
        for one in topology:
            if one.domains:
                yield Remedy(what="Room", message=f"more room in one domain: {one.domains[0]}")
    elif isinstance(failure, Refused):
        yield Remedy(what="Plugin", message=f"wait until plugin {failure.plugin} lets it start, or leave that one out")
    else:
        yield from _of_room(session, job, failure)


def _of_excess(excess: Excess) -> Iterator[Remedy]:
    place = excess.resource
    if excess.bound is Bound.LIMIT:
        needed = excess.allocated[place] + excess.requested[place]
        yield Remedy(what="Limit", message=f"raise the limit of queue {excess.queue} to {amount_words(place, needed)}")
        over = needed - excess.limit[place]
        yield Remedy(what="Wait", message=f"wait until jobs of queue {excess.queue} free {amount_words(place, over)}")
        return
    needed = excess.allocated_non_preemptible[place] + excess.requested[place]
    yield Remedy(what="Quota", message=f"raise the quota of queue {excess.queue} to {amount_words(place, needed)}")
    yield Remedy(what="Preemptibility", message="make the job preemptible: it may then go beyond the quota")


def _of_room(session: Session, job: Job, failure: NoRoom) -> Iterator[Remedy]:
    task = failure.task
    found = shortage(session, task)
    if found.too_small:
        most = ", ".join(so_many(amount, words) for words, amount in found.too_small.items())
        yield Remedy(what="Size", message=f"ask for less per pod, or add larger nodes: the largest has {most}")
        return
    if failure.kept_for is not None:
        kept_for = "/".join(failure.kept_for)
        yield Remedy(what="Reservation", message=f"wait until {kept_for} has started, for which nodes are kept")
    tasks = [one for one in session.next_tasks(job, for_real=True) if one.request is task.request]
    if not found.open_nodes and not found.short:
        yield Remedy(what="Nodes", message="add nodes that its pods may go to, or ask less of them (see the reasons)")
        return
    each = listed(task.request.amounts(session.smallest_gpu))
    if len(tasks) > 1:
        lacking = max(1, len(tasks) - found.room)
        room = f"room for {counted(lacking, 'more pod')}, each with {each}"
        yield Remedy(what="Room", message=f"{room} (there is room for {found.room} of {len(tasks)})")
    if found.nearest is not None and found.nearest.amounts:
        lacks = ", ".join(so_many(amount, words) for words, amount in found.nearest.amounts.items())
        yield Remedy(what="Room", message=f"{lacks} more free on node {found.nearest.node}, which lacks least")
    if ALIGNED_ROOM in found.short and not found.open_nodes:
        message = "what each pod asks for free in the same NUMA zones of a node; or ask for less per pod"
        yield Remedy(what="Zones", message=message)
    if task.request.is_shared and not found.open_nodes:
        yield Remedy(what="Room", message=f"a GPU with room for its part, on any of its nodes: each pod takes {each}")


def _of_time(session: Session, job: Job, failure: Failure, holders: Sequence[Holder]) -> Iterator[Remedy]:
    """What happens by itself: delays end, and protected jobs are so no longer."""
    if not isinstance(failure, NoRoom | NotNear):
        return
    until = evicts_from(job)
    if session.now < until:
        words = f"wait until {moment_words(until)}: from then on it may have others evicted"
        yield Remedy(what="PreemptionDelay", message=words, until=moment(until))
    protected: list[tuple[datetime, Holder]] = [
        (one.until, holder)
        for holder in holders
        for one in holder.jobs
        if one.why is WhyKept.MIN_RUNTIME and one.until is not None
    ]
    for end, holder in sorted(protected, key=lambda one: (one[0], one[1].queue))[:1]:
        words = f"wait until {moment_words(end.timestamp())}: then a job of queue {holder.queue} is protected no longer"
        yield Remedy(what="MinRuntime", message=words, until=end)
