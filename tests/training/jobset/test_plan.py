"""All that one reconcile does, in its order."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.batch import Job
from shoal.api.jobset import JobSet, JobSetStatus, names
from shoal.training.jobset.conditions import Report
from shoal.training.jobset.plan import NOTHING, Plan, Seen, plan_of
from shoal.training.jobset.settings import JobSetSettings
from tests.training.jobset.builders import NOW, a_job, a_replicated_job, a_typed_set, restarted, said

TWO = (a_replicated_job("a", 2), a_replicated_job("b"))


def planned(job_set: JobSet, *jobs: Job, seconds: float = 0.0, **seen: Any) -> Plan:
    return plan_of(job_set, Seen(jobs=jobs, **seen), JobSetSettings(), NOW + timedelta(seconds=seconds))


def created(plan: Plan) -> list[str]:
    return [body["metadata"]["name"] for body in plan.work.create]


def deleted(plan: Plan) -> list[str]:
    return [job.metadata.name for job in plan.delete]


def test_at_first_all_is_made() -> None:
    plan = planned(a_typed_set(*TWO))
    assert created(plan) == ["train-a-0", "train-a-1", "train-b-0"]
    assert plan.work.service is not None
    assert [each.name for each in plan.status.replicated_jobs_status] == ["b", "a"]
    assert (plan.status.conditions, plan.events) == ([], ())


def test_what_is_there_is_not_made_again() -> None:
    job_set = a_typed_set(*TWO)
    plan = planned(job_set, a_job(job_set, "a", 1), a_job(job_set, "b", is_deleting=True), has_service=True)
    assert (created(plan), plan.work.service) == (["train-a-0"], None)


@pytest.mark.parametrize(("strategy", "expected"), [("Recreate", ["train-a-0", "train-b-0"]), ("BlockingRecreate", [])])
def test_after_a_restart_a_job_is_made_once_its_namesake_or_all_of_them_are_gone(
    strategy: str, expected: list[str]
) -> None:
    policy = {"maxRestarts": 3, "restartStrategy": strategy}
    job_set = a_typed_set(*TWO, failurePolicy=policy, status=restarted(1))
    plan = planned(job_set, a_job(job_set, "a", 1, labels={names.RESTART_ATTEMPT: "0"}))
    assert (created(plan), deleted(plan)) == (expected, ["train-a-1"])


def test_failure_comes_before_success() -> None:
    job_set = a_typed_set(*TWO, successPolicy={"operator": "Any"})
    plan = planned(job_set, a_job(job_set, "a", end="Failed"), a_job(job_set, "b", end="Complete"))
    assert (plan.status.terminal_state, plan.work) == ("Failed", NOTHING)


def test_a_job_set_that_succeeded_makes_nothing_more() -> None:
    job_set = a_typed_set(*TWO, successPolicy={"operator": "Any"})
    plan = planned(job_set, a_job(job_set, "b", end="Complete"))
    assert (plan.status.terminal_state, plan.work) == ("Completed", NOTHING)


def ended(job_set: JobSet, *, seconds_ago: float = 0.0) -> JobSet:
    moment = NOW - timedelta(seconds=seconds_ago)
    status = Report(job_set=job_set, status=job_set.status, now=moment).completed().status
    return msgspec.structs.replace(job_set, status=status)


def test_what_is_left_of_a_finished_job_set_is_deleted() -> None:
    job_set = ended(a_typed_set(*TWO))
    plan = planned(
        job_set,
        a_job(job_set, "a", 0),
        a_job(job_set, "a", 1, end="Complete"),
        a_job(job_set, "b", end="Failed"),
    )
    assert (deleted(plan), plan.work, plan.is_expired, plan.again_after) == (["train-a-0"], NOTHING, False, None)
    assert plan.status.terminal_state == "Completed"


@pytest.mark.parametrize(
    ("ttl", "seconds_ago", "expected"),
    [
        pytest.param(None, 1000, (False, None), id="it stays"),
        pytest.param(0, 0, (True, None), id="at once"),
        pytest.param(60, 20, (False, 40.0), id="not yet"),
        pytest.param(60, 60, (True, None), id="just now"),
        pytest.param(60, 99, (True, None), id="late"),
    ],
)
def test_a_finished_job_set_goes_when_its_time_is_over(
    ttl: int | None, seconds_ago: float, expected: tuple[bool, float | None]
) -> None:
    plan = planned(ended(a_typed_set(ttlSecondsAfterFinished=ttl), seconds_ago=seconds_ago))
    assert (plan.is_expired, plan.again_after) == expected


def test_suspended_jobs_are_made_and_running_ones_are_stopped() -> None:
    job_set = a_typed_set(*TWO, suspend=True)
    plan = planned(job_set, a_job(job_set, "a", 0, suspend=False), a_job(job_set, "a", 1, suspend=True))
    assert created(plan) == ["train-b-0"]
    assert plan.work.create[0]["spec"]["suspend"] is True
    assert [job.metadata.name for job in plan.work.suspend] == ["train-a-0"]
    assert said(plan.status.conditions) == {"Suspended": ("True", "SuspendedJobs")}


def test_only_what_may_start_is_resumed() -> None:
    suspended = planned(a_typed_set(*TWO, suspend=True)).status
    second = a_replicated_job("b", depends_on={"a": "Ready"})
    job_set = a_typed_set(a_replicated_job("a"), second, status=suspended)
    plan = planned(job_set, a_job(job_set, "a", suspend=True), a_job(job_set, "b", suspend=True))
    assert [each.job.metadata.name for each in plan.work.resume] == ["train-a-0"]
    assert said(plan.status.conditions) == {"Suspended": ("False", "ResumeJobs")}


def test_in_order_a_job_set_is_resumed_once_all_have_started() -> None:
    order = {"startupPolicyOrder": "InOrder"}
    suspended = planned(a_typed_set(*TWO, startupPolicy=order, suspend=True)).status
    job_set = a_typed_set(a_replicated_job("a"), a_replicated_job("b"), startupPolicy=order, status=suspended)
    waiting = a_job(job_set, "b", suspend=True)
    first = planned(job_set, a_job(job_set, "a", suspend=True), waiting)
    assert [each.job.metadata.name for each in first.work.resume] == ["train-a-0"]
    assert said(first.status.conditions) == {
        "Suspended": ("True", "SuspendedJobs"),
        "StartupPolicyInProgress": ("True", "InOrderStartupPolicyInProgress"),
    }
    second = planned(job_set, a_job(job_set, "a", ready=1), waiting)
    assert [each.job.metadata.name for each in second.work.resume] == ["train-b-0"]
    last = planned(job_set, a_job(job_set, "a", ready=1), a_job(job_set, "b", ready=1))
    assert said(last.status.conditions) == {
        "Suspended": ("False", "ResumeJobs"),
        "StartupPolicyCompleted": ("True", "InOrderStartupPolicyCompleted"),
    }


STATES: dict[str, dict[str, Any]] = {
    "absent": {},
    "new": {},
    "ready": {"ready": 1, "active": 1},
    "waits": {"suspend": True},
    "done": {"end": "Complete"},
    "failed": {"end": "Failed"},
    "previous": {"labels": {names.RESTART_ATTEMPT: "0"}},
}
POLICIES: list[dict[str, Any]] = [
    {},
    {"failurePolicy": {"maxRestarts": 1}},
    {"failurePolicy": {"maxRestarts": 3, "restartStrategy": "BlockingRecreate"}},
    {"startupPolicy": {"startupPolicyOrder": "InOrder"}},
    {"successPolicy": {"operator": "Any"}},
    {"suspend": True},
]


@given(st.lists(st.sampled_from(sorted(STATES)), min_size=3, max_size=3), st.sampled_from(POLICIES))
def test_a_plan_never_undoes_itself(states: list[str], policy: dict[str, Any]) -> None:
    """What is made is not deleted at once, no Job is made twice, and what was said once is not said again."""
    job_set = a_typed_set(*TWO, status=restarted(1), **policy)
    places = [("a", 0), ("a", 1), ("b", 0)]
    jobs = [
        a_job(job_set, *place, **STATES[state])
        for place, state in zip(places, states, strict=True)
        if state != "absent"
    ]
    plan = planned(job_set, *jobs)
    there = {job.metadata.name for job in jobs}
    assert not there & set(created(plan))
    assert len(set(created(plan))) == len(created(plan))
    assert not {job.metadata.name for job in plan.work.suspend} & {each.job.metadata.name for each in plan.work.resume}
    if plan.status.terminal_state or plan.status.restarts > job_set.status.restarts:
        assert plan.work == NOTHING
    if plan.status.restarts == job_set.status.restarts:
        again = planned(msgspec.structs.replace(job_set, status=plan.status), *jobs)
        assert again.status == plan.status
        assert again.events == ()


def test_a_status_of_nothing_is_no_news() -> None:
    empty = msgspec.structs.replace(a_typed_set(), spec=msgspec.structs.replace(a_typed_set().spec, replicated_jobs=[]))
    assert planned(empty, has_service=True).status == JobSetStatus()
