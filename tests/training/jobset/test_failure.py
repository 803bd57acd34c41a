"""What follows from failed Jobs."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest

from shoal.api.jobset import JobSetStatus
from shoal.kube import TerminalError
from shoal.training.jobset.conditions import Report, Said
from shoal.training.jobset.failure import after_failure, decision_of
from shoal.training.jobset.patterns import is_pattern, matches
from tests.training.jobset.builders import (
    NOW,
    a_job,
    a_replicated_job,
    a_report,
    a_status,
    a_typed_set,
    restarted,
    said,
)

TWO = (a_replicated_job("leader"), a_replicated_job("workers", 2))


def a_failing_set(policy: dict[str, Any] | None, status: JobSetStatus | None = None) -> Any:
    whole = status or JobSetStatus(replicated_jobs_status=[a_status("workers"), a_status("leader")])
    return a_typed_set(*TWO, status=whole, **({"failurePolicy": policy} if policy is not None else {}))


def outcome(job_set: Any, *failed: Any, single: bool = False) -> Report:
    return after_failure(a_report(job_set), failed, restarts_single_jobs=single)


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        pytest.param([], ("RestartJobSet", "train-leader-0", None), id="none: everything is restarted"),
        pytest.param([{"action": "FailJobSet"}], ("FailJobSet", "train-leader-0", "failurePolicyRule0"), id="all"),
        pytest.param(
            [{"action": "FailJobSet", "targetReplicatedJobs": ["workers"]}],
            ("FailJobSet", "train-workers-1", "failurePolicyRule0"),
            id="of one replicated job",
        ),
        pytest.param(
            [{"action": "FailJobSet", "onJobFailureReasons": ["PodFailurePolicy"]}],
            ("FailJobSet", "train-workers-0", "failurePolicyRule0"),
            id="by its reason",
        ),
        pytest.param(
            [{"action": "FailJobSet", "onJobFailureMessagePatterns": ["exit code [0-9]+$"]}],
            ("FailJobSet", "train-workers-0", "failurePolicyRule0"),
            id="by its message",
        ),
        pytest.param(
            [{"action": "FailJobSet", "onJobFailureMessagePatterns": ["(", "^has reached"]}],
            ("FailJobSet", "train-leader-0", "failurePolicyRule0"),
            id="by any pattern, and what is none matches nothing",
        ),
        pytest.param(
            [
                {"action": "FailJobSet", "onJobFailureReasons": ["DeadlineExceeded"]},
                {"name": "second", "action": "RestartJobSetAndIgnoreMaxRestarts"},
                {"action": "FailJobSet"},
            ],
            ("RestartJobSetAndIgnoreMaxRestarts", "train-leader-0", "second"),
            id="the first that fits",
        ),
        pytest.param(
            [
                {
                    "action": "FailJobSet",
                    "targetReplicatedJobs": ["leader"],
                    "onJobFailureReasons": ["PodFailurePolicy"],
                }
            ],
            ("RestartJobSet", "train-leader-0", None),
            id="all that a rule asks for",
        ),
    ],
)
def test_the_first_rule_that_a_failed_job_fits_decides(
    rules: list[dict[str, Any]], expected: tuple[str, str, str | None]
) -> None:
    job_set = a_failing_set({"rules": rules})
    failed = [
        a_job(
            job_set,
            "workers",
            0,
            end="Failed",
            reason="PodFailurePolicy",
            message="container failed with exit code 42",
            at=NOW + timedelta(seconds=2),
        ),
        a_job(job_set, "workers", 1, end="Failed", reason="BackoffLimitExceeded", at=NOW + timedelta(seconds=1)),
        a_job(job_set, "leader", end="Failed", reason="BackoffLimitExceeded", message="has reached the limit"),
    ]
    found = decision_of(job_set.spec.failure_policy, failed)
    assert found is not None
    assert (found.action, found.job.metadata.name, found.rule.name if found.rule else None) == expected


def test_without_a_policy_the_job_set_fails() -> None:
    job_set = a_failing_set(None)
    found = outcome(job_set, a_job(job_set, "workers", 1, end="Failed"))
    message = "jobset failed due to one or more job failures (first failed job: train-workers-1)"
    assert (said(found.status.conditions), found.status.terminal_state) == (
        {"Failed": ("True", "FailedJobs")},
        "Failed",
    )
    assert found.events == (Said("FailedJobs", message, is_bad=True),)


def test_a_rule_may_fail_it() -> None:
    job_set = a_failing_set({"maxRestarts": 3, "rules": [{"action": "FailJobSet"}]})
    found = outcome(job_set, a_job(job_set, end="Failed"))
    assert said(found.status.conditions) == {"Failed": ("True", "FailJobSetFailurePolicyAction")}
    [event] = found.events
    assert event.message == "applying FailJobSet failure policy action (first failed job: train-leader-0)"


@pytest.mark.parametrize(
    ("action", "counting", "reason"),
    [
        pytest.param("RestartJobSet", 2, "RestartJobSetFailurePolicyAction", id="counts"),
        pytest.param(
            "RestartJobSetAndIgnoreMaxRestarts",
            1,
            "RestartJobSetAndIgnoreMaxRestartsFailurePolicyAction",
            id="does not count",
        ),
    ],
)
def test_a_restart_is_counted_and_told(action: str, counting: int, reason: str) -> None:
    job_set = a_failing_set(
        {"maxRestarts": 2, "rules": [{"name": "again", "action": action}]}, restarted(3, counting=1)
    )
    found = outcome(job_set, a_job(job_set, end="Failed"))
    assert (found.status.restarts, found.status.restarts_count_towards_max) == (4, counting)
    assert said(found.status.conditions) == {"RestartingJobSet": ("True", "FailurePolicy_again")}
    assert [event.reason for event in found.events] == ["FailurePolicy_again", reason]
    assert not found.status.terminal_state


@pytest.mark.parametrize(
    ("policy", "ends"),
    [
        pytest.param({}, True, id="never where unset"),
        pytest.param({"maxRestarts": 2}, True, id="not more than allowed"),
        pytest.param({"maxRestarts": 3}, False, id="up to what is allowed"),
        pytest.param({"rules": [{"action": "RestartJobSetAndIgnoreMaxRestarts"}]}, False, id="always where ignored"),
    ],
)
def test_restarts_end_where_there_were_enough(policy: dict[str, Any], ends: bool) -> None:
    job_set = a_failing_set(policy, restarted(5, counting=2))
    found = outcome(job_set, a_job(job_set, end="Failed"))
    assert (found.status.terminal_state == "Failed") is ends
    if ends:
        assert said(found.status.conditions) == {"Failed": ("True", "ReachedMaxRestarts")}
        message = "jobset failed due to reaching max number of restarts (first failed job: train-leader-0)"
        assert found.events[0].message == message


def test_a_job_set_that_fails_is_not_restarting_any_more() -> None:
    job_set = a_failing_set({"maxRestarts": 1})
    restarting = outcome(job_set, a_job(job_set, end="Failed"))
    again = a_failing_set({"maxRestarts": 1}, restarting.status)
    found = outcome(again, a_job(again, end="Failed"))
    assert said(found.status.conditions) == {
        "RestartingJobSet": ("False", "JobSetFailed"),
        "Failed": ("True", "ReachedMaxRestarts"),
    }


@pytest.mark.parametrize(("action", "counting"), [("RestartJob", [0, 1]), ("RestartJobAndIgnoreMaxRestarts", [])])
def test_one_job_is_restarted_alone(action: str, counting: list[int]) -> None:
    job_set = a_failing_set({"maxRestarts": 1, "rules": [{"name": "one", "action": action}]})
    found = outcome(job_set, a_job(job_set, "workers", 1, end="Failed"), single=True)
    workers, leader = found.status.replicated_jobs_status
    assert (workers.job_restarts, workers.job_restarts_count_towards_max) == ([0, 1], counting)
    assert (leader.job_restarts, found.status.restarts) == ([], 0)
    assert [event.reason for event in found.events] == [f"{action}FailurePolicyAction"]
    assert found.status.conditions == []


@pytest.mark.parametrize("action", ["RestartJob", "RestartJobSet"])
def test_restarts_of_single_jobs_count_with_those_of_the_whole(action: str) -> None:
    statuses = [a_status("workers", job_restarts=[1, 1], job_restarts_count_towards_max=[1, 1]), a_status("leader")]
    status = restarted(1, replicated_jobs_status=statuses)
    job_set = a_failing_set({"maxRestarts": 3, "rules": [{"name": "one", "action": action}]}, status)
    found = outcome(job_set, a_job(job_set, "workers", 1, end="Failed"), single=True)
    assert said(found.status.conditions) == {"Failed": ("True", "ReachedMaxRestarts")}


@pytest.mark.parametrize("action", ["RestartJob", "RestartJobAndIgnoreMaxRestarts"])
def test_what_is_not_enabled_is_refused_and_not_replaced_by_something_else(action: str) -> None:
    job_set = a_failing_set({"maxRestarts": 1, "rules": [{"name": "one", "action": action}]})
    with pytest.raises(TerminalError, match=f"rule one of spec.failurePolicy asks for {action}, which is not enabled"):
        outcome(job_set, a_job(job_set, end="Failed"))


@pytest.mark.parametrize(
    ("pattern", "message", "expected"),
    [
        ("code 4", "exit code 42", True),
        ("^code", "exit code 42", False),
        ("(?i)EXIT", "exit code 42", True),
        (r"code \d+\z", "exit code 42", True),
        (r"\pL+", "é", True),
        ("(a+)+$", "a" * 5000 + "b", False),
        ("(", "(", False),
        ("(?=e)", "exit", False),
    ],
)
def test_patterns_are_read_as_go_reads_them(pattern: str, message: str, expected: bool) -> None:
    assert matches(pattern, message) is expected


@pytest.mark.parametrize(("pattern", "expected"), [("a+", True), ("", True), ("(", False), ("(?=a)", False)])
def test_what_is_no_pattern_is_known(pattern: str, expected: bool) -> None:
    assert is_pattern(pattern) is expected
