"""Telling why jobs wait: on their PodGroups, and on their pods, once for each thing that there is to tell.

What is to be told is put together in the cycle's thread, while its session is open, and written afterwards. A gang
whose story has not changed is not written again, so that a thousand gangs that wait cost nothing.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any, Final

import msgspec
import structlog

from shoal.api.core import PODS
from shoal.api.core.pods import Pod
from shoal.api.meta.time import format_time
from shoal.api.scheduling_run_ai import POD_GROUPS, PodGroup, SchedulingCondition
from shoal.kube import About, ApiError, ConnectionFault, Manager, NotFound
from shoal.scheduler.explaining import conditions, eviction_message, next_conditions, short, without_condition
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.session.session import Eviction, Session
from shoal.scheduler.watching.cycles import Outcome
from shoal.scheduler.watching.mirror import Key, Mirror

log = structlog.get_logger("shoal.scheduler")

_AT_ONCE: Final = 16
_EVERY: Final = 5.0
"""Seconds between two things that are told of one job: figures of a busy cluster change all the time."""
_FIELD_MANAGER: Final = "kai-scheduler-status"
UNSCHEDULABLE: Final = "Unschedulable"


class Telling:
    """Keeps PodGroups and pods informed."""

    def __init__(self, manager: Manager, mirror: Mirror, *, node_pool: str = "") -> None:
        self._client = manager.client
        self._events = manager.events
        self._groups = manager.cache.informer(POD_GROUPS)
        self._mirror = mirror
        self._pool = node_pool
        self._told: dict[Key, tuple[str, float]] = {}
        """What was last told of a job that waits, and when."""
        self._news: list[tuple[Key, list[SchedulingCondition] | None, str]] = []
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self.evictions: dict[str, str] = {}
        """Why tasks of the last cycle were evicted, by uid."""

    def collect(self, outcome: Outcome) -> None:
        """Puts together what there is to tell of a cycle."""
        session = outcome.session
        self.evictions = {
            decision.task.uid: eviction_message(session, decision)
            for decision in session.decisions
            if isinstance(decision, Eviction)
        }
        now = datetime.fromtimestamp(outcome.at, UTC)
        self._news = list(self._of_waiting(session, now))
        for key in [key for key in self._told if key not in session.cluster.jobs]:
            del self._told[key]

    def _of_waiting(
        self, session: Session, now: datetime
    ) -> Iterator[tuple[Key, list[SchedulingCondition] | None, str]]:
        waiting = {*session.failures, *(job.key for job in session.without_queue)}
        for key in waiting | self._told.keys():
            job = session.cluster.jobs.get(key)
            if job is None:
                continue
            message = short(session, job) if job.pending and key in waiting else ""
            told, at = self._told.get(key, ("", 0.0))
            if told == message or (message and now.timestamp() < at + _EVERY):
                continue
            self._told[key] = message, now.timestamp()
            yield key, self._next(session, job, message, now), message

    def _next(self, session: Session, job: Job, message: str, now: datetime) -> list[SchedulingCondition] | None:
        group = self._group(job)
        if group is None:
            return None
        before = group.status.scheduling_conditions
        if not message:
            return without_condition(before, self._pool)
        condition = conditions(session, job, node_pool=self._pool)
        return None if condition is None else next_conditions(before, condition, now)

    async def tell(self) -> None:
        """Writes what was collected."""
        news, self._news = self._news, []
        async with asyncio.TaskGroup() as group:
            for key, after, message in news:
                group.create_task(self._tell(key, after, message))

    async def _tell(self, key: Key, after: list[SchedulingCondition] | None, message: str) -> None:
        job = self._mirror.cluster.jobs.get(key)
        if job is None:
            return
        async with self._slots:
            try:
                if after is not None:
                    await self._write(job, after)
                    self._tell_group(job, message)
                if message and job.marks_unschedulable:
                    await self._tell_pods(job, message)
            except NotFound:
                return
            except (ApiError, ConnectionFault) as error:
                log.warning("podgroup not told", podgroup="/".join(key), error=str(error))
                self._told.pop(key, None)

    async def _write(self, job: Job, after: list[SchedulingCondition]) -> None:
        patch = {"status": {"schedulingConditions": msgspec.to_builtins(after)}}
        await self._client.merge_patch(
            POD_GROUPS, job.name, patch, job.namespace, subresource="status", field_manager=_FIELD_MANAGER
        )

    def _tell_group(self, job: Job, message: str) -> None:
        group = self._group(job)
        if group is not None and message:
            self._events.normal(About.of(POD_GROUPS, group), UNSCHEDULABLE, message)

    async def _tell_pods(self, job: Job, message: str) -> None:
        for task in list(job.tasks.values()):
            pod = self._mirror.pod(task.key)
            if pod is None or task.status is not Status.PENDING or _says(pod, message):
                continue
            self._events.warning(About.of(PODS, pod), UNSCHEDULABLE, message)
            await self._client.strategic_patch(
                PODS,
                pod.metadata.name,
                {"metadata": {"uid": pod.metadata.uid}, "status": {"conditions": [_condition(message)]}},
                pod.metadata.namespace,
                subresource="status",
                field_manager=_FIELD_MANAGER,
            )

    def _group(self, job: Job) -> PodGroup | None:
        group = self._groups.get(job.name, job.namespace)
        return group if group is not None and group.metadata.uid == job.uid else None


def _says(pod: Pod, message: str) -> bool:
    return any(
        one.type == "PodScheduled" and one.status == "False" and one.message == message for one in pod.status.conditions
    )


def _condition(message: str) -> dict[str, Any]:
    return {
        "type": "PodScheduled",
        "status": "False",
        "reason": UNSCHEDULABLE,
        "message": message,
        "lastTransitionTime": format_time(datetime.now(UTC)),
    }
