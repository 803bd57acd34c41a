"""Which attempt Jobs belong to, and how they are counted."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.jobset import JobSetStatus, names
from shoal.training.jobset.buckets import Unreadable, sorted_out
from shoal.training.jobset.counters import are_all_ready, counted, is_ready
from tests.training.jobset.builders import a_job, a_replicated_job, a_status, a_typed_set, restarted


def test_jobs_are_of_this_attempt_or_of_an_earlier_one() -> None:
    job_set = a_typed_set(a_replicated_job("workers", 5), status=restarted(2))
    attempt = names.RESTART_ATTEMPT
    jobs = [
        a_job(job_set, index=0),
        a_job(job_set, index=1, end="Complete"),
        a_job(job_set, index=2, end="Failed"),
        a_job(job_set, index=3, labels={attempt: "1"}),
        a_job(job_set, index=4, labels={attempt: "0"}, end="Complete"),
    ]
    found = sorted_out(job_set, jobs, restarts_single_jobs=False)
    assert [[job.metadata.name for job in each] for each in (found.active, found.successful, found.failed)] == [
        ["train-workers-0"],
        ["train-workers-1"],
        ["train-workers-2"],
    ]
    assert [job.metadata.name for job in found.previous] == ["train-workers-3", "train-workers-4"]
    assert len(found.names) == 5


@pytest.mark.parametrize("value", [None, "", "x", "-1", "²"])
def test_a_job_that_does_not_say_its_attempt_is_not_guessed_about(value: str | None) -> None:
    job_set = a_typed_set()
    with pytest.raises(Unreadable, match=r"default/train-workers-0: label jobset\.sigs\.k8s\.io/restart-attempt"):
        sorted_out(job_set, [a_job(job_set, labels={names.RESTART_ATTEMPT: value})], restarts_single_jobs=False)


@pytest.mark.parametrize(
    ("attempt", "is_enabled", "is_previous"),
    [("0", True, True), ("1", True, False), ("0", False, False), (None, True, False)],
)
def test_a_job_that_was_restarted_alone_is_of_an_earlier_attempt(
    attempt: str | None, is_enabled: bool, is_previous: bool
) -> None:
    status = JobSetStatus(replicated_jobs_status=[a_status("workers", job_restarts=[0, 1])])
    job_set = a_typed_set(a_replicated_job("workers", 2), status=status)
    job = a_job(job_set, index=1, labels={names.JOB_RESTART_ATTEMPT: attempt}, end="Failed")
    found = sorted_out(job_set, [job], restarts_single_jobs=is_enabled)
    assert bool(found.previous) is is_previous


@pytest.mark.parametrize(
    ("spec", "status", "expected"),
    [
        ({"parallelism": 2, "completions": 2}, {"ready": 2}, True),
        ({"parallelism": 2, "completions": 2}, {"ready": 1}, False),
        ({"parallelism": 2, "completions": 2}, {"ready": 1, "succeeded": 1}, True),
        ({"parallelism": 4, "completions": 2}, {"ready": 2}, True),
        ({"parallelism": 2, "completions": 4}, {"ready": 2}, True),
        ({"parallelism": 2}, {"ready": 2}, True),
        ({}, {}, False),
        ({}, {"ready": 1}, True),
    ],
)
def test_a_job_is_ready_when_as_many_pods_are_as_may_run(
    spec: dict[str, Any], status: dict[str, Any], expected: bool
) -> None:
    assert is_ready(a_job(a_typed_set(a_replicated_job(**spec)), **status)) is expected


def test_statuses_are_sorted_by_name_from_the_last_to_the_first() -> None:
    order = ("dataset-initializer", "node", "model-initializer")
    job_set = a_typed_set(*map(a_replicated_job, order))
    found = counted(job_set, sorted_out(job_set, [], restarts_single_jobs=False))
    assert [each.name for each in found] == ["node", "model-initializer", "dataset-initializer"]


def test_each_job_is_counted_for_its_replicated_job() -> None:
    known = JobSetStatus(replicated_jobs_status=[a_status("workers", job_restarts=[1], ready=7)])
    job_set = a_typed_set(a_replicated_job("leader"), a_replicated_job("workers", 5), status=known)
    jobs = [
        a_job(job_set, "leader", end="Complete"),
        a_job(job_set, "workers", 0, active=1, ready=1),
        a_job(job_set, "workers", 1, active=1),
        a_job(job_set, "workers", 2, suspend=True),
        a_job(job_set, "workers", 3, end="Failed"),
        a_job(job_set, "workers", 4, labels={names.REPLICATED_JOB_NAME: "unknown"}),
    ]
    workers, leader = counted(job_set, sorted_out(job_set, jobs, restarts_single_jobs=False))
    assert workers == a_status("workers", ready=1, failed=1, active=2, suspended=1, job_restarts=[1])
    assert leader == a_status("leader", succeeded=1)
    assert not are_all_ready(job_set, [workers, leader])


def test_all_are_ready_when_each_job_is_ready_or_done() -> None:
    job_set = a_typed_set(a_replicated_job("leader"), a_replicated_job("workers", 2))
    assert are_all_ready(job_set, [a_status("workers", ready=1, succeeded=1), a_status("leader", ready=1)])
    assert not are_all_ready(job_set, [a_status("workers", ready=2), a_status("leader", failed=1)])
