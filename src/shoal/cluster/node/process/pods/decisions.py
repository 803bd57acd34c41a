"""What is to be done with a pod's containers next: from what the pod asks for and how far each container has come.

The rules are a kubelet's. Init containers run one after the other, each to its end; those that go on running (sidecars)
let the next one begin once they have started. How far initialisation has come is told by the last init container that
ever ran, so that a sidecar that has to be restarted holds nobody up. Main containers are started in their order, one at
a time. When no main container runs or will run, what is left is ended: sidecars last, in reverse order.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from shoal.api.core.pod_details import ContainerDetails, PodDetails
from shoal.cluster.node.crash_loop import LONGEST
from shoal.cluster.node.pod_status import is_sidecar, restart_rule, restarts_after
from shoal.cluster.node.process.pods.course import LIVENESS, STARTUP, Course

DEADLINE = ("DeadlineExceeded", "Pod was active on the node longer than the specified deadline")
_LONGEST_REST = timedelta(seconds=LONGEST)
_RESTART_ALL = "RestartAllContainers"
_NOTHING = Course()


@dataclass(frozen=True, slots=True, kw_only=True)
class Stop:
    """A container that is to be ended."""

    container: str
    message: str
    """What the event ``Killing`` says."""
    probe: str = ""
    """The probe that it failed, whose own grace period then counts."""
    at_once: bool = False
    """Without the pod's grace period."""
    is_replaced: bool = False
    """To be started again with another image."""
    after: tuple[str, ...] = ()
    """The containers that are to end before it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """What to do now, and when to look again if nothing happens before."""

    starts: tuple[str, ...] = ()
    stops: tuple[Stop, ...] = ()
    wake: datetime | None = None
    is_over: bool = False
    """Nothing runs, and nothing will ever run again."""
    is_past_deadline: bool = False
    begins_anew: bool = False
    """All containers have been ended so that all can be started again, from the first init container on."""


def plan(
    pod: PodDetails,
    courses: Mapping[str, Course],
    *,
    now: datetime,
    began: datetime,
    is_ending: bool = False,
) -> Plan:
    """The next steps of a pod that was taken in at ``began``; ``is_ending`` means that it is to be ended for good."""
    look = _Look(pod, courses, now)
    if is_ending:
        return look.end()
    deadline = pod.spec.active_deadline_seconds
    if deadline is not None:
        ends = began + timedelta(seconds=deadline)
        if now >= ends:
            return Plan(is_past_deadline=True)
        look.look_at(ends)
    if look.all_are_to_restart():
        return look.restart_all()
    if look.is_done():
        return look.end()
    look.debug()
    match look.initialise():
        case _Initial.HOPELESS:
            return look.end()
        case _Initial.DONE:
            look.keep_mains()
        case _Initial.UNDER_WAY:
            pass
    return look.plan()


class _Initial(enum.Enum):
    UNDER_WAY = enum.auto()
    DONE = enum.auto()
    HOPELESS = enum.auto()


class _Look:
    """One look at a pod, which gathers what is to be done."""

    def __init__(self, pod: PodDetails, courses: Mapping[str, Course], now: datetime) -> None:
        self._pod = pod
        self._courses = courses
        self._now = now
        self._wanted: list[str] = []
        self._debuggers: list[str] = []
        self._stops: list[Stop] = []
        self._wake: datetime | None = None

    def look_at(self, moment: datetime) -> None:
        """Asks to be woken."""
        self._wake = moment if self._wake is None else min(self._wake, moment)

    def plan(self) -> Plan:
        """What was gathered: of those that are to be started, the first whose time has come."""
        spec = self._pod.spec
        lane = [container.name for container in (*spec.init_containers, *spec.containers)]
        starts = self._due(self._debuggers)
        if any(self._course(name).is_starting for name in lane):
            self._due(self._wanted)
        else:
            starts += self._due(self._wanted)[:1]
        return Plan(starts=tuple(starts), stops=tuple(self._stops), wake=self._wake)

    def end(self) -> Plan:
        """Ends all that runs, each sidecar after those that may need it."""
        spec = self._pod.spec
        mains = tuple(container.name for container in spec.containers)
        sidecars = [container.name for container in reversed(spec.init_containers) if is_sidecar(container)]
        for container in (*spec.containers, *spec.ephemeral_containers, *spec.init_containers):
            if container.name not in sidecars:
                self._stop(container.name, f"Stopping container {container.name}")
        before = mains
        for name in sidecars:
            self._stop(name, f"Stopping container {name}", after=before)
            before = (*mains, name)
        is_over = not any(course.is_running or course.is_starting for course in self._courses.values())
        return Plan(stops=tuple(self._stops), is_over=is_over)

    def all_are_to_restart(self) -> bool:
        """Whether a container has ended in a way after which the whole pod begins again."""
        return bool(self._causes())

    def restart_all(self) -> Plan:
        """Ends what runs, without delay, so that all begins again once the cause of it has rested."""
        courses = [self._course(container.name) for container in self._regular()]
        for container in self._regular():
            self._stop(container.name, f"Stopping container {container.name}", at_once=True)
        is_busy = any(course.is_running or course.is_starting for course in courses)
        is_rested = len(self._due(self._causes())) == len(self._causes())
        return Plan(stops=tuple(self._stops), wake=self._wake, begins_anew=is_rested and not is_busy)

    def _causes(self) -> list[str]:
        causes = []
        for container in self._regular():
            end = self._course(container.name).end
            rule = restart_rule(container, end.exit_code) if end is not None else None
            if rule is not None and rule.action == _RESTART_ALL:
                causes.append(container.name)
        return causes

    def is_done(self) -> bool:
        """Whether every main container has ended and stays so."""
        return all(
            not course.is_starting and course.end is not None and not self._restarts(container, course)
            for container, course in ((one, self._course(one.name)) for one in self._pod.spec.containers)
        )

    def debug(self) -> None:
        """Starts ephemeral containers, once each."""
        for container in self._pod.spec.ephemeral_containers:
            course = self._course(container.name)
            if course.run is None and not course.is_starting:
                self._debuggers.append(container.name)

    def initialise(self) -> _Initial:
        """Leads init containers on, and keeps the sidecars among them running."""
        containers = self._pod.spec.init_containers
        if any(self._course(one.name).is_running for one in self._pod.spec.containers):
            self._keep_sidecars(containers)
            return _Initial.DONE
        reached = max((index for index, one in enumerate(containers) if self._course(one.name).run), default=-1)
        if reached >= 0:
            self._keep_sidecars(containers[:reached])
            match self._progress(containers[reached]):
                case _Initial.DONE:
                    pass
                case other:
                    return other
        if reached + 1 == len(containers):
            return _Initial.DONE
        self._want(containers[reached + 1].name)
        return _Initial.UNDER_WAY

    def keep_mains(self) -> None:
        """Starts main containers, and those again that ended and should run."""
        for container in self._pod.spec.containers:
            course = self._course(container.name)
            if course.is_running:
                policy = container.restart_policy or self._pod.spec.restart_policy
                again = ", will be restarted" if policy != "Never" else ""
                self._stop_unwell(container, "Container", again)
            elif course.run is None or self._restarts(container, course):
                self._want(container.name)

    def _progress(self, container: ContainerDetails) -> _Initial:
        course = self._course(container.name)
        if is_sidecar(container):
            if not course.is_running:
                self._want(container.name)
                return _Initial.UNDER_WAY
            self._stop_unwell(container, "Init container", "")
            return _Initial.DONE if course.is_started else _Initial.UNDER_WAY
        if course.end is None:
            return _Initial.UNDER_WAY
        if course.end.exit_code == 0:
            return _Initial.DONE
        if not self._restarts(container, course):
            return _Initial.HOPELESS
        self._want(container.name)
        return _Initial.UNDER_WAY

    def _keep_sidecars(self, containers: Sequence[ContainerDetails]) -> None:
        for container in containers:
            if not is_sidecar(container):
                continue
            if self._course(container.name).is_running:
                self._stop_unwell(container, "Init container", "")
            else:
                self._want(container.name)

    def _stop_unwell(self, container: ContainerDetails, title: str, again: str) -> None:
        course = self._course(container.name)
        if course.run is not None and course.run.image not in ("", container.image):
            ending = ", will be restarted" if title == "Container" else ""
            message = f"{title} {container.name} definition changed{ending}"
            self._stop(container.name, message, is_replaced=True)
        elif course.failed in (LIVENESS, STARTUP):
            message = f"{title} {container.name} failed {course.failed} probe{again}"
            self._stop(container.name, message, probe=course.failed)

    def _stop(self, name: str, message: str, **more: Any) -> None:
        course = self._course(name)
        if course.is_running and not course.is_stopping:
            self._stops.append(Stop(container=name, message=message, **more))

    def _want(self, name: str) -> None:
        if not self._course(name).is_starting:
            self._wanted.append(name)

    def _due(self, names: Sequence[str]) -> list[str]:
        """Those whose time has come; for the others we are woken.

        Nobody rests for longer than the longest rest: where it seems so, the machine's clock was set back.
        """
        found = []
        for name in names:
            due = self._course(name).due
            if due is None or not timedelta(0) < due - self._now <= _LONGEST_REST:
                found.append(name)
            else:
                self.look_at(due)
        return found

    def _restarts(self, container: ContainerDetails, course: Course) -> bool:
        if course.end is None:
            return False
        return course.is_replaced or restarts_after(self._pod, course.end.exit_code, container)

    def _regular(self) -> list[ContainerDetails]:
        return [*self._pod.spec.init_containers, *self._pod.spec.containers]

    def _course(self, name: str) -> Course:
        return self._courses.get(name, _NOTHING)
