"""Makes a CronJob's Jobs when they are due.

The name of a Job says for what time it is, so that a controller that was stopped between making it and writing the
status finds it again instead of making a second one.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import msgspec

from shoal.api.batch import (
    COMPLETE,
    CRON_JOBS,
    FAILED,
    JOBS,
    CronJob,
    CronJobStatus,
    Job,
    finished_condition,
)
from shoal.api.core import ObjectReference
from shoal.api.meta import is_controlled_by, owner_reference
from shoal.cluster.controllers.cron_jobs.objects import job_name, reference_to, surplus, wanted_job
from shoal.cluster.controllers.cron_jobs.timing import MANY, NeverDue, unmet, until_next
from shoal.cluster.indexes import BY_CONTROLLER, CHILD_INDEXES
from shoal.cluster.schedules import InvalidSchedule, Schedule, find_zone, parse_schedule
from shoal.kube import About, AlreadyExists, ApiError, Controller, Key, Manager, NotFound, Requeue, Watch
from shoal.kube.changes import controlling_owner, field_changed


def add_cron_jobs(manager: Manager, *, workers: int = 5) -> None:
    """Adds the CronJob controller."""
    reconcile = CronJobController(manager).reconcile
    children = Watch(resource=JOBS, keys=controlling_owner(CRON_JOBS), when=field_changed(_matters))
    manager.add(Controller("cron-jobs", CRON_JOBS, reconcile, watches=[children], workers=workers))


def _matters(job: Job) -> Any:
    """What of a Job its CronJob looks at."""
    return (finished_condition(job), job.metadata.is_deleting, job.metadata.owner_references)


@dataclass
class _Memory:
    """What is remembered of a CronJob between reconciles, and may be lost."""

    uid: str
    timing: tuple[str, str | None]
    unexpected: frozenset[str] = frozenset()
    """Jobs that were told of already."""


class CronJobController:
    """Makes Jobs by a schedule."""

    def __init__(self, manager: Manager) -> None:
        self._cron_jobs = manager.cache.informer(CRON_JOBS)
        self._jobs = manager.cache.informer(JOBS, indexes=CHILD_INDEXES)
        self._client = manager.client
        self._writer = manager.writer("cronjob-controller")
        self._events = manager.events
        self._memories: dict[Key, _Memory] = {}

    async def reconcile(self, key: Key) -> Requeue | None:
        """Follows a CronJob's Jobs, and makes the one that is due."""
        cron_job = self._cron_jobs.store.get(key)
        if cron_job is None:
            self._memories.pop(key, None)
            return None
        memory, is_new_timing = self._memory(key, cron_job)
        look = _Look(self, cron_job, self._jobs.find(BY_CONTROLLER, cron_job.metadata.uid))
        problem: ApiError | None = None
        wait: float | None = None
        try:
            await look.clear_away()
            await look.follow(memory)
            if not cron_job.metadata.is_deleting:
                wait = await look.start_due(datetime.now(UTC), is_new_timing=is_new_timing)
        except ApiError as error:
            problem = error
        await self._writer.patch_status(CRON_JOBS, cron_job, before=cron_job.status, after=look.status)
        if problem is not None:
            raise problem
        return None if wait is None else Requeue(after=wait)

    def _memory(self, key: Key, cron_job: CronJob) -> tuple[_Memory, bool]:
        """What is known of a CronJob, and whether its schedule is another than it was."""
        timing = (cron_job.spec.schedule, cron_job.spec.time_zone)
        memory = self._memories.get(key)
        if memory is None or memory.uid != cron_job.metadata.uid:
            memory = self._memories[key] = _Memory(cron_job.metadata.uid, timing)
            return memory, False
        changed, memory.timing = memory.timing != timing, timing
        return memory, changed

    # What one look at a CronJob does to Jobs

    async def create(self, cron_job: CronJob, due: datetime) -> Job | None:
        """Makes the Job for a time; one that somebody else has made under its name is left alone."""
        owner = owner_reference(cron_job, CRON_JOBS)
        try:
            made: Job = await self._writer.create(JOBS, wanted_job(cron_job, due), owner=owner)
        except AlreadyExists:
            found = await self._client.get(JOBS, job_name(cron_job, due), cron_job.metadata.namespace)
            return found if is_controlled_by(found.metadata, cron_job.metadata.uid) else None
        except ApiError as error:
            if not error.has_cause("NamespaceTerminating"):
                self.warn(cron_job, "FailedCreate", f"Error creating job: {error.message}")
            raise
        self.tell(cron_job, "SuccessfulCreate", f"Created job {made.metadata.name}")
        return made

    async def delete(self, cron_job: CronJob, job: Job) -> None:
        """Deletes a Job with its pods."""
        if job.metadata.is_deleting:
            return
        try:
            await self._writer.delete(JOBS, job, propagation="Background")
        except ApiError as error:
            self.warn(cron_job, "FailedDelete", f"Deleted job: {error.message}")
            raise
        self.tell(cron_job, "SuccessfulDelete", f"Deleted job {job.metadata.name}")

    async def live(self, reference: ObjectReference) -> Job | None:
        """A Job as the server has it now; another one that has taken its name since is not meant."""
        try:
            found = await self._client.get(JOBS, reference.name, reference.namespace)
        except NotFound:
            return None
        return found if found.metadata.uid == reference.uid else None

    def tell(self, cron_job: CronJob, reason: str, message: str) -> None:
        """Tells users of something as it should be."""
        self._events.normal(About.of(CRON_JOBS, cron_job), reason, message)

    def warn(self, cron_job: CronJob, reason: str, message: str) -> None:
        """Tells users of something that they may have to look at."""
        self._events.warning(About.of(CRON_JOBS, cron_job), reason, message)


