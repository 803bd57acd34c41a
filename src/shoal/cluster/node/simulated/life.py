"""The life of a simulated pod: from what is written in its status, and the time, to what is to be written next.

All that is known of a pod stands in its status, so a process that was killed goes on where it was: a container ends so
many seconds after its ``startedAt``, whoever wrote that. Nothing is done twice in one step: what starts now ends at the
earliest in the next one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from shoal.api.core import FAILED, PENDING, RUNNING, Container, ContainerStatus, Pod, PodCondition
from shoal.api.core.pods import ContainerState, RunningState, TerminatedState, WaitingState
from shoal.cluster.node.crash_loop import crash_loop, rest_before_restart
from shoal.cluster.node.pod_status import Report, is_sidecar, phase_of, restarts_after
from shoal.cluster.node.simulated.rules import POD_REASONS, Rules

Exactly = Callable[[datetime], datetime]
"""The moment behind a whole second of the wire, where it is known better than that."""

_STOPPED = 143
_INITIALIZING = "PodInitializing"
_LOST = TerminatedState(
    exit_code=137,
    reason="ContainerStatusUnknown",
    message="The container could not be located when the pod was terminated",
)
_MESSAGES = {
    "DeadlineExceeded": "Pod was active on the node longer than the specified deadline",
    "Evicted": "The node was low on resource: memory. This node is simulated: the annotation of the pod asked for it.",
    "Preempting": "Preempted in order to admit critical pod",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a pod is, and its address once it has one."""

    host_ip: str
    pod_ip: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Step:
    """What a pod's status is to say now, and when to look at it again."""

    report: Report
    wake: datetime | None = None
    begins: bool = False
    """Whether the pod or one of its containers starts in this very moment, from which further times are counted."""


def next_step(
    pod: Pod,
    rules: Rules,
    place: Place,
    *,
    now: datetime,
    exactly: Exactly = lambda moment: moment,
    failed_before: int,
    held_in: str = "",
) -> Step:
    """The next step of a pod that is neither finished nor being deleted.

    ``failed_before`` is how many attempts failed in pods that came before this one. ``held_in`` is the init container
    that has not ended yet, where one waits for others.
    """
    second = now.replace(microsecond=0)
    began = pod.status.start_time or second
    begins = (exactly(began) if pod.status.start_time else now) + timedelta(seconds=rules.start_delay)
    deadline = _deadline(pod, began)
    if deadline is not None and now >= deadline:
        return Step(report=ended_from_outside(pod, began, place, second, "DeadlineExceeded"))
    if now < begins and not _has_begun(pod):
        is_new = pod.status.start_time is None
        return Step(report=_waiting(pod, began, place), wake=_earliest(begins, deadline), begins=is_new)
    turn = _Turn(pod, rules, now, second, exactly, failed_before)
    if held_in and not _has_begun(pod):
        return Step(report=_held(pod, began, place, turn, held_in), wake=deadline)
    statuses = {status.name: status for status in pod.status.container_statuses}
    containers = [turn.advanced(container, statuses.get(container.name)) for container in pod.spec.containers]
    if turn.pod_reason:
        return Step(report=ended_from_outside(pod, began, place, second, turn.pod_reason))
    over = all(
        status.state.terminated is not None and not restarts_after(pod, status.state.terminated.exit_code)
        for status in containers
    )
    initial = {status.name: status for status in pod.status.init_container_statuses}
    init_containers = [
        turn.initial(container, initial.get(container.name), is_over=over) for container in pod.spec.init_containers
    ]
    report = Report(
        phase=phase_of(pod, containers, init_containers),
        start_time=began,
        containers=containers,
        init_containers=init_containers,
        host_ip=place.host_ip,
        pod_ip=place.pod_ip,
    )
    return Step(report=report, wake=_earliest(turn.wake, None if over else deadline), begins=turn.begins)


