"""How far containers have come, told from what their pod's status says and what the runtime has of them.

The runtime is believed about what it knows: what runs, and how what ended did. The status tells of what it has
forgotten. A container that should run and that the runtime does not know was lost with a runtime that was killed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import datetime

from shoal.api.core.pod_details import ContainerDetails, ContainerStatusDetails, PodDetails
from shoal.api.core.pods import TerminatedState
from shoal.cluster.node.process.pods.course import FORGIVEN_AFTER, Course, End, Run
from shoal.cluster.node.process.pods.status import LOST, LOST_CODE, end_of, moment
from shoal.cluster.node.process.runtime.protocol import ContainerState

LOST_WORDS = "The container could not be located when the pod was deleted.  The container used to be Running"
_UNKNOWN = ContainerStatusDetails()


def recovered(
    pod: PodDetails,
    found: Sequence[ContainerState],
    logged: Mapping[str, Sequence[int]],
    *,
    words: Callable[[ContainerDetails, ContainerState], str],
    now: datetime,
) -> dict[str, Course]:
    """The courses of a pod's containers.

    ``found`` is what the runtime has of it, ``logged`` are the runs with logs, by container, and ``words`` are what a
    run that ended had to say.
    """
    spec = pod.spec
    known = {one.name: one for one in (*pod.status.container_statuses, *pod.status.init_container_statuses)}
    known |= {one.name: one for one in pod.status.ephemeral_container_statuses}
    courses = {}
    for container in (*spec.init_containers, *spec.containers, *spec.ephemeral_containers):
        name = container.name
        states = sorted((one for one in found if one.name == name), key=lambda one: one.attempt)
        first = max((number + 1 for number in logged.get(name, ())), default=0)
        status = known.get(name, _UNKNOWN)
        runs = [
            Run(
                attempt=state.attempt,
                started=moment(state.started),
                end=end_of(state, words(container, state)) if state.finished is not None else None,
                image=status.image if status.restart_count == state.attempt else "",
                image_id=status.image_id,
                resources=status.resources,
            )
            for state in states
        ]
        courses[name] = _course(container, known.get(name), runs, first, now)
    return courses


def _course(
    container: ContainerDetails,
    status: ContainerStatusDetails | None,
    runs: Sequence[Run],
    first_attempt: int,
    now: datetime,
) -> Course:
    told = _told(status, now)
    latest = runs[-1] if runs else None
    if told is not None and (latest is None or told.attempt > latest.attempt):
        latest = told
    if latest is None:
        return Course(first_attempt=first_attempt)
    former = _former(status, told, runs, latest, now)
    course = Course(run=latest, former=former, first_attempt=0, crashes=0 if _is_forgiven(latest) else latest.attempt)
    if latest.end is not None:
        return course
    is_same = status is not None and status.restart_count == latest.attempt and status.state.running is not None
    return replace(
        course,
        is_started=container.startup_probe is None or bool(is_same and status is not None and status.started),
        is_ready=container.readiness_probe is None or bool(is_same and status is not None and status.ready),
    )


def _is_forgiven(run: Run) -> bool:
    """Whether a container need not rest after a run: it went on for long, or was lost through no fault of its own."""
    if run.end is None:
        return False
    return run.end.reason == LOST or (run.started is not None and run.end.at - run.started > FORGIVEN_AFTER)


def _told(status: ContainerStatusDetails | None, now: datetime) -> Run | None:
    """The latest run that a status tells of; one that it says goes on was lost, unless the runtime knows better."""
    if status is None:
        return None
    ended = status.state.terminated
    if status.state.running is not None:
        lost = End(at=now, exit_code=LOST_CODE, reason=LOST, message=LOST_WORDS)
        return Run(attempt=status.restart_count, started=None, end=lost, image_id=status.image_id)
    if ended is None and status.last_state.terminated is not None:
        ended = status.last_state.terminated
    return None if ended is None else _ended(status.restart_count, ended, status.image_id, now)


def _former(
    status: ContainerStatusDetails | None, told: Run | None, runs: Iterable[Run], latest: Run, now: datetime
) -> Run | None:
    before = [run for run in runs if run.attempt < latest.attempt]
    if before:
        return before[-1]
    if told is not None and told.attempt < latest.attempt:
        return told
    if status is None or status.restart_count != latest.attempt or latest.attempt == 0:
        return None
    last = status.last_state.terminated
    is_waiting = status.state.running is None and status.state.terminated is None
    if last is None or is_waiting:
        return None
    return _ended(latest.attempt - 1, last, status.image_id, now)


def _ended(attempt: int, ended: TerminatedState, image_id: str, now: datetime) -> Run:
    end = End(at=ended.finished_at or now, exit_code=ended.exit_code, reason=ended.reason, message=ended.message)
    return Run(attempt=attempt, started=ended.started_at, end=end, image_id=image_id)
