"""The scheduler's own memory of what queues held."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.scheduler.model.amounts import NONE, Amounts
from shoal.scheduler.shares.usage.history import UnreadableHistory, UsageHistory
from shoal.scheduler.shares.usage.windows import Sliding, Tumbling
from tests.scheduler.shares.builders import gpus

HOUR = 3600.0
CLUSTER = Amounts(1000, 0, 10)


def a_history(size: float = HOUR, *, half_life: float | None = None, slots: int = 512) -> UsageHistory:
    return UsageHistory(Sliding(size), half_life=half_life, answer_lasts=0, slots=slots)


def fill(history: UsageHistory, start: float, end: float, held: dict[str, Amounts], step: float = 60.0) -> None:
    at = start
    while at <= end:
        history.record(at, held, CLUSTER)
        at += step


def test_use_is_the_part_of_what_there_was() -> None:
    history = a_history()

    fill(history, 0, HOUR, {"a": Amounts(500, 0, 1), "b": gpus(4), "idle": NONE})

    usage = history.usage(HOUR)
    assert set(usage) == {"a", "b"}
    assert usage["a"] == pytest.approx((0.5, 0, 0.1))
    assert usage["b"] == pytest.approx((0, 0, 0.4))


def test_use_is_weighed_by_how_long_it_lasted() -> None:
    history = a_history()

    fill(history, 0, 900, {"a": gpus(8)})
    fill(history, 960, HOUR, {"a": gpus(0), "b": gpus(2)})

    assert history.usage(HOUR)["a"].gpu == pytest.approx(0.8 * 960 / HOUR)
    assert history.usage(HOUR)["b"].gpu == pytest.approx(0.2 * (HOUR - 960) / HOUR)


def test_capacity_that_changed_counts_for_as_long_as_it_was_there() -> None:
    history = a_history()
    history.record(0, {"a": gpus(5)}, gpus(10))
    history.record(100, {"a": gpus(5)}, gpus(30))
    history.record(200, {}, gpus(30))

    assert history.usage(200)["a"].gpu == pytest.approx(1000 / 4000)


def test_what_left_the_window_is_forgotten() -> None:
    history = a_history()
    fill(history, 0, 1800, {"old": gpus(10)})
    fill(history, 1860, 2 * HOUR, {"new": gpus(5)})

    usage = history.usage(2 * HOUR)

    assert "old" not in usage
    assert usage["new"].gpu == pytest.approx(0.5)
    assert len(history) <= 62


def test_a_window_that_closed_leaves_nothing() -> None:
    history = UsageHistory(Tumbling(size=HOUR, first=0), answer_lasts=0)
    fill(history, 0, HOUR, {"a": gpus(10)})
    assert history.usage(HOUR)["a"].gpu == pytest.approx(1.0)

    fill(history, HOUR + 60, HOUR + 600, {"b": gpus(5)})

    # Until the first record of the new window, a held what it had.
    assert history.usage(HOUR + 600)["a"].gpu == pytest.approx(0.1)
    assert history.usage(HOUR + 600)["b"].gpu == pytest.approx(0.45)


def test_older_use_counts_less() -> None:
    history = a_history(24 * HOUR, half_life=HOUR)
    fill(history, 0, HOUR, {"early": gpus(10)})
    fill(history, HOUR + 60, 2 * HOUR, {"late": gpus(10)})

    usage = history.usage(2 * HOUR)

    assert usage["late"].gpu / usage["early"].gpu == pytest.approx(2.0, rel=0.1)
    assert usage["late"].gpu + usage["early"].gpu == pytest.approx(1.0)


def test_nobody_knows_what_was_while_nobody_looked() -> None:
    history = a_history(24 * HOUR)
    history.record(0, {"a": gpus(10)}, CLUSTER)
    history.record(10 * HOUR, {"b": gpus(10)}, CLUSTER)
    history.record(10 * HOUR + 300, {}, CLUSTER)

    usage = history.usage(10 * HOUR + 300)
    assert (usage["a"].gpu, usage["b"].gpu) == pytest.approx((0.5, 0.5))


def test_a_record_from_before_the_last_is_left_out() -> None:
    history = a_history()
    history.record(100, {"a": gpus(10)}, CLUSTER)
    history.record(50, {"b": gpus(10)}, CLUSTER)
    history.record(200, {}, CLUSTER)

    assert set(history.usage(200)) == {"a"}


def test_a_resource_that_is_not_there_is_not_used() -> None:
    history = a_history()
    history.record(0, {"a": gpus(1)}, Amounts(1000, 0, 0))
    history.record(60, {}, Amounts(1000, 0, 0))

    assert history.usage(60)["a"] == NONE


def test_nothing_recorded_is_nothing_used() -> None:
    assert a_history().usage(1000) == {}


def test_a_week_takes_no_more_room_than_allowed_and_stays_exact() -> None:
    week = 7 * 24 * HOUR
    history = a_history(week, slots=64)
    fill(history, 0, week / 2, {"a": gpus(8)}, step=300)
    fill(history, week / 2 + 300, 1.25 * week, {"b": gpus(4)}, step=300)

    assert len(history) <= 64
    assert history.usage(1.25 * week)["a"].gpu == pytest.approx(0.8 * 0.25, abs=0.005)
    assert history.usage(1.25 * week)["b"].gpu == pytest.approx(0.4 * 0.75, abs=0.005)


def test_an_answer_lasts_a_while() -> None:
    history = UsageHistory(Sliding(HOUR), answer_lasts=60)
    history.record(0, {"a": gpus(10)}, CLUSTER)
    history.record(60, {"b": gpus(10)}, CLUSTER)
    first = history.usage(60)
    history.record(120, {}, CLUSTER)

    assert history.usage(119) is first
    assert set(history.usage(120)) == {"a", "b"}


def test_after_a_restart_it_goes_on_where_it_was() -> None:
    before = a_history()
    fill(before, 0, 1800, {"a": gpus(5)})
    after = a_history()

    after.restore(before.encode())
    for history in (before, after):
        fill(history, 1860, HOUR, {"b": gpus(2)})

    assert after.usage(HOUR) == before.usage(HOUR)
    assert after.usage(HOUR)["a"].gpu == pytest.approx(0.5 * 1860 / HOUR)


@pytest.mark.parametrize(
    "encoded",
    [
        b"",
        b"{",
        b"[]",
        b'{"version":1}',
        b'{"version":2,"length":60,"slots":[]}',
        b'{"version":1,"length":0,"slots":[]}',
        b'{"version":1,"length":60,"slots":[[5,5,[1,1,1],{}]]}',
        b'{"version":1,"length":60,"slots":[[5,9,[1,1],{}]]}',
        b'{"version":1,"length":60,"slots":[[5,9,[1,1,1],{"a":[1]}]]}',
    ],
)
def test_what_cannot_be_read_is_refused_and_changes_nothing(encoded: bytes) -> None:
    history = a_history()
    fill(history, 0, 600, {"a": gpus(5)})
    before = history.usage(600)

    with pytest.raises(UnreadableHistory, match="cannot be read"):
        history.restore(encoded)

    assert history.usage(600) == before


records = st.lists(st.tuples(st.integers(1, 400), st.integers(0, 10), st.integers(0, 10)), min_size=1, max_size=60)


@given(records=records, half_life=st.sampled_from([None, 300.0, 5000.0]), slots=st.sampled_from([2, 8, 512]))
def test_parts_never_add_up_to_more_than_the_whole(
    records: list[tuple[int, int, int]], half_life: float | None, slots: int
) -> None:
    history = a_history(2 * HOUR, half_life=half_life, slots=slots)
    at = 0.0
    for after, first, second in records:
        at += after
        history.record(at, {"a": gpus(first / 2), "b": gpus(second / 2)}, CLUSTER)
        assert len(history) <= slots
        assert sum(part.gpu for part in history.usage(at).values()) <= 1 + 1e-9
