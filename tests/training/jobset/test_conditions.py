"""What is said of a JobSet, and what is told."""

from __future__ import annotations

from datetime import timedelta

import pytest

from shoal.api.jobset import JobSetStatus
from shoal.api.meta import Condition
from shoal.training.jobset.conditions import Report, finish_of
from tests.training.jobset.builders import NOW, a_report, a_typed_set, said

EARLIER = NOW - timedelta(hours=1)


def reported(*conditions: Condition) -> Report:
    return a_report(a_typed_set(status=JobSetStatus(conditions=list(conditions))))


def a_condition(type_: str, status: str, reason: str = "Reason") -> Condition:
    return Condition(type=type_, status=status, reason=reason, message="", last_transition_time=EARLIER)  # type: ignore[arg-type] # a literal


def test_nothing_is_denied_that_never_held() -> None:
    report = reported()
    assert report.resumed() is report
    assert report.no_longer_restarting("JobsReady", "all jobs are ready") is report


def test_what_is_said_twice_is_told_once() -> None:
    once = reported().suspended()
    assert once.suspended() is once
    assert [event.reason for event in once.events] == ["SuspendedJobs"]


def test_a_condition_that_comes_true_has_its_time_and_an_event() -> None:
    found = reported(a_condition("Suspended", "True", "SuspendedJobs")).resumed()
    [condition] = found.status.conditions
    assert (condition.status, condition.reason, condition.message) == ("False", "ResumeJobs", "jobset is resumed")
    assert condition.last_transition_time == NOW
    assert [event.reason for event in found.events] == ["ResumeJobs"]


def test_another_reason_is_told_and_keeps_the_time() -> None:
    found = reported(a_condition("Suspended", "True", "Other")).suspended()
    [condition] = found.status.conditions
    assert (condition.reason, condition.last_transition_time) == ("SuspendedJobs", EARLIER)
    assert len(found.events) == 1


def test_startup_is_in_progress_or_completed_and_never_both() -> None:
    begun = reported().starting_in_order()
    done = begun.started_in_order()
    assert {key: status for key, (status, _) in said(done.status.conditions).items()} == {
        "StartupPolicyInProgress": "False",
        "StartupPolicyCompleted": "True",
    }
    again = done.starting_in_order()
    assert said(again.status.conditions)["StartupPolicyCompleted"][0] == "False"
    assert [event.reason for event in again.events] == [
        "InOrderStartupPolicyInProgress",
        "InOrderStartupPolicyCompleted",
        "InOrderStartupPolicyInProgress",
    ]


@pytest.mark.parametrize(
    ("end", "reason"),
    [("completed", "JobSetCompleted"), ("failed", "JobSetFailed"), ("suspended", "JobSetSuspended")],
)
def test_a_restart_is_over_with_whatever_ends_it(end: str, reason: str) -> None:
    report = reported(a_condition("RestartingJobSet", "True"))
    ended = {
        "completed": report.completed,
        "failed": lambda: report.failed("Reason", "message"),
        "suspended": report.suspended,
    }[end]()
    assert said(ended.status.conditions)["RestartingJobSet"] == ("False", reason)


def test_why_none_is_under_way_is_said_anew() -> None:
    found = reported(a_condition("RestartingJobSet", "False", "JobsReady")).failed("Reason", "message")
    assert said(found.status.conditions)["RestartingJobSet"] == ("False", "JobSetFailed")


def test_a_finished_job_set_is_known_by_its_condition() -> None:
    assert finish_of(reported().status) is None
    assert finish_of(reported(a_condition("Failed", "False")).status) is None
    for ended in (reported().completed(), reported().failed("Reason", "message")):
        found = finish_of(ended.status)
        assert found is not None
        assert found.last_transition_time == NOW
        assert found.type == ended.status.terminal_state
