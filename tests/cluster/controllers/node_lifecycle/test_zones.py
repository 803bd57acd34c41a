from __future__ import annotations

import pytest

from shoal.api.core import Node
from shoal.api.meta import ObjectMeta
from shoal.cluster.controllers.node_lifecycle.zones import (
    EvictionLimits,
    Outlook,
    Zones,
    ZoneState,
    rate_of,
    zone_of,
    zone_state,
)
from shoal.kube import Change
from tests.support.builders.nodes import a_node

EXCLUDED = {"node.kubernetes.io/exclude-disruption": ""}


class Clock:
    def __init__(self) -> None:
        self.time = 0.0

    def __call__(self) -> float:
        return self.time


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def zones(clock: Clock) -> Zones:
    return Zones(EvictionLimits(), clock=clock)


def show(zones: Zones, *nodes: Node) -> Outlook:
    for node in nodes:
        zones.node_changed(Change(None, node))
    return zones.judge()


@pytest.mark.parametrize(
    ("ready", "unready", "expected"),
    [
        pytest.param(0, 0, ZoneState.NORMAL, id="empty"),
        pytest.param(1, 0, ZoneState.NORMAL, id="well"),
        pytest.param(0, 1, ZoneState.FULL_DISRUPTION, id="the only one lost"),
        pytest.param(1, 2, ZoneState.NORMAL, id="two lost are too few to tell"),
        pytest.param(2, 3, ZoneState.PARTIAL_DISRUPTION, id="three of five lost"),
        pytest.param(9, 11, ZoneState.PARTIAL_DISRUPTION, id="exactly the share"),
        pytest.param(10, 11, ZoneState.NORMAL, id="just below the share"),
    ],
)
def test_a_zone_is_judged_by_its_nodes(ready: int, unready: int, expected: ZoneState) -> None:
    assert zone_state(ready=ready, unready=unready, unhealthy_share=0.55) is expected


@pytest.mark.parametrize(
    ("state", "size", "expected"),
    [
        (ZoneState.NORMAL, 10, 0.1),
        (ZoneState.FULL_DISRUPTION, 10, 0.1),
        (ZoneState.PARTIAL_DISRUPTION, 50, 0.0),
        (ZoneState.PARTIAL_DISRUPTION, 51, 0.01),
    ],
)
def test_the_pace_follows_state_and_size(state: ZoneState, size: int, expected: float) -> None:
    assert rate_of(state, size=size, limits=EvictionLimits()) == expected


def test_older_labels_name_the_zone_first() -> None:
    labels = {"failure-domain.beta.kubernetes.io/zone": "old", "topology.kubernetes.io/zone": "new"}
    assert zone_of(Node(metadata=ObjectMeta(labels=labels))) == ":\0:old"
    assert zone_of(Node()) == ""


def test_nodes_of_a_zone_lose_their_pods_one_after_another(zones: Zones, clock: Clock) -> None:
    lost = [a_node(name, ready="Unknown") for name in ("a", "b")]
    show(zones, *lost, *(a_node(f"w{number}") for number in range(9)))
    assert [zones.may_lose_pods(node) for node in lost] == [False, False]
    assert zones.next_turn_in() == 0
    assert zones.take_turns() == ["a"]
    assert zones.may_lose_pods(lost[0])
    assert zones.take_turns() == []
    assert zones.next_turn_in() == 10
    clock.time += 10
    assert zones.take_turns() == ["b"]


def test_zones_do_not_wait_for_each_other(zones: Zones) -> None:
    lost = [a_node(name, ready="Unknown", zone=name) for name in ("a", "b")]
    show(zones, *lost, *(a_node(f"w{zone}", zone=zone) for zone in "ab"))
    for node in lost:
        zones.may_lose_pods(node)
    assert zones.take_turns() == ["a", "b"]


def test_a_node_that_recovers_leaves_the_line(zones: Zones) -> None:
    lost = a_node("a", ready="Unknown")
    show(zones, lost, a_node("b"))
    zones.may_lose_pods(lost)
    zones.leave_line("a")
    assert zones.next_turn_in() is None
    assert zones.take_turns() == []


def test_in_a_small_zone_that_is_mostly_lost_nobody_loses_pods(zones: Zones, clock: Clock) -> None:
    lost = [a_node(f"l{number}", ready="Unknown") for number in range(3)]
    show(zones, *lost, a_node("w"))
    zones.may_lose_pods(lost[0])
    assert zones.next_turn_in() is None
    clock.time += 1000
    assert zones.take_turns() == []
    # Three more come up: the zone is normal again, and the first turn is one full wait away.
    show(zones, *(a_node(f"w{number}") for number in range(5)))
    assert zones.next_turn_in() == 10


def test_when_no_node_at_all_is_ready_nothing_is_driven_away(zones: Zones) -> None:
    nodes = [a_node(name, ready="Unknown", zone=name) for name in "ab"]
    assert show(zones, *nodes) is Outlook.ALL_LOST
    assert zones.all_lost
    assert zones.judge() is Outlook.AS_BEFORE
    assert show(zones, a_node("a", zone="a")) is Outlook.RECOVERING
    assert not zones.all_lost


def test_a_node_that_is_left_out_of_account_tells_nothing(zones: Zones) -> None:
    excluded = a_node("x", labels=EXCLUDED)
    assert show(zones, excluded, a_node("a", ready="Unknown")) is Outlook.ALL_LOST
    zones.node_changed(Change(a_node("a", ready="Unknown"), None))
    assert zones.judge() is Outlook.RECOVERING


def test_a_node_that_is_left_out_of_account_leaves_the_line_when_it_goes(zones: Zones) -> None:
    excluded = a_node("x", ready="Unknown", labels=EXCLUDED)
    show(zones, excluded, a_node("a"))
    zones.may_lose_pods(excluded)
    zones.node_changed(Change(excluded, None))
    assert zones.take_turns() == []
