"""Keeps a Job's pods and status as its spec and its pods' ends ask for.

One reconcile looks at the pods, decides whether the Job ends, makes or deletes pods, and then counts: it writes which
pods have ended, lets them go, and writes the new counters (see ``tracking``).
"""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from shoal.api.batch import JOB_CONTROLLER, JOBS, TRACKING_FINALIZER, Job, JobCondition, JobStatus, finished_condition
from shoal.api.core import PODS, Pod, is_ready
from shoal.api.meta import Selector, now, owner_reference
from shoal.cluster.controllers.batches import LARGEST
from shoal.cluster.controllers.claims import Claims, selector_of_spec
from shoal.cluster.controllers.jobs.backoff import Streak
from shoal.cluster.controllers.jobs.ending import ended, ending_of, has_succeeded, success, suspension, until_deadline
from shoal.cluster.controllers.jobs.observed import Observed, is_tracked, observe
from shoal.cluster.controllers.jobs.plan import AT_ONCE, Plan, plan_pods
from shoal.cluster.controllers.jobs.pods import wanted_pod
from shoal.cluster.controllers.jobs.release import release
from shoal.cluster.controllers.jobs.tracking import Reckoning, counted, may_end, reckon, tracked_uids
from shoal.cluster.controllers.pod_crew import make_pods
from shoal.cluster.controllers.rests import Rests
from shoal.cluster.indexes import CHILD_INDEXES, all_pods
from shoal.kube import About, ApiError, Key, Manager, NotFound, Requeue
from shoal.kube.freshness import note_delete
from shoal.kube.patches import merge_patch_between

FIELD_MANAGER = "job-controller"
MANY_PODS = 100
"""A Job with fewer pods is looked at on every change."""
LONGEST_REST = 1.0
"""Seconds between two looks at the largest Jobs."""


@dataclass
class _Memory:
    """What is remembered of a Job between reconciles, and may be lost."""

    uid: str
    streak: Streak = Streak()
    released: set[str] = field(default_factory=set)
    """Pods, by uid, whose finalizers were taken off, until the cache shows it.

    The runtime does not wait for that by itself: the write that ends a pod on its way out is answered with the pod as
    it was. Until its end is seen such a pod looks as if it were still to be counted.
    """

    def catch_up(self, pods: Sequence[Pod]) -> list[Pod]:
        """Pods of the cache as they are by now; what the cache shows itself is forgotten."""
        self.released &= {pod.metadata.uid for pod in pods if is_tracked(pod)}
        return [_untracked(pod) if pod.metadata.uid in self.released else pod for pod in pods]


@dataclass
class _Work:
    """How many pods there are after what was done to them, and what went wrong."""

    active: int
    ready: int
    terminating: int
    errors: list[Exception] = field(default_factory=list)
    is_done: bool = True
    """Whether nothing of what was to be done is left."""


