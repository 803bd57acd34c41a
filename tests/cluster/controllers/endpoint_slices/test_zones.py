"""Cases of the rules by which Kubernetes gives endpoints to zones."""

from __future__ import annotations

from collections import Counter
from typing import Any

import msgspec
import pytest

from shoal.api.core import Node
from shoal.api.discovery_k8s_io import Endpoint, EndpointConditions, EndpointSlice
from shoal.api.meta import ObjectMeta
from shoal.cluster.controllers.endpoint_slices.capacity import ZoneCapacity
from shoal.cluster.controllers.endpoint_slices.hints import shares_out_zones
from shoal.cluster.controllers.endpoint_slices.zones import NoHints, ZoneShares, shared_out
from shoal.kube import Change
from tests.support.builders.nodes import a_node
from tests.support.builders.services import a_service


def a_slice(*zones: str, name: str = "s", ready: bool = True) -> EndpointSlice:
    """A slice with one endpoint in each of these zones."""
    conditions = EndpointConditions(ready=ready)
    endpoints = [
        Endpoint(addresses=[f"10.0.0.{number}"], zone=zone or None, conditions=conditions)
        for number, zone in enumerate(zones)
    ]
    return EndpointSlice(metadata=ObjectMeta(name=name), address_type="IPv4", endpoints=endpoints)


def hints(*slices: EndpointSlice) -> dict[str, int]:
    given = [endpoint.hints for each in slices for endpoint in each.endpoints or () if endpoint.hints is not None]
    return dict(Counter(zone.name for each in given for zone in each.for_zones))


@pytest.mark.parametrize(
    ("zones", "shares", "expected"),
    [
        pytest.param("ab", {"a": 0.5, "b": 0.5}, {"a": 1, "b": 1}, id="one for each"),
        pytest.param("aaab", {"a": 0.5, "b": 0.5}, {"a": 2, "b": 2}, id="one is moved"),
        pytest.param("aaa" + "b" * 5, {"a": 0.5, "b": 0.5}, {"a": 4, "b": 4}, id="moved by need"),
        pytest.param(
            "aaaa" + "b" * 4 + "c" * 4, {"a": 0.5, "b": 0.25, "c": 0.25}, {"a": 6, "b": 3, "c": 3}, id="by share"
        ),
    ],
)
def test_endpoints_are_shared_out(zones: str, shares: dict[str, float], expected: dict[str, int]) -> None:
    changed, others = shared_out([a_slice(*zones)], [], shares)
    assert hints(*changed) == expected
    assert others == []


@pytest.mark.parametrize(
    ("zones", "shares", "problem"),
    [
        pytest.param("ab", None, "Insufficient Node information", id="nothing known of nodes"),
        pytest.param(
            "ab", {"a": 0.3, "b": 0.3, "c": 0.4}, "Insufficient number of endpoints (2 endpoints, 3 zones)", id="few"
        ),
        pytest.param(
            "ab", {"a": 0.8, "b": 0.2},
            "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold "
            "(2 endpoints, 2 zones)", id="overload",
        ),
        pytest.param(["a", "a", "b", ""], {"a": 0.5, "b": 0.5}, "One or more endpoints do not have a", id="no zone"),
    ],
)  # fmt: skip
def test_why_there_are_no_hints(zones: Any, shares: ZoneShares, problem: str) -> None:
    with pytest.raises(NoHints) as error:
        shared_out([a_slice(*zones)], [], shares)
    assert str(error.value).startswith(problem)


def test_fair_slices_are_left_alone_and_unfair_ones_are_not() -> None:
    shares = {"a": 0.5, "b": 0.5}
    (fair,), _ = shared_out([a_slice("a", "b")], [], shares)
    assert shared_out([], [fair], shares) == ([], [])
    bare = a_slice("a", "b", name="bare")
    _, others = shared_out([], [fair, bare], shares)
    assert [(before.metadata.name, hints(after)) for before, after in others] == [("bare", {"a": 1, "b": 1})]


def test_endpoints_that_are_not_ready_get_no_hints() -> None:
    changed, _ = shared_out([a_slice("a", "b"), a_slice("a", ready=False)], [], {"a": 0.5, "b": 0.5})
    assert [hints(each) for each in changed] == [{"a": 1, "b": 1}, {}]


def a_zoned_node(zone: str, cpu: str = "4", **given: Any) -> Node:
    return a_node(zone=zone, allocatable={"cpu": cpu}, **given)


def named(node: Node, name: str) -> Node:
    return msgspec.structs.replace(node, metadata=msgspec.structs.replace(node.metadata, name=name))


MASTER = {"node-role.kubernetes.io/control-plane": ""}


@pytest.mark.parametrize(
    ("nodes", "expected"),
    [
        ([a_zoned_node("a"), a_zoned_node("b")], {"a": 0.5, "b": 0.5}),
        ([a_zoned_node("a", "3"), a_zoned_node("b", "500m"), a_zoned_node("b", "500m")], {"a": 0.75, "b": 0.25}),
        (
            [a_zoned_node("a"), a_zoned_node("b"), a_zoned_node("", ready="False"), a_zoned_node("", labels=MASTER)],
            {"a": 0.5, "b": 0.5},
        ),
        ([a_zoned_node("a"), a_zoned_node("b"), a_zoned_node("")], None),
        ([a_zoned_node("a"), a_zoned_node("b", "0")], None),
        ([a_zoned_node("a"), a_zoned_node("a")], None),
        ([], None),
    ],
)
def test_the_shares_of_zones(nodes: list[Node], expected: ZoneShares) -> None:
    capacity = ZoneCapacity()
    for number, node in enumerate(nodes):
        capacity.node_changed(Change(None, named(node, f"n{number}")))
    assert capacity.shares == expected


def test_the_shares_of_zones_follow_their_nodes() -> None:
    capacity = ZoneCapacity()
    for name, node in {"a": a_zoned_node("a"), "b": a_zoned_node("b"), "odd": a_zoned_node("")}.items():
        capacity.node_changed(Change(None, named(node, name)))
    assert capacity.shares is None
    capacity.node_changed(Change(named(a_zoned_node(""), "odd"), None))
    assert capacity.shares == {"a": 0.5, "b": 0.5}
    capacity.node_changed(Change(named(a_zoned_node("b"), "b"), named(a_zoned_node("c", "12"), "b")))
    assert capacity.shares == {"a": 0.25, "c": 0.75}
    capacity.node_changed(
        Change(named(a_zoned_node("c", "12"), "b"), named(a_zoned_node("c", "12", ready="Unknown"), "b"))
    )
    assert capacity.shares is None


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        ({}, False),
        ({"service.kubernetes.io/topology-mode": "Auto"}, True),
        ({"service.kubernetes.io/topology-mode": "auto"}, True),
        ({"service.kubernetes.io/topology-mode": "other"}, False),
        ({"service.kubernetes.io/topology-mode": "Auto", "service.kubernetes.io/topology-aware-hints": "off"}, False),
    ],
)
def test_who_asks_for_zones_to_be_shared_out(annotations: dict[str, str], expected: bool) -> None:
    service = a_service()
    metadata = msgspec.structs.replace(service.metadata, annotations=annotations)
    assert shares_out_zones(msgspec.structs.replace(service, metadata=metadata)) is expected
