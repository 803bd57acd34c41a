"""When replicated jobs start, and when a JobSet has succeeded."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.training.jobset.startup import startup_of
from shoal.training.jobset.success import has_succeeded
from tests.training.jobset.builders import a_job, a_replicated_job, a_status, a_typed_set

TWO = a_replicated_job("a", 2)


@pytest.mark.parametrize(
    ("wanted", "status", "starts"),
    [
        ("Complete", {"succeeded": 2}, True),
        ("Complete", {"succeeded": 1, "ready": 1}, False),
        ("Complete", {"succeeded": 1, "failed": 1}, False),
        ("Ready", {"ready": 2}, True),
        ("Ready", {"ready": 1, "succeeded": 1}, True),
        ("Ready", {"failed": 1, "succeeded": 1}, True),
        ("Ready", {"ready": 1}, False),
    ],
)
@pytest.mark.parametrize("suspend", [True, False])
def test_a_replicated_job_starts_once_its_dependency_is_met(
    wanted: str, status: dict[str, int], starts: bool, suspend: bool
) -> None:
    job_set = a_typed_set(TWO, a_replicated_job("b", depends_on={"a": wanted}), suspend=suspend)
    found = startup_of(job_set, [a_status("b"), a_status("a", **status)])
    assert [each.name for each in found.may_start] == (["a", "b"] if starts else ["a"])


def test_every_dependency_has_to_be_met() -> None:
    job_set = a_typed_set(TWO, a_replicated_job("b"), a_replicated_job("c", depends_on={"a": "Ready", "b": "Complete"}))
    statuses = [a_status("c"), a_status("b", ready=1), a_status("a", ready=2)]
    assert [each.name for each in startup_of(job_set, statuses).may_start] == ["a", "b"]


IN_ORDER = {"startupPolicyOrder": "InOrder"}


@pytest.mark.parametrize(
    ("first", "second", "may_start", "waits"),
    [
        pytest.param({}, {}, ["a"], True, id="the first one first"),
        pytest.param({"ready": 1}, {}, ["a"], True, id="until all of it is ready"),
        pytest.param({"ready": 1, "failed": 1}, {}, ["b"], True, id="then the second"),
        pytest.param({"ready": 2}, {"succeeded": 1}, [], False, id="until all have started"),
    ],
)
def test_in_order_the_first_that_has_not_started_keeps_the_rest_waiting(
    first: dict[str, int], second: dict[str, int], may_start: list[str], waits: bool
) -> None:
    job_set = a_typed_set(TWO, a_replicated_job("b"), startupPolicy=IN_ORDER)
    found = startup_of(job_set, [a_status("b", **second), a_status("a", **first)])
    assert ([each.name for each in found.may_start], found.waits_in_order) == (may_start, waits)


def test_a_suspended_job_set_is_made_whole_whatever_its_order() -> None:
    job_set = a_typed_set(TWO, a_replicated_job("b"), startupPolicy=IN_ORDER, suspend=True)
    found = startup_of(job_set, [a_status("b"), a_status("a")])
    assert ([each.name for each in found.may_start], found.waits_in_order) == (["a", "b"], False)


@pytest.mark.parametrize(
    ("policy", "done", "expected"),
    [
        pytest.param(None, {"a": 2, "b": 1}, True, id="all by default"),
        pytest.param(None, {"a": 2}, False, id="all means all"),
        pytest.param({"operator": "All", "targetReplicatedJobs": ["a"]}, {"a": 2}, True, id="all of some"),
        pytest.param({"operator": "All", "targetReplicatedJobs": ["a"]}, {"a": 1, "b": 1}, False, id="not others"),
        pytest.param({"operator": "Any"}, {"b": 1}, True, id="any"),
        pytest.param({"operator": "Any", "targetReplicatedJobs": ["b"]}, {"a": 2}, False, id="any of some"),
        pytest.param({"operator": "Any", "targetReplicatedJobs": ["b"]}, {"b": 1}, True, id="any of these"),
        pytest.param({"operator": "All", "targetReplicatedJobs": ["b"]}, {}, False, id="none"),
    ],
)
def test_a_job_set_has_succeeded_by_its_policy(
    policy: dict[str, Any] | None, done: dict[str, int], expected: bool
) -> None:
    job_set = a_typed_set(TWO, a_replicated_job("b"), successPolicy=policy)
    jobs = [a_job(job_set, name, index, end="Complete") for name, count in done.items() for index in range(count)]
    assert has_succeeded(job_set, jobs) is expected
