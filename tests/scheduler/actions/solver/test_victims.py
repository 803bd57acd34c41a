"""Victims: who goes first, and what goes together."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from shoal.scheduler.actions.pools import Pools
from shoal.scheduler.actions.solver.victims import Victims, chunks, held
from shoal.scheduler.model.jobs import Job, PodSet, SubGroup
from shoal.scheduler.model.queues import Queue
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.session.session import Session
from shoal.scheduler.session.settings import Settings
from tests.scheduler.builders import a_model_gpu_queue
from tests.scheduler.session.worlds import World
from tests.scheduler.shares.builders import pod_sets


def a_world(*queues: Queue) -> World:
    return World({"m": 16}, queues=queues or (a_model_gpu_queue("q", quota=1),))


def victims(world: World) -> Victims:
    session = Session(world.cluster, Settings(), now=1.0)
    return Victims(session, Pools(world.cluster.jobs.values()).givers.queues(), lambda job: True)


def batches(world: World) -> Iterator[list[str]]:
    for batch in victims(world):
        assert batch.rows == {0}
        yield [task.name for task in batch.tasks]


def test_the_youngest_of_the_least_important_goes_first() -> None:
    world = a_world()
    for name, priority in (("old", 50), ("young", 50), ("important", 75)):
        world.job(name, on="m", priority=priority)

    assert list(batches(world)) == [["young-0"], ["old-0"], ["important-0"]]


def test_what_a_gang_does_not_need_goes_bit_by_bit_then_its_core_at_once() -> None:
    world = a_world()
    world.job("a", pods=4, least=2, on="m")

    assert list(batches(world)) == [["a-3"], ["a-2"], ["a-1", "a-0"]]


def test_what_is_beyond_somebodys_need_goes_before_what_is_needed() -> None:
    world = a_world()
    world.job("elastic", pods=3, least=1, on="m")
    world.job("plain", on="m")

    assert list(batches(world)) == [["elastic-2"], ["elastic-1"], ["plain-0"], ["elastic-0"]]


def spread_over(job: Job, *pod_sets: str) -> None:
    """Puts the pods of a job into these pod sets, one after the other."""
    for task, name in zip(list(job.tasks.values()), pod_sets, strict=True):
        job.remove(task)
        task.subgroup = name
        job.add(task)


def test_a_subgroup_that_is_not_needed_goes_as_a_whole() -> None:
    world = a_world()
    job = world.job("a", pods=4, root=pod_sets(("x", 2), ("y", 2), needed=1), on="m")
    spread_over(job, "x", "x", "y", "y")

    assert list(batches(world)) == [["a-3", "a-2"], ["a-1", "a-0"]]


def test_a_job_that_has_lost_what_it_does_not_need_is_no_better_off_than_others() -> None:
    world = a_world()
    world.job("old", on="m")
    job = world.job("a", pods=2, root=pod_sets(("x", 1), ("y", 1), needed=1), on="m")
    spread_over(job, "x", "y")

    assert list(batches(world)) == [["a-1"], ["a-0"], ["old-0"]]


def test_a_subgroup_deep_in_the_tree_goes_too() -> None:
    world = a_world()
    inner = SubGroup(name="inner", min_children=1, pod_sets=[PodSet("x", 1), PodSet("y", 1)])
    job = world.job("a", pods=3, root=SubGroup(name="", groups=[inner], pod_sets=[PodSet("z", 1)]), on="m")
    spread_over(job, "x", "y", "z")

    assert list(batches(world)) == [["a-1"], ["a-0", "a-2"]]


def test_the_queue_that_has_most_beyond_its_share_loses_first() -> None:
    world = a_world(a_model_gpu_queue("p", quota=1), a_model_gpu_queue("q", quota=1, created=1.0))
    for place in range(3):
        world.job(f"p{place}", queue="p", on="m")
    world.job("q0", queue="q", on="m")

    assert [names[0] for names in batches(world)][:2] == ["p2-0", "p1-0"]


def test_batches_are_the_same_however_often_they_are_asked_for() -> None:
    world = a_world()
    world.job("a", pods=3, least=1, on="m")
    found = victims(world)

    first = [batch.tasks for batch, _ in zip(found, range(2), strict=False)]
    again = [batch.tasks for batch in found]
    assert again[:2] == first
    assert again == [batch.tasks for batch in found]


def test_a_promise_can_be_given_too_and_what_ends_cannot() -> None:
    world = a_world()
    ending, running = world.job("a", on="m"), world.job("b", on="m")
    task = next(iter(ending.tasks.values()))
    assert task.hold is not None
    world.cluster.nodes.change(task.hold, Status.RELEASING)
    task.become(Status.RELEASING)

    assert list(batches(world)) == [["b-0"]]
    assert held(ending).gpu == 0
    assert held(running).gpu == 1


@pytest.mark.parametrize(
    ("least", "lost", "expected"),
    [(4, 4, [4.0]), (2, 1, [1.0]), (2, 4, [1.0, 1.0, 2.0]), (0, 2, [1.0, 1.0])],
    ids=["the core at once", "a bit", "bits, then the core", "all is beyond its need"],
)
def test_what_a_job_loses_is_told_in_the_pieces_in_which_it_goes(least: int, lost: int, expected: list[float]) -> None:
    world = a_world()
    job = world.job("a", pods=4, least=least, on="m")
    evicted = list(job.tasks.values())[::-1][:lost]
    for task in evicted:
        task.become(Status.RELEASING)

    assert [piece.gpu for piece in chunks(evicted)] == expected
