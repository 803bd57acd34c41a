"""How long a pod rests whose binding failed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from shoal.api.meta import format_time
from shoal.api.meta.objects import ObjectMeta
from shoal.api.scheduling_run_ai import BindRequest, BindRequestSpec, BindRequestStatus
from shoal.scheduler.binding.backoff import (
    FAILED_AT,
    FAILURES_BEFORE,
    carried_failures,
    failures,
    is_given_up,
    rests_until,
    retry_after,
)

NOON = datetime(2026, 1, 31, 12, tzinfo=UTC)


def a_request(
    phase: str = "Failed",
    attempts: int | None = 1,
    limit: int | None = None,
    annotations: dict[str, str] | None = None,
) -> BindRequest:
    return BindRequest(
        metadata=ObjectMeta(creation_timestamp=NOON - timedelta(hours=1), annotations=annotations or {}),
        spec=BindRequestSpec(backoff_limit=limit),
        status=BindRequestStatus(phase=phase, failed_attempts=attempts),
    )


@pytest.mark.parametrize(
    ("failed", "seconds"), [(0, 0), (1, 2), (2, 4), (3, 8), (5, 32), (6, 60), (7, 60), (10**9, 60), (-1, 0)]
)
def test_each_failure_doubles_the_rest_up_to_a_minute(failed: int, seconds: float) -> None:
    assert retry_after(failed) == seconds


def test_a_rest_never_gets_shorter() -> None:
    assert all(earlier <= later for earlier, later in pairwise(map(retry_after, range(100))))


def test_a_rest_is_counted_from_the_last_failure() -> None:
    failed = a_request(attempts=3, annotations={FAILED_AT: format_time(NOON)})
    assert rests_until(failed) == NOON + timedelta(seconds=8)


@pytest.mark.parametrize("noted", [pytest.param({}, id="absent"), pytest.param({FAILED_AT: "noon"}, id="unreadable")])
def test_without_a_time_the_rest_is_counted_from_the_request_itself(noted: dict[str, str]) -> None:
    assert rests_until(a_request(annotations=noted)) == NOON - timedelta(hours=1) + timedelta(seconds=2)


@pytest.mark.parametrize("phase", ["", "Pending", "Succeeded"])
def test_what_has_not_failed_does_not_rest(phase: str) -> None:
    assert rests_until(a_request(phase, attempts=None)) is None


def test_failures_are_handed_on_to_the_next_request() -> None:
    first = a_request(attempts=2)
    second = a_request(attempts=1, annotations=carried_failures(first))
    assert failures(second) == 3
    assert carried_failures(second) == {FAILURES_BEFORE: "3"}
    assert rests_until(second) == NOON - timedelta(hours=1) + timedelta(seconds=8)


def test_a_count_that_cannot_be_read_is_none() -> None:
    assert failures(a_request(attempts=1, annotations={FAILURES_BEFORE: "many"})) == 1


@pytest.mark.parametrize(
    ("request_", "given_up"),
    [
        pytest.param(a_request("Pending"), False, id="not failed"),
        pytest.param(a_request("Succeeded"), False, id="done"),
        pytest.param(a_request(), True, id="without a limit the scheduler places it anew"),
        pytest.param(a_request(attempts=1, limit=2), False, id="one attempt left"),
        pytest.param(a_request(attempts=2, limit=2), True, id="none left"),
    ],
)
def test_when_the_binder_gives_a_request_up(request_: BindRequest, given_up: bool) -> None:
    assert is_given_up(request_) is given_up
