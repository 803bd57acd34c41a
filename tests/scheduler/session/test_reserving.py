"""Room that is kept for a gang which finds none: it starts in the end, and the others use whatever it does not need."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from shoal.scheduler.model.cluster import Topology
from shoal.scheduler.model.jobs import Job, TopologyWish, single_pod_set
from shoal.scheduler.model.resources import GPU
from shoal.scheduler.session.failures import NoRoom
from shoal.scheduler.session.reserving import UNKNOWN, Reservation, expected_end
from shoal.scheduler.session.session import Promise, Session
from shoal.scheduler.session.settings import Settings
from tests.scheduler.builders import a_model_gpu_queue
from tests.scheduler.session.worlds import World, places

KEEPS = Settings(reserves_for_large_gangs=True)
USUAL = Settings()


def a_stream(settings: Settings, *, cycles: int) -> tuple[int | None, int]:
    """Small jobs come and go all the time behind a gang of two whole nodes: when it starts, and how many they were."""
    world = World({f"n{index}": 4 for index in range(6)})
    small = [world.job(f"old-{row}-{gpu}", on=f"n{row}") for gpu in range(4) for row in range(6)]
    gang = world.job("gang", pods=2, gpus=4)
    started = 0
    for number in range(cycles):
        for job in [job for job in small if job.allocated][:3]:
            small.remove(job)
            world.end(job)
        small += [world.job(f"new-{number}-{index}") for index in range(6)]
        session = world.cycle(settings)
        started += len(places(session))
        if gang.allocated:
            return number, started
    return None, started


def test_a_gang_that_starves_under_a_stream_of_small_jobs_starts() -> None:
    never, many = a_stream(USUAL, cycles=60)
    when, _ = a_stream(KEEPS, cycles=60)
    assert never is None
    assert many == 60 * 3, "small jobs take whatever becomes free"
    assert when is not None


def test_small_jobs_go_on_using_the_rest() -> None:
    when, started = a_stream(KEEPS, cycles=60)
    assert when is not None
    assert started - 2 >= when, "on four of six nodes they go on all the time"


def full(world: World, *rows: str, runs_for: float | None = None) -> list[Job]:
    """Four jobs of one GPU on each of these nodes."""
    return [world.job(f"{row}-{index}", on=row, runs_for=runs_for) for row in rows for index in range(4)]


def kept(session: Session) -> dict[str, float]:
    """The GPUs that are kept, by node."""
    reservation = session.reservation
    assert reservation is not None
    rows = np.flatnonzero(reservation.rows)
    return {session.nodes.nodes[row].name: float(reservation.kept[row, GPU]) for row in rows}


def test_what_is_free_and_what_becomes_free_is_kept_where_least_is_left_to_end() -> None:
    world = World({"n0": 4, "n1": 4, "n2": 4})
    full(world, "n0", "n2")
    for index in range(3):
        world.job(f"n1-{index}", on="n1")
    world.job("gang", gpus=4)
    behind = world.job("behind")
    session = world.decide(KEEPS)
    assert kept(session) == {"n1": 1.0}
    assert places(session) == {}
    assert session.failures[behind.key] == NoRoom(next(iter(behind.tasks.values())), 0, ("default", "gang"))


def test_without_the_setting_nothing_is_kept() -> None:
    world = World({"n0": 4, "n1": 4})
    full(world, "n0")
    world.job("n1-0", on="n1")
    world.job("gang", gpus=4)
    world.job("behind", pods=3, least=1)
    session = world.decide(USUAL)
    assert session.reservation is None
    assert places(session) == {"behind-0": "n1", "behind-1": "n1", "behind-2": "n1"}


def test_who_comes_first_in_the_order_is_not_held_back() -> None:
    world = World({"n0": 4})
    world.job("old", on="n0")
    world.job("gang", gpus=4)
    world.job("urgent", priority=75)
    assert world.placed(KEEPS) == {"urgent-0": "n0"}


def test_what_the_gang_does_not_need_is_free_to_use() -> None:
    world = World({"n0": 8})
    world.job("old", gpus=5, on="n0")
    world.job("gang", gpus=2, pods=2)
    world.job("first")
    world.job("second", gpus=2)
    session = world.decide(KEEPS)
    assert kept(session) == {"n0": 3.0}
    assert places(session) == {}
    world = World({"n0": 8})
    world.job("old", gpus=5, on="n0", runs_for=60)
    world.job("gang", gpus=2, pods=2)
    world.job("first")
    world.job("second", gpus=4)
    session = world.decide(KEEPS)
    assert kept(session) == {"n0": 0.0}, "when the old one is gone there are eight, of which the gang needs four"
    assert places(session) == {"first-0": "n0"}


@pytest.mark.parametrize(
    ("runs_for", "starts"),
    [
        pytest.param(None, False, id="nobody knows how long it runs"),
        pytest.param(101.0, False, id="it runs for too long"),
        pytest.param(100.0, True, id="it ends in time"),
    ],
)
def test_only_who_ends_in_time_runs_where_something_is_kept(runs_for: float | None, *, starts: bool) -> None:
    world = World({"n0": 4})
    world.job("old", gpus=3, on="n0", runs_for=100)
    world.job("gang", gpus=4)
    world.job("filler", runs_for=runs_for)
    session = world.decide(KEEPS)
    assert session.reservation is not None
    assert session.reservation.when == world.now + 100
    assert places(session) == ({"filler-0": "n0"} if starts else {})


def test_where_nobody_knows_when_the_gang_starts_nobody_ends_in_time() -> None:
    world = World({"n0": 4})
    world.job("old", gpus=3, on="n0")
    world.job("gang", gpus=4)
    world.job("filler", runs_for=1.0)
    session = world.decide(KEEPS)
    assert session.reservation is not None
    assert session.reservation.when == UNKNOWN
    assert places(session) == {}


def test_the_nodes_that_are_known_to_be_free_soonest_are_kept() -> None:
    world = World({"n0": 4, "n1": 4, "n2": 4})
    full(world, "n0", runs_for=300)
    full(world, "n1", runs_for=100)
    full(world, "n2")
    world.job("gang", gpus=4)
    session = world.decide(KEEPS)
    assert list(kept(session)) == ["n1"]
    assert session.reservation is not None
    assert session.reservation.when == world.now + 100


def test_parts_of_gpus_leave_alone_what_is_kept() -> None:
    world = World({"n0": 2})
    world.job("old", on="n0")
    world.job("gang", gpus=2)
    world.job("part", portion=0.5)
    assert world.placed(KEEPS) == {}
    assert world.placed(USUAL) == {"part-0": "n0"}


def test_a_gang_that_has_to_stay_together_has_its_nodes_kept_together() -> None:
    labels = {f"n{index}": {"rack": f"r{index // 2}"} for index in range(4)}
    world = World(dict.fromkeys(labels, 4), labels=labels, topologies={"t": Topology("t", ("rack",))})
    for row, count in enumerate((1, 4, 2, 2)):
        for index in range(count):
            world.job(f"n{row}-{index}", on=f"n{row}")
    root = single_pod_set(2, TopologyWish("t", required="rack"))
    gang = world.job("gang", pods=2, gpus=4, root=root)
    assert kept(world.decide(KEEPS)) == {"n2": 2.0, "n3": 2.0}
    world.end(gang)
    world.job("loose", pods=2, gpus=4)
    assert kept(world.decide(KEEPS)) == {"n0": 3.0, "n2": 2.0}


@pytest.mark.parametrize(
    ("first", "limit"),
    [
        pytest.param({"gpus": 5}, 100.0, id="no node will ever be large enough"),
        pytest.param({"gpus": 4, "pods": 3}, 100.0, id="all nodes together are too few"),
        pytest.param({"gpus": 4}, 6.0, id="its queue may not have so much"),
    ],
)
def test_a_job_for_which_room_is_no_help_keeps_none_from_the_next(first: dict[str, Any], limit: float) -> None:
    world = World(
        {"n0": 4, "n1": 4}, queues=(a_model_gpu_queue("q", quota=100, limit=limit), a_model_gpu_queue("r", quota=100))
    )
    world.job("a", gpus=3, on="n0")
    world.job("b", gpus=2, on="n1")
    world.job("first", **first)
    world.job("gang", gpus=4, queue="r", priority=49)
    session = world.decide(KEEPS)
    assert session.reservation is not None
    assert session.reservation.job.name == "gang"


def test_one_that_runs_and_only_wants_more_keeps_nothing() -> None:
    world = World({"n0": 4})
    job = world.job("elastic", pods=2, gpus=4, least=1)
    world.cycle(KEEPS)
    assert job.allocated == 1
    session = world.decide(KEEPS)
    assert session.reservation is None


def test_it_is_over_as_soon_as_the_gang_has_its_place() -> None:
    world = World({"n0": 4})
    world.job("old", gpus=3, on="n0", priority=10)
    gang = world.job("gang", gpus=2, priority=80)
    session = world.decide(KEEPS, "allocate", "preempt")
    assert [one.task.name for one in session.decisions if isinstance(one, Promise)] == ["gang-0"]
    assert isinstance(session.reservation, Reservation)
    assert not session.reservation.binds(world.job("another"))
    assert not session.reservation.binds(gang)


def test_looking_for_room_leaves_everything_as_it_was() -> None:
    world = World({f"n{index}": 4 for index in range(9)})
    full(world, *(f"n{index}" for index in range(5)), runs_for=50)
    full(world, *(f"n{index}" for index in range(5, 9)))
    world.job("gang", pods=7, gpus=4)
    before = {
        "idle": world.cluster.nodes.idle.copy(),
        "releasing": world.cluster.nodes.releasing.copy(),
        "tasks": [
            (t.status, t.node, t.accepted, t.hold) for j in world.cluster.jobs.values() for t in j.tasks.values()
        ],
    }
    session = world.decide(KEEPS)
    assert len(kept(session)) == 7
    assert session.decisions == []
    assert (world.cluster.nodes.idle == before["idle"]).all()
    assert (world.cluster.nodes.releasing == before["releasing"]).all()
    after = [(t.status, t.node, t.accepted, t.hold) for j in world.cluster.jobs.values() for t in j.tasks.values()]
    assert after == before["tasks"]
    assert session.shares["q"].allocated.gpu == 36.0


@pytest.mark.parametrize("pods", range(1, 9))
def test_no_more_nodes_are_kept_than_the_gang_needs(pods: int) -> None:
    world = World({f"n{index}": 4 for index in range(9)})
    for row in range(9):
        for index in range(row % 4 + 1):
            world.job(f"n{row}-{index}", on=f"n{row}")
    world.job("gang", pods=pods, gpus=4)
    least_held = sorted(range(9), key=lambda row: (row % 4, row))[:pods]
    assert kept(world.decide(KEEPS)) == {f"n{row}": 3.0 - row % 4 for row in sorted(least_held)}


@pytest.mark.parametrize(
    ("started", "runs_for", "end"),
    [
        pytest.param(900.0, None, UNKNOWN, id="nobody says"),
        pytest.param(900.0, 300.0, 1200.0, id="from its start"),
        pytest.param(0.0, 300.0, 1300.0, id="not started yet: from now"),
        pytest.param(100.0, 300.0, 1000.0, id="overdue: any moment"),
    ],
)
def test_a_task_ends_when_its_time_is_up(started: float, runs_for: float | None, end: float) -> None:
    [task] = World({"n0": 1}).job("job", runs_for=runs_for).tasks.values()
    task.started = started
    assert expected_end(task, 1000.0) == end
