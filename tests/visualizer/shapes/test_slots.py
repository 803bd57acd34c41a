"""Who is shown on which GPU, and which idle GPUs are of no use."""

from __future__ import annotations

from datetime import datetime, timedelta, timezone
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from shoal.api.visualizer import Amounts, NodeView, SharedGpu, Sharer, WholeGpus
from shoal.visualizer.shapes.slots import slots
from tests.visualizer.builders import GIB, NOON, a_node_view, alone, minutes_past_noon, shared


def occupied(node: NodeView) -> list[str]:
    return [slot.occupied_by for slot in slots(node)]


def fragmented(node: NodeView) -> list[int]:
    return [slot.id for slot in slots(node) if slot.fragmented]


PLACES: dict[str, tuple[NodeView, list[str]]] = {
    "no devices": (a_node_view(), []),
    "nobody is there": (a_node_view(gpus=2), ["", ""]),
    "groups named by number, as the author's test has them": (
        a_node_view(gpus=2, shared_gpus=(shared("1", "pod-b"), shared("0", "pod-a"))),
        ["pod-a", "pod-b"],
    ),
    "a group whose number is beyond the devices goes to the first free one": (
        a_node_view(gpus=2, shared_gpus=(shared("7", "pod-a"),)),
        ["pod-a", ""],
    ),
    "a device that the reservation has told": (
        a_node_view(gpus=3, shared_gpus=(shared("3f2c-uuid", "pod-a", index=2),)),
        ["", "", "pod-a"],
    ),
    "two groups of one number: the older one has it": (
        a_node_view(
            gpus=2, shared_gpus=(shared("g1", "young", index=1, started=5), shared("g2", "old", index=1, started=1))
        ),
        ["young", "old"],
    ),
    "groups without a number, the older first": (
        a_node_view(gpus=2, shared_gpus=(shared("a-uuid", "young", started=9), shared("b-uuid", "old", started=1))),
        ["old", "young"],
    ),
    "of one age, by the group's name": (
        a_node_view(gpus=2, shared_gpus=(shared("b-uuid", "of-b"), shared("a-uuid", "of-a"))),
        ["of-a", "of-b"],
    ),
    "sharers by name": (a_node_view(gpus=1, shared_gpus=(shared("g", "zeta", "alpha"),)), ["alpha,zeta"]),
    "whole ones behind shared ones, the older first": (
        a_node_view(
            gpus=4, shared_gpus=(shared("g", "part", index=1),), whole_gpus=(alone("b", 2, started=2), alone("a", 1))
        ),
        ["a", "part", "b", "b"],
    ),
    "whole ones that have not started come last": (
        a_node_view(gpus=2, whole_gpus=(alone("a", started=None), alone("b", started=3))),
        ["b", "a"],
    ),
    "whole ones of one age, by namespace and name": (
        a_node_view(gpus=3, whole_gpus=(alone("b"), alone("a", namespace="z"), alone("a"))),
        ["a", "b", "a"],
    ),
    "more is promised than there is": (a_node_view(gpus=1, whole_gpus=(alone("a", 4),)), ["a"]),
    "more groups than devices": (a_node_view(gpus=1, shared_gpus=(shared("a", "x"), shared("b", "y"))), ["x"]),
    "a pod on two shared devices": (
        a_node_view(gpus=2, shared_gpus=(shared("a", "wide"), shared("b", "wide"))),
        ["wide", "wide"],
    ),
}


@pytest.mark.parametrize(("node", "expected"), PLACES.values(), ids=PLACES)
def test_pods_are_shown_on_the_devices_that_they_have(node: NodeView, expected: list[str]) -> None:
    assert occupied(node) == expected


def test_a_slot_says_how_much_of_it_is_used_and_by_whom() -> None:
    (slot,) = slots(a_node_view(gpus=1, shared_gpus=(shared("g", "x", "y", portion=0.35),)))
    assert (slot.id, slot.used) == (0, 0.7)
    assert [(each.namespace, each.name, each.portion) for each in slot.occupants] == [
        ("a", "x", 0.35),
        ("a", "y", 0.35),
    ]


