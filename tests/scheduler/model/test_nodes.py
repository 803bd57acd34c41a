"""What holds take from nodes: free now, free later, and the parts of devices that are shared."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.scheduler.gpu_requests import GpuRequest
from shoal.scheduler.model.nodes import UNKNOWN_GPU_MEMORY, Hold, Nodes, SharedGpu, gpu_weights
from shoal.scheduler.model.resources import CPU, GPU, PODS, ResourceNames
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import Request
from tests.scheduler.builders import a_model_node, a_model_task

SIZE = 1000
RUNNING, RELEASING, PIPELINED = Status.RUNNING, Status.RELEASING, Status.PIPELINED
STUCK = Status.STUCK_IN_RELEASING


def one_node(names: ResourceNames | None = None) -> Nodes:
    names = names or ResourceNames()
    return Nodes([a_model_node("n", 4, cpu=8000, memory=1e9, pods=10, gpu_memory=SIZE, resources=names)], names)


def a_hold(
    nodes: Nodes,
    name: str,
    status: Status,
    *,
    whole: int = 0,
    portion: float = 0.0,
    groups: tuple[str, ...] = (),
    is_new: bool = False,
) -> Hold:
    vector = nodes.resources.vector({"cpu": 1000.0, "gpu": float(whole), "pods": 1.0})
    gpu = GpuRequest(whole=whole) if whole else GpuRequest(portion=portion, devices=max(1, len(groups)))
    task = a_model_task(name, Request(vector, gpu=gpu))
    return Hold(task, 0, status, groups, new_groups=frozenset(groups if is_new else ()))


@pytest.mark.parametrize(
    ("status", "idle", "releasing"),
    [
        (Status.ALLOCATED, 3, 0),
        (Status.BINDING, 3, 0),
        (Status.BOUND, 3, 0),
        (RUNNING, 3, 0),
        (RELEASING, 3, 1),
        (STUCK, 3, 0),
        (PIPELINED, 4, -1),
    ],
    ids=lambda value: value.word if isinstance(value, Status) else str(value),
)
def test_what_a_task_of_each_status_takes(status: Status, idle: float, releasing: float) -> None:
    nodes = one_node()
    hold = a_hold(nodes, "t", status, whole=1)

    nodes.add(hold)

    assert (nodes.idle[0, GPU], nodes.releasing[0, GPU]) == (idle, releasing)
    assert nodes.idle[0, CPU] == 8000 - 1000 * (4 - idle)
    assert nodes.idle[0, PODS] == 10 - (4 - idle)
    nodes.remove(hold)
    np.testing.assert_array_equal(nodes.idle, nodes.allocatable)
    assert not nodes.releasing.any()
    assert not nodes.nodes[0].holds


@pytest.mark.parametrize(
    ("sharers", "idle", "releasing"),
    [
        ([RUNNING], 3, 0),
        ([RUNNING, RUNNING], 3, 0),
        ([RUNNING, RELEASING], 3, 0),
        ([RELEASING, RELEASING], 3, 1),
        ([RELEASING], 3, 1),
        ([RELEASING, PIPELINED], 3, 0),
        ([PIPELINED], 4, -1),
        ([PIPELINED, PIPELINED], 4, -1),
        ([RUNNING, PIPELINED], 3, 0),
        ([RELEASING, STUCK], 3, 0),
        ([RUNNING, RELEASING, PIPELINED], 3, 0),
    ],
    ids=lambda value: "+".join(status.word for status in value) if isinstance(value, list) else str(value),
)
def test_a_device_that_is_shared_is_free_when_all_on_it_are_gone(
    sharers: Sequence[Status], idle: float, releasing: float
) -> None:
    nodes = one_node()
    for place, status in enumerate(sharers):
        nodes.add(a_hold(nodes, f"t{place}", status, portion=0.25, groups=("g",)))

    assert (nodes.idle[0, GPU], nodes.releasing[0, GPU]) == (idle, releasing)


def test_the_parts_of_shared_devices_count_as_free_gpus() -> None:
    nodes = one_node()
    nodes.add(a_hold(nodes, "a", RUNNING, portion=0.25, groups=("g",)))
    nodes.add(a_hold(nodes, "b", RELEASING, portion=0.5, groups=("g",)))

    assert nodes.free_gpus()[0] == pytest.approx(3 + 0.25)
    assert nodes.releasing_gpus()[0] == pytest.approx(0.5)


def test_a_task_that_shares_several_devices_takes_its_part_of_each() -> None:
    nodes = one_node()
    nodes.add(a_hold(nodes, "a", RUNNING, portion=0.5, groups=("g", "h")))

    assert {name: device.allocated for name, device in nodes.nodes[0].shared.items()} == {"g": 500, "h": 500}
    assert nodes.idle[0, GPU] == 2


def test_a_device_that_nobody_shares_any_more_is_forgotten() -> None:
    nodes = one_node()
    hold = a_hold(nodes, "a", RUNNING, portion=0.5, groups=("g",))
    nodes.add(hold)
    nodes.change(hold, RELEASING)
    nodes.remove(hold)

    assert not nodes.nodes[0].shared
    assert nodes.free_gpus()[0] == 4
    assert nodes.releasing_gpus()[0] == 0


def test_whoever_is_the_first_to_share_devices_takes_the_places_of_their_reservations() -> None:
    nodes = one_node()
    given = a_hold(nodes, "a", RUNNING, portion=0.5, groups=("g", "h"), is_new=True)
    promised = a_hold(nodes, "b", PIPELINED, portion=0.5, groups=("i",), is_new=True)
    nodes.add(given)
    nodes.add(promised)

    assert nodes.idle[0, PODS] == 10 - 3
    assert nodes.releasing[0, PODS] == -2
    nodes.change(given, RELEASING)
    assert nodes.releasing[0, PODS] == -2 + 3
    nodes.remove(given)
    nodes.remove(promised)
    np.testing.assert_array_equal(nodes.idle, nodes.allocatable)
    assert not nodes.releasing.any()


def test_the_place_of_a_reservation_is_free_when_the_last_sharer_is_gone_not_the_first() -> None:
    nodes = one_node()
    first = a_hold(nodes, "a", RUNNING, portion=0.5, groups=("g",), is_new=True)
    second = a_hold(nodes, "b", RUNNING, portion=0.5, groups=("g",), is_new=True)
    nodes.add(first)
    nodes.add(second)
    assert nodes.idle[0, PODS] == 10 - 3

    nodes.change(first, RELEASING)
    assert nodes.releasing[0, PODS] == 1
    nodes.remove(first)
    assert nodes.idle[0, PODS] == 10 - 2
    nodes.change(second, RELEASING)
    assert nodes.releasing[0, PODS] == 2
    nodes.remove(second)
    np.testing.assert_array_equal(nodes.idle, nodes.allocatable)
    assert not nodes.releasing.any()


def test_what_is_left_of_a_device_that_is_promised_in_part_becomes_free_with_it() -> None:
    nodes = one_node()
    nodes.add(a_hold(nodes, "a", PIPELINED, portion=0.7, groups=("g",), is_new=True))

    assert nodes.free_gpus()[0] + nodes.releasing_gpus()[0] == pytest.approx(3.3)


def test_a_task_that_moves_within_a_node_holds_both_places() -> None:
    nodes = one_node()
    leaving = a_hold(nodes, "a", RELEASING, portion=0.5, groups=("g",))
    coming = Hold(leaving.task, 0, PIPELINED, ("h",), left=leaving)
    nodes.add(leaving)
    nodes.add(coming)

    assert len(nodes.nodes[0].holds) == 2
    nodes.remove(coming)
    assert list(nodes.nodes[0].holds.values()) == [leaving]


def test_resources_that_become_known_later_are_none_of_an_older_request() -> None:
    names = ResourceNames()
    old = names.vector({"cpu": 1000.0, "pods": 1.0})
    names.place("example.com/nic")
    nodes = one_node(names)
    nodes.add(Hold(a_model_task("a", Request(old)), 0, RUNNING))

    assert nodes.idle[0].tolist() == [7000.0, 1e9, 4.0, 9.0, 0.0]


def test_mig_instances_count_as_their_slices() -> None:
    names = ResourceNames(["nvidia.com/mig-1g.5gb", "nvidia.com/mig-3g.20gb", "example.com/nic"])

    assert gpu_weights(names).tolist() == [0, 0, 1, 0, 1, 3, 0]


def test_nodes_are_in_the_order_of_their_names_whatever_order_they_came_in() -> None:
    names = ResourceNames()
    made = Nodes([a_model_node(name) for name in ("b", "c", "a")], names)

    assert [node.name for node in made.nodes] == ["a", "b", "c"]
    assert made.index == {"a": 0, "b": 1, "c": 2}
    assert made.gpu_memory.tolist() == [UNKNOWN_GPU_MEMORY] * 3


@pytest.mark.parametrize(
    ("device", "now", "later"),
    [
        (SharedGpu(), False, False),
        (SharedGpu(allocated=400), True, True),
        (SharedGpu(allocated=600), False, False),
        (SharedGpu(allocated=1000, releasing=600), False, True),
        (SharedGpu(allocated=1000, releasing=600, pipelined=200), False, False),
        (SharedGpu(allocated=800, releasing=800), False, False),  # it becomes free as a whole
        (SharedGpu(pipelined=400), False, True),
        (SharedGpu(pipelined=600), False, False),
    ],
)
def test_whether_half_of_a_device_is_left(device: SharedGpu, now: bool, later: bool) -> None:
    assert device.fits_now(500, SIZE) is now
    assert device.fits_later(500, SIZE) is later


STATUSES = st.sampled_from((Status.ALLOCATED, Status.BINDING, RUNNING, RELEASING, STUCK, PIPELINED))


@given(
    st.lists(st.tuples(st.sampled_from((0, 1, 2)), st.sampled_from("gh"), STATUSES, STATUSES), max_size=6),
    st.randoms(use_true_random=False),
)
def test_whatever_is_taken_in_any_order_and_status_is_given_back(
    made: list[tuple[int, str, Status, Status]], random: object
) -> None:
    nodes = one_node()
    holds = []
    for place, (whole, group, first, then) in enumerate(made):
        groups = () if whole else (group,)
        hold = a_hold(nodes, f"t{place}", first, whole=whole, portion=0.2, groups=groups)
        nodes.add(hold)
        nodes.change(hold, then)
        holds.append(hold)
    counted = nodes.idle.copy(), nodes.releasing.copy()
    again = one_node()
    for hold in holds:
        again.add(hold)
    np.testing.assert_array_equal(counted[0], again.idle)
    np.testing.assert_array_equal(counted[1], again.releasing)

    random.shuffle(holds)  # type: ignore[attr-defined]
    for hold in holds:
        nodes.remove(hold)

    np.testing.assert_array_equal(nodes.idle, nodes.allocatable)
    assert not nodes.releasing.any()
    assert not nodes.nodes[0].shared
    assert nodes.free_gpus().tolist() == [4.0]
    assert nodes.releasing_gpus().tolist() == [0.0]
