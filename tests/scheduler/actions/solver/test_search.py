"""The search for victims: as few as will do, near each other if possible, and none where it is of no use."""

from __future__ import annotations

import pytest

from shoal.scheduler.actions.solver.search import FAR, NEAR
from shoal.scheduler.session.session import Eviction, Promise, Session
from shoal.scheduler.session.settings import SearchBudgets, Settings
from tests.scheduler.builders import a_model_gpu_queue
from tests.scheduler.session.worlds import World


def reclaimed(world: World) -> tuple[Session, list[str], dict[str, str]]:
    session = world.decide(Settings(), "reclaim")
    evicted = sorted(one.task.name for one in session.decisions if isinstance(one, Eviction))
    promised = {one.task.name: one.node for one in session.decisions if isinstance(one, Promise)}
    return session, evicted, promised


def full_world(nodes: int, gpus: int) -> World:
    """One queue has everything, GPU by GPU and node by node in turn, and is entitled to nothing."""
    world = World(
        {f"n{row}": gpus for row in range(nodes)},
        queues=(a_model_gpu_queue("poor", quota=0), a_model_gpu_queue("rich", quota=nodes * gpus, created=1.0)),
    )
    for place in range(nodes * gpus):
        world.job(f"r{place}", queue="poor", on=f"n{place % nodes}")
    return world


def test_victims_for_one_pod_are_on_one_node() -> None:
    world = full_world(3, 2)
    world.job("big", queue="rich", gpus=2)

    session, evicted, promised = reclaimed(world)

    assert evicted == ["r2-0", "r5-0"]
    assert promised == {"big-0": "n2"}
    assert session.effort == {"reclaim": 1}


def test_a_gang_takes_as_many_nodes_as_it_has_pods() -> None:
    world = full_world(10, 4)
    world.job("gang", queue="rich", pods=5, gpus=4)

    session, evicted, promised = reclaimed(world)

    assert len(evicted) == 5 * 4
    assert len(promised) == len(set(promised.values())) == 5
    assert session.effort["reclaim"] < 20


def test_room_that_is_there_is_used_before_anybody_has_to_go() -> None:
    world = full_world(2, 2)
    world.end(world.cluster.jobs["default", "r1"])
    world.job("gang", queue="rich", pods=2, gpus=1)

    _, evicted, promised = reclaimed(world)

    assert len(evicted) == 1
    assert sorted(promised) == ["gang-0", "gang-1"]


def test_nobody_is_evicted_for_what_no_node_can_hold() -> None:
    world = full_world(2, 2)
    world.job("big", queue="rich", gpus=3)

    session, evicted, promised = reclaimed(world)

    assert not evicted
    assert not promised
    assert not session.effort


@pytest.mark.parametrize(
    ("budgets", "ways"),
    [({"NodeLocalGreedy": 1e-9}, {FAR}), ({"default": 1e-9}, set()), ({"default": 0.0}, {NEAR})],
    ids=["no time for the first", "no time for any", "0 is for ever"],
)
def test_a_way_that_takes_too_long_is_left_for_the_next(budgets: dict[str, float], ways: set[str]) -> None:
    world = full_world(3, 2)
    world.job("big", queue="rich", gpus=2)

    session = world.decide(Settings(budgets=SearchBudgets(generators=budgets)), "reclaim")

    assert {attempt.generator for attempt in session.measures.scenarios} == ways
    assert any(isinstance(one, Promise) for one in session.decisions) is bool(ways)


def test_nobody_is_simulated_twice_with_the_same_victims() -> None:
    world = World(
        {"n": 2}, queues=(a_model_gpu_queue("poor", quota=0), a_model_gpu_queue("rich", quota=2, created=1.0))
    )
    world.job("pinned", queue="poor", pods=2, on="n", is_preemptible=False)
    world.job("wanting", queue="rich", gpus=1)

    session, evicted, _ = reclaimed(world)

    assert not evicted
    assert session.effort == {"reclaim": 0}


@pytest.mark.parametrize("nodes", [4, 8, 16, 32])
def test_the_effort_grows_slower_than_the_cluster(nodes: int) -> None:
    world = full_world(nodes, 4)
    world.job("gang", queue="rich", pods=nodes // 2, gpus=4)

    session, evicted, _ = reclaimed(world)

    assert len(evicted) == nodes * 4 // 2
    assert session.effort["reclaim"] <= 4 * nodes.bit_length()