FULL_CPU: dict[str, Any] = {"used": Amounts(milli_cpu=16_000, memory=GIB)}
FULL_MEMORY: dict[str, Any] = {"used": Amounts(milli_cpu=100, memory=64 * GIB)}
ROOM = Amounts(milli_cpu=16_000, memory=64 * GIB, gpus=2)
USELESS: dict[str, tuple[NodeView, list[int]]] = {
    "idle, and free to be used": (a_node_view(gpus=2), []),
    "the node is not ready": (a_node_view(gpus=2, ready=False), [0, 1]),
    "the node is cordoned": (a_node_view(gpus=2, schedulable=False), [0, 1]),
    "no CPU is left": (a_node_view(gpus=2, **FULL_CPU), [0, 1]),
    "no memory is left": (a_node_view(gpus=2, **FULL_MEMORY), [0, 1]),
    "no place for another pod": (a_node_view(gpus=2, pods=110, pod_limit=110), [0, 1]),
    "a place for one pod more": (a_node_view(gpus=2, pods=109, pod_limit=110), []),
    "what is full is not idle": (a_node_view(gpus=2, whole_gpus=(alone("a"),), **FULL_CPU), [1]),
    "what is shared and full is not idle": (
        a_node_view(gpus=2, shared_gpus=(shared("g", "x", "y", index=0),), **FULL_CPU),
        [1],
    ),
    "the idle part of a shared one": (a_node_view(gpus=1, shared_gpus=(shared("g", "x"),), **FULL_CPU), [0]),
    "the idle part of a shared one, which others may have": (a_node_view(gpus=1, shared_gpus=(shared("g", "x"),)), []),
    "a device that the node does not offer": (a_node_view(gpus=2, gpu_count=4, allocatable=ROOM), [2, 3]),
    "… is one of those that nobody is on": (
        a_node_view(gpus=2, gpu_count=4, allocatable=ROOM, shared_gpus=(shared("g", "x", index=3),)),
        [1, 2],
    ),
    "devices that are divided by MIG": (
        a_node_view(
            gpus=2,
            allocatable=Amounts(milli_cpu=16_000, memory=64 * GIB, extended={"nvidia.com/mig-1g.10gb": 14}),
        ),
        [],
    ),
}


@pytest.mark.parametrize(("node", "expected"), USELESS.values(), ids=USELESS)
def test_an_idle_device_is_fragmented_when_nobody_can_use_it(node: NodeView, expected: list[int]) -> None:
    assert fragmented(node) == expected


pods = some.uuids().map(str)
names = some.text("abcdefg-0123456789", min_size=1, max_size=6)
times: some.SearchStrategy[datetime | None] = some.none() | some.integers(0, 500).map(minutes_past_noon)
sharers = some.builds(
    Sharer,
    namespace=names,
    name=pods,
    uid=pods,
    portion=some.sampled_from([0.1, 0.25, 0.5]),
    started=times,
)
groups = some.lists(
    some.builds(
        SharedGpu,
        group=names,
        sharers=some.lists(sharers, min_size=1, max_size=3).map(tuple),
        index=some.none() | some.integers(-2, 12),
    ),
    max_size=6,
    unique_by=lambda shared_gpu: shared_gpu.group,
)
wholes = some.lists(
    some.builds(WholeGpus, namespace=names, name=pods, uid=pods, gpus=some.integers(0, 5), started=times),
    max_size=6,
)


@given(count=some.integers(0, 10), of_groups=groups, of_wholes=wholes, seed=some.randoms())
def test_whoever_is_on_a_device_is_there_alone_or_with_the_sharers_of_one_group(
    count: int, of_groups: list[SharedGpu], of_wholes: list[WholeGpus], seed: Any
) -> None:
    node = a_node_view(gpus=count, shared_gpus=tuple(of_groups), whole_gpus=tuple(of_wholes))
    shown = slots(node)
    assert [slot.id for slot in shown] == list(range(count))
    having_whole_ones = {pod.name for pod in of_wholes}
    for slot in shown:
        here = {occupant.name for occupant in slot.occupants}
        if here & having_whole_ones:
            assert len(slot.occupants) == 1, "a device that a pod has for itself has one occupant"
            assert slot.used == 1
        elif here:
            assert any(here == {sharer.name for sharer in group.sharers} for group in of_groups)
        assert slot.occupied_by == ",".join(occupant.name for occupant in slot.occupants)
    taken = sum(1 for slot in shown if slot.occupants)
    assert taken == min(count, len(of_groups) + sum(pod.gpus for pod in of_wholes)), "all that have room are shown"
    for pod in of_wholes:
        assert sum(1 for slot in shown for one in slot.occupants if one.name == pod.name) <= pod.gpus

    seed.shuffle(of_groups)
    seed.shuffle(of_wholes)
    again = a_node_view(gpus=count, shared_gpus=tuple(of_groups), whole_gpus=tuple(of_wholes))
    assert slots(again) == shown, "the order in which they are listed says nothing"


def test_a_time_in_another_zone_is_the_same_time() -> None:
    elsewhere = NOON.astimezone(timezone(timedelta(hours=8))) - timedelta(minutes=1)
    node = a_node_view(
        gpus=2, whole_gpus=(alone("a"), WholeGpus(namespace="a", name="b", uid="b", gpus=1, started=elsewhere))
    )
    assert occupied(node) == ["b", "a"]
