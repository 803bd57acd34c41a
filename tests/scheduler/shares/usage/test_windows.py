"""Which part of the past counts."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.scheduler.shares.usage.cron import Cron, InvalidCron
from shoal.scheduler.shares.usage.windows import Since, Sliding, Tumbling, weight


def at(text: str) -> float:
    return datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()


def test_a_sliding_window_ends_now() -> None:
    assert Sliding(3600).start(10_000) == 6400


@pytest.mark.parametrize(
    ("now", "start"),
    [(1000.5, 1000), (1099, 1000), (1100, 1000), (1100.5, 1100), (1350, 1300), (1000, 1000), (900, 900)],
)
def test_a_tumbling_window_opened_a_whole_number_of_sizes_after_the_first(now: float, start: float) -> None:
    assert Tumbling(size=100, first=1000).start(now) == start


@given(first=st.integers(0, 10**9), size=st.integers(1, 10**6), now=st.integers(0, 2 * 10**9))
def test_a_tumbling_window_is_never_longer_than_its_size(first: int, size: int, now: int) -> None:
    start = Tumbling(size=size, first=first).start(now)

    assert now - size <= start <= now
    assert now <= first or (start - first) % size == 0


CRONS = [
    ("every hour", "0 * * * *", "2026-03-10T14:25:00", "2026-03-10T14:00:00"),
    ("strictly before", "0 * * * *", "2026-03-10T14:00:00", "2026-03-10T13:00:00"),
    ("every night", "30 2 * * *", "2026-03-10T02:29:59", "2026-03-09T02:30:00"),
    ("every quarter of an hour", "*/15 * * * *", "2026-03-10T14:44:00", "2026-03-10T14:30:00"),
    ("from a minute on in steps", "5/20 * * * *", "2026-03-10T14:44:00", "2026-03-10T14:25:00"),
    ("a range in steps", "0 8-18/4 * * *", "2026-03-10T23:00:00", "2026-03-10T16:00:00"),
    ("a list", "0 6,18 * * *", "2026-03-10T12:00:00", "2026-03-10T06:00:00"),
    ("mondays", "0 0 * * 1", "2026-03-10T12:00:00", "2026-03-09T00:00:00"),
    ("mondays by name", "0 0 * * MON", "2026-03-09T00:00:00", "2026-03-02T00:00:00"),
    ("sundays are 0", "0 0 * * 0", "2026-03-10T12:00:00", "2026-03-08T00:00:00"),
    ("sundays are 7 too", "0 0 * * 7", "2026-03-10T12:00:00", "2026-03-08T00:00:00"),
    ("a week may end on sunday", "0 0 * * sat-sun", "2026-03-10T12:00:00", "2026-03-08T00:00:00"),
    ("the first of the month", "0 0 1 * *", "2026-03-10T12:00:00", "2026-03-01T00:00:00"),
    ("months by name", "0 0 1 jan,jul *", "2026-03-10T12:00:00", "2026-01-01T00:00:00"),
    ("the 31st skips short months", "0 0 31 * *", "2026-05-02T00:00:00", "2026-03-31T00:00:00"),
    ("a leap day", "0 0 29 2 *", "2026-05-02T00:00:00", "2024-02-29T00:00:00"),
    ("day of month or of week", "0 0 13 * 5", "2026-03-12T00:00:00", "2026-03-06T00:00:00"),
    ("day of month or of week, the other one", "0 0 3 * 5", "2026-03-04T00:00:00", "2026-03-03T00:00:00"),
    ("weekly", "@weekly", "2026-03-10T12:00:00", "2026-03-08T00:00:00"),
    ("daily", "@daily", "2026-03-10T12:00:00", "2026-03-10T00:00:00"),
    ("yearly", "@Yearly", "2026-03-10T12:00:00", "2026-01-01T00:00:00"),
]


@pytest.mark.parametrize(("text", "now", "start"), [case[1:] for case in CRONS], ids=[case[0] for case in CRONS])
def test_a_calendar_window_opened_the_last_time_it_says(text: str, now: str, start: str) -> None:
    assert datetime.fromtimestamp(Since(Cron.parse(text)).start(at(now)), UTC) == datetime.fromtimestamp(at(start), UTC)


BAD = [
    ("", "has 0 fields instead of five"),
    ("* * * *", "has 4 fields"),
    ("0 0 0 * * *", "has 6 fields"),
    ("60 * * * *", "'60' is no minute: it must be from 0 to 59"),
    ("0 24 * * *", "is no hour"),
    ("0 0 0 * *", "is no day of the month"),
    ("0 0 * 13 *", "is no month"),
    ("0 0 * foo *", "'foo' is no month"),
    ("0 0 * * 8", "is no day of the week"),
    ("0 0 * * 3-1", "ends before it begins"),
    ("*/0 * * * *", "steps of 0"),
    ("1-2-3 * * * *", "'1-2-3' is no minute"),
    ("99999999999999999999 * * * *", "is no minute"),
    ("0 0 30 2 *", "never comes"),
]


@pytest.mark.parametrize(("text", "problem"), BAD)
def test_a_bad_calendar_says_what_is_wrong(text: str, problem: str) -> None:
    with pytest.raises(InvalidCron, match=problem.replace("*", r"\*")):
        Cron.parse(text)


@pytest.mark.parametrize(
    ("age", "half_life", "expected"), [(0, 60, 1), (60, 60, 0.5), (180, 60, 0.125), (9999, None, 1)]
)
def test_use_counts_half_for_every_half_life(age: float, half_life: float | None, expected: float) -> None:
    assert weight(age, half_life) == expected