def ended_from_outside(pod: Pod, began: datetime, place: Place, second: datetime, reason: str = "") -> Report:
    """A pod whose containers were stopped, for a reason of the pod's own or, without one, since it is deleted."""
    disruption = None
    if reason in ("Evicted", "Preempting"):
        disruption = PodCondition(
            type="DisruptionTarget",
            status="True",
            reason="TerminationByKubelet",
            message=_MESSAGES[reason],
            observed_generation=pod.metadata.generation,
        )
    return Report(
        phase=FAILED,
        reason=reason,
        message=_MESSAGES.get(reason, ""),
        start_time=began,
        containers=[_stopped(status, second) for status in _known(pod.spec.containers, pod.status.container_statuses)],
        init_containers=[
            _stopped(status, second) for status in _known(pod.spec.init_containers, pod.status.init_container_statuses)
        ],
        host_ip=place.host_ip,
        pod_ip=place.pod_ip if _has_begun(pod) else "",
        disruption=disruption,
    )


def stops_at(pod: Pod, rules: Rules) -> datetime:
    """When a pod that is being deleted has stopped: its containers take no longer than they are given."""
    asked = pod.metadata.deletion_timestamp
    assert asked is not None
    grace = pod.metadata.deletion_grace_period_seconds or 0
    runs = pod.status.phase == RUNNING
    return asked - timedelta(seconds=grace - (min(rules.stop_time, grace) if runs else 0))


def attempt_of(status: ContainerStatus, failed_before: int) -> int:
    """Which attempt a container is, counted from 0 over all pods that try the same."""
    return failed_before + status.restart_count


class _Turn:
    """One look at all containers of a pod: what each is to be now, and when the next change is due."""

    def __init__(
        self, pod: Pod, rules: Rules, now: datetime, second: datetime, exactly: Exactly, failed_before: int
    ) -> None:
        self._pod = pod
        self._rules = rules
        self._now = now
        self._second = second
        self._exactly = exactly
        self._failed_before = failed_before
        self.wake: datetime | None = None
        self.begins = False
        self.pod_reason = ""

    def advanced(self, container: Container, status: ContainerStatus | None) -> ContainerStatus:
        """A main container as it is to be now."""
        if status is None:
            status = ContainerStatus(name=container.name)
        if status.state.running is not None:
            return self._running(status, status.state.running)
        if status.state.terminated is not None:
            ended = status.state.terminated
            return self._again(status, ended) if restarts_after(self._pod, ended.exit_code) else status
        if status.last_state.terminated is not None:
            return self._again(status, status.last_state.terminated)
        return self._started(status)

    def initial(self, container: Container, status: ContainerStatus | None, *, is_over: bool) -> ContainerStatus:
        """An init container: it did its work at once, or runs beside the main ones until they are over."""
        if status is None:
            status = ContainerStatus(name=container.name)
        if not is_sidecar(container):
            if status.state.terminated is not None:
                return status
            began = status.state.running.started_at if status.state.running is not None else self._second
            done = TerminatedState(reason="Completed", started_at=began, finished_at=self._second)
            return _with(status, ContainerState(terminated=done), ready=True)
        if status.state.terminated is not None:
            return status
        if status.state.running is None:
            running = ContainerState(running=RunningState(started_at=self._second))
            return _with(status, running, ready=True)
        if is_over:
            done = TerminatedState(
                reason="Completed", started_at=status.state.running.started_at, finished_at=self._second
            )
            return _with(status, ContainerState(terminated=done), ready=False)
        return status

    def held(self, status: ContainerStatus) -> ContainerStatus:
        """An init container that has not ended yet."""
        if status.state.running is not None:
            return status
        return _with(status, ContainerState(running=RunningState(started_at=self._second)), ready=False)

    def _started(self, status: ContainerStatus, *, restarts: int = 0) -> ContainerStatus:
        self.begins = True
        ready = self._rules.ready_delay <= 0
        if not ready:
            self._look_at(self._now + timedelta(seconds=self._rules.ready_delay))
        if self._rules.run_time is not None:
            self._look_at(self._now + timedelta(seconds=self._rules.run_time))
        state = ContainerState(running=RunningState(started_at=self._second))
        return msgspec.structs.replace(status, state=state, ready=ready, restart_count=restarts)

    def _running(self, status: ContainerStatus, running: RunningState) -> ContainerStatus:
        since = self._exactly(running.started_at) if running.started_at else self._now
        if self._rules.run_time is not None:
            ends = since + timedelta(seconds=self._rules.run_time)
            if self._now >= ends:
                return self._ended(status, running)
            self._look_at(ends)
        ready = since + timedelta(seconds=self._rules.ready_delay)
        if self._now < ready:
            self._look_at(ready)
        is_ready = self._now >= ready
        return status if status.ready == is_ready else msgspec.structs.replace(status, ready=is_ready)

    def _ended(self, status: ContainerStatus, running: RunningState) -> ContainerStatus:
        code, reason = self._rules.ending(attempt_of(status, self._failed_before))
        if reason in POD_REASONS:
            self.pod_reason = reason
        ended = TerminatedState(exit_code=code, reason=reason, started_at=running.started_at, finished_at=self._second)
        if restarts_after(self._pod, code):
            return self._again(status, ended)
        return _with(status, ContainerState(terminated=ended), ready=False)

    def _again(self, status: ContainerStatus, ended: TerminatedState) -> ContainerStatus:
        """Starts a container that ended, once it has rested for long enough."""
        last = ContainerState(terminated=ended)
        rest = rest_before_restart(status.restart_count)
        due = (ended.finished_at or self._second) + timedelta(seconds=rest)
        if rest == 0 or self._now >= due:
            return self._started(msgspec.structs.replace(status, last_state=last), restarts=status.restart_count + 1)
        self._look_at(due)
        if status.last_state == last and status.state.waiting is not None:
            return status
        waiting = ContainerState(waiting=crash_loop(self._pod, status.name, status.restart_count))
        return msgspec.structs.replace(status, state=waiting, last_state=last, ready=False)

    def _look_at(self, moment: datetime) -> None:
        self.wake = _earliest(self.wake, moment)