class JobController:
    """Runs pods to their end, and counts them."""

    def __init__(self, manager: Manager) -> None:
        self._jobs = manager.cache.informer(JOBS, indexes=CHILD_INDEXES)
        self._pods = all_pods(manager)
        self._client = manager.client
        self._writer = manager.writer(FIELD_MANAGER)
        self._events = manager.events
        self._claims = Claims(manager.client, JOBS, PODS, finalizer=TRACKING_FINALIZER)
        self._memories: dict[Key, _Memory] = {}
        self._rests = Rests(_rest_after)

    async def reconcile(self, key: Key) -> Requeue | None:
        """Brings one Job further."""
        job = self._jobs.store.get(key)
        if job is None or job.spec.managed_by != JOB_CONTROLLER or finished_condition(job):
            self._memories.pop(key, None)
            self._rests.forget(key)
            return None
        memory = self._memory(key, job)
        if (rest := self._rests.left(job)) > 0:
            return Requeue(after=rest)
        moment = now()
        begun = job
        if job.status.start_time is None and not job.spec.suspend:
            begun = _with_status(job, msgspec.structs.replace(job.status, start_time=moment))
        seen = observe(begun, memory.catch_up(await self._claimed(job, selector_of_spec(job))))
        streak = memory.streak.after(seen.new_succeeded, seen.new_failed)

        ending = ending_of(begun, seen, moment)
        plan = Plan()
        if ending is not None:
            work = await self._stop(job, seen)
            # A pod that could not be stopped may still succeed or fail: the end is not certain yet.
            ending = ending if work.is_done else None
        else:
            if not job.metadata.is_deleting:
                plan = plan_pods(begun, seen, streak, moment)
            work = await self._carry_out(job, seen, plan, memory)
            if has_succeeded(begun, seen, work.active):
                ending = success(moment)
            elif not job.metadata.is_deleting:
                begun = self._tell_suspension(begun, suspension(begun.status, suspend=job.spec.suspend, now=moment))
        status = msgspec.structs.replace(
            begun.status, active=work.active, ready=work.ready, terminating=work.terminating
        )
        reckoning = reckon(_with_status(begun, status), seen, ending)
        errors = work.errors + await self._count(job, seen, reckoning, ending, memory, streak)
        if errors:
            raise errors[0] if len(errors) == 1 else ExceptionGroup("a Job's pods", errors)
        if reckoning.is_cut or len(plan.create) == AT_ONCE or len(plan.delete) == AT_ONCE:
            return Requeue(after=0.0)
        self._rests.begin(job, children=len(seen.pods) + len(plan.create))
        if ending is not None:
            return None
        waits = [until_deadline(begun, begun.status.start_time, moment), plan.wait or None]
        due = [wait for wait in waits if wait is not None]
        return Requeue(after=max(0.0, min(due))) if due else None

    def _memory(self, key: Key, job: Job) -> _Memory:
        memory = self._memories.get(key)
        if memory is None or memory.uid != job.metadata.uid:
            memory = self._memories[key] = _Memory(job.metadata.uid)
        return memory

    async def _claimed(self, job: Job, selector: Selector) -> list[Pod]:
        """The Job's pods; what was adopted a moment ago has got the finalizer, though the cache does not show it."""
        return [_tracked(pod) for pod in await self._claims.claim(job, selector, self._pods)]

    # Pods

    async def _carry_out(self, job: Job, seen: Observed, plan: Plan, memory: _Memory) -> _Work:
        if plan.create:
            return await self._create(job, seen, plan)
        return await self._delete(job, seen, plan.delete, functools.partial(self._let_go_and_delete, memory))

    async def _stop(self, job: Job, seen: Observed) -> _Work:
        """Deletes what runs; the finalizers stay until the end is written down."""
        return await self._delete(job, seen, seen.active, self._delete_pod)

    async def _create(self, job: Job, seen: Observed, plan: Plan) -> _Work:
        replaceable = seen.replaceable or {}

        def body_of(number: int) -> dict[str, Any]:
            index = plan.create[number]
            return wanted_pod(job, index, replaces=replaceable.get(index) if index is not None else None)

        made, error = await make_pods(
            len(plan.create),
            body_of,
            owner=owner_reference(job, JOBS),
            about=About.of(JOBS, job),
            writer=self._writer,
            events=self._events,
        )
        return _Work(len(seen.active) + len(made), seen.ready, seen.terminating, [] if error is None else [error])

    async def _delete(
        self, job: Job, seen: Observed, pods: Sequence[Pod], delete: Callable[[Job, Pod], Awaitable[None]]
    ) -> _Work:
        work = _Work(len(seen.active), seen.ready, seen.terminating)
        for pod, error in await _on_each(pods, functools.partial(delete, job)):
            if error is not None:
                work.errors.append(error)
                work.is_done = False
                continue
            work.active -= 1
            work.terminating += 1
            work.ready -= is_ready(pod)
        return work

    async def _let_go_and_delete(self, memory: _Memory, job: Job, pod: Pod) -> None:
        """Deletes a pod that the Job does without: it is not counted."""
        if is_tracked(pod):
            await release(self._client, pod)
            memory.released.add(pod.metadata.uid)
        await self._delete_pod(job, pod)

    async def _delete_pod(self, job: Job, pod: Pod) -> None:
        metadata = pod.metadata
        try:
            await self._client.delete(PODS, metadata.name, metadata.namespace, uid=metadata.uid)
        except NotFound:
            note_delete(PODS, metadata.namespace, metadata.name, metadata.uid)
        except ApiError as error:
            self._events.warning(About.of(JOBS, job), "FailedDelete", f"Error deleting: {error.message}")
            raise
        else:
            self._events.normal(About.of(JOBS, job), "SuccessfulDelete", f"Deleted pod: {metadata.name}")

    # Status

    async def _count(
        self,
        job: Job,
        seen: Observed,
        reckoning: Reckoning,
        ending: JobCondition | None,
        memory: _Memory,
        streak: Streak,
    ) -> list[Exception]:
        """Writes which pods have ended, lets them go, and counts those that went; gives what failed on the way."""
        written = await self._write(job, reckoning.status)
        memory.streak = streak
        tracked = tracked_uids(seen)
        errors: list[Exception] = []
        for pod, error in await _on_each(reckoning.release, functools.partial(release, self._client)):
            if error is not None:
                errors.append(error)
            else:
                tracked.discard(pod.metadata.uid)
                memory.released.add(pod.metadata.uid)
        status = counted(written.status, tracked)
        if ending is not None and not errors and not reckoning.is_cut and may_end(status):
            done = await self._write(written, ended(status, ending, now()))
            self._tell_end(done)
        else:
            await self._write(written, status)
        return errors

    async def _write(self, job: Job, status: JobStatus) -> Job:
        """Makes a status so where it differs, and gives the Job as it is then."""
        patch = merge_patch_between(msgspec.to_builtins(job.status), msgspec.to_builtins(status))
        if not patch:
            return job
        metadata = job.metadata
        body = {"metadata": {"resourceVersion": metadata.resource_version}, "status": patch}
        return await self._client.merge_patch(
            JOBS, metadata.name, body, metadata.namespace, subresource="status", field_manager=FIELD_MANAGER
        )

    def _tell_suspension(self, job: Job, status: JobStatus) -> Job:
        if status is job.status:
            return job
        if job.spec.suspend:
            self._events.normal(About.of(JOBS, job), "Suspended", "Job suspended")
        else:
            self._events.normal(About.of(JOBS, job), "Resumed", "Job resumed")
        return _with_status(job, status)

    def _tell_end(self, job: Job) -> None:
        about, condition = About.of(JOBS, job), finished_condition(job)
        if condition is None:
            return
        if condition.type != "Complete":
            self._events.warning(about, condition.reason, condition.message)
            return
        if job.spec.completions is not None and job.status.succeeded > job.spec.completions:
            words = "Too many succeeded pods running after completion count reached"
            self._events.warning(about, "TooManySucceededPods", words)
        self._events.normal(about, "Completed", "Job completed")


