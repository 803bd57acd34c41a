"""The containers of one pod: they are started, probed and ended here, and how far each has come is kept here."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import replace
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import Any

import structlog

from shoal.api.core.pod_details import ContainerDetails, PodDetails, Probe
from shoal.cluster.node.process.client import RuntimeFault
from shoal.cluster.node.process.contents import ConfigProblem
from shoal.cluster.node.process.contents.problems import CONFIG_ERROR
from shoal.cluster.node.process.contents.removal import remove_tree
from shoal.cluster.node.process.pods.checks import Target, Verdict, ask
from shoal.cluster.node.process.pods.collaborators import DISCONNECTED, Collaborators, called
from shoal.cluster.node.process.pods.course import Course, End, Problem, Run, container_id
from shoal.cluster.node.process.pods.decisions import Stop
from shoal.cluster.node.process.pods.hooks import HookFailed, run_hook
from shoal.cluster.node.process.pods.launch import StartFailed, prepared, spec_of, started, words_of_run
from shoal.cluster.node.process.pods.probes import attend
from shoal.cluster.node.process.pods.status import (
    LOST,
    LOST_AT_END,
    LOST_CODE,
    PULL_BACKOFF,
    PULL_ERROR,
    START_ERROR,
    START_ERROR_CODE,
    end_of,
    image_id,
    is_restarted,
    moment,
)
from shoal.cluster.node.process.pods.termination import (
    LEAST_GRACE,
    Grace,
    first_of,
    grace_period,
    stop_signal,
    terminate,
)
from shoal.cluster.node.process.runtime.protocol import ContainerSpec, ContainerState

log = structlog.get_logger("shoal.cluster.node.process")

Spawn = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]
"""Has something done beside the worker; whatever that raises is told and stays there."""

_CONFIG_RESTS = (2, 10)
_PULL_RESTS = (10, 300)
"""Seconds, first and longest, between attempts to start what could not be."""


class Containers:
    """All containers of a pod. What it is told by ``ended`` and does by itself is followed by a call of ``wake``."""

    def __init__(
        self,
        pod: PodDetails,
        means: Collaborators,
        courses: dict[str, Course],
        *,
        spawn: Spawn,
        wake: Callable[[], None],
    ) -> None:
        self.pod = pod
        self.courses = courses
        self.address = ""
        self.is_ending = False
        """Whether the pod as a whole is being ended: what still serves is all that probes are for then."""
        self._means = means
        self._spawn = spawn
        self._wake = wake
        self._ends: dict[str, asyncio.Event] = {}
        self._early: dict[str, ContainerState] = {}
        self._specs: dict[tuple[str, int], ContainerSpec | None] = {}
        self._graces: dict[str, Grace] = {}
        self._attending: dict[str, asyncio.Task[None]] = {}
        self._preparing: dict[str, asyncio.Task[ContainerSpec]] = {}
        self._told: set[tuple[str, int]] = set()

    # What is known

    def id_of(self, name: str) -> str:
        """What the latest run of a container is called."""
        return container_id(self.pod.metadata.uid, name, self.courses[name].restarts)

    def spec(self, name: str) -> ContainerSpec | None:
        """How the latest run of a container was started."""
        course = self.courses.get(name)
        if course is None or (course.run or course.former) is None:
            return None
        key = (name, course.restarts)
        if key not in self._specs:
            self._specs[key] = spec_of(self._means.layout, self.pod.metadata.uid, *key)
        return self._specs[key]

    def log(self, name: str, *, previous: bool) -> Path | None:
        """What the latest run of a container wrote, or the one before it; of one that waits, what ended last."""
        course = self.courses.get(name, Course())
        run = course.run or course.former
        if previous and run is course.run and not self._is_waiting(name):
            run = course.former
        if run is None:
            return None
        path = self._means.layout.log(self.pod.metadata.uid, name, run.attempt)
        # While a full one is put aside there is, for a moment, none but the older ones.
        return path if path.exists() or path.with_name(f"{path.name}.1").exists() else None

    def end_event(self, run: str) -> asyncio.Event | None:
        """What is set when a run, by its id, has ended."""
        return self._ends.get(run)

    @property
    def have_not_begun(self) -> bool:
        """Whether no container has run, or failed to."""
        return all(course.run is None and course.problem is None for course in self.courses.values())

    # What is done

    def resume(self) -> None:
        """Takes over containers that were found running."""
        for name, course in self.courses.items():
            if course.run is not None and course.run.end is None:
                self._ends[self.id_of(name)] = asyncio.Event()
                self._attend(self._container(name), course.run)

    def start(self, name: str) -> None:
        """Starts a container, beside us."""
        self.courses[name] = self._course(name).starting()
        self._spawn(self._start(self._container(name)))

    def stop(self, stop: Stop) -> None:
        """Ends a container, beside us."""
        name = stop.container
        self.courses[name] = replace(self.courses[name], is_stopping=True, is_replaced=stop.is_replaced)
        self._spawn(self._stop(self._container(name), stop))

    def hurry(self, seconds: float) -> None:
        """Leaves no more time than this to those that are being ended, and begins nothing more."""
        for grace in self._graces.values():
            grace.shorten(max(seconds, LEAST_GRACE))
        for preparing in self._preparing.values():
            preparing.cancel()

    def retry(self) -> None:
        """What was missing may be there now."""
        for name, course in self.courses.items():
            if course.problem is not None and course.problem.reason == CONFIG_ERROR:
                self.courses[name] = replace(course, problem=replace(course.problem, due=self._means.now()))

    def begin_anew(self, *, initial_only: bool) -> None:
        """Lets containers run again from the first init container on; with ``initial_only`` the main ones go on."""
        spec = self.pod.spec
        for container in spec.init_containers if initial_only else (*spec.init_containers, *spec.containers):
            self.courses[container.name] = self._course(container.name).anew()

    def abandon(self) -> None:
        """Lets nobody wait any longer for ends that nobody will tell us of."""
        for event in self._ends.values():
            event.set()

    def ended(self, state: ContainerState) -> None:
        """A run has ended."""
        course = self.courses.get(state.name)
        is_latest = course is not None and course.run is not None and course.run.attempt == state.attempt
        if course is None or not is_latest:
            self._early[state.id] = state  # the answer to our question to start it is still on its way to us
            return
        if course.end is None:
            self._finish(state.name, self._end(state))

    def tell_rests(self) -> None:
        """Tells, once for each, of containers that rest before they are started again."""
        now = self._means.now()
        for container in (*self.pod.spec.init_containers, *self.pod.spec.containers):
            course = self._course(container.name)
            end, key = course.end, (container.name, course.restarts)
            if end is None or course.due is None or course.due <= now or key in self._told:
                continue
            if is_restarted(self.pod, container, end.exit_code):
                self._told = {one for one in self._told if one[0] != container.name} | {key}
                message = f"Back-off restarting failed container {container.name} in pod {called(self.pod)}"
                self._means.warn(self.pod, "BackOff", message)

    # Starting

    async def _start(self, container: ContainerDetails) -> None:
        name = container.name
        try:
            await self._launch(container)
        except ConfigProblem as problem:
            self._refuse(container, problem.reason, problem.message)
        except RuntimeFault as fault:
            is_lost = fault.reason == DISCONNECTED
            self._refuse(container, "CreateContainerError", fault.message, quietly=is_lost)
        except Exception as error:
            log.exception("container not started", pod=called(self.pod), container=name)
            self._refuse(container, "CreateContainerError", str(error))
        finally:
            self.courses[name] = replace(self.courses[name], is_starting=False)
            self._wake()

    async def _launch(self, container: ContainerDetails) -> None:
        name, uid = container.name, self.pod.metadata.uid
        attempt = self._course(name).next_attempt
        preparing = asyncio.create_task(self._prepared(container, attempt))
        self._preparing[name] = preparing
        try:
            await asyncio.wait({preparing})
        finally:
            preparing.cancel()
            del self._preparing[name]
        if preparing.cancelled():
            return  # the pod is being ended
        spec = preparing.result()
        run = Run(
            attempt=attempt,
            started=None,
            image=container.image,
            image_id=image_id(spec),
            resources=container.resources,
        )
        ended = self._ends[spec.id] = asyncio.Event()
        try:
            state = await started(self._means, self.pod, container, spec)
        except StartFailed as failure:
            now = self._means.now()
            end = End(at=now, exit_code=START_ERROR_CODE, reason=START_ERROR, message=str(failure))
            course = self._course(name).running(run, is_started=False, is_ready=False).ended(end)
            problem = Problem(reason="RunContainerError", message=str(failure), at=now)
            self.courses[name] = replace(course, problem=problem)
            return
        run = replace(run, started=moment(state.started))
        self._specs = {key: one for key, one in self._specs.items() if key[0] != name} | {(name, attempt): spec}
        self.courses[name] = self._course(name).running(run, is_started=False, is_ready=False).starting()
        early = self._early.pop(spec.id, None)
        if early is not None:
            self._finish(name, self._end(early))
        elif await self._greet(container, ended):
            self.courses[name] = replace(
                self.courses[name],
                is_started=container.startup_probe is None,
                is_ready=container.readiness_probe is None,
            )
            self._attend(container, run)
        if attempt >= 2:
            self._spawn(self._discard(uid, name, attempt - 2))

    async def _prepared(self, container: ContainerDetails, attempt: int) -> ContainerSpec:
        joins = container.target_container_name
        target = self.courses.get(joins)
        if joins and (target is None or target.run is None):
            raise ConfigProblem(CONFIG_ERROR, f"unable to find target container {joins}")
        initial = [one.name for one in self.pod.spec.init_containers]
        ended = [name for name in initial if (end := self._course(name).end) is not None and end.exit_code == 0]
        return await prepared(
            self._means,
            self.pod,
            container,
            attempt=attempt,
            address=self.address,
            ended=ended,
            joins=self.id_of(joins) if joins else "",
        )

    async def _greet(self, container: ContainerDetails, ended: asyncio.Event) -> bool:
        """Runs the hook after a start; False where the container has ended by then."""
        hook = container.lifecycle.post_start
        if hook is not None:
            try:
                await first_of(run_hook(hook, self._target(container), called(self.pod)), ended.wait())
            except HookFailed as failure:
                # What it said may be a secret: it is for the status, which fewer may read than events.
                self._means.warn(self.pod, "FailedPostStartHook", "PostStartHook failed")
                self.courses[container.name] = replace(self.courses[container.name], is_stopping=True)
                await self._stop(container, Stop(container=container.name, message="FailedPostStartHook"))
                problem = Problem(reason="PostStartHookError", message=str(failure), at=self._means.now())
                self.courses[container.name] = replace(self.courses[container.name], problem=problem)
        return not ended.is_set()

    def _refuse(self, container: ContainerDetails, reason: str, message: str, *, quietly: bool = False) -> None:
        now = self._means.now()
        course = self._course(container.name)
        tries = course.problem.tries if course.problem is not None and course.problem.reason == reason else 0
        first, longest = _PULL_RESTS if reason == PULL_ERROR else _CONFIG_RESTS
        due = now + timedelta(seconds=min(first << min(tries, 10), longest))
        self.courses[container.name] = course.refused(Problem(reason=reason, message=message, at=now, due=due))
        warn = partial(self._means.warn, self.pod, "Failed")
        if quietly:
            return
        if reason == PULL_ERROR:
            warn(f'Failed to pull image "{container.image}": {message}')
            warn(f"Error: {PULL_ERROR}")
            self._means.tell(self.pod, "BackOff", f'Back-off pulling image "{container.image}"')
            warn(f"Error: {PULL_BACKOFF}")
        else:
            warn(f"Error: {message}")

    async def _discard(self, uid: str, name: str, attempt: int) -> None:
        """Lets go of a run that is neither the latest nor the one before it."""
        layout = self._means.layout
        await self._means.runtime.remove(container_id(uid, name, attempt))
        self._ends.pop(container_id(uid, name, attempt), None)
        log = layout.log(uid, name, attempt)
        pieces = [piece for piece in log.parent.glob(f"{attempt}.log*") if piece.is_file()]
        for piece in pieces:
            piece.unlink(missing_ok=True)
        await asyncio.to_thread(remove_tree, layout.container(uid, name, attempt))

    # Probing

    def _attend(self, container: ContainerDetails, run: Run, *, only_readiness: bool = False) -> None:
        probes = (container.startup_probe, container.readiness_probe, container.liveness_probe)
        if not any(probes) or run.started is None:
            return
        course = self.courses[container.name]
        target = self._target(container)

        async def answer(probe: Probe) -> Verdict:
            return await ask(probe, target)

        patient = _Patient(self, container.name, run.attempt)
        watching = attend(
            container,
            answer,
            patient,
            started_at=run.started,
            is_started=course.is_started,
            is_ready=course.is_ready,
            now=self._means.now,
            only_readiness=only_readiness,
        )
        self._attending[container.name] = self._spawn(watching)

    def _unattend(self, name: str) -> None:
        attending = self._attending.pop(name, None)
        if attending is not None:
            attending.cancel()

    def examine(self, name: str, attempt: int, change: Callable[[Course], Course]) -> None:
        """Takes down what a probe of a run has found."""
        course = self.courses[name]
        if course.run is not None and course.run.attempt == attempt and course.run.end is None:
            self.courses[name] = change(course)
            self._wake()

    def complain(self, reason: str, message: str) -> None:
        """Tells of a probe's answer."""
        self._means.warn(self.pod, reason, message)

    def _target(self, container: ContainerDetails) -> Target:
        means = self._means
        return Target(
            container=container,
            spec=self.spec(container.name),
            address=self.address,
            runtime=means.runtime,
            dial=means.dial,
        )

    # Ending

    async def _stop(self, container: ContainerDetails, stop: Stop) -> None:
        name = container.name
        self._unattend(name)
        run, id_ = self.courses[name].run, self.id_of(name)
        ended = self._ends[id_]
        self._means.tell(self.pod, "Killing", stop.message)
        grace = self._graces[name] = Grace(grace_period(self.pod, container, stop))
        if self.is_ending and run is not None:
            self._attend(container, run, only_readiness=True)
        hook = container.lifecycle.pre_stop
        before = [self._ends[self.id_of(other)] for other in stop.after if self._course(other).is_running]

        async def take_leave() -> None:
            assert hook is not None
            try:
                await run_hook(hook, self._target(container), called(self.pod))
            except HookFailed:
                self._means.warn(self.pod, "FailedPreStopHook", "PreStopHook failed")

        async def turn() -> None:
            for other in before:
                await other.wait()

        try:
            await terminate(
                self._means.runtime,
                id_,
                number=stop_signal(container),
                grace=grace,
                ended=ended,
                hook=take_leave if hook is not None else None,
                turn=turn if before else None,
            )
        except RuntimeFault as fault:
            if fault.reason != "NoContainer":
                raise
            lost = End(at=self._means.now(), exit_code=LOST_CODE, reason=LOST, message=LOST_AT_END)
            self._finish(name, lost)
        finally:
            self._graces.pop(name, None)

    def _end(self, state: ContainerState) -> End:
        container = self._container(state.name)
        return end_of(state, words_of_run(self._means.layout, self.pod.metadata.uid, container, state))

    def _finish(self, name: str, end: End) -> None:
        self._unattend(name)
        event = self._ends.get(self.id_of(name))
        self.courses[name] = self.courses[name].ended(end)
        if event is not None:
            event.set()
        self._wake()

    def _is_waiting(self, name: str) -> bool:
        """Whether the status shows the latest run as the one before."""
        course = self._course(name)
        if (
            course.end is None
            or self.is_ending
            or not is_restarted(self.pod, self._container(name), course.end.exit_code)
        ):
            return False
        return course.problem is not None or (course.due is not None and course.due > self._means.now())

    def _container(self, name: str) -> ContainerDetails:
        spec = self.pod.spec
        everyone = (*spec.containers, *spec.init_containers, *spec.ephemeral_containers)
        return next(container for container in everyone if container.name == name)

    def _course(self, name: str) -> Course:
        return self.courses.get(name) or Course()


class _Patient:
    """One run of a container, as its probes know it."""

    def __init__(self, containers: Containers, name: str, attempt: int) -> None:
        self._containers = containers
        self._name = name
        self._attempt = attempt

    def started(self) -> None:
        self._change(is_started=True)

    def ready(self, is_ready: bool) -> None:
        self._change(is_ready=is_ready)

    def failed(self, probe: str) -> None:
        self._change(failed=probe)

    def unwell(self, message: str) -> None:
        self._containers.complain("Unhealthy", message)

    def odd(self, message: str) -> None:
        self._containers.complain("ProbeWarning", message)

    def _change(self, **changes: Any) -> None:
        self._containers.examine(self._name, self._attempt, lambda course: replace(course, **changes))
