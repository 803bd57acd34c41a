"""The gang scheduler of tests: a gang is placed as a whole or not at all, where its topology lets it be."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.core import Node, Pod
from shoal.api.grove import names
from shoal.api.scheduler_grove_io import PodGang
from tests.support.gang_scheduler import placements


def a_node(name: str, cpu: int = 1, **more: Any) -> Node:
    labels = {"rack": name[0], "host": name}
    content = {
        "metadata": {"name": name, "labels": labels},
        "spec": more,
        "status": {
            "allocatable": {"cpu": str(cpu), "pods": "10"},
            "conditions": [{"type": "Ready", "status": "True"}],
        },
    }
    return msgspec.convert(content, Node)


def a_pod(name: str, *, node: str = "", gang: str = "web", gated: bool = False, cpu: str = "1", **more: Any) -> Pod:
    """A pod whose clique is the first letter of its name."""
    labels = {names.GANG_LABEL: gang, names.CLIQUE_LABEL: name[0], names.POD_INDEX_LABEL: name[1:]}
    spec = {
        "nodeName": node,
        "containers": [{"name": "main", "resources": {"requests": {"cpu": cpu}}}],
        "schedulingGates": [{"name": names.GATE}] if gated else [],
        **more,
    }
    metadata = {"name": name, "namespace": "default", "uid": f"{gang}-{name}", "labels": labels}
    return msgspec.convert({"metadata": metadata, "spec": spec, "status": {"phase": "Pending"}}, Pod)


def a_gang(*, name: str = "web", pack: str = "", pack_each: str = "", scaled: bool = False, **minimums: int) -> PodGang:
    groups = [
        {
            "name": group,
            "podReferences": [],
            "minReplicas": minimum,
            **({"topologyConstraint": {"packConstraint": {"required": pack_each}}} if pack_each else {}),
        }
        for group, minimum in minimums.items()
    ]
    spec: dict[str, Any] = {"podgroups": groups}
    if pack:
        spec["topologyConstraint"] = {"packConstraint": {"required": pack}}
    labels = {names.SCALING_GROUP_LABEL: "group"} if scaled else {}
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": "default", "labels": labels}, "spec": spec}, PodGang
    )


def placed(gangs: list[PodGang], pods: list[Pod], nodes: list[Node]) -> dict[str, str]:
    return {pod.metadata.name: node for pod, node in placements(gangs, pods, nodes)}


A, B = a_node("a1"), a_node("b1")


@pytest.mark.parametrize(
    ("gang", "pods", "nodes", "expected"),
    [
        pytest.param(a_gang(x=2), [a_pod("x0"), a_pod("x1")], [A, B], {"x0": "a1", "x1": "b1"}, id="there is room"),
        pytest.param(a_gang(x=2), [a_pod("x0"), a_pod("x1")], [A], {}, id="there is room for one"),
        pytest.param(a_gang(x=1, y=1), [a_pod("x0"), a_pod("y0")], [A], {}, id="there is room for one of two groups"),
        pytest.param(a_gang(x=1), [a_pod("x0"), a_pod("x1")], [A], {"x0": "a1"}, id="the minimum is enough"),
        pytest.param(a_gang(x=2), [a_pod("x0"), a_pod("x1", gated=True)], [A, B], {}, id="one is gated"),
        pytest.param(
            a_gang(x=2), [a_pod("x0", node="a1"), a_pod("x1")], [A, B], {"x1": "b1"}, id="one is there and one comes"
        ),
        pytest.param(a_gang(x=1), [a_pod("x0")], [a_node("a1", unschedulable=True)], {}, id="a cordoned node"),
        pytest.param(
            a_gang(x=1),
            [a_pod("x0")],
            [a_node("a1", taints=[{"key": "k", "effect": "NoSchedule"}])],
            {},
            id="a tainted node",
        ),
        pytest.param(a_gang(x=1), [a_pod("x0", nodeSelector={"host": "b1"})], [A, B], {"x0": "b1"}, id="a selector"),
        pytest.param(a_gang(x=1), [a_pod("x0", cpu="2")], [A, B], {}, id="no node is large enough"),
        pytest.param(a_gang(x=2, pack="rack"), [a_pod("x0"), a_pod("x1")], [A, B], {}, id="no rack has room for all"),
        pytest.param(
            a_gang(x=2, pack="rack"),
            [a_pod("x0"), a_pod("x1")],
            [A, B, a_node("b2")],
            {"x0": "b1", "x1": "b2"},
            id="one rack has room for all",
        ),
        pytest.param(
            a_gang(x=1, pack="rack"),
            [a_pod("x0", node="a1"), a_pod("x1")],
            [A, B, a_node("b2")],
            {},
            id="the rack where the others are is full",
        ),
        pytest.param(
            a_gang(x=1, y=1, pack_each="host"),
            [a_pod("x0"), a_pod("y0")],
            [A, B],
            {"x0": "a1", "y0": "b1"},
            id="each group is packed by itself",
        ),
    ],
)
def test_a_gang_is_placed_whole_or_not_at_all(
    gang: PodGang, pods: list[Pod], nodes: list[Node], expected: dict[str, str]
) -> None:
    assert placed([gang], pods, nodes) == expected


def test_a_gang_that_does_not_fit_leaves_its_room_to_others() -> None:
    large, small = a_gang(name="large", x=3), a_gang(name="small", x=2)
    pods = [a_pod(f"x{n}", gang=gang) for gang, count in (("large", 3), ("small", 2)) for n in range(count)]
    found = placements([large, small], pods, [A, B])
    assert {pod.metadata.labels[names.GANG_LABEL] for pod, _ in found} == {"small"}


def test_base_gangs_come_before_scaled_ones() -> None:
    scaled, base = a_gang(name="a-scaled", x=1, scaled=True), a_gang(name="base", x=1)
    pods = [a_pod("x0", gang="a-scaled"), a_pod("x0", gang="base")]
    [(pod, _)] = placements([scaled, base], pods, [A])
    assert pod.metadata.labels[names.GANG_LABEL] == "base"
