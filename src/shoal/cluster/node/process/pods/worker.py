"""One pod on this node: its worker looks at what is to be done, has it done, and tells how the pod is.

It looks again when something happens (the pod is changed, a container ends, a probe decides, a time comes) and rests
otherwise. Whatever takes time is done beside it, so that it waits neither for a container nor for the API server; what
fails is told in the pod's status or an event, and tried again later.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine
from contextlib import suppress
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import structlog

from shoal.api.core import is_finished
from shoal.api.core.pod_details import POD_DETAILS, PodDetails
from shoal.cluster.node.pod_status import Report, status_patch
from shoal.cluster.node.process.client import RuntimeFault
from shoal.cluster.node.process.contents.storage import excess, storage_limits
from shoal.cluster.node.process.pods.admission import Refusal
from shoal.cluster.node.process.pods.collaborators import DISCONNECTED, Collaborators
from shoal.cluster.node.process.pods.containers import Containers
from shoal.cluster.node.process.pods.course import Course
from shoal.cluster.node.process.pods.decisions import DEADLINE, Plan, plan
from shoal.cluster.node.process.pods.sandbox import Sandbox
from shoal.cluster.node.process.pods.status import Seen, identities, next_change, refusal, report_of
from shoal.cluster.node.process.runtime.protocol import ContainerState
from shoal.kube import ApiError, Conflict, ConnectionFault, NotFound

log = structlog.get_logger("shoal.cluster.node.process")

_HELD_BACK = timedelta(milliseconds=300)
"""For so long nothing is written of a pod that is about to run: it spares most pods a write."""
EVICTED = "Evicted"
_GRACE_OF_EVICTED = 1
STORAGE_EVERY = 10.0
"""Seconds between two looks at what a pod with limits uses of the machine's storage."""
_AGAIN_AFTER = (1.0, 10.0)
"""Seconds, first and longest, after which a look that failed is taken again."""