class _Look:
    """One look at a CronJob and its Jobs; ``status`` is what is to be written after it."""

    def __init__(self, controller: CronJobController, cron_job: CronJob, jobs: list[Job]) -> None:
        self._controller = controller
        self._cron_job = cron_job
        self._jobs = jobs
        self.status: CronJobStatus = cron_job.status

    async def clear_away(self) -> None:
        """Deletes finished Jobs that are too old to be kept."""
        spec = self._cron_job.spec
        for job in [
            *surplus(self._jobs, COMPLETE, spec.successful_jobs_history_limit),
            *surplus(self._jobs, FAILED, spec.failed_jobs_history_limit),
        ]:
            await self._controller.delete(self._cron_job, job)
            self._forget(job.metadata.uid)

    async def follow(self, memory: _Memory) -> None:
        """Takes finished and missing Jobs off the active ones, and notes when one last succeeded."""
        active = {reference.uid for reference in self.status.active}
        unexpected: set[str] = set()
        for job in self._jobs:
            uid, name, ended = job.metadata.uid, job.metadata.name, finished_condition(job)
            if ended is None:
                if uid not in active:
                    unexpected.add(uid)
                    if uid not in memory.unexpected:
                        words = f"Saw a job that the controller did not create or forgot: {name}"
                        self._controller.warn(self._cron_job, "UnexpectedJob", words)
                continue
            if uid in active:
                self._forget(uid)
                words = f"Saw completed job: {name}, condition: {ended.type}"
                self._controller.tell(self._cron_job, "SawCompletedJob", words)
            if ended.type == COMPLETE:
                self._note_success(job.status.completion_time)
        memory.unexpected = frozenset(unexpected)
        known = {job.metadata.uid for job in self._jobs}
        for reference in self.status.active:
            if reference.uid not in known and await self._controller.live(reference) is None:
                words = f"Active job went missing: {reference.name}"
                self._controller.tell(self._cron_job, "MissingJob", words)
                self._forget(reference.uid)

    async def start_due(self, now: datetime, *, is_new_timing: bool) -> float | None:
        """Makes the Job that is due, if one is; says in how many seconds to look again."""
        cron_job, controller = self._cron_job, self._controller
        schedule = self._schedule()
        if schedule is None or cron_job.spec.suspend:
            return None
        if is_new_timing:
            # What a new schedule would have asked for in the past is not made up for.
            return self._wait(schedule, now)
        try:
            _, due, missed = unmet(self._current(), schedule, now, within_deadline=True)
        except NeverDue as error:
            controller.warn(cron_job, "InvalidSchedule", f"invalid schedule: {cron_job.spec.schedule} : {error}")
            return None
        if due is None:
            return self._wait(schedule, now)
        if missed > MANY:
            words = "too many missed start times. Set or decrease .spec.startingDeadlineSeconds or check clock skew"
            controller.warn(cron_job, "TooManyMissedTimes", words)
        deadline = cron_job.spec.starting_deadline_seconds
        if deadline is not None and due + timedelta(seconds=deadline) < now:
            words = f"Missed scheduled time to start a job: {format_datetime(due.astimezone(UTC))}"
            controller.warn(cron_job, "MissSchedule", words)
            return self._wait(schedule, now)
        is_made = any(reference.name == job_name(cron_job, due) for reference in self.status.active)
        if is_made or self.status.last_schedule_time == due:
            return self._wait(schedule, now)
        if cron_job.spec.concurrency_policy == "Forbid" and self.status.active:
            words = "Not starting job because prior execution is running and concurrency policy is Forbid"
            controller.tell(cron_job, "JobAlreadyActive", words)
            return self._wait(schedule, now)
        if cron_job.spec.concurrency_policy == "Replace":
            await self._stop_all()
        made = await controller.create(cron_job, due)
        if made is not None and made.metadata.uid not in {reference.uid for reference in self.status.active}:
            active = [*self.status.active, reference_to(made)]
            self.status = msgspec.structs.replace(self.status, active=active, last_schedule_time=due)
        return self._wait(schedule, now)

    def _schedule(self) -> Schedule | None:
        spec, text = self._cron_job.spec, self._cron_job.spec.schedule
        if spec.time_zone is not None and find_zone(spec.time_zone) is None:
            words = f'invalid timeZone: "{spec.time_zone}": unknown time zone {spec.time_zone}'
            self._controller.warn(self._cron_job, "UnknownTimeZone", words)
            return None
        if "TZ" in text:
            words = (
                f'CRON_TZ or TZ used in schedule "{text}" is not officially supported, see '
                "https://kubernetes.io/docs/concepts/workloads/controllers/cron-jobs/ for more details"
            )
            self._controller.warn(self._cron_job, "UnsupportedSchedule", words)
        elif spec.time_zone is not None:
            text = f"TZ={spec.time_zone} {text}"
        try:
            return parse_schedule(text)
        except InvalidSchedule as error:
            words = f'unparseable schedule: "{spec.schedule}" : {error}'
            self._controller.warn(self._cron_job, "UnparseableSchedule", words)
            return None

    async def _stop_all(self) -> None:
        """Deletes the Jobs that still run; they make place for the next one."""
        for reference in self.status.active:
            job = await self._controller.live(reference)
            if job is not None:
                await self._controller.delete(self._cron_job, job)
            self._forget(reference.uid)

    def _current(self) -> CronJob:
        return msgspec.structs.replace(self._cron_job, status=self.status)

    def _wait(self, schedule: Schedule, now: datetime) -> float | None:
        return until_next(self._current(), schedule, now)

    def _forget(self, uid: str) -> None:
        self.status = msgspec.structs.replace(self.status, active=_without(self.status.active, uid))

    def _note_success(self, at: datetime | None) -> None:
        known = self.status.last_successful_time
        if at is not None and (known is None or at > known):
            self.status = msgspec.structs.replace(self.status, last_successful_time=at)


def _without(active: Iterable[ObjectReference], uid: str) -> list[ObjectReference]:
    return [reference for reference in active if reference.uid != uid]
