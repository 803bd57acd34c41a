"""One cycle on a snapshot, and what it decides."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import datetime

from shoal.scheduler.actions import cycle
from shoal.scheduler.explaining import State, eviction_message, short, state_of
from shoal.scheduler.explaining.explanation import Explanation, Fact
from shoal.scheduler.explaining.in_full import explain
from shoal.scheduler.explaining.places import in_order
from shoal.scheduler.explaining.reasons import causes
from shoal.scheduler.explaining.words import moment
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.plugins import load_plugins
from shoal.scheduler.session import decisions
from shoal.scheduler.session.session import Session
from shoal.scheduler.snapshots.modelling import mirror_of, mirror_settings, setup_of
from shoal.scheduler.snapshots.snapshot import Snapshot
from shoal.scheduler.watching.mirror import Mirror


class Placement(Fact, frozen=True, kw_only=True):
    """A pod that gets a node, or the promise of one."""

    namespace: str
    pod: str
    job: str
    queue: str
    node: str
    gpus: float
    promised: bool
    """Whether others have to be gone first."""


class Eviction(Fact, frozen=True, kw_only=True):
    """A pod that has to go."""

    namespace: str
    pod: str
    job: str
    queue: str
    node: str
    action: str
    message: str
    evictor: str
    """The job for which it goes, with its namespace; empty where there is none."""


class Waiting(Fact, frozen=True, kw_only=True):
    """A job that still waits."""

    namespace: str
    job: str
    queue: str
    state: State
    reason: str
    message: str
    position: int | None
    """Its place among all that wait in turn; None where it is not in line."""


class Replay(Fact, frozen=True, kw_only=True):
    """What one cycle decides."""

    at: datetime
    actions: list[str]
    nodes: int
    jobs: int
    placements: list[Placement]
    evictions: list[Eviction]
    waiting: list[Waiting]
    remarks: list[str]
    explanations: list[Explanation] = []
    """In full, of the jobs that were asked about."""


def replay(
    snapshot: Snapshot, *, actions: Sequence[str] | None = None, explained: Sequence[tuple[str, str]] = ()
) -> Replay:
    """Runs a cycle as the snapshot's scheduler would. ``explained``: jobs to be told of in full.

    Raises ConfigurationError where the snapshot asks for what nobody can do.
    """
    setup, options = setup_of(snapshot)
    now = snapshot.taken_at
    mirror = mirror_of(snapshot, mirror_settings(options, setup), now=now)
    chosen = list(setup.actions if actions is None else actions)
    _rest(mirror, now)
    session = Session(
        mirror.cluster,
        setup.settings,
        now=now,
        filters=mirror.filters,
        pods=mirror.pods,
        shares=mirror.shares,
        plugins=load_plugins(setup.plugins),
        numa=mirror.numa(setup.settings.numa),
    )
    cycle.run(session, chosen)
    jobs = session.cluster.jobs
    return Replay(
        at=moment(now),
        actions=chosen,
        nodes=len(session.nodes),
        jobs=len(jobs),
        placements=sorted(_placements(session), key=lambda one: (one.namespace, one.job, one.pod)),
        evictions=sorted(_evictions(session), key=lambda one: (one.namespace, one.job, one.pod)),
        waiting=list(_waiting(session)),
        remarks=list(setup.remarks),
        explanations=[explain(session, jobs[key]) for key in explained if key in jobs],
    )


def _rest(mirror: Mirror, now: float) -> None:
    """Leaves jobs alone whose binding failed just before."""
    for key in mirror.rest(now):
        task = mirror.task(key)
        if task is not None:
            task.job.is_backed_off = True


def _placements(session: Session) -> Iterator[Placement]:
    for decision in session.decisions:
        if isinstance(decision, decisions.Bind | decisions.Promise):
            task = decision.task
            yield Placement(
                **_of(task),
                node=decision.node,
                gpus=round(task.accepted.gpu, 3),
                promised=isinstance(decision, decisions.Promise),
            )


def _evictions(session: Session) -> Iterator[Eviction]:
    for decision in session.decisions:
        if isinstance(decision, decisions.Eviction):
            task, reason = decision.task, decision.reason
            left = task.hold.left if task.hold is not None and task.hold.left is not None else task.hold
            yield Eviction(
                **_of(task),
                node=session.nodes.nodes[left.node].name if left is not None else "",
                action=reason.action,
                message=eviction_message(session, decision),
                evictor="/".join(reason.evictor) if reason.evictor else "",
            )


def _waiting(session: Session) -> Iterator[Waiting]:
    """Those that stand in line first, in their order; then those that do not, by name."""
    told: set[tuple[str, str]] = set()
    for place, job in enumerate(in_order(session), start=1):
        told.add(job.key)
        if state_of(job, session.shares) is not State.PROMISED:
            yield _one(session, job, place)
    for key, job in sorted(session.cluster.jobs.items()):
        if key not in told and state_of(job, session.shares) in _NOT_IN_LINE:
            yield _one(session, job, None)


_NOT_IN_LINE = (State.NOT_READY, State.UNKNOWN_QUEUE, State.BACKED_OFF, State.WAITING)


def _one(session: Session, job: Job, position: int | None) -> Waiting:
    found = causes(session, job)
    return Waiting(
        namespace=job.namespace,
        job=job.name,
        queue=job.queue,
        state=state_of(job, session.shares),
        reason=found[0].reason if found else "",
        message=short(session, job),
        position=position,
    )


def _of(task: Task) -> dict[str, str]:
    return {"namespace": task.namespace, "pod": task.name, "job": task.job.name, "queue": task.job.queue}
