"""When a CronJob's Jobs are due."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from shoal.api.batch import CronJob, CronJobSpec, CronJobStatus
from shoal.api.meta import ObjectMeta
from shoal.cluster.controllers.cron_jobs.timing import MANY, NeverDue, unmet, until_next
from shoal.cluster.schedules import parse_schedule

HOUR = datetime(2026, 7, 9, 10, 0, tzinfo=UTC)


def a_cron_job(*, created: float = 0, last: float | None = None, deadline: int | None = None) -> CronJob:
    """A CronJob; times are minutes from ten o'clock."""
    return CronJob(
        metadata=ObjectMeta(name="tick", creation_timestamp=HOUR + timedelta(minutes=created)),
        spec=CronJobSpec(starting_deadline_seconds=deadline),
        status=CronJobStatus(last_schedule_time=None if last is None else HOUR + timedelta(minutes=last)),
    )


@pytest.mark.parametrize(
    ("cron_job", "schedule", "now", "due"),
    [
        pytest.param(a_cron_job(created=1), "0 * * * *", 30, None, id="nothing yet"),
        pytest.param(a_cron_job(created=-10), "0 * * * *", 1, 0, id="the first one"),
        pytest.param(a_cron_job(last=0), "0 * * * *", 30, None, id="made already"),
        pytest.param(a_cron_job(last=0), "0 * * * *", 61, 60, id="the next one"),
        pytest.param(a_cron_job(last=0), "0 * * * *", 301, 300, id="the latest of many, and no other"),
        pytest.param(a_cron_job(last=-600), "0 * * * *", 1, 0, id="a long sleep"),
        pytest.param(a_cron_job(last=0, deadline=60), "0 * * * *", 62, None, id="too late to start"),
        pytest.param(a_cron_job(last=0, deadline=180), "0 * * * *", 62, 60, id="late, but not too late"),
        pytest.param(a_cron_job(last=0), "30 6-16/4 * * 1-5", 5, None, id="an uneven schedule, not due"),
        pytest.param(a_cron_job(last=-24 * 60), "30 6-16/4 * * 1-5", 31, 30, id="an uneven schedule, due"),
        pytest.param(a_cron_job(last=0), "@every 1h", 150, 120, id="intervals count from the last time"),
    ],
)
def test_the_latest_time_that_no_job_was_made_for(
    cron_job: CronJob, schedule: str, now: float, due: float | None
) -> None:
    found = unmet(cron_job, parse_schedule(schedule), HOUR + timedelta(minutes=now), within_deadline=True)
    assert found.latest == (None if due is None else HOUR + timedelta(minutes=due))


def test_more_than_a_hundred_missed_times_are_counted() -> None:
    found = unmet(a_cron_job(last=0), parse_schedule("* * * * *"), HOUR + timedelta(minutes=500), within_deadline=True)
    assert found.missed > MANY
    assert found.latest == HOUR + timedelta(minutes=500)


def test_a_schedule_without_times_is_never_due() -> None:
    with pytest.raises(NeverDue):
        unmet(a_cron_job(), parse_schedule("59 23 31 2 *"), HOUR, within_deadline=True)


@pytest.mark.parametrize(
    ("cron_job", "now", "wait"),
    [
        pytest.param(a_cron_job(created=1), 30, 1800, id="nothing yet"),
        pytest.param(a_cron_job(last=0), 0, 3600, id="just made"),
        pytest.param(a_cron_job(last=-180), 45, 900, id="after missed times"),
        pytest.param(a_cron_job(last=-180, deadline=1), 45, 900, id="the deadline does not matter to it"),
    ],
)
def test_the_wait_ends_a_little_after_the_next_time(cron_job: CronJob, now: float, wait: float) -> None:
    found = until_next(cron_job, parse_schedule("0 * * * *"), HOUR + timedelta(minutes=now))
    assert found == pytest.approx(wait + 0.1)
