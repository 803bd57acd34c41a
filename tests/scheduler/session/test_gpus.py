"""Which devices of a node a task that shares gets, and whether at once."""

from __future__ import annotations

import pytest

from shoal.scheduler.gpu_requests import GpuRequest
from shoal.scheduler.model.nodes import Node, SharedGpu
from shoal.scheduler.model.resources import ResourceNames, Vector
from shoal.scheduler.model.tasks import Request
from shoal.scheduler.session.gpus import Devices, chosen_devices, fitting_groups, has_room
from tests.scheduler.builders import a_model_node, a_model_task

NAMES = ResourceNames()
SIZE = 1000
HALF = GpuRequest(portion=0.5, devices=1)


def a_sharing_node(**shared: SharedGpu) -> Node:
    return a_model_node("n", 4, gpu_memory=SIZE, shared=shared)


def free(gpus: float) -> Vector:
    return NAMES.vector({"gpu": gpus, "pods": 10.0})


def devices(
    node: Node,
    *,
    gpu: GpuRequest = HALF,
    idle: float = 1,
    releasing: float = 0,
    packs: bool | None = True,
    is_free: bool = True,
) -> Devices | None:
    task = a_model_task("t", Request(NAMES.vector({"pods": 1.0}), gpu=gpu))
    return chosen_devices(task, node, free(idle), free(releasing), packs=packs, is_free=is_free)


@pytest.mark.parametrize(
    ("packs", "group"),
    [(True, "fuller"), (False, "new"), (None, "emptier")],
    ids=["the fullest", "spread: a free one", "no order: the first by name"],
)
def test_which_device_is_taken(packs: bool | None, group: str) -> None:
    node = a_sharing_node(
        emptier=SharedGpu(allocated=100), fuller=SharedGpu(allocated=400), full=SharedGpu(allocated=900)
    )

    found = devices(node, packs=packs)

    assert found is not None
    assert found.is_now
    assert found.groups == (group,) if group != "new" else found.groups[0] not in node.shared
    assert found.pods == (2 if group == "new" else 1)


def test_several_devices_are_all_different() -> None:
    found = devices(a_sharing_node(g=SharedGpu(allocated=100)), gpu=GpuRequest(portion=0.5, devices=3), idle=2)

    assert found is not None
    assert len(set(found.groups)) == 3
    assert found.groups[0] == "g"
    assert found.pods == 3


def test_nothing_is_taken_where_there_are_not_enough() -> None:
    assert devices(a_sharing_node(g=SharedGpu(allocated=100)), gpu=GpuRequest(portion=0.5, devices=3), idle=1) is None
    assert devices(a_sharing_node(), idle=0) is None


@pytest.mark.parametrize(
    ("shared", "idle", "releasing", "is_free", "is_now"),
    [
        ({"g": SharedGpu(allocated=1000, releasing=600)}, 0, 0, True, False),
        ({"g": SharedGpu(allocated=400)}, 0, 0, True, True),
        ({"g": SharedGpu(allocated=400)}, 0, 0, False, False),
        ({}, 1, 0, True, True),
        ({}, 1, 0, False, False),
    ],
    ids=["others must go", "room at once", "the node has no CPU now", "a free device", "a free device, but no CPU"],
)
def test_whether_it_is_at_once(
    shared: dict[str, SharedGpu], idle: float, releasing: float, is_free: bool, is_now: bool
) -> None:
    found = devices(a_sharing_node(**shared), idle=idle, releasing=releasing, is_free=is_free)

    assert found is not None
    assert found.is_now is is_now


def test_a_new_device_is_named_the_same_whenever_it_is_decided() -> None:
    assert devices(a_sharing_node()) == devices(a_sharing_node())


def test_a_new_device_is_not_named_like_one_that_its_first_sharer_has_left() -> None:
    first = devices(a_sharing_node())
    assert first is not None
    left = a_sharing_node(**{first.groups[0]: SharedGpu(allocated=900)})

    again = devices(left)

    assert again is not None
    assert again.pods == 2
    assert again.groups[0] not in left.shared
    assert again == devices(left)


def test_memory_is_asked_of_each_device() -> None:
    node = a_sharing_node(g=SharedGpu(allocated=400), h=SharedGpu(allocated=700))
    request = Request(NAMES.vector({}), gpu=GpuRequest(memory=600, devices=1))

    assert fitting_groups(request, node) == ["g"]
    assert has_room(request, node, free(0), 1)
    assert not has_room(request, node, free(0), 0)
    too_much = Request(NAMES.vector({}), gpu=GpuRequest(memory=1001, devices=1))
    assert not has_room(too_much, node, free(4), 2)
