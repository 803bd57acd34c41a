"""The reconcile of a JobSet: reads what there is, has ``plan`` decide, and writes that down.

Jobs, the service and the claims are made once and never applied again: what a Job's template may change is fixed by
Kubernetes, and a service or claim that somebody else made under the wanted name is used as it is. The status is
written last, and decides what the next reconcile deletes: whoever is stopped between two writes finds, when he comes
back, what is left to do.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from types import MappingProxyType
from typing import Any

import structlog

from shoal.api.batch import JOBS, Job
from shoal.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, SERVICES, Pod
from shoal.api.jobset import JOB_SETS, JobSet, JobSetStatus, names, reasons
from shoal.api.meta import HasMetadata, OwnerReference, PartialObject, is_controlled_by, now, owner_reference
from shoal.kube import (
    About,
    AlreadyExists,
    ApiError,
    Conflict,
    Controller,
    Informer,
    Key,
    Manager,
    NotFound,
    Requeue,
    Watch,
    by_label,
    by_owner,
)
from shoal.kube.backoff import Backoff
from shoal.kube.changes import controlling_owner
from shoal.kube.patience import Patience
from shoal.kube.queue import RetryLimits
from shoal.kube.store import BY_OWNER, key_of
from shoal.training.jobset.admission.defaults import defaulted
from shoal.training.jobset.claims import WantedClaim
from shoal.training.jobset.conditions import Said
from shoal.training.jobset.in_place import is_restarted_in_place
from shoal.training.jobset.metrics import JobSetMetrics
from shoal.training.jobset.plan import Plan, Resumption, Seen, Work, plan_of
from shoal.training.jobset.settings import JobSetSettings
from shoal.training.jobset.upstream import Upstream
from shoal.training.jobset.urgency import patience_with

log = structlog.get_logger("shoal.training.jobset")

AT_ONCE = 50
"""How many Jobs of one JobSet are made, or deleted, at a time."""
LOOK_AGAIN = 15.0
"""Seconds after which to ask again whether upstream's controller is still there."""
RETRIES = RetryLimits(backoff=Backoff(initial=0.005, cap=30.0))
"""What stands in the way may go away without a word: a quota, a foreign Job of a wanted name, a missing right."""
BY_JOB_SET = "jobset"
CLAIMS = PERSISTENT_VOLUME_CLAIMS.view(PartialObject)
HEADLESS = SERVICES.view(PartialObject)


def add_job_sets(manager: Manager, settings: JobSetSettings) -> None:
    """Adds the controller of JobSets."""
    job_sets = JobSets(manager, settings)
    selector = settings.selector
    watches = [
        Watch(resource=JOBS, keys=controlling_owner(JOB_SETS), label_selector=selector, indexes={BY_OWNER: by_owner}),
        Watch(resource=HEADLESS, keys=controlling_owner(JOB_SETS)),
        Watch(resource=CLAIMS, keys=job_set_key, label_selector=names.JOB_SET_NAME),
        *job_sets.upstream.watches(job_sets.all_keys),
    ]
    if settings.restarts_in_place:
        watches.append(Watch(resource=PODS, keys=job_sets.restarted_in_place, label_selector=selector))
    manager.add(
        Controller("jobset", JOB_SETS, job_sets.reconcile, watches=watches, workers=settings.workers, retries=RETRIES)
    )


