"""Which of a job's tasks are placed next: gangs whole, what is beyond their need one by one."""

from __future__ import annotations

import pytest

from shoal.scheduler.model.jobs import Job, PodSet, SubGroup
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.session.choosing import in_order, tasks_to_place
from shoal.scheduler.session.ordering import Ordering
from shoal.scheduler.session.settings import Settings
from tests.scheduler.builders import a_model_job
from tests.scheduler.shares.builders import pod_sets, with_pods

ORDERING = Ordering(Settings())
LETTERS = {"P": Status.PENDING, "R": Status.RUNNING, "G": Status.GATED, "E": Status.RELEASING, "p": Status.PIPELINED}


def with_states(root: SubGroup, **states: str) -> Job:
    """A job whose pod sets have pods of these states, a letter for each."""
    job = a_model_job("job", "q", root=root)
    for name, letters in states.items():
        for place, letter in enumerate(letters):
            (task,) = with_pods(job, 1, LETTERS[letter], pod_set=name)
            task.created = float(place)
    return job


def chosen(job: Job, *, for_real: bool = True) -> list[str]:
    return [f"{task.pod_set.name}{task.created:.0f}" for task in tasks_to_place(job, ORDERING, for_real=for_real)]


@pytest.mark.parametrize(
    ("least", "pods", "expected"),
    [
        (3, "PPPP", ["a0", "a1", "a2"]),
        (3, "RPPP", ["a1", "a2"]),
        (3, "pRPP", ["a2"]),
        (2, "RRPP", ["a2"]),
        (0, "PP", ["a0"]),
        (1, "RR", []),
        (2, "PGG", ["a0"]),
        (2, "ERP", ["a2"]),
    ],
    ids=["all that it needs", "what it lacks", "promises count", "one more", "one of none", "none", "gated", "ending"],
)
def test_what_a_pod_set_takes_next(least: int, pods: str, expected: list[str]) -> None:
    assert chosen(with_states(pod_sets(("a", least)), a=pods)) == expected


@pytest.mark.parametrize(
    ("needed", "a", "b", "expected"),
    [
        (None, "PP", "PP", ["a0", "a1", "b0", "b1"]),
        (1, "PP", "PP", ["a0", "a1"]),
        (1, "PG", "PP", ["b0", "b1"]),
        (1, "RR", "PP", ["b0", "b1"]),
        (None, "RR", "PP", ["b0", "b1"]),
        (None, "RRP", "RR", ["a2"]),
        (None, "RRP", "RRRP", ["a2"]),
    ],
    ids=[
        "all subgroups",
        "one of two is needed",
        "the one that can start",
        "an optional subgroup at once",
        "the one that lacks something",
        "one more pod",
        "one more pod of who has less beyond his need",
    ],
)
def test_what_subgroups_take_next(needed: int | None, a: str, b: str, expected: list[str]) -> None:
    assert chosen(with_states(pod_sets(("a", 2), ("b", 2), needed=needed), a=a, b=b)) == expected


def test_a_tree_takes_what_each_inner_group_needs() -> None:
    left = SubGroup(name="left", min_children=1, pod_sets=[PodSet("a", 1), PodSet("b", 1)])
    right = SubGroup(name="right", pod_sets=[PodSet("c", 1), PodSet("d", 2)])
    job = with_states(SubGroup(name="", groups=[left, right]), a="P", b="P", c="P", d="PPP")

    assert chosen(job) == ["a0", "c0", "d0", "d1"]


def test_in_a_simulation_what_was_evicted_just_now_is_placed_again() -> None:
    job = with_states(pod_sets(("a", 2)), a="EE")
    for task in job.tasks.values():
        task.is_virtual = True

    assert chosen(job) == []
    assert chosen(job, for_real=False) == ["a0", "a1"]


def test_in_a_simulation_no_subgroup_is_begun_that_lacks_a_pod_that_ends_anyway() -> None:
    job = with_states(pod_sets(("a", 2), ("b", 2), needed=1), a="EE", b="EE")
    for task in job.tasks.values():
        task.is_virtual = task.pod_set.name == "b" or task.created == 0

    assert chosen(job, for_real=False) == ["b0", "b1"]


def test_subgroups_come_by_what_they_lack_then_by_what_they_have_beyond_their_need() -> None:
    root = pod_sets(("optional", 0), ("full", 1), ("fuller", 1), ("lacking", 2))
    with_states(root, optional="R", full="R", fuller="RR", lacking="R")

    assert [place.name for place in in_order(root.children, ORDERING)] == ["lacking", "full", "fuller", "optional"]