class PodWorker:
    """Leads one pod through its life on this node, which is longer than its object's."""

    def __init__(
        self,
        pod: PodDetails,
        means: Collaborators,
        courses: dict[str, Course],
        *,
        address: str,
        has_sandbox: bool,
        is_admitted: bool,
    ) -> None:
        self.pod = pod
        self.is_admitted = is_admitted
        self._means = means
        self._began = pod.status.start_time or means.now()
        self._woken = asyncio.Event()
        self._has_news = asyncio.Event()
        self._tasks: set[asyncio.Task[None]] = set()
        self.containers = Containers(pod, means, courses, spawn=self._spawn, wake=self._woken.set)
        self._sandbox = Sandbox(means, address=address, is_there=has_sandbox)
        self.containers.address = address
        self._refusal: Refusal | None = None
        self._reason = ("", "")
        self._is_gone = False
        self._is_over = False
        self._is_closed = False
        self._was_deleted = False
        self._needs_no_word = is_finished(pod) and not any(course.is_running for course in courses.values())

    @property
    def holds_resources(self) -> bool:
        """Whether what the pod asked for counts: it was taken in, and has not ended, nor was it forced out."""
        return self.is_admitted and not self._is_closed and not self._is_gone

    @property
    def address(self) -> str | None:
        """The address at which the pod is found; None while it has no sandbox."""
        return self._sandbox.address if self._sandbox.is_there else None

    # What it is told

    def see(self, pod: PodDetails) -> None:
        """The pod is like this now."""
        if not _is_newer(pod, self.pod):
            return
        before, self.pod = self.pod, pod
        self.containers.pod = pod
        if (before.metadata.labels, before.metadata.annotations) != (pod.metadata.labels, pod.metadata.annotations):
            self._sandbox.refresh()
        self._woken.set()

    def leave(self, last: PodDetails) -> None:
        """The object is gone; what is left of the pod is ended."""
        self.pod = self.containers.pod = last
        self._is_gone = True
        self._woken.set()

    def ended(self, state: ContainerState) -> None:
        """A container of the pod has ended."""
        self.containers.ended(state)

    def refresh(self) -> None:
        """Something that the pod's containers find has changed."""
        self._sandbox.refresh()
        self.containers.retry()
        self._woken.set()

    # What it does

    async def run(self) -> None:
        """Works until nothing of the pod is left."""
        self.containers.resume()
        telling = asyncio.create_task(self._again_and_again(self._tell, self._has_news))
        try:
            await self._again_and_again(self._look, self._woken)
            await self._means.contents.forget(self.pod.metadata.uid)
        finally:
            telling.cancel()
            await asyncio.gather(telling, return_exceptions=True)
            await self._stop_working()
            self.containers.abandon()

    async def _again_and_again(self, act: Callable[[], Awaitable[datetime | None]], called: asyncio.Event) -> None:
        """Acts whenever it is called to, and at the time that acting gave; what fails is done again later."""
        faults = 0
        while not (self._is_gone and self._is_closed):
            called.clear()
            try:
                wake = await act()
                faults = 0
            except Exception as error:
                faults += 1
                first, longest = _AGAIN_AFTER
                wake = self._means.now() + timedelta(seconds=min(first * 2 ** min(faults - 1, 10), longest))
                self._report_fault("a pod is not where it should be: trying again", error)
            if not (self._is_gone and self._is_closed):
                await self._rest(called, wake)

    async def _look(self) -> datetime | None:
        """One look at the pod; gives the time of the next one."""
        if not self.is_admitted:
            self._admit()
        now = self._means.now()
        steps = self._plan(now)
        if steps.is_over:
            await self._close()
        else:
            self._act(steps, now)
        self._is_over = steps.is_over
        self._has_news.set()
        return _earliest(steps.wake, self._sandbox.due)

    def _plan(self, now: datetime) -> Plan:
        is_ending = self._is_gone or self.pod.metadata.is_deleting or is_finished(self.pod) or bool(self._reason[0])
        if self._refusal is not None:
            return Plan(is_over=True)
        if is_ending:
            self.containers.is_ending = True
            grace = self.pod.metadata.deletion_grace_period_seconds
            own = _GRACE_OF_EVICTED if self._reason[0] == EVICTED else self.pod.spec.termination_grace_period_seconds
            self.containers.hurry(grace if grace is not None else own if own is not None else 0)
        steps = plan(self.pod, self.containers.courses, now=now, began=self._began, is_ending=is_ending)
        if steps.is_past_deadline:
            self._reason = DEADLINE
            self._means.tell(self.pod, *DEADLINE)
            return self._plan(now)
        if steps.begins_anew:
            self.containers.begin_anew(initial_only=False)
            return self._plan(now)
        return steps

    def _act(self, steps: Plan, now: datetime) -> None:
        for stop in steps.stops:
            self.containers.stop(stop)
        if self.containers.is_ending:
            return
        if self._sandbox.is_ready:
            for name in steps.starts:
                self.containers.start(name)
        elif self._sandbox.is_due(now):
            if not self._sandbox.is_there:
                self.containers.begin_anew(initial_only=True)  # what they did is gone with the sandbox before it
            self._spawn(self._open())
        self.containers.tell_rests()

    async def _open(self) -> None:
        try:
            await self._sandbox.open(self.pod)
            self.containers.address = self._sandbox.address
        finally:
            self._woken.set()
        if self._sandbox.is_ready:
            self._spawn(self._watch_storage())
            await self._sandbox.keep_fresh(lambda: self.pod)

    async def _watch_storage(self) -> None:
        """Evicts the pod once it uses more of the machine's storage than it may."""
        limits = storage_limits(self.pod)
        while limits and not self._reason[0]:
            usage = await asyncio.to_thread(self._means.contents.storage_usage, self.pod)
            if message := excess(limits, usage):
                self._reason = (EVICTED, message)
                self._means.warn(self.pod, EVICTED, message)
                self._woken.set()
                return
            await asyncio.sleep(STORAGE_EVERY)

    def _admit(self) -> None:
        if is_finished(self.pod) or self.pod.metadata.is_deleting or self._is_gone:
            return
        self._refusal = self._means.refusal(self.pod)
        if self._refusal is None:
            self.is_admitted = True
            return
        self._means.warn(self.pod, self._refusal.reason, self._refusal.message)

    async def _close(self) -> None:
        """Lets go of all that the pod held, but for its files: those go with its object."""
        if self._is_closed:
            return
        await self._stop_working()
        await self._sandbox.close(self.pod)
        self._is_closed = True

    # What it tells

    async def _tell(self) -> datetime | None:
        """Writes the status where it differs, and lets the object go where it may; gives the time to look again."""
        if self._is_gone:
            return None
        now = self._means.now()
        if not self._needs_no_word:
            report = self._report(now)
            identify = identities(self.pod, self.containers.courses, self.containers.spec)
            patch = status_patch(self.pod, report, now=now, identify=identify)
            until = self._began + _HELD_BACK
            if patch and now < until and self._is_about_to_run:
                return until
            if patch:
                await self._write(patch)
        if self._is_over and self.pod.metadata.is_deleting and not self._has_news.is_set():
            await self._delete()
        return next_change(self.containers.courses, now=now)

    @property
    def _is_about_to_run(self) -> bool:
        is_new = self.pod.status.start_time is None and self.containers.have_not_begun
        return is_new and not self._is_over and not self._sandbox.tries

    async def _write(self, patch: dict[str, Any]) -> None:
        metadata = self.pod.metadata
        body = {"metadata": {"uid": metadata.uid}, "status": patch}
        try:
            written = await self._means.client.strategic_patch(
                POD_DETAILS, metadata.name, body, metadata.namespace, subresource="status"
            )
        except (NotFound, Conflict):
            return  # gone, or another pod of the same name by now; we are told
        if _is_newer(written, self.pod):
            self.pod = self.containers.pod = written
            if self.pod.metadata.is_deleting or is_finished(self.pod):
                self._woken.set()

    def _report(self, now: datetime) -> Report:
        host = self._means.node_address
        if self._refusal is not None:
            return refusal(self.pod, *self._refusal, now=now, host_ip=host)
        seen = Seen(
            pod=self.pod,
            courses=self.containers.courses,
            began=self._began,
            host_ip=host,
            pod_ip=self._sandbox.address or self.pod.status.pod_ip,
            has_sandbox=self._sandbox.is_there,
            is_over=self._is_over,
            reason=self._reason[0],
            message=self._reason[1],
        )
        report = report_of(seen, now=now)
        if is_finished(self.pod):
            status = self.pod.status  # somebody has said so, and nobody may unsay it
            report = replace(report, phase=status.phase, reason=status.reason, message=status.message)
        return report

    async def _delete(self) -> None:
        """Lets the object of a pod go that has ended, once its last words are written."""
        metadata = self.pod.metadata
        if self._was_deleted or self._is_gone or metadata.deletion_grace_period_seconds == 0:
            return
        with suppress(NotFound, Conflict):  # gone, or another pod of the same name by now
            await self._means.client.delete(
                POD_DETAILS, metadata.name, metadata.namespace, uid=metadata.uid, grace_seconds=0
            )
        self._was_deleted = True

    # How it goes about it

    async def _stop_working(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _rest(self, called: asyncio.Event, wake: datetime | None) -> None:
        seconds = None if wake is None else max(0.0, (wake - self._means.now()).total_seconds())
        try:
            async with asyncio.timeout(seconds):
                await called.wait()
        except TimeoutError:
            return

    def _spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._done)
        return task

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            self._report_fault("something that was done for a pod failed", error)
            self._woken.set()

    def _report_fault(self, what: str, error: BaseException) -> None:
        metadata = self.pod.metadata
        pod = f"{metadata.namespace}/{metadata.name}"
        if isinstance(error, RuntimeFault) and error.reason == DISCONNECTED:
            return  # all of it begins again with the next connection
        if isinstance(error, (ApiError, ConnectionFault, RuntimeFault)):
            log.warning(what, pod=pod, error=str(error))
        else:
            log.error(what, pod=pod, exc_info=error)


def _is_newer(pod: PodDetails, known: PodDetails) -> bool:
    new, old = pod.metadata.resource_version, known.metadata.resource_version
    return int(new) > int(old) if new.isdigit() and old.isdigit() else new != old


def _earliest(*moments: datetime | None) -> datetime | None:
    return min((moment for moment in moments if moment is not None), default=None)