def _waiting(pod: Pod, began: datetime, place: Place) -> Report:
    reason = _INITIALIZING if pod.spec.init_containers else "ContainerCreating"
    return Report(
        phase=PENDING,
        start_time=began,
        containers=_not_begun(pod.spec.containers, reason),
        init_containers=_not_begun(pod.spec.init_containers, reason),
        host_ip=place.host_ip,
    )


def _held(pod: Pod, began: datetime, place: Place, turn: _Turn, held_in: str) -> Report:
    """A pod whose init containers have ended up to one that has not."""
    known = _known(pod.spec.init_containers, pod.status.init_container_statuses)
    position = [status.name for status in known].index(held_in)
    before = zip(pod.spec.init_containers[:position], known[:position], strict=True)
    return Report(
        phase=PENDING,
        start_time=began,
        containers=_not_begun(pod.spec.containers, _INITIALIZING),
        init_containers=[
            *(turn.initial(container, status, is_over=False) for container, status in before),
            turn.held(known[position]),
            *_not_begun(pod.spec.init_containers[position + 1 :], _INITIALIZING),
        ],
        host_ip=place.host_ip,
        pod_ip=place.pod_ip,
    )


def _not_begun(containers: Sequence[Container], reason: str) -> list[ContainerStatus]:
    state = ContainerState(waiting=WaitingState(reason=reason))
    return [ContainerStatus(name=container.name, state=state) for container in containers]


def _stopped(status: ContainerStatus, second: datetime) -> ContainerStatus:
    if status.state.terminated is not None:
        return status
    if status.state.running is None:
        return _with(status, ContainerState(terminated=_LOST), ready=False)
    ended = TerminatedState(
        exit_code=_STOPPED, reason="Error", started_at=status.state.running.started_at, finished_at=second
    )
    return _with(status, ContainerState(terminated=ended), ready=False)


def _known(containers: Sequence[Container], statuses: Sequence[ContainerStatus]) -> list[ContainerStatus]:
    known = {status.name: status for status in statuses}
    return [known.get(container.name) or ContainerStatus(name=container.name) for container in containers]


def _with(status: ContainerStatus, state: ContainerState, *, ready: bool) -> ContainerStatus:
    return msgspec.structs.replace(status, state=state, ready=ready)


def _has_begun(pod: Pod) -> bool:
    return any(
        status.state.running or status.state.terminated or status.last_state.terminated
        for status in pod.status.container_statuses
    )


def _deadline(pod: Pod, began: datetime) -> datetime | None:
    seconds = pod.spec.active_deadline_seconds
    return None if seconds is None else began + timedelta(seconds=seconds)


def _earliest(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)
