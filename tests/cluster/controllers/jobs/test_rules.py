"""What a Job's pods and its spec ask for, as rules without a server."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.batch import (
    FAILURE_TARGET,
    ConditionPattern,
    ExitCodes,
    Job,
    JobCondition,
    JobSpec,
    PodFailurePolicy,
    PodFailureRule,
    SuccessPolicy,
    SuccessRule,
)
from shoal.api.core import Pod
from shoal.cluster.controllers.jobs.backoff import Streak, finished_at
from shoal.cluster.controllers.jobs.ending import ending_of
from shoal.cluster.controllers.jobs.failure_policy import verdict_on
from shoal.cluster.controllers.jobs.indexes import Indexes
from shoal.cluster.controllers.jobs.observed import observe
from shoal.cluster.controllers.jobs.plan import plan_pods
from shoal.cluster.controllers.jobs.pods import indexed_prefix
from shoal.cluster.controllers.jobs.success_policy import matched_rule
from shoal.cluster.controllers.jobs.tracking import AT_ONCE, counted, reckon, tracked_uids
from tests.cluster.controllers.jobs.builders import NOON, a_job, a_job_pod

INDEXED: dict[str, Any] = {"completionMode": "Indexed"}


# Indexes


@given(st.sets(st.integers(0, 40)), st.sets(st.integers(0, 40)))
def test_ranges_are_a_set_of_indexes(mine: set[int], theirs: set[int]) -> None:
    both = Indexes.of(mine) | Indexes.of(theirs)
    assert both == Indexes.of(mine | theirs)
    assert len(both) == len(mine | theirs)
    assert {index for index in range(42) if index in both} == mine | theirs
    assert Indexes.of(mine).common(Indexes.of(theirs)) == len(mine & theirs)
    assert Indexes.parse(str(both), below=50) == both
    missing = [index for index in range(30) if index not in mine]
    assert Indexes.of(mine).first_missing(7, below=30) == missing[:7]


@pytest.mark.parametrize(
    ("text", "below", "read"),
    [
        pytest.param("", 10, "", id="nothing"),
        pytest.param("1,2,3,5", 10, "1-3,5", id="neighbours are one range"),
        pytest.param("0,1,4-6", 10, "0,1,4-6", id="two neighbours stay apart in words"),
        pytest.param("0-6,8", 5, "0-4", id="a smaller Job forgets what is beyond it"),
        pytest.param("0,x,3-y,4", 10, "0,4", id="what is no number is passed over"),
    ],
)
def test_indexes_are_read_as_the_status_has_them(text: str, below: int, read: str) -> None:
    assert str(Indexes.parse(text, below=below)) == read


# Policies


@pytest.mark.parametrize(
    ("rule", "pod", "action"),
    [
        pytest.param({"codes": ("In", [1, 42])}, a_job_pod("Failed", code=42), "FailJob", id="code in"),
        pytest.param({"codes": ("In", [1])}, a_job_pod("Failed", code=42), "", id="code not in"),
        pytest.param({"codes": ("NotIn", [1])}, a_job_pod("Failed", code=42), "FailJob", id="other than"),
        pytest.param({"codes": ("NotIn", [1])}, a_job_pod("Failed", code=0), "", id="success is never meant"),
        pytest.param({"codes": ("In", [42]), "container": "other"}, a_job_pod("Failed", code=42), "", id="another one"),
        pytest.param(
            {"condition": ("DisruptionTarget", "True")},
            a_job_pod("Failed", conditions={"DisruptionTarget": "True"}),
            "FailJob",
            id="condition",
        ),
        pytest.param(
            {"condition": ("DisruptionTarget", "True")},
            a_job_pod("Failed", conditions={"DisruptionTarget": "False"}),
            "",
            id="condition that does not hold",
        ),
    ],
)
def test_a_rule_speaks_of_the_pods_that_match_it(rule: dict[str, Any], pod: Pod, action: str) -> None:
    codes, conditions = None, []
    if "codes" in rule:
        codes = ExitCodes(container_name=rule.get("container"), operator=rule["codes"][0], values=rule["codes"][1])
    else:
        conditions = [ConditionPattern(type=rule["condition"][0], status=rule["condition"][1])]
    policy = PodFailurePolicy(
        rules=[PodFailureRule(action="FailJob", on_exit_codes=codes, on_pod_conditions=conditions)]
    )
    assert verdict_on(pod, policy).action == action


def test_the_first_rule_that_matches_decides() -> None:
    codes = ExitCodes(operator="In", values=[1])
    rules = [PodFailureRule(action=action, on_exit_codes=codes) for action in ("Ignore", "FailJob")]
    verdict = verdict_on(a_job_pod("Failed", code=1), PodFailurePolicy(rules=rules))
    assert not verdict.counts
    assert not verdict.message


@pytest.mark.parametrize(
    ("rules", "succeeded", "message"),
    [
        pytest.param([SuccessRule(succeeded_indexes="0,2-3")], "0,2-4", "Matched rules at index 0", id="all named"),
        pytest.param([SuccessRule(succeeded_indexes="0,2-3")], "0,3", "", id="one is missing"),
        pytest.param(
            [SuccessRule(succeeded_indexes="0-3", succeeded_count=2)], "1,3", "Matched rules at index 0", id="enough"
        ),
        pytest.param(
            [SuccessRule(succeeded_indexes="9"), SuccessRule(succeeded_count=1)],
            "4",
            "Matched rules at index 1",
            id="the second rule",
        ),
        pytest.param([SuccessRule(succeeded_count=0)], "", "", id="nothing succeeded yet"),
    ],
)
def test_a_success_policy_is_met_by_the_indexes_that_succeeded(
    rules: list[SuccessRule], succeeded: str, message: str
) -> None:
    spec = JobSpec(completions=5, success_policy=SuccessPolicy(rules=rules))
    assert matched_rule(spec, Indexes.parse(succeeded, below=5)) == message


# Waiting after failures


@pytest.mark.parametrize(
    ("failures", "since", "wait"),
    [(0, 0, 0), (1, 0, 10), (1, 4, 6), (1, 11, 0), (3, 0, 40), (7, 0, 600), (5000, 100, 500)],
)
def test_the_wait_doubles_with_each_failure_in_a_row(failures: int, since: float, wait: float) -> None:
    assert Streak(failures, NOON).wait(NOON + timedelta(seconds=since)) == wait


def test_a_success_ends_the_streak_before_it() -> None:
    streak = Streak(4, NOON).after(
        [a_job_pod("Succeeded", ended=10)], [a_job_pod("Failed", ended=5), a_job_pod("Failed", ended=20)]
    )
    assert streak == Streak(1, NOON + timedelta(seconds=20))
    assert Streak(4, NOON).after([a_job_pod("Succeeded", ended=10)], []) == Streak()
    assert Streak(1, NOON).after([], [a_job_pod("Failed", ended=7)]).failures == 2


@pytest.mark.parametrize(
    ("pod", "seconds"),
    [
        pytest.param(a_job_pod("Failed", ended=7, conditions={"Ready": "False"}), 7, id="by its containers"),
        pytest.param(a_job_pod("Failed", conditions={"Ready": "False"}, created=-9), 0, id="by its readiness"),
        pytest.param(a_job_pod("Running", deleted=True, created=-9), 0, id="by its deletion"),
        pytest.param(a_job_pod("Failed", created=-9), -9, id="by its beginning"),
    ],
)
def test_when_a_pod_ended_is_told_as_well_as_it_can_be(pod: Pod, seconds: float) -> None:
    assert finished_at(pod) == NOON + timedelta(seconds=seconds)


# Making and deleting pods


@pytest.mark.parametrize(
    ("job", "pods", "create", "delete"),
    [
        pytest.param(a_job(parallelism=2, completions=5), [], [None] * 2, 0, id="as many as run at once"),
        pytest.param(
            a_job(parallelism=9, completions=2), [a_job_pod("Succeeded")], [None], 0, id="as many as are left"
        ),
        pytest.param(a_job(parallelism=1, completions=5), [a_job_pod(), a_job_pod()], [], 1, id="too many"),
        pytest.param(
            a_job(parallelism=3), [a_job_pod(), a_job_pod("Succeeded")], [], 0, id="a queue that has succeeded"
        ),
        pytest.param(a_job(parallelism=2, suspend=True), [a_job_pod(), a_job_pod()], [], 2, id="suspended"),
        pytest.param(a_job(parallelism=1000, completions=1000), [], [None] * 500, 0, id="not all at once"),
        pytest.param(a_job(parallelism=3, **INDEXED), [a_job_pod(index=1)], [0, 2], 0, id="the lowest indexes"),
        pytest.param(
            a_job(parallelism=3, status={"completedIndexes": "0"}, **INDEXED), [], [1, 2], 0, id="without the done ones"
        ),
        pytest.param(
            a_job(parallelism=3, **INDEXED), [a_job_pod(index=0), a_job_pod(index=0)], [], 1, id="an index twice"
        ),
        pytest.param(
            a_job(parallelism=3, **INDEXED), [a_job_pod(index=7), a_job_pod(index="x"), a_job_pod()], [], 3, id="none"
        ),
        pytest.param(
            a_job(parallelism=1, completions=1), [a_job_pod("Running", deleted=True)], [], 0, id="deleted: it waits"
        ),
        pytest.param(
            a_job(parallelism=1, completions=1, podReplacementPolicy="Failed"),
            [a_job_pod("Running", deleted=True)],
            [],
            0,
            id="one that goes is waited for",
        ),
        pytest.param(
            a_job(parallelism=2, podReplacementPolicy="Failed", **INDEXED),
            [a_job_pod("Running", index=0, deleted=True)],
            [1],
            0,
            id="an index that goes is not taken",
        ),
    ],
)
def test_as_many_pods_run_as_should(job: Job, pods: list[Pod], create: list[int | None], delete: int) -> None:
    seen = observe(job, pods)
    plan = plan_pods(job, seen, Streak().after(seen.new_succeeded, seen.new_failed), NOON)
    assert (list(plan.create), len(plan.delete)) == (create, delete)


def test_the_pods_that_lose_least_go_first() -> None:
    young, old = a_job_pod("Running", node="n", created=5), a_job_pod("Running", node="n", created=1)
    pending, unbound = a_job_pod(node="n"), a_job_pod()
    job = a_job(parallelism=0, completions=4)
    seen = observe(job, [old, pending, young, unbound])
    assert list(plan_pods(job, seen, Streak(), NOON).delete) == [unbound, pending, young, old]


def test_an_index_waits_by_its_own_failures() -> None:
    job = a_job(parallelism=2, completions=2, backoffLimitPerIndex=5, **INDEXED)
    pods = [a_job_pod("Failed", index=0, ended=0, failures=1), a_job_pod("Failed", index=1, ended=-100, failures=0)]
    plan = plan_pods(job, observe(job, pods), Streak(9, NOON), NOON + timedelta(seconds=5))
    assert list(plan.create) == [1]
    plan = plan_pods(job, observe(job, [pods[0], a_job_pod(index=1)]), Streak(), NOON + timedelta(seconds=5))
    assert (list(plan.create), plan.wait) == ([], 15)


def test_a_long_name_is_cut_and_its_index_never() -> None:
    assert indexed_prefix("work", 12) == "work-12-"
    assert indexed_prefix("w" * 70, 12345) == "w" * 51 + "-12345-"


# The end


@pytest.mark.parametrize(
    ("job", "pods", "reason"),
    [
        pytest.param(a_job(backoffLimit=1), [a_job_pod("Failed")], None, id="failures within the limit"),
        pytest.param(
            a_job(backoffLimit=1, status={"failed": 1}),
            [a_job_pod("Failed")],
            "BackoffLimitExceeded",
            id="beyond it",
        ),
        pytest.param(
            a_job(backoffLimit=0, status={"uncountedTerminatedPods": {"failed": ["gone"]}}),
            [],
            "BackoffLimitExceeded",
            id="those not counted yet are known",
        ),
        pytest.param(a_job(activeDeadlineSeconds=60), [a_job_pod()], "DeadlineExceeded", id="too long"),
        pytest.param(a_job(activeDeadlineSeconds=61), [a_job_pod()], None, id="not too long yet"),
        pytest.param(a_job(activeDeadlineSeconds=60, suspend=True), [], None, id="suspended Jobs have time"),
        pytest.param(
            a_job(backoffLimitPerIndex=0, maxFailedIndexes=0, **INDEXED),
            [a_job_pod("Failed", index=1, failures=0)],
            "MaxFailedIndexesExceeded",
            id="too many indexes",
        ),
        pytest.param(
            a_job(backoffLimitPerIndex=0, status={"completedIndexes": "0,2"}, **INDEXED),
            [a_job_pod("Failed", index=1, failures=0)],
            "FailedIndexes",
            id="the last index failed",
        ),
        pytest.param(
            a_job(backoffLimitPerIndex=1, **INDEXED),
            [a_job_pod("Failed", index=1, failures=0)],
            None,
            id="to be replaced",
        ),
    ],
)
def test_why_a_job_fails(job: Job, pods: list[Pod], reason: str | None) -> None:
    ending = ending_of(job, observe(job, pods), NOON + timedelta(seconds=60))
    assert (ending.reason if ending else None) == reason


# Counting


def test_a_pod_without_its_finalizer_moves_from_the_list_into_the_counter() -> None:
    kept, gone = a_job_pod("Failed"), a_job_pod("Failed", tracked=False)
    uncounted = {"failed": [kept.metadata.uid, gone.metadata.uid], "succeeded": ["gone"]}
    job = a_job(status={"failed": 1, "uncountedTerminatedPods": uncounted})
    status = counted(job.status, tracked_uids(observe(job, [kept, gone])))
    assert (status.succeeded, status.failed) == (1, 2)
    assert status.uncounted_terminated_pods is not None
    assert status.uncounted_terminated_pods.failed == [kept.metadata.uid]


def test_a_status_takes_no_more_than_it_can_hold() -> None:
    job = a_job(completions=AT_ONCE * 2, parallelism=1)
    reckoning = reckon(job, observe(job, [a_job_pod("Succeeded") for _ in range(AT_ONCE + 1)]), None)
    assert reckoning.is_cut
    assert len(reckoning.release) == AT_ONCE


def test_a_failed_pod_is_kept_until_another_carries_its_count_on() -> None:
    job = a_job(backoffLimitPerIndex=3, **INDEXED)
    failed = a_job_pod("Failed", index=0, failures=0)
    assert list(reckon(job, observe(job, [failed]), None).release) == []
    assert list(reckon(job, observe(job, [failed, a_job_pod(index=0, failures=1)]), None).release) == [failed]


def test_what_runs_while_its_job_fails_counts_as_failed() -> None:
    job = a_job(completions=2)
    running, ignored = a_job_pod("Running"), a_job_pod("Running", tracked=False)
    ending = JobCondition(type=FAILURE_TARGET, status="True")
    reckoning = reckon(job, observe(job, [running, ignored]), ending)
    assert reckoning.status.uncounted_terminated_pods is not None
    assert reckoning.status.uncounted_terminated_pods.failed == [running.metadata.uid]
    assert reckoning.status.conditions == [ending]


def test_pods_of_a_job_that_is_deleted_are_let_go_uncounted() -> None:
    job = a_job(deleted=True)
    reckoning = reckon(job, observe(job, [a_job_pod("Running")]), None)
    assert len(reckoning.release) == 1
    assert reckoning.status.uncounted_terminated_pods is not None
    assert reckoning.status.uncounted_terminated_pods.failed == []
