"""The cheap test before a simulation: it never refuses what a simulation would find."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings

from shoal.scheduler.actions import cycle
from shoal.scheduler.actions.solver import search
from shoal.scheduler.actions.solver.room import EmptyCluster, Room
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.tasks import Constraints, Task
from shoal.scheduler.scenarios.building import cluster_of, settings_of
from shoal.scheduler.scenarios.cases import ACTIONS, Scenario
from shoal.scheduler.session.session import Session
from shoal.scheduler.session.settings import Settings
from tests.scheduler.actions.random_clusters import clusters
from tests.scheduler.session.worlds import World

NOW = 1_000_000.0


def tasks_of(job: Job) -> list[Task]:
    return list(job.tasks.values())


@pytest.mark.parametrize(
    ("gpus", "pods", "victims", "fits"),
    [
        (2, 1, 0, False),
        (2, 1, 1, False),
        (2, 1, 2, True),
        (2, 2, 2, False),
        (1, 2, 2, True),
        (1, 3, 2, False),
        (4, 1, 2, False),
    ],
)
def test_room_is_counted_node_by_node(gpus: int, pods: int, victims: int, fits: bool) -> None:
    world = World({"m": 2, "n": 2})
    on_m = world.job("a", pods=2, least=0, on="m")
    world.job("b", pods=2, least=0, on="n")
    wanted = world.job("c", pods=pods, gpus=gpus)
    session = Session(world.cluster, Settings(), now=1.0)

    room = Room(session, tasks_of(wanted), [])

    assert room.could_hold(tasks_of(on_m)[:victims]) is fits


def test_victims_that_go_in_any_case_count_too() -> None:
    world = World({"m": 2})
    first, second = tasks_of(world.job("a", pods=2, least=0, on="m"))
    wanted = world.job("b", gpus=2)
    session = Session(world.cluster, Settings(), now=1.0)

    assert not Room(session, tasks_of(wanted), []).could_hold([second])
    assert Room(session, tasks_of(wanted), [first]).could_hold([second])


def test_parts_of_a_device_are_the_device_when_all_of_them_go() -> None:
    world = World({"m": 1})
    sharing = world.job("a", pods=2, least=0, portion=0.5)
    for task in tasks_of(sharing):
        world.start(task, "m", ("g",))
    wanted = world.job("b", gpus=1)
    session = Session(world.cluster, Settings(), now=1.0)
    room = Room(session, tasks_of(wanted), [])

    assert not room.could_hold(tasks_of(sharing)[:1])
    assert room.could_hold(tasks_of(sharing))


def test_only_nodes_count_to_which_a_task_may_go() -> None:
    world = World({"m": 1, "n": 1}, labels={"n": {"zone": "b"}})
    on_m, on_n = world.job("a", on="m"), world.job("b", on="n")
    wanted = world.job("c")
    for task in tasks_of(wanted):
        task.constraints = replace(Constraints(), node_selector={"zone": "b"})
    session = Session(world.cluster, Settings(), now=1.0)
    room = Room(session, tasks_of(wanted), [])

    assert not room.could_hold(tasks_of(on_m))
    assert room.could_hold(tasks_of(on_n))


@pytest.mark.parametrize(
    ("gpus", "pods", "fits"), [(2, 2, True), (2, 3, False), (1, 4, True), (3, 1, False), (0, 50, True)]
)
def test_what_an_empty_cluster_cannot_hold_needs_no_victims(gpus: int, pods: int, fits: bool) -> None:
    world = World({"m": 2, "n": 2})
    world.job("a", pods=2, on="m", is_preemptible=False)
    wanted = world.job("b", pods=pods, gpus=gpus)
    empty = EmptyCluster(Session(world.cluster, Settings(), now=1.0))

    assert empty.could_hold(tasks_of(wanted)) is fits


class Lenient(Room):
    """Refuses nothing."""

    def could_hold(self, victims: Any) -> bool:
        del victims
        return True


def decided(scenario: Scenario) -> Sequence[tuple[str, str, str]]:
    session = Session(cluster_of(scenario, NOW), settings_of(scenario), now=NOW)
    cycle.run(session, ACTIONS)
    return sorted((type(one).__name__, one.task.name, one.task.node) for one in session.decisions)


@settings(max_examples=60)
@given(clusters(6))
def test_without_the_test_the_decisions_are_the_same(scenario: Scenario) -> None:
    expected = decided(scenario)
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(search, "Room", Lenient)
        assert decided(scenario) == expected
