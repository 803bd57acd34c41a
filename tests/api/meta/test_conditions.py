from datetime import UTC, datetime, timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.meta.conditions import (
    Condition,
    ConditionStatus,
    find_condition,
    is_true,
    remove_condition,
    set_condition,
)

NOW = datetime(2026, 1, 31, 9, 30, tzinfo=UTC)
BEFORE = NOW - timedelta(hours=1)


def a_condition(
    kind: str,
    status: ConditionStatus = "True",
    *,
    since: datetime | None = BEFORE,
    reason: str = "",
    generation: int = 0,
) -> Condition:
    return Condition(
        type=kind, status=status, last_transition_time=since, reason=reason, observed_generation=generation
    )


def test_a_new_condition_goes_to_the_end_with_the_time_of_now() -> None:
    before = [a_condition("First"), a_condition("Third")]
    after = set_condition(before, a_condition("Second", since=None), NOW)
    assert after == [a_condition("First"), a_condition("Third"), a_condition("Second", since=NOW)]
    assert before == [a_condition("First"), a_condition("Third")]


def test_a_changed_status_is_set_in_its_place_and_moves_the_time() -> None:
    before = [a_condition("First"), a_condition("Ready", "False"), a_condition("Third")]
    after = set_condition(before, a_condition("Ready", "True", since=None, reason="PodsReady"), NOW)
    assert after == [
        a_condition("First"),
        a_condition("Ready", "True", since=NOW, reason="PodsReady"),
        a_condition("Third"),
    ]


def test_a_time_that_the_condition_brings_is_used() -> None:
    brought = NOW - timedelta(minutes=5)
    [appended] = set_condition([], a_condition("Ready", since=brought), NOW)
    [changed] = set_condition([a_condition("Ready", "False")], a_condition("Ready", since=brought), NOW)
    assert appended.last_transition_time == changed.last_transition_time == brought


@pytest.mark.parametrize(
    "new",
    [
        pytest.param(a_condition("Ready", since=None, reason="Other"), id="reason"),
        pytest.param(a_condition("Ready", since=None, generation=3), id="generation"),
        pytest.param(msgspec.structs.replace(a_condition("Ready"), message="two pods"), id="message"),
        pytest.param(a_condition("Ready", since=NOW, reason="Other"), id="with a time of its own"),
    ],
)
def test_other_changes_leave_the_time_of_transition(new: Condition) -> None:
    [after] = set_condition([a_condition("Ready")], new, NOW)
    assert after == msgspec.structs.replace(new, last_transition_time=BEFORE)


@pytest.mark.parametrize("since", [None, BEFORE, NOW], ids=["no time", "the old time", "another time"])
def test_nothing_new_gives_the_same_list(since: datetime | None) -> None:
    before = [a_condition("First"), a_condition("Ready")]
    assert set_condition(before, a_condition("Ready", since=since), NOW) is before


def test_removing_keeps_the_order_and_the_list_where_there_is_nothing_to_remove() -> None:
    before = [a_condition("First"), a_condition("Second"), a_condition("Third")]
    assert remove_condition(before, "Second") == [a_condition("First"), a_condition("Third")]
    assert remove_condition(before, "Fourth") is before
    assert remove_condition([], "Any") == []


def test_a_condition_is_found_by_its_type() -> None:
    conditions = [a_condition("First"), a_condition("Second", "False")]
    assert find_condition(conditions, "Second") is conditions[1]
    assert find_condition(conditions, "Third") is None


@pytest.mark.parametrize(
    ("conditions", "expected"),
    [
        pytest.param([a_condition("Ready", "True")], True, id="true"),
        pytest.param([a_condition("Ready", "False")], False, id="false"),
        pytest.param([a_condition("Ready", "Unknown")], False, id="unknown"),
        pytest.param([a_condition("Other", "True")], False, id="absent"),
    ],
)
def test_only_true_is_true(conditions: list[Condition], expected: bool) -> None:
    assert is_true(conditions, "Ready") is expected


def test_a_condition_is_written_with_all_fields_that_the_schema_requires() -> None:
    written = msgspec.json.encode(set_condition([], Condition(type="Ready", status="True"), NOW))
    assert msgspec.json.decode(written) == [
        {"type": "Ready", "status": "True", "lastTransitionTime": "2026-01-31T09:30:00Z", "reason": "", "message": ""}
    ]


def test_a_condition_of_a_looser_kind_can_be_read() -> None:
    read = msgspec.json.decode(b'{"type": "Ready", "status": "False", "lastProbeTime": null}', type=Condition)
    assert read == Condition(type="Ready", status="False")


conditions = st.builds(
    a_condition,
    st.sampled_from(["Ready", "Scheduled", "Failed"]),
    st.sampled_from(["True", "False", "Unknown"]),
    since=st.none() | st.just(BEFORE),
    reason=st.sampled_from(["", "Because"]),
)


@given(st.lists(conditions, unique_by=lambda condition: condition.type), conditions)
def test_setting_twice_is_setting_once(present: list[Condition], new: Condition) -> None:
    once = set_condition(present, new, NOW)
    assert set_condition(once, new, NOW + timedelta(hours=1)) is once
    assert [condition for condition in once if condition.type != new.type] == remove_condition(present, new.type)
    placed = find_condition(once, new.type)
    assert placed is not None
    assert placed.last_transition_time is not None
    assert (placed.status, placed.reason) == (new.status, new.reason)
