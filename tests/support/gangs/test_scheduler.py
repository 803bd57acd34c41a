"""The gang scheduler of tests: a gang is placed as a whole or not at all, where its topology lets it be."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.core import Node, Pod
from shoal.api.grove import names
from shoal.api.scheduler_grove_io import PodGang
from tests.support.builders.nodes import a_node
from tests.support.gangs.builders import a_gang_pod
from tests.support.gangs.scheduler import placements


def a_rack_node(name: str, **given: Any) -> Node:
    """A node with one core, whose rack is the first letter of its name."""
    return a_node(name, labels={"rack": name[0], "host": name}, allocatable={"cpu": "1", "pods": "10"}, **given)


def a_clique_pod(name: str, *, gang: str = "web", cpu: str = "1", **given: Any) -> Pod:
    """A pod whose clique is the first letter of its name."""
    return a_gang_pod(
        name,
        gang=gang,
        clique=name[0],
        labels={names.POD_INDEX_LABEL: name[1:]},
        namespace="default",
        uid=f"{gang}-{name}",
        requests={"cpu": cpu},
        phase="Pending",
        **given,
    )


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


A, B = a_rack_node("a1"), a_rack_node("b1")


@pytest.mark.parametrize(
    ("gang", "pods", "nodes", "expected"),
    [
        pytest.param(
            a_gang(x=2), [a_clique_pod("x0"), a_clique_pod("x1")], [A, B], {"x0": "a1", "x1": "b1"}, id="there is room"
        ),
        pytest.param(a_gang(x=2), [a_clique_pod("x0"), a_clique_pod("x1")], [A], {}, id="there is room for one"),
        pytest.param(
            a_gang(x=1, y=1),
            [a_clique_pod("x0"), a_clique_pod("y0")],
            [A],
            {},
            id="there is room for one of two groups",
        ),
        pytest.param(
            a_gang(x=1), [a_clique_pod("x0"), a_clique_pod("x1")], [A], {"x0": "a1"}, id="the minimum is enough"
        ),
        pytest.param(a_gang(x=2), [a_clique_pod("x0"), a_clique_pod("x1", gated=True)], [A, B], {}, id="one is gated"),
        pytest.param(
            a_gang(x=2),
            [a_clique_pod("x0", node="a1"), a_clique_pod("x1")],
            [A, B],
            {"x1": "b1"},
            id="one is there and one comes",
        ),
        pytest.param(a_gang(x=1), [a_clique_pod("x0")], [a_rack_node("a1", cordoned=True)], {}, id="a cordoned node"),
        pytest.param(
            a_gang(x=1),
            [a_clique_pod("x0")],
            [a_rack_node("a1", taints=[{"key": "k", "effect": "NoSchedule"}])],
            {},
            id="a tainted node",
        ),
        pytest.param(
            a_gang(x=1), [a_clique_pod("x0", nodeSelector={"host": "b1"})], [A, B], {"x0": "b1"}, id="a selector"
        ),
        pytest.param(a_gang(x=1), [a_clique_pod("x0", cpu="2")], [A, B], {}, id="no node is large enough"),
        pytest.param(
            a_gang(x=2, pack="rack"),
            [a_clique_pod("x0"), a_clique_pod("x1")],
            [A, B],
            {},
            id="no rack has room for all",
        ),
        pytest.param(
            a_gang(x=2, pack="rack"),
            [a_clique_pod("x0"), a_clique_pod("x1")],
            [A, B, a_rack_node("b2")],
            {"x0": "b1", "x1": "b2"},
            id="one rack has room for all",
        ),
        pytest.param(
            a_gang(x=1, pack="rack"),
            [a_clique_pod("x0", node="a1"), a_clique_pod("x1")],
            [A, B, a_rack_node("b2")],
            {},
            id="the rack where the others are is full",
        ),
        pytest.param(
            a_gang(x=1, y=1, pack_each="host"),
            [a_clique_pod("x0"), a_clique_pod("y0")],
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
    pods = [a_clique_pod(f"x{n}", gang=gang) for gang, count in (("large", 3), ("small", 2)) for n in range(count)]
    found = placements([large, small], pods, [A, B])
    assert {pod.metadata.labels[names.GANG_LABEL] for pod, _ in found} == {"small"}


def test_base_gangs_come_before_scaled_ones() -> None:
    scaled, base = a_gang(name="a-scaled", x=1, scaled=True), a_gang(name="base", x=1)
    pods = [a_clique_pod("x0", gang="a-scaled"), a_clique_pod("x0", gang="base")]
    [(pod, _)] = placements([scaled, base], pods, [A])
    assert pod.metadata.labels[names.GANG_LABEL] == "base"
