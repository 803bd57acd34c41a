"""On which nodes a pod may be, and what it says where there is none."""

from __future__ import annotations

from typing import Any

import pytest

from tests.cluster.controllers.binding.builders import Scheduler, a_pending_pod, a_worker, away_from, near_to, on_nodes

GPU_TAINT = {"key": "gpu", "value": "yes", "effect": "NoSchedule"}
SELECTOR = "node(s) didn't match Pod's node affinity/selector"
TAINTED = "node(s) had untolerated taint(s)"

CASES: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    # a node, a pod, and what is wrong (empty where it fits)
    "an empty node takes a pod": ({}, {}, ""),
    "a closed node takes none": ({"unschedulable": True}, {}, "node(s) were unschedulable"),
    "a closed node takes one that tolerates it": (
        {"unschedulable": True},
        {"tolerations": [{"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}]},
        "",
    ),
    "a taint keeps pods away": ({"taints": [GPU_TAINT]}, {}, TAINTED),
    "a taint is tolerated": (
        {"taints": [GPU_TAINT]},
        {"tolerations": [{"key": "gpu", "value": "yes", "effect": "NoSchedule"}]},
        "",
    ),
    "a soft taint keeps nobody away": ({"taints": [GPU_TAINT | {"effect": "PreferNoSchedule"}]}, {}, ""),
    "a node that is not ready takes none": ({"ready": "False"}, {}, TAINTED),
    "a node that has never said that it is ready takes none": ({"ready": ""}, {}, TAINTED),
    "a node that is not ready takes one that tolerates it": (
        {"ready": "False"},
        {"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]},
        "",
    ),
    "a node that is out of reach is another matter": (
        {"ready": "Unknown"},
        {"tolerations": [{"key": "node.kubernetes.io/not-ready", "operator": "Exists"}]},
        TAINTED,
    ),
    "a node selector is met": ({"labels": {"zone": "a"}}, {"nodeSelector": {"zone": "a"}}, ""),
    "a node selector is not met": ({"labels": {"zone": "a"}}, {"nodeSelector": {"zone": "b"}}, SELECTOR),
    "a required affinity is not met": (
        {"labels": {"zone": "a"}},
        {"affinity": on_nodes({"key": "zone", "operator": "NotIn", "values": ["a"]})},
        SELECTOR,
    ),
    "a pod that names another node": (
        {},
        {"affinity": on_nodes(fields=[{"key": "metadata.name", "operator": "In", "values": ["other"]}])},
        "node(s) didn't satisfy plugin(s) [NodeAffinity]",
    ),
    "a pod that names this node": (
        {},
        {"affinity": on_nodes(fields=[{"key": "metadata.name", "operator": "In", "values": ["n"]}])},
        "",
    ),
    "too little processor time": ({}, {"requests": {"cpu": "5"}}, "Insufficient cpu"),
    "exactly enough": ({"gpu": "8"}, {"requests": {"cpu": "4", "gpu": "8"}}, ""),
    "too few of an extended resource": ({"gpu": "2"}, {"requests": {"gpu": "3"}}, "Insufficient nvidia.com/gpu"),
    "none of an extended resource": ({}, {"requests": {"gpu": "1"}}, "Insufficient nvidia.com/gpu"),
    "no room for another pod": ({"pods": "0"}, {}, "Too many pods"),
}


@pytest.mark.parametrize(("node", "pod", "reason"), CASES.values(), ids=CASES.keys())
def test_a_pod_may_be_on_a_node_or_says_why_not(node: dict[str, Any], pod: dict[str, Any], reason: str) -> None:
    scheduler = Scheduler([a_worker("n", **node)])
    pod_on_trial = a_pending_pod("p", **pod)
    said = scheduler.why(pod_on_trial)
    assert scheduler.place(pod_on_trial) == ("" if reason else "n")
    assert said == f"0/1 nodes are available: {f'1 {reason}' if reason else ''}."


def test_every_shortage_of_a_node_is_named_and_nodes_are_counted() -> None:
    scheduler = Scheduler(
        [a_worker("a"), a_worker("b", taints=[GPU_TAINT]), a_worker("c", gpu="1"), a_worker("d", cpu="64", gpu="1")]
    )
    assert scheduler.why(a_pending_pod("p", requests={"cpu": "8", "gpu": "4"})) == (
        "0/4 nodes are available: 1 node(s) had untolerated taint(s), 2 Insufficient cpu, "
        "3 Insufficient nvidia.com/gpu."
    )


def test_without_nodes_a_pod_says_so() -> None:
    assert Scheduler().why(a_pending_pod("p")) == "no nodes available to schedule pods"


def test_the_emptiest_node_is_taken() -> None:
    scheduler = Scheduler([a_worker("a"), a_worker("b"), a_worker("c", cpu="8", memory="32Gi")])
    taken = [
        scheduler.place(a_pending_pod(f"p{number}", requests={"cpu": "1", "memory": "4Gi"})) for number in range(4)
    ]
    assert sorted(taken) == ["a", "b", "c", "c"]


def test_a_node_that_was_given_back_is_seen_again() -> None:
    scheduler = Scheduler([a_worker("a", gpu="1"), a_worker("b", gpu="1")])
    first, second, third = (a_pending_pod(name, requests={"gpu": "1"}) for name in ("one", "two", "three"))
    assert {scheduler.place(first), scheduler.place(second)} == {"a", "b"}
    assert scheduler.place(third) == ""
    left = scheduler.places["one"]
    scheduler.remove(first)
    assert scheduler.place(third) == left


def test_a_changed_node_is_seen_at_once() -> None:
    scheduler = Scheduler([a_worker("a", gpu="1", unschedulable=True)])
    assert scheduler.place(a_pending_pod("one", requests={"gpu": "1"})) == ""
    scheduler.picture.put_node(a_worker("a", gpu="1"))
    assert scheduler.place(a_pending_pod("two", requests={"gpu": "1"})) == "a"
    scheduler.picture.put_node(a_worker("a", gpu="2"))
    assert scheduler.place(a_pending_pod("three", requests={"gpu": "1"})) == "a"
    scheduler.picture.remove_node("a")
    assert scheduler.place(a_pending_pod("four")) == ""
    scheduler.picture.put_node(a_worker("a", gpu="2"))
    assert scheduler.place(a_pending_pod("five", requests={"gpu": "1"})) == ""  # its pods were not forgotten


def test_host_ports_are_held_by_one_pod() -> None:
    scheduler = Scheduler([a_worker("a"), a_worker("b")])
    assert scheduler.place(a_pending_pod("one", host_port=8080)) == "a"
    assert scheduler.place(a_pending_pod("two", host_port=8080)) == "b"
    third = a_pending_pod("three", host_port=8080)
    assert scheduler.place(third) == ""
    assert scheduler.why(third) == (
        "0/2 nodes are available: 2 node(s) didn't have free ports for the requested pod ports."
    )
    assert scheduler.place(a_pending_pod("four", host_port=8081)) != ""


def test_pods_that_avoid_each_other_are_never_neighbours() -> None:
    scheduler = Scheduler([a_worker("a"), a_worker("b", cpu="64", memory="256Gi")])
    pods = [a_pending_pod(f"p{number}", labels={"app": "x"}, affinity=away_from(app="x")) for number in range(3)]
    assert sorted(scheduler.place(pod) for pod in pods) == ["", "a", "b"]
    assert scheduler.why(pods[-1]) == "0/2 nodes are available: 2 node(s) didn't match pod anti-affinity rules."


def test_avoidance_holds_for_those_who_come_later_too() -> None:
    scheduler = Scheduler([a_worker("a", labels={"zone": "1"}), a_worker("b", labels={"zone": "1"})])
    scheduler.place(a_pending_pod("shy", affinity=away_from("zone", app="x")), on="a")
    late = a_pending_pod("late", labels={"app": "x"})
    assert scheduler.place(late) == ""
    assert scheduler.why(late) == (
        "0/2 nodes are available: 2 node(s) didn't satisfy existing pods anti-affinity rules."
    )
    assert scheduler.place(a_pending_pod("elsewhere", labels={"app": "x"}, namespace="other")) != ""


def test_pods_that_belong_together_share_a_zone() -> None:
    zones = [a_worker(f"n{number}", labels={"zone": str(number % 3)}) for number in range(9)]
    scheduler = Scheduler([*zones, a_worker("no-zone", cpu="999")])
    pods = [a_pending_pod(f"p{number}", labels={"app": "x"}, affinity=near_to("zone", app="x")) for number in range(6)]
    taken = {scheduler.place(pod) for pod in pods}
    assert len({int(name.removeprefix("n")) % 3 for name in taken}) == 1


def test_a_pod_without_the_company_it_needs_waits() -> None:
    scheduler = Scheduler([a_worker("a"), a_worker("b")])
    lonely = a_pending_pod("lonely", affinity=near_to(app="x"))
    assert scheduler.place(lonely) == ""
    assert scheduler.why(lonely) == "0/2 nodes are available: 2 node(s) didn't match pod affinity rules."
    scheduler.place(a_pending_pod("company", labels={"app": "x"}), on="b")
    assert scheduler.place(lonely) == "b"


def spread_over(key: str, *, skew: int = 1, **more: Any) -> list[dict[str, Any]]:
    selector = {"matchLabels": {"app": "x"}}
    constraint = {"maxSkew": skew, "topologyKey": key, "whenUnsatisfiable": "DoNotSchedule", "labelSelector": selector}
    return [constraint | more]


def test_pods_are_spread_evenly_over_zones() -> None:
    nodes = [a_worker("a1", labels={"zone": "a"}, cpu="64"), a_worker("a2", labels={"zone": "a"}, cpu="64")]
    scheduler = Scheduler([*nodes, a_worker("b", labels={"zone": "b"}, pods="2"), a_worker("nowhere")])
    pods = [
        a_pending_pod(f"p{number}", labels={"app": "x"}, topologySpreadConstraints=spread_over("zone"))
        for number in range(6)
    ]
    taken = [scheduler.place(pod) for pod in pods]
    assert [name[:1] for name in taken[:5]].count("a") == 3
    assert taken[:5].count("b") == 2
    assert taken[5] == ""
    assert scheduler.why(pods[5]) == (
        "0/4 nodes are available: 1 Too many pods, 1 node(s) didn't match pod topology spread constraints (missing "
        "required label), 2 node(s) didn't match pod topology spread constraints."
    )


def test_a_zone_that_a_pod_cannot_be_in_does_not_hold_it_up() -> None:
    nodes = [a_worker("a", labels={"zone": "a", "disk": "ssd"}), a_worker("b", labels={"zone": "b"})]
    chosen = {"labels": {"app": "x"}, "nodeSelector": {"disk": "ssd"}}
    lenient = [
        a_pending_pod(f"p{number}", topologySpreadConstraints=spread_over("zone"), **chosen) for number in range(3)
    ]
    scheduler = Scheduler(nodes)
    assert [scheduler.place(pod) for pod in lenient] == ["a", "a", "a"]
    strict = spread_over("zone", nodeAffinityPolicy="Ignore")
    scheduler = Scheduler(nodes)
    pods = [a_pending_pod(f"p{number}", topologySpreadConstraints=strict, **chosen) for number in range(2)]
    assert [scheduler.place(pod) for pod in pods] == ["a", ""]


def test_too_few_zones_count_as_an_empty_one() -> None:
    scheduler = Scheduler([a_worker("a", labels={"zone": "a"}), a_worker("b", labels={"zone": "b"})])
    constraints = spread_over("zone", minDomains=3)
    pods = [
        a_pending_pod(f"p{number}", labels={"app": "x"}, topologySpreadConstraints=constraints) for number in range(3)
    ]
    assert sorted(scheduler.place(pod) for pod in pods) == ["", "a", "b"]


def test_a_relabelled_node_takes_its_pods_along() -> None:
    scheduler = Scheduler([a_worker("a", labels={"zone": "1"}), a_worker("b", labels={"zone": "2"})])
    scheduler.place(a_pending_pod("company", labels={"app": "x"}), on="a")
    follower = a_pending_pod(
        "follower", affinity=near_to("zone", app="x"), nodeSelector={"kubernetes.io/hostname": "b"}
    )
    assert scheduler.place(follower) == ""
    scheduler.picture.put_node(a_worker("a", labels={"zone": "2"}))
    assert scheduler.place(follower) == "b"
