"""Nodes as the model has them: what keeps pods away, and what others say that they have."""

from __future__ import annotations

import msgspec
import pytest

from shoal.api.core.nodes import Node
from shoal.scheduler.model.nodes import Nodes
from shoal.scheduler.model.resources import GPU, ResourceNames
from shoal.scheduler.model.tasks import ANYWHERE, Request
from shoal.scheduler.session.filters import Filters, FilterSettings
from shoal.scheduler.watching.needs import Gear
from shoal.scheduler.watching.reading import node_of
from tests.scheduler.watching.worlds import a_gpu_node


def with_condition(kind: str, status: str) -> Node:
    node = a_gpu_node("n0")
    condition = {"type": kind, "status": status}
    conditions = [*msgspec.to_builtins(node.status.conditions), condition]
    return msgspec.convert(
        {**msgspec.to_builtins(node), "status": {**msgspec.to_builtins(node.status), "conditions": conditions}}, Node
    )


@pytest.mark.parametrize("kind", ["MemoryPressure", "DiskPressure", "PIDPressure", "NetworkUnavailable"])
@pytest.mark.parametrize(("status", "is_kept_away"), [("True", True), ("Unknown", True), ("False", False)])
def test_a_node_under_pressure_takes_no_pods_and_says_so(kind: str, status: str, is_kept_away: bool) -> None:
    names = ResourceNames()
    nodes = Nodes([node_of(with_condition(kind, status), names)], names)
    filters, request = Filters(nodes, FilterSettings()), Request(vector=names.vector({"pods": 1.0}))
    assert filters.static_mask(ANYWHERE, request).tolist() == [not is_kept_away]
    assert filters.why_not(ANYWHERE, request, 0) == (f"has the condition {kind}" if is_kept_away else "")


def test_a_condition_that_nobody_knows_keeps_nobody_away() -> None:
    assert node_of(with_condition("FrequentKubeletRestart", "True"), ResourceNames()).pressures == ()


def test_a_node_has_the_gpus_that_are_claimed_from_it_and_room_for_volumes() -> None:
    names = ResourceNames()
    node = node_of(a_gpu_node("n0", gpus=2), names, gear=Gear(4, {"attachable-volumes-csi-ebs": 25.0}))
    assert (float(node.allocatable[GPU]), node.has_claimed_gpus) == (6, True)
    assert float(node.allocatable[names.place("attachable-volumes-csi-ebs")]) == 25
