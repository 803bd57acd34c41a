"""An explanation in full, of one job, for whoever asks: from a session that has done its work and is still open."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from shoal.scheduler.explaining.explanation import (
    Explanation,
    Nearest,
    NodeReason,
    Part,
    QueueFigures,
    State,
    TaskShortage,
    TopologyShortage,
)
from shoal.scheduler.explaining.holders import holders_of, is_entitled
from shoal.scheduler.explaining.places import position_of
from shoal.scheduler.explaining.reasons import causes, failure_of, node_reasons, short, shortage
from shoal.scheduler.explaining.remedies import remedies_of
from shoal.scheduler.explaining.reservations import kept_room
from shoal.scheduler.explaining.states import lacking_parts, pod_counts, state_of
from shoal.scheduler.explaining.words import asked_for, figures, resource_words
from shoal.scheduler.model.jobs import Job, PodSet, SubGroup
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.session.failures import NoRoom, NotNear
from shoal.scheduler.session.session import Session, everywhere
from shoal.scheduler.session.topology import TopologyProblem, node_sets
from shoal.scheduler.shares.tree import Share


def explain(session: Session, job: Job) -> Explanation:
    """Everything about a job. Of those that wait it says what stands in the way, of others where they are."""
    state = state_of(job, session.shares)
    found = causes(session, job)
    waits = state in (State.WAITING, State.PROMISED, State.BACKED_OFF)
    known = session.shares.get(job.queue)
    holders = holders_of(session, job) if state is State.WAITING else []
    topology = list(_topology_shortages(session, job)) if state is State.WAITING else []
    tasks = session.next_tasks(job, for_real=True)
    return Explanation(
        name=job.name,
        namespace=job.namespace,
        queue=job.queue,
        priority=job.priority,
        preemptible=job.is_preemptible,
        state=state,
        reason=found[0].reason if found else "",
        message=short(session, job) or _at_rest(job, state),
        pods=pod_counts(job),
        requested=figures(session.amounts(tasks)),
        parts=_parts(job, state),
        position=position_of(session, job) if waits else None,
        queues=[_queue(share) for share in known.path] if known else [],
        shortages=list(_shortages(session, job, tasks)) if state is State.WAITING else [],
        topology=topology,
        entitled=state is State.WAITING and is_entitled(session, job),
        holders=holders,
        kept=kept_room(session, job) if state is State.WAITING else None,
        remedies=remedies_of(session, job, topology, holders),
    )


def _at_rest(job: Job, state: State) -> str:
    if state is State.FINISHED:
        return "it has finished"
    running = sum(task.status is Status.RUNNING for task in job.tasks.values())
    return f"{running} of its {len(job.tasks)} pods run" if running else "its pods have their places, and start"


def _parts(job: Job, state: State) -> list[Part]:
    return lacking_parts(job) if state is State.NOT_READY else []


def _queue(share: Share) -> QueueFigures:
    queue = share.queue
    return QueueFigures(
        name=queue.name,
        parent=queue.parent,
        priority=queue.priority,
        quota=figures(queue.quota),
        limit=figures(queue.limit),
        fair_share=figures(share.fair_share),
        allocated=figures(share.allocated),
        allocated_non_preemptible=figures(share.allocated_non_preemptible),
        requested=figures(share.request),
    )


def _shortages(session: Session, job: Job, tasks: list[Task]) -> Iterator[TaskShortage]:
    """For each kind of task that the job would place next."""
    failure = failure_of(session, job)
    kinds: dict[tuple[int, int], list[Task]] = {}
    for task in tasks:
        kinds.setdefault((id(task.request), id(task.constraints)), []).append(task)
    words = resource_words(session.nodes.resources)
    for alike in kinds.values():
        task = alike[0]
        found = shortage(session, task)
        others_placed = isinstance(failure, NoRoom) and failure.placed > 0 and failure.task.request is task.request
        reasons = node_reasons(found, others_placed=others_placed)
        if not others_placed and found.open_nodes:
            reasons = {**found.reasons(others_placed=False), **_by_others(session, task)}
        nearest = found.nearest
        yield TaskShortage(
            pods=len(alike),
            example=f"{task.namespace}/{task.name}",
            requests=_requests(session, task, words),
            nodes=found.nodes,
            room=found.room,
            reasons=[
                NodeReason(reason=reason, nodes=nodes)
                for reason, nodes in sorted(reasons.items(), key=lambda one: (-one[1], one[0]))
            ],
            nearest=Nearest(node=nearest.node, lacks=nearest.amounts) if nearest and nearest.amounts else None,
        )


def _by_others(session: Session, task: Task) -> dict[str, int]:
    """Nodes that have room, by what the pods that are there, or plugins, have against it."""
    fits = np.asarray(session.field(task).fits)
    reasons = session.pods.reasons(task, among=fits)
    for name, lets in session.plugins.filters(session.node_table, task):
        if count := int(np.count_nonzero(fits & ~lets)):
            reasons[f"plugin {name} keeps it away"] = count
    return reasons


def _requests(session: Session, task: Task, words: dict[int, str]) -> dict[str, float]:
    asked = asked_for(task.request.vector, words)
    gpu = task.request.gpu
    if gpu.devices:
        asked["GPUs"] = round(task.request.amounts(session.smallest_gpu).gpu, 3)
    if gpu.memory:
        asked["MiB of GPU memory"] = float(gpu.memory)
    return asked


def _topology_shortages(session: Session, job: Job) -> Iterator[TopologyShortage]:
    """For each subgroup that is to be near and finds no domain with room."""
    if not isinstance(failure_of(session, job), NotNear | NoRoom):
        return
    tasks = session.next_tasks(job, for_real=True)
    for group in _with_wishes(job.root):
        wish = group.topology
        sets = [group] if isinstance(group, PodSet) else list(group.all_pod_sets())
        own = [task for task in tasks if any(task.pod_set is one for one in sets)]
        if wish is None or not own:
            continue
        held = {
            task.hold.node
            for one in sets
            for task in one.tasks.values()
            if task.hold is not None and not task.is_virtual
        }
        found = node_sets(
            session.nodes,
            session.cluster.topologies.get(wish.topology),
            wish,
            own,
            allowed=everywhere(session),
            active_rows=held,
            fits=lambda request, own=own: session.field(next(t for t in own if t.request is request)).rooms(),  # type: ignore[misc]
        )
        if isinstance(found, TopologyProblem):
            yield TopologyShortage(subgroup=group.name, message=found.message, domains=list(found.details))


def _with_wishes(group: SubGroup) -> Iterator[SubGroup | PodSet]:
    if group.topology is not None:
        yield group
    for inner in group.groups:
        yield from _with_wishes(inner)
    yield from (pod_set for pod_set in group.pod_sets if pod_set.topology is not None)
