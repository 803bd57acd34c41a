"""Which moments a schedule means."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from shoal.api.meta import format_time, parse_time
from shoal.cluster.schedules import InvalidSchedule, find_zone, parse_schedule, schedule_problem


@pytest.mark.parametrize(
    ("schedule", "after", "due"),
    [
        pytest.param("*/15 * * * *", "2026-07-09T14:45:00Z", "2026-07-09T15:00:00Z", id="steps, never the same moment"),
        pytest.param("*/15 * * * *", "2026-07-09T14:59:59Z", "2026-07-09T15:00:00Z", id="steps, a second before"),
        pytest.param(
            "0 * * * *", "2026-07-09T14:00:30Z", "2026-07-09T15:00:00Z", id="a matching minute that has begun"
        ),
        pytest.param("20-35/15 * * * *", "2026-07-09T23:46:00Z", "2026-07-10T00:20:00Z", id="over midnight"),
        pytest.param("0 0 29 feb *", "2026-07-09T00:00:00Z", "2028-02-29T00:00:00Z", id="a leap day"),
        pytest.param("30 6 * * MON-FRI", "2026-07-10T07:00:00Z", "2026-07-13T06:30:00Z", id="working days by name"),
        pytest.param("0 0 13 * fri", "2026-07-11T00:00:00Z", "2026-07-13T00:00:00Z", id="either day is enough"),
        pytest.param("0 0 */2 * 1", "2026-07-06T00:00:00Z", "2026-07-07T00:00:00Z", id="a step restricts the day"),
        pytest.param("0 0 1 * ?", "2026-12-02T00:00:00Z", "2027-01-01T00:00:00Z", id="over the year"),
        pytest.param("5/20 8 * * *", "2026-07-09T08:05:00Z", "2026-07-09T08:25:00Z", id="a step from a number"),
        pytest.param("@hourly", "2026-07-09T14:01:00Z", "2026-07-09T15:00:00Z", id="hourly"),
        pytest.param("@daily", "2026-07-09T14:01:00Z", "2026-07-10T00:00:00Z", id="daily"),
        pytest.param("@weekly", "2026-07-09T14:01:00Z", "2026-07-12T00:00:00Z", id="weekly"),
        pytest.param("@monthly", "2026-07-09T14:01:00Z", "2026-08-01T00:00:00Z", id="monthly"),
        pytest.param("@yearly", "2026-07-09T14:01:00Z", "2027-01-01T00:00:00Z", id="yearly"),
        pytest.param("@every 90s", "2026-07-09T14:01:00Z", "2026-07-09T14:02:30Z", id="an interval"),
        pytest.param(
            "@every 10ms", "2026-07-09T14:01:00Z", "2026-07-09T14:01:01Z", id="an interval is a second at least"
        ),
        pytest.param("TZ=Asia/Tokyo 0 9 * * *", "2026-07-09T00:00:00Z", "2026-07-10T00:00:00Z", id="in a zone"),
        pytest.param(
            "TZ=America/New_York 30 2 11 mar ?",
            "2012-03-11T05:00:00Z",
            "2013-03-11T06:30:00Z",
            id="an hour that is not",
        ),
        pytest.param(
            "CRON_TZ=America/New_York 0 1 4 11 *", "2012-11-04T05:00:00Z", "2012-11-04T06:00:00Z", id="an hour twice"
        ),
        pytest.param(
            "TZ=America/Sao_Paulo 31 1 14 * *",
            "2017-10-14T12:00:00Z",
            "2017-11-14T03:31:00Z",
            id="no midnight that day",
        ),
    ],
)
def test_the_next_moment_that_is_due(schedule: str, after: str, due: str) -> None:
    found = parse_schedule(schedule).next_after(parse_time(after))
    assert found is not None
    assert format_time(found) == due


def test_a_day_that_never_comes_is_never_due() -> None:
    assert parse_schedule("59 23 31 2 *").next_after(datetime(2026, 1, 1, tzinfo=UTC)) is None


@pytest.mark.parametrize("schedule", [", * * * *", "0 , * * *", "0 0 * , *"])
def test_a_field_without_a_number_is_never_due_and_that_is_told_at_once(schedule: str) -> None:
    began = time.perf_counter()
    assert parse_schedule(schedule).next_after(datetime(2026, 7, 9, tzinfo=UTC)) is None
    assert time.perf_counter() - began < 0.1


def test_parts_of_a_second_do_not_matter() -> None:
    moment = datetime(2026, 7, 9, 14, 59, 59, 999_999, tzinfo=UTC)
    assert parse_schedule("* * * * *").next_after(moment) == moment.replace(microsecond=0) + timedelta(seconds=1)


@pytest.mark.parametrize("text", ["", "* * * *", "60 * * * *", "* * 0 * *", "5-1 * * * *", "*/0 * * * *", "@often"])
def test_what_is_no_schedule_says_why(text: str) -> None:
    assert schedule_problem(text)
    with pytest.raises(InvalidSchedule):
        parse_schedule(text)


def test_a_zone_is_known_by_its_name() -> None:
    assert find_zone("Europe/Berlin") is not None
    assert find_zone("Nowhere/Land") is None
    assert find_zone("") is UTC