class JobSets:
    """Keeps the Jobs of JobSets as these ask for, and tells how they are."""

    def __init__(self, manager: Manager, settings: JobSetSettings) -> None:
        cache = manager.cache
        self.upstream = Upstream(manager)
        self._settings = settings
        self._job_sets: Informer[JobSet] = cache.informer(JOB_SETS)
        self._jobs: Informer[Job] = cache.informer(JOBS, label_selector=settings.selector, indexes={BY_OWNER: by_owner})
        self._services: Informer[PartialObject] = cache.informer(HEADLESS)
        self._claims: Informer[PartialObject] = cache.informer(CLAIMS, label_selector=names.JOB_SET_NAME)
        self._pods: Informer[Pod] | None = None
        if settings.restarts_in_place:
            indexes = {BY_JOB_SET: by_label(names.JOB_SET_NAME)}
            self._pods = cache.informer(PODS, label_selector=settings.selector, indexes=indexes)
        self._client = manager.client
        self._writer = manager.writer("jobset")
        self._events = manager.events
        self._metrics = JobSetMetrics(manager.metrics.registry)
        self._stands_by = ""
        self._unsaid = Patience(scale=manager.debounce)

    def all_keys(self, _: HasMetadata) -> Iterable[Key]:
        """Every JobSet: each has to be looked at when upstream comes or goes."""
        return [key_of(found) for found in self._job_sets.items()]

    def restarted_in_place(self, pod: Pod) -> Iterable[Key]:
        """The JobSet of a pod, if how its pods are is for it to know."""
        for key in job_set_key(pod):
            found = self._job_sets.store.get(key)
            if found is not None and is_restarted_in_place(found):
                yield key

    async def reconcile(self, key: Key) -> Requeue | None:
        """Brings one JobSet further."""
        found = self._job_sets.store.get(key)
        if found is None or found.metadata.is_deleting or found.manager != names.CONTROLLER:
            self._unsaid.forget(key)
            return None
        if self._is_standing_by():
            return Requeue(after=LOOK_AGAIN)
        job_set = defaulted(found)
        plan = plan_of(job_set, self._seen(job_set), self._settings, now())
        errors = await self._carry_out(job_set, plan)
        if errors:
            await self._write_status(found, plan.counted)
            raise errors[0] if len(errors) == 1 else ExceptionGroup("not all of the JobSet could be done", errors)
        if (patience := patience_with(found.status, plan.status)) and (left := self._unsaid.left(key, patience)):
            return Requeue(after=left if plan.again_after is None else min(left, plan.again_after))
        self._unsaid.forget(key)
        if await self._write_status(found, plan.status):
            self._tell(found, plan)
        if plan.is_expired:
            await self._writer.delete(JOB_SETS, found, propagation="Foreground")
        return None if plan.again_after is None else Requeue(after=plan.again_after)

    def _is_standing_by(self) -> bool:
        reason = self.upstream.reason()
        if reason != self._stands_by:
            self._stands_by = reason
            log.warning("standing by", reason=reason) if reason else log.info("taking over: upstream is gone")
        return bool(reason)

    def _seen(self, job_set: JobSet) -> Seen:
        namespace, uid = job_set.metadata.namespace, job_set.metadata.uid
        jobs = [job for job in self._jobs.find(BY_OWNER, uid) if is_controlled_by(job.metadata, uid)]
        place = (namespace, job_set.metadata.name)
        return Seen(
            jobs=jobs,
            has_service=self._services.get(job_set.subdomain, namespace) is not None,
            claims=frozenset(claim.metadata.name for claim in self._claims.items(namespace))
            if job_set.spec.volume_claim_policies
            else frozenset(),
            pods=self._pods.find(BY_JOB_SET, place) if self._pods is not None else (),
        )

    async def _carry_out(self, job_set: JobSet, plan: Plan) -> list[Exception]:
        """Does what the plan says but for its status; gives what went wrong, after which nothing further was begun."""
        owner = owner_reference(job_set, JOB_SETS)
        deletions = [self._writer.delete(JOBS, job, propagation="Foreground") for job in plan.delete]
        if errors := await _together(deletions):
            return errors
        work = plan.work
        if errors := await self._made(job_set, work, owner):
            return errors
        changes = [*map(self._suspend, work.suspend), *map(self._resume, work.resume)]
        return await _together(changes)

    async def _made(self, job_set: JobSet, work: Work, owner: OwnerReference) -> list[Exception]:
        """Makes what is missing; what could not be made is told to the users, under upstream's words for it."""
        steps: list[tuple[str, Sequence[Awaitable[Any]]]] = [
            (reasons.SERVICE_CREATION_FAILED, [self._make_service(work.service, owner)] if work.service else []),
            (reasons.CLAIM_CREATION_FAILED, [self._make_claim(claim, owner) for claim in work.claims]),
            (reasons.JOB_CREATION_FAILED, [self._writer.create(JOBS, body, owner=owner) for body in work.create]),
        ]
        errors: list[Exception] = []
        for reason, step in steps:
            for error in await _together(step):
                errors.append(error)
                if _is_refusal(error):
                    self._events.warning(About.of(JOB_SETS, job_set), reason, str(error))
        return errors

    async def _make_service(self, body: dict[str, Any], owner: OwnerReference) -> None:
        await _unless_there(self._writer.create(HEADLESS, body, owner=owner))

    async def _make_claim(self, claim: WantedClaim, owner: OwnerReference) -> None:
        await _unless_there(self._writer.create(CLAIMS, claim.body, owner=None if claim.is_kept else owner))

    async def _suspend(self, job: Job) -> None:
        await self._patch(job, {"suspend": True})

    async def _resume(self, resumption: Resumption) -> None:
        """Goes on with a Job as it was read; one that has started must not say so first, or its template is fixed."""
        job = resumption.job
        if job.status.start_time is not None:
            job = await self._client.merge_patch(
                JOBS,
                job.metadata.name,
                {"metadata": {"resourceVersion": job.metadata.resource_version}, "status": {"startTime": None}},
                job.metadata.namespace,
                subresource="status",
                field_manager=self._writer.manager,
            )
        await self._patch(job, resumption.spec, {"resourceVersion": job.metadata.resource_version})

    async def _patch(self, job: Job, spec: dict[str, Any], read: Mapping[str, str] = MappingProxyType({})) -> None:
        patch = {"metadata": {"uid": job.metadata.uid, **read}, "spec": spec}
        try:
            await self._client.merge_patch(
                JOBS, job.metadata.name, patch, job.metadata.namespace, field_manager=self._writer.manager
            )
        except NotFound:
            return  # its last event brings us back

    async def _write_status(self, found: JobSet, status: JobSetStatus) -> bool:
        """Writes the status where it changed."""
        before = found.status
        if status == before:
            return False
        # A status that says nothing yet gets all its counters, those that are zero too.
        known: JobSetStatus | dict[str, Any] = {} if before == JobSetStatus() else before
        try:
            return await self._writer.patch_status(JOB_SETS, found, before=known, after=status)
        except NotFound:
            return False

    def _tell(self, found: JobSet, plan: Plan) -> None:
        about = About.of(JOB_SETS, found)
        for said in plan.events:
            self._record(about, said)
        if plan.status.terminal_state and plan.status.terminal_state != found.status.terminal_state:
            self._metrics.count(found, plan.status.terminal_state)

    def _record(self, about: About, said: Said) -> None:
        self._events.record(about, "Warning" if said.is_bad else "Normal", said.reason, said.message)


def job_set_key(found: HasMetadata) -> Iterable[Key]:
    """The JobSet that a pod's or a claim's label names."""
    name = found.metadata.labels.get(names.JOB_SET_NAME)
    return (Key(found.metadata.namespace, name),) if name else ()


async def _together(steps: Sequence[Awaitable[Any]]) -> list[Exception]:
    """Takes all steps, and tells what failed: one that does not succeed does not stop the others."""
    limit = asyncio.Semaphore(AT_ONCE)

    async def one(step: Awaitable[Any]) -> Exception | None:
        async with limit:
            try:
                await step
            except Exception as error:
                return error
        return None

    outcomes = await asyncio.gather(*map(one, steps)) if steps else []
    return [error for error in outcomes if error is not None]


def _is_refusal(error: Exception) -> bool:
    """Whether the server will not have it: a lost race, or a lost connection, is nothing to trouble users with."""
    is_lost_race = isinstance(error, Conflict) and not isinstance(error, AlreadyExists)
    return isinstance(error, ApiError) and not is_lost_race


async def _unless_there(step: Awaitable[Any]) -> None:
    """What somebody else made in the meantime is used as it is."""
    try:
        await step
    except AlreadyExists:
        return
