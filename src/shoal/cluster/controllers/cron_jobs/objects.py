"""The Jobs of a CronJob: their names, their bodies, and what the CronJob's status says of them."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.api.batch import JOBS, SCHEDULED_TIMESTAMP, CronJob, Job, finished_condition
from shoal.api.core import ObjectReference
from shoal.api.meta import format_time
from shoal.cluster.schedules import find_zone

_LAST = datetime.max.replace(tzinfo=UTC)


def job_name(cron_job: CronJob, due: datetime) -> str:
    """The name of the Job for a time: the same for whoever makes it, so that it is made once."""
    return f"{cron_job.metadata.name}-{int(due.timestamp()) // 60}"


def wanted_job(cron_job: CronJob, due: datetime) -> dict[str, Any]:
    """The body of the Job for a time."""
    template = copy.deepcopy(cron_job.spec.job_template)
    given = template.get("metadata") or {}
    metadata: dict[str, Any] = {"namespace": cron_job.metadata.namespace, "name": job_name(cron_job, due)}
    if given.get("labels"):
        metadata["labels"] = given["labels"]
    stamp = {SCHEDULED_TIMESTAMP: _stamp(due, cron_job.spec.time_zone or "")}
    metadata["annotations"] = {**(given.get("annotations") or {}), **stamp}
    return {"metadata": metadata, "spec": template.get("spec") or {}}


def reference_to(job: Job) -> ObjectReference:
    """How a status names a Job that runs."""
    metadata = job.metadata
    return ObjectReference(
        kind=JOBS.kind,
        api_version=JOBS.api_version,
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
        resource_version=metadata.resource_version,
    )


def surplus(jobs: Sequence[Job], outcome: str, limit: int | None) -> list[Job]:
    """The oldest of the Jobs that ended so, beyond the number that is kept."""
    ended = [job for job in jobs if (known := finished_condition(job)) is not None and known.type == outcome]
    if limit is None or len(ended) <= limit:
        return []
    ended.sort(key=lambda job: (job.status.start_time or _LAST, job.metadata.name))
    return ended[: len(ended) - limit]


def _stamp(due: datetime, zone: str) -> str:
    local = due.astimezone(find_zone(zone) or UTC)
    return local.isoformat(timespec="seconds") if local.utcoffset() != timedelta(0) else format_time(due)