async def _on_each(pods: Sequence[Pod], act: Callable[[Pod], Awaitable[None]]) -> list[tuple[Pod, Exception | None]]:
    """Does something to every pod, many at a time, and says of each what went wrong."""
    done: list[tuple[Pod, Exception | None]] = []
    for start in range(0, len(pods), LARGEST):
        some = pods[start : start + LARGEST]
        results = await asyncio.gather(*map(act, some), return_exceptions=True)
        for pod, result in zip(some, results, strict=True):
            if result is not None and not isinstance(result, Exception):
                raise result
            done.append((pod, result))
    return done


def _with_status(job: Job, status: JobStatus) -> Job:
    return msgspec.structs.replace(job, status=status)


def _tracked(pod: Pod) -> Pod:
    if pod.metadata.controller is not None or is_tracked(pod):
        return pod
    metadata = msgspec.structs.replace(pod.metadata, finalizers=[*pod.metadata.finalizers, TRACKING_FINALIZER])
    return msgspec.structs.replace(pod, metadata=metadata)


def _untracked(pod: Pod) -> Pod:
    finalizers = [name for name in pod.metadata.finalizers if name != TRACKING_FINALIZER]
    return msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, finalizers=finalizers))


def _rest_after(pods: int) -> float:
    """Seconds for which a Job with many pods is left alone: looking costs more the more there are."""
    return 0.0 if pods < MANY_PODS else min(pods / 1000, LONGEST_REST)
