"""What a node's agent reports of its zones."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.scheduler.numa import Policy, Scope
from tests.scheduler.numa.builders import GPU, a_report, read

FOUR = {"cpu": "4"}


@pytest.mark.parametrize(
    ("said", "policy", "scope"),
    [
        pytest.param(("single-numa-node", "pod"), Policy.SINGLE_NUMA_NODE, Scope.POD, id="single"),
        pytest.param(("restricted", "container"), Policy.RESTRICTED, Scope.CONTAINER, id="restricted"),
        pytest.param(("best-effort", ""), Policy.BEST_EFFORT, Scope.CONTAINER, id="no scope"),
        pytest.param(("none", "pod"), Policy.NONE, Scope.POD, id="none"),
        pytest.param(("of-the-future", "galaxy"), Policy.NONE, Scope.CONTAINER, id="words that nobody knows"),
    ],
)
def test_attributes_say_policy_and_scope(said: tuple[str, str], policy: Policy, scope: Scope) -> None:
    found = read(a_report("n0", FOUR, policy=said[0], scope=said[1]))
    assert found is not None
    assert (found.policy, found.scope) == (policy, scope)


@pytest.mark.parametrize(
    ("word", "policy", "scope"),
    [
        ("SingleNUMANodeContainerLevel", Policy.SINGLE_NUMA_NODE, Scope.CONTAINER),
        ("SingleNUMANodePodLevel", Policy.SINGLE_NUMA_NODE, Scope.POD),
        ("Restricted", Policy.RESTRICTED, Scope.CONTAINER),
        ("RestrictedContainerLevel", Policy.RESTRICTED, Scope.CONTAINER),
        ("RestrictedPodLevel", Policy.RESTRICTED, Scope.POD),
        ("BestEffort", Policy.BEST_EFFORT, Scope.CONTAINER),
        ("BestEffortContainerLevel", Policy.BEST_EFFORT, Scope.CONTAINER),
        ("BestEffortPodLevel", Policy.BEST_EFFORT, Scope.POD),
        ("None", Policy.NONE, Scope.CONTAINER),
    ],
)
def test_older_agents_say_both_in_one_word(word: str, policy: Policy, scope: Scope) -> None:
    found = read(a_report("n0", FOUR, attributes=[], topologyPolicies=[word]))
    assert found is not None
    assert (found.policy, found.scope) == (policy, scope)


def test_attributes_go_before_the_old_word() -> None:
    found = read(a_report("n0", FOUR, policy="restricted", topologyPolicies=["SingleNUMANodePodLevel"]))
    assert found is not None
    assert (found.policy, found.scope) == (Policy.RESTRICTED, Scope.CONTAINER)


def a_zone(name: str, kind: str = "Node", **amounts: Any) -> dict[str, Any]:
    resources = [{"name": one, "allocatable": amount, "available": amount} for one, amount in amounts.items()]
    return {"name": name, "type": kind, "resources": resources}


def test_zones_come_by_their_numbers_whatever_the_order_of_the_report() -> None:
    named = [a_zone(name, cpu="1") for name in ("node-10", "odd", "node-2", "node-0", "even")]
    found = read(a_report("n0", zones=named))
    assert found is not None
    assert [zone.name for zone in found.zones] == ["node-0", "node-2", "node-10", "even", "odd"]


def test_only_numa_nodes_are_zones() -> None:
    found = read(a_report("n0", zones=[a_zone("socket-0", "Socket", cpu="8"), a_zone("node-0", cpu=4)]))
    assert found is not None
    assert [(zone.name, zone.allocatable) for zone in found.zones] == [("node-0", {"cpu": 4 * 10**9})]
    assert read(a_report("n0", zones=[a_zone("socket-0", "Socket", cpu="8")])) is None


def test_the_most_that_so_many_zones_have_is_known() -> None:
    found = read(a_report("n0", {GPU: "1"}, {GPU: "4"}, {GPU: "2"}))
    assert found is not None
    assert [amount // 10**9 for amount in found.most[GPU]] == [4, 6, 7]
