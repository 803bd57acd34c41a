"""When a CronJob's next Job is due, and which of those that were missed is still made: the latest, and no other."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import NamedTuple

from shoal.api.batch import CronJob
from shoal.cluster.schedules import Schedule

MANY = 100
"""More missed times than this are worth a warning: a clock may be wrong."""
MARGIN = 0.1
"""Seconds that a Job is made late, so that a clock that runs a little behind does not come too early."""


class NeverDue(Exception):
    """The schedule can be read, and still no time fits it."""

    def __init__(self) -> None:
        super().__init__("time difference between two schedules is less than 1 second")


class Unmet(NamedTuple):
    """What was due since the last Job."""

    since: datetime
    latest: datetime | None
    """The last time that was due and met by no Job."""
    missed: int = 0
    """About how many were due, where there were more than one."""


def unmet(cron_job: CronJob, schedule: Schedule, now: datetime, *, within_deadline: bool) -> Unmet:
    """The times that were due since the last Job, or as far back as the deadline to start allows; raises NeverDue."""
    since = cron_job.status.last_schedule_time or cron_job.metadata.creation_timestamp or now
    deadline = cron_job.spec.starting_deadline_seconds
    if within_deadline and deadline is not None:
        since = max(since, now - timedelta(seconds=deadline))
    first = schedule.next_after(since)
    if first is not None and now < first:
        return Unmet(since, None)
    second = schedule.next_after(first) if first is not None else None
    if first is None or second is None or second <= first:
        raise NeverDue
    if now < second:
        return Unmet(since, first)
    # Counting them one by one could take for ever: they are estimated by the first interval, and met from there on.
    interval = round((second - first).total_seconds())
    missed = int((now - first).total_seconds()) // interval + 1
    latest: datetime | None = None
    candidate = schedule.next_after(first + timedelta(seconds=(missed - 2) * interval))
    while candidate is not None and candidate <= now:
        latest = candidate
        candidate = schedule.next_after(candidate)
    return Unmet(since, latest, missed)


def until_next(cron_job: CronJob, schedule: Schedule, now: datetime) -> float | None:
    """Seconds until the next time that is due; None where none comes."""
    try:
        since, latest, missed = unmet(cron_job, schedule, now, within_deadline=False)
    except NeverDue:
        since, latest, missed = now, now, 0
    base = latest or (now if missed else since)
    due = schedule.next_after(base)
    return None if due is None else max(0.0, (due - now).total_seconds() + MARGIN)
