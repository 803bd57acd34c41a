"""With which zones the Topology Manager would align a pod: KAI's own cases, and a few more."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.scheduler.numa import NodeTopology, Policy, Scope, alignment, demand_of
from tests.scheduler.numa.builders import GPU, Asked, a_container, a_numa_pod, zones

SINGLE, RESTRICTED, BEST = Policy.SINGLE_NUMA_NODE, Policy.RESTRICTED, Policy.BEST_EFFORT
ONE = 10**9


def taken(
    topology: NodeTopology,
    *asks: Asked,
    first: list[dict[str, Any]] | None = None,
    quality: str = "Guaranteed",
    ignored: str = "",
) -> dict[int, dict[str, float]] | None:
    """What is taken of zones by their numbers, in units of the resource; None: it is refused."""
    demand = demand_of(a_numa_pod("p", *asks, first=first or [], quality=quality))
    assert demand is not None
    free = [zone.available for zone in topology.zones]
    drawn = alignment(topology, demand, topology.resources - {ignored}, free)
    return None if drawn is None else {zone: {k: v / ONE for k, v in own.items()} for zone, own in drawn.items()}


def two(policy: Policy, scope: Scope = Scope.CONTAINER, **each: str) -> NodeTopology:
    own = {GPU if name == "gpu" else name: amount for name, amount in each.items()}
    return zones(own, own, policy=policy, scope=scope)


@pytest.mark.parametrize(
    ("topology", "asks", "expected"),
    [
        pytest.param(
            two(SINGLE, gpu="4", cpu="16"), {GPU: "2", "cpu": "4"}, {0: {GPU: 2, "cpu": 4}}, id="the lowest that fits"
        ),
        pytest.param(two(SINGLE, gpu="4", cpu="16"), {GPU: "6"}, None, id="more than any zone has"),
        pytest.param(
            zones({GPU: "4"}, {"cpu": "16"}), {GPU: "1", "cpu": "1"}, None, id="GPUs here and processors there"
        ),
        pytest.param(two(SINGLE, gpu="2", cpu="4"), {GPU: "3", "cpu": "6"}, None, id="enough on both together only"),
        pytest.param(two(RESTRICTED, gpu="4", cpu="16"), {GPU: "6", "cpu": "10"}, None, id="two for GPUs, one for CPU"),
        pytest.param(
            two(RESTRICTED, gpu="4", cpu="16"),
            {GPU: "6", "cpu": "24"},
            {0: {GPU: 4, "cpu": 16}, 1: {GPU: 2, "cpu": 8}},
            id="two for each",
        ),
        pytest.param(
            two(RESTRICTED, gpu="2", cpu="100"), {GPU: "4", "cpu": "1"}, None, id="all GPUs and one processor"
        ),
        pytest.param(
            two(RESTRICTED, gpu="4", cpu="16"), {GPU: "2", "cpu": "8"}, {0: {GPU: 2, "cpu": 8}}, id="one for each"
        ),
        pytest.param(
            zones(*[{GPU: "2"}] * 3, policy=RESTRICTED), {GPU: "4"}, {0: {GPU: 2}, 1: {GPU: 2}}, id="the lowest two"
        ),
        pytest.param(
            two(RESTRICTED, gpu="4", memory="16Gi"),
            {GPU: "2", "memory": "20Gi"},
            None,
            id="two for memory, one for GPUs",
        ),
        pytest.param(two(RESTRICTED, gpu="4"), {"cpu": "2"}, {}, id="what no zone reports"),
        pytest.param(two(RESTRICTED, gpu="4"), {GPU: "9"}, None, id="more than all zones have"),
        pytest.param(zones(*[{GPU: "1"}] * 4, policy=BEST), {GPU: "1"}, {0: {GPU: 1}}, id="best effort, one zone"),
        pytest.param(
            zones(*[{GPU: "1"}] * 4, policy=BEST), {GPU: "2"}, {0: {GPU: 1}, 1: {GPU: 1}}, id="best effort, two zones"
        ),
        pytest.param(zones(*[{GPU: "1"}] * 4, policy=BEST), {GPU: "5"}, None, id="best effort, too much"),
        pytest.param(
            zones({GPU: "1"}, {GPU: "3"}, {GPU: "2"}, policy=BEST), {GPU: "3"}, {1: {GPU: 3}}, id="best effort, fewest"
        ),
    ],
)
def test_a_container_is_aligned_as_the_policy_has_it(
    topology: NodeTopology, asks: Asked, expected: dict[int, dict[str, float]] | None
) -> None:
    assert taken(topology, asks) == expected


FOUR, THREE, ALONE = {GPU: "4", "cpu": "95"}, {GPU: "3", "cpu": "45"}, {GPU: "4"}


@pytest.mark.parametrize(
    ("topology", "asks", "expected"),
    [
        pytest.param(
            zones(FOUR, FOUR, policy=RESTRICTED, free=[THREE, THREE]),
            {GPU: "4", "cpu": "50"},
            None,
            id="one zone would do if it were empty",
        ),
        pytest.param(
            zones(FOUR, FOUR, policy=RESTRICTED, free=[THREE, THREE]), {GPU: "1", "cpu": "50"}, None, id="no zone whole"
        ),
        pytest.param(
            zones(ALONE, ALONE, policy=RESTRICTED, free=[{GPU: "1"}, ALONE]), {GPU: "3"}, {1: {GPU: 3}}, id="the second"
        ),
        pytest.param(
            zones(ALONE, ALONE, ALONE, policy=RESTRICTED, free=[{GPU: "1"}, ALONE, ALONE]),
            {GPU: "6"},
            {1: {GPU: 4}, 2: {GPU: 2}},
            id="the second and the third",
        ),
    ],
)
def test_how_many_zones_is_decided_by_what_they_have_and_which_by_what_is_free(
    topology: NodeTopology, asks: Asked, expected: dict[int, dict[str, float]] | None
) -> None:
    assert taken(topology, asks) == expected


THREES = [{GPU: "3"}, {GPU: "3"}]
MEMORIES = [{GPU: "3", "memory": "8Gi"}] * 2
GI = 2.0**30


@pytest.mark.parametrize(
    ("scope", "asks", "first", "expected"),
    [
        pytest.param(Scope.CONTAINER, THREES, [], {0: {GPU: 3}, 1: {GPU: 3}}, id="each on a zone of its own"),
        pytest.param(Scope.POD, THREES, [], {0: {GPU: 4}, 1: {GPU: 2}}, id="the pod as one, on two"),
        pytest.param(
            Scope.CONTAINER,
            MEMORIES,
            [],
            {0: {GPU: 3, "memory": 8 * GI}, 1: {GPU: 3, "memory": 8 * GI}},
            id="each with its memory",
        ),
        pytest.param(Scope.POD, MEMORIES, [], None, id="the pod as one, memory on one and GPUs on two"),
        pytest.param(
            Scope.CONTAINER, [{GPU: "4"}], [a_container({GPU: "4"})], {0: {GPU: 4}}, id="what runs before leaves it all"
        ),
        pytest.param(
            Scope.CONTAINER, [{GPU: "1"}], [a_container({GPU: "9"})], None, id="what runs before is too large"
        ),
        pytest.param(
            Scope.CONTAINER,
            [{GPU: "3"}],
            [a_container({GPU: "3"}, stays=True)],
            {0: {GPU: 3}, 1: {GPU: 3}},
            id="a sidecar stays",
        ),
        pytest.param(
            Scope.POD, [{GPU: "2"}], [a_container({GPU: "8"})], {0: {GPU: 4}, 1: {GPU: 4}}, id="the most at any time"
        ),
    ],
)
def test_the_scope_says_what_is_aligned_as_one(
    scope: Scope,
    asks: list[Asked],
    first: list[dict[str, Any]],
    expected: dict[int, dict[str, float]] | None,
) -> None:
    topology = two(RESTRICTED, scope, gpu="4", cpu="8", memory="16Gi")
    assert taken(topology, *asks, first=first) == expected


def test_containers_share_what_is_free() -> None:
    topology = two(SINGLE, cpu="4")
    assert taken(topology, {"cpu": "3"}, {"cpu": "3"}) == {0: {"cpu": 3}, 1: {"cpu": 3}}
    assert taken(topology, {"cpu": "3"}, {"cpu": "3"}, {"cpu": "2"}) is None


def test_what_is_to_be_ignored_is_aligned_with_nothing() -> None:
    topology = zones({"cpu": "4"}, {"cpu": "4", "memory": "16Gi"})
    asks = {"cpu": "2", "memory": "8Gi"}
    assert taken(topology, asks) == {1: {"cpu": 2, "memory": 8 * GI}}
    assert taken(topology, asks, ignored="memory") == {0: {"cpu": 2}}


def test_of_a_pod_that_is_not_guaranteed_only_the_devices_are_aligned() -> None:
    topology = two(RESTRICTED, gpu="4", cpu="16")
    asks = {GPU: "6", "cpu": "10"}
    assert taken(topology, asks) is None
    assert taken(topology, asks, quality="Burstable") == {0: {GPU: 4}, 1: {GPU: 2}}


def test_cores_weigh_as_much_as_in_kai_where_zones_are_compared() -> None:
    """There they are counted in thousandths: two cores outweigh one with three devices."""
    topology = zones({GPU: "3"}, {"cpu": "2"}, {"cpu": "1", GPU: "3"}, policy=BEST)
    assert taken(topology, {GPU: "3", "cpu": "2"}) == {0: {GPU: 3}, 1: {"cpu": 2}}
