"""How long a job may run before others may have it evicted."""

from __future__ import annotations

import pytest

from shoal.scheduler.model.jobs import Job, SubGroup
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.shares.min_runtime import (
    Method,
    MinRuntimes,
    is_protected,
    keeps_minimum,
    may_be_victim,
    preempt_min_runtime,
    reclaim_min_runtime,
)
from shoal.scheduler.shares.tree import QueueTree
from tests.scheduler.builders import a_model_job, a_model_queue
from tests.scheduler.shares.builders import a_tree, pod_sets, with_pods

DEFAULTS = MinRuntimes(preempt=2, reclaim=1)


def company() -> QueueTree:
    return a_tree(
        a_model_queue("dev", preempt_min_runtime=5, reclaim_min_runtime=10),
        a_model_queue("dev-1", "dev", reclaim_min_runtime=8),
        a_model_queue("dev-2", "dev", preempt_min_runtime=3),
        a_model_queue("prod", preempt_min_runtime=20, reclaim_min_runtime=30),
        a_model_queue("prod-1", "prod"),
        a_model_queue("prod-2", "prod", preempt_min_runtime=15, reclaim_min_runtime=35),
        a_model_queue("research", preempt_min_runtime=4, reclaim_min_runtime=6),
        a_model_queue("project", "research", reclaim_min_runtime=9),
        a_model_queue("silent"),
        a_model_queue("silent-1", "silent"),
        a_model_queue("mute", "silent"),
        a_model_queue("mute-1", "mute", reclaim_min_runtime=77, preempt_min_runtime=0),
    )


@pytest.mark.parametrize(
    ("queue", "expected"),
    [("prod-2", 15), ("prod-1", 20), ("dev-1", 5), ("prod", 20), ("research", 4), ("silent-1", 2), ("mute-1", 0)],
)
def test_within_a_queue_the_nearest_word_counts(queue: str, expected: float) -> None:
    assert preempt_min_runtime(company(), queue, DEFAULTS) == expected


# Who reclaims from whom: by the victim's own queue, by the lowest common ancestor.
RECLAIMS = [
    ("dev-1", "prod-2", 35, 30),
    ("dev-1", "dev-2", 10, 10),
    ("dev-2", "dev-1", 8, 8),
    ("prod-1", "prod-2", 35, 35),
    ("prod-2", "prod-1", 30, 30),
    ("dev-1", "project", 9, 6),
    ("dev-1", "silent-1", 1, 1),
    ("dev-1", "mute-1", 77, 1),
    ("silent-1", "mute-1", 77, 1),
    ("prod-2", "prod-2", 35, 35),
]


@pytest.mark.parametrize(("reclaimer", "victim", "by_queue", "by_ancestor"), RECLAIMS)
def test_between_queues_it_depends_on_the_method(
    reclaimer: str, victim: str, by_queue: float, by_ancestor: float
) -> None:
    tree = company()

    assert reclaim_min_runtime(tree, reclaimer, victim, MinRuntimes(reclaim=1, method=Method.QUEUE)) == by_queue
    assert reclaim_min_runtime(tree, reclaimer, victim, MinRuntimes(reclaim=1, method=Method.LCA)) == by_ancestor


def running(queue: str, *, since: float | None, pods: int = 1, least: int = 1) -> Job:
    job = a_model_job("victim", queue, root=pod_sets(("default", least)), last_start=since)
    with_pods(job, pods, Status.RUNNING)
    return job


@pytest.mark.parametrize(
    ("since", "now", "expected"), [(100.0, 119.9, True), (100.0, 120.0, False), (None, 100.0, False), (0.0, 19.0, True)]
)
def test_a_job_is_protected_until_its_time_is_up(since: float | None, now: float, expected: bool) -> None:
    assert is_protected(company(), running("prod-1", since=since), now=now, settings=DEFAULTS) is expected


def test_against_another_queue_another_time_counts() -> None:
    tree, job = company(), running("prod-1", since=100.0)

    assert is_protected(tree, job, now=125, settings=DEFAULTS, reclaimer_queue="dev-1")
    assert not is_protected(tree, job, now=130, settings=DEFAULTS, reclaimer_queue="dev-1")


def test_a_job_without_a_queue_is_not_protected() -> None:
    assert not is_protected(company(), running("gone", since=100.0), now=100, settings=DEFAULTS)


def test_a_protected_job_may_be_a_victim_only_where_it_has_pods_to_spare() -> None:
    tree = company()
    exact, spare = running("prod-1", since=100.0), running("prod-1", since=100.0, pods=2)

    assert not may_be_victim(tree, exact, now=101, settings=DEFAULTS)
    assert may_be_victim(tree, spare, now=101, settings=DEFAULTS)
    assert may_be_victim(tree, exact, now=121, settings=DEFAULTS)
    assert not may_be_victim(tree, exact, now=121, settings=DEFAULTS, reclaimer_queue="dev-1")


def test_a_protected_job_may_lose_what_it_has_to_spare_and_no_more() -> None:
    job = running("prod-1", since=100.0, pods=3, least=2)
    pods = list(job.tasks.values())

    assert keeps_minimum(job, pods[:1])
    assert not keeps_minimum(job, pods[:2])
    assert keeps_minimum(job, [])


def test_pods_that_are_evicted_within_a_simulation_are_counted_once() -> None:
    job = running("prod-1", since=100.0, pods=3, least=2)
    evicted = list(job.tasks.values())[:1]
    for task in evicted:
        task.become(Status.RELEASING)

    assert keeps_minimum(job, evicted)


def grouped(needed: int | None) -> tuple[Job, list[str]]:
    root = SubGroup(name="", min_children=needed)
    root.pod_sets = pod_sets(("a", 1), ("b", 1)).pod_sets
    job = a_model_job("victim", "prod-1", root=root, last_start=100.0)
    for name in ("a", "b"):
        with_pods(job, 1, Status.RUNNING, pod_set=name)
    return job, list(job.tasks)


def test_a_job_that_needs_one_of_two_subgroups_may_lose_the_other() -> None:
    job, uids = grouped(1)

    assert may_be_victim(company(), job, now=101, settings=DEFAULTS)
    assert keeps_minimum(job, [job.tasks[uids[0]]])
    assert not keeps_minimum(job, [job.tasks[uid] for uid in uids])


def test_a_job_that_needs_both_subgroups_may_lose_neither() -> None:
    job, uids = grouped(None)

    assert not may_be_victim(company(), job, now=101, settings=DEFAULTS)
    assert not keeps_minimum(job, [job.tasks[uids[0]]])
