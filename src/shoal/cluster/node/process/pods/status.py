"""From how far the containers of a pod have come to what its status says, in a kubelet's words."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec

from shoal.api.core import FAILED, PENDING, RUNNING, Container
from shoal.api.core.pod_details import ContainerDetails, ContainerStatusDetails, PodDetails
from shoal.api.core.pods import ContainerState, ResourceRequirements, RunningState, TerminatedState, WaitingState
from shoal.cluster.node.crash_loop import crash_loop
from shoal.cluster.node.pod_status import Identify, Identity, Report, is_sidecar, phase_of, restarts_after
from shoal.cluster.node.process.pods.course import SHOWN_FOR, Course, End, Run, container_id
from shoal.cluster.node.process.runtime import protocol
from shoal.cluster.node.process.runtime.protocol import ContainerSpec

LOST = "ContainerStatusUnknown"
LOST_CODE = 137
LOST_AT_END = "The container could not be located when the pod was terminated"
START_ERROR, START_ERROR_CODE = "StartError", 128
PULL_ERROR, PULL_BACKOFF = "ErrImagePull", "ImagePullBackOff"

_MOST_OF_MESSAGE = 4096
_MOST_OF_LOG, _MOST_LINES = 2048, 80
_NOTHING = Course()


@dataclass(frozen=True, slots=True, kw_only=True)
class Seen:
    """A pod on this node, as it is now."""

    pod: PodDetails
    courses: Mapping[str, Course]
    began: datetime
    host_ip: str
    pod_ip: str
    has_sandbox: bool
    is_over: bool = False
    """Nothing runs, and nothing will."""
    reason: str = ""
    message: str = ""


def report_of(seen: Seen, *, now: datetime) -> Report:
    """What the status of a pod is to say."""
    spec = seen.pod.spec
    main = [_status(seen, container, now) for container in spec.containers]
    initial = [_initial(seen, container, now) for container in spec.init_containers]
    if seen.is_over:
        main, initial = _closed(main, initial)
    phase = phase_of(seen.pod, main, initial, is_over=seen.is_over)
    if seen.is_over and (phase in (PENDING, RUNNING) or seen.reason):
        phase = FAILED
    return Report(
        phase=phase,
        reason=seen.reason if phase == FAILED else "",
        message=seen.message if phase == FAILED else "",
        start_time=seen.began.replace(microsecond=0),
        containers=main,
        init_containers=initial,
        ephemeral_containers=[_status(seen, one, now, restarts=False) for one in spec.ephemeral_containers],
        host_ip=seen.host_ip,
        pod_ip=seen.pod_ip,
        has_sandbox=seen.has_sandbox,
    )


def refusal(pod: PodDetails, reason: str, message: str, *, now: datetime, host_ip: str) -> Report:
    """The status of a pod that this node does not take in."""
    return Report(
        phase=FAILED,
        reason=reason,
        message=f"Pod was rejected: {message}",
        start_time=(pod.status.start_time or now).replace(microsecond=0),
        containers=pod.status.container_statuses,
        init_containers=pod.status.init_container_statuses,
        host_ip=host_ip,
        has_sandbox=False,
    )


def next_change(courses: Mapping[str, Course], *, now: datetime) -> datetime | None:
    """When a reason that is shown for a moment gives way to the next one."""
    moments = [course.problem.at + SHOWN_FOR for course in courses.values() if course.problem is not None]
    return min((moment for moment in moments if moment > now), default=None)


def is_restarted(pod: PodDetails, container: ContainerDetails, exit_code: int) -> bool:
    """Whether a container that ended so is started again, as long as its pod goes on."""
    if is_sidecar(container):
        return True
    is_initial = any(one.name == container.name for one in pod.spec.init_containers)
    return not (is_initial and exit_code == 0) and restarts_after(pod, exit_code, container)


def end_of(state: protocol.ContainerState, message: str) -> End:
    """How a run ended, as the runtime tells it."""
    code = state.exit_code if state.exit_code is not None else LOST_CODE
    reason = "OOMKilled" if state.is_out_of_memory else "Completed" if code == 0 else "Error"
    return End(at=moment(state.finished or state.started), exit_code=code, reason=reason, message=message)


def last_words(container: ContainerDetails, exit_code: int, *, file: Path, log: Path) -> str:
    """What a container says about its end: in the file for that, or, where it may and failed, by its last output."""
    said = _tail(file, _MOST_OF_MESSAGE).decode(errors="replace")
    if said or exit_code == 0 or container.termination_message_policy != "FallbackToLogsOnError":
        return said
    # A record is its time, its stream, a letter that says whether the line ends with it, and its text.
    records = [line.split(b" ", 3) for line in _tail(log, 16 * _MOST_OF_LOG).split(b"\n")]
    pieces = [record[3] + (b"\n" if record[2] == b"F" else b"") for record in records if len(record) == 4]
    lines = b"".join(pieces).splitlines(keepends=True)[-_MOST_LINES:]
    return b"".join(lines)[-_MOST_OF_LOG:].decode(errors="replace")


def moment(seconds: float) -> datetime:
    """A time as the runtime tells it."""
    return datetime.fromtimestamp(seconds, UTC)


def identities(
    pod: PodDetails, courses: Mapping[str, Course], spec_of: Callable[[str], ContainerSpec | None]
) -> Identify:
    """How runs are called in the status, and what else is said of containers there."""
    uid = pod.metadata.uid

    def identify(container: Container, restarts: int) -> Identity:
        name = f"shoal://{container_id(uid, container.name, restarts)}"
        course = courses.get(container.name, _NOTHING)
        latest = course.run or course.former
        if latest is None:
            return Identity(name, "")
        given = latest.resources or container.resources
        return Identity(name, latest.image_id, _more(container, latest.image, given, spec_of(container.name)))

    return identify


def image_id(spec: ContainerSpec) -> str:
    """What stands for a container's image: the machine's own files, or a folder of it."""
    return f"shoal://{spec.root or 'host'}"


def _more(container: Container, image: str, given: ResourceRequirements, spec: ContainerSpec | None) -> dict[str, Any]:
    more: dict[str, Any] = {"image": image or container.image, "resources": msgspec.to_builtins(given)}
    if given.requests:
        more["allocatedResources"] = given.requests
    if isinstance(container, ContainerDetails) and container.volume_mounts:
        more["volumeMounts"] = [
            {"name": mount.name, "mountPath": mount.mount_path}
            | ({"readOnly": True, "recursiveReadOnly": "Disabled"} if mount.read_only else {})
            for mount in container.volume_mounts
        ]
    if spec is not None:
        ids = spec.ids
        groups = list(dict.fromkeys((ids.group, *ids.groups)))
        more["user"] = {"linux": {"uid": ids.user, "gid": ids.group, "supplementalGroups": groups}}
    return more


def _status(seen: Seen, container: ContainerDetails, now: datetime, *, restarts: bool = True) -> ContainerStatusDetails:
    course = seen.courses.get(container.name, _NOTHING)
    state, last, count = _states(seen, container, course, now, restarts=restarts)
    is_running = state.running is not None
    return ContainerStatusDetails(
        name=container.name,
        ready=is_running and course.is_started and course.is_ready,
        started=is_running and course.is_started,
        restart_count=count,
        state=state,
        last_state=last,
        image_id=course.run.image_id if course.run is not None else "",
    )


def _initial(seen: Seen, container: ContainerDetails, now: datetime) -> ContainerStatusDetails:
    status = _status(seen, container, now)
    if is_sidecar(container):
        return status
    is_done = status.state.terminated is not None and status.state.terminated.exit_code == 0
    return msgspec.structs.replace(status, ready=is_done)


def _states(
    seen: Seen, container: ContainerDetails, course: Course, now: datetime, *, restarts: bool
) -> tuple[ContainerState, ContainerState, int]:
    """What a container does, what it did before, and how often it was restarted."""
    former = _terminated(course.former)
    run = course.run
    if run is not None and run.end is None and course.is_starting:
        # Its hook has to be done before it counts as running.
        count = course.former.attempt if course.former is not None else 0
        return ContainerState(waiting=_default(seen, container, course, now)), former, count
    if run is None:
        return ContainerState(waiting=_default(seen, container, course, now)), former, course.restarts
    if run.end is None:
        return ContainerState(running=RunningState(started_at=_second(run.started))), former, course.restarts
    goes_on = restarts and not seen.is_over and is_restarted(seen.pod, container, run.end.exit_code)
    waiting = _waiting(seen, container, course, now) if goes_on else None
    if waiting is not None:
        return ContainerState(waiting=waiting), _terminated(run), course.restarts
    return _terminated(run), former, course.restarts


def _default(seen: Seen, container: ContainerDetails, course: Course, now: datetime) -> WaitingState:
    if course.problem is not None:
        return _shown(course, container.image, now)
    return WaitingState(reason="PodInitializing" if seen.pod.spec.init_containers else "ContainerCreating")


def _waiting(seen: Seen, container: ContainerDetails, course: Course, now: datetime) -> WaitingState | None:
    """Why a container that ended is not started again yet; None where it is about to be."""
    problem = course.problem
    is_resting = course.due is not None and course.due > now
    if problem is not None and (problem.due is not None or now < problem.at + SHOWN_FOR or not is_resting):
        return _shown(course, container.image, now)
    return crash_loop(seen.pod, container.name, course.crashes) if is_resting else None


def _shown(course: Course, image: str, now: datetime) -> WaitingState:
    problem = course.problem
    assert problem is not None
    if problem.reason == PULL_ERROR and now >= problem.at + SHOWN_FOR:
        message = f'Back-off pulling image "{image}": {PULL_ERROR}: {problem.message}'
        return WaitingState(reason=PULL_BACKOFF, message=message)
    return WaitingState(reason=problem.reason, message=problem.message)


def _closed(
    main: Sequence[ContainerStatusDetails], initial: Sequence[ContainerStatusDetails]
) -> tuple[list[ContainerStatusDetails], list[ContainerStatusDetails]]:
    """All containers as ended: what cannot be told of those that should have run counts as failed."""
    reached = max((index for index, status in enumerate(initial) if _has_begun(status)), default=-1)
    is_initialised = all(_is_done(status) for status in initial[-1:]) or any(_has_begun(status) for status in main)
    return (
        [_lost(status) if is_initialised else status for status in main],
        [_lost(status) if index <= reached else status for index, status in enumerate(initial)],
    )


def _lost(status: ContainerStatusDetails) -> ContainerStatusDetails:
    if status.state.terminated is not None:
        return status
    state = TerminatedState(exit_code=LOST_CODE, reason=LOST, message=LOST_AT_END)
    return msgspec.structs.replace(status, state=ContainerState(terminated=state), ready=False, started=False)


def _has_begun(status: ContainerStatusDetails) -> bool:
    state = status.state
    return state.running is not None or state.terminated is not None or status.last_state.terminated is not None


def _is_done(status: ContainerStatusDetails) -> bool:
    ended = status.state.terminated
    return ended is not None and ended.exit_code == 0


def _terminated(run: Run | None) -> ContainerState:
    if run is None or run.end is None:
        return ContainerState()
    end = run.end
    return ContainerState(
        terminated=TerminatedState(
            exit_code=end.exit_code,
            reason=end.reason,
            message=end.message,
            started_at=_second(run.started) if end.reason != LOST else None,
            finished_at=_second(end.at) if end.reason != LOST else None,
        )
    )


def _second(at: datetime | None) -> datetime | None:
    return None if at is None else at.replace(microsecond=0)


def _tail(file: Path, most: int) -> bytes:
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return b""
    try:
        size = os.fstat(descriptor).st_size
        return os.pread(descriptor, most, max(0, size - most))
    except OSError:
        return b""
    finally:
        os.close(descriptor)
