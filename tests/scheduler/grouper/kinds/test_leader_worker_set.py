"""LeaderWorkerSets: a group for each replica, with leader, workers and segments."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.scheduling_run_ai import TopologyConstraint
from shoal.scheduler.grouper.fields import Ungroupable
from shoal.scheduler.grouper.pods import GroupedPod
from tests.scheduler.grouper.builders import a_grouped_pod, an_owner, parts_of, the_group

SIZE = "kai.scheduler/segment-size"


def a_set(
    size: int | None,
    *,
    startup: str = "",
    segment: int | None = None,
    policy: str = "",
    annotations: dict[str, str] | None = None,
    template: dict[str, str] | None = None,
) -> dict[str, Any]:
    sub_groups = {
        **({} if segment is None else {"subGroupSize": segment}),
        **({"subGroupPolicyType": policy} if policy else {}),
    }
    leader_worker = {
        **({} if size is None else {"size": size}),
        **({"subGroupPolicy": sub_groups} if sub_groups else {}),
        "workerTemplate": {"metadata": {"annotations": template or {}}},
    }
    spec = {"leaderWorkerTemplate": leader_worker, **({"startupPolicy": startup} if startup else {})}
    return an_owner("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", annotations=annotations, spec=spec)


def a_member(index: int | str | None, *, group: str | None = "0", size: str = "", node: str = "") -> GroupedPod:
    labels = {
        **({} if group is None else {"leaderworkerset.sigs.k8s.io/group-index": group}),
        **({} if index is None else {"leaderworkerset.sigs.k8s.io/worker-index": str(index)}),
    }
    annotations = {"leaderworkerset.sigs.k8s.io/size": size} if size else {}
    return a_grouped_pod(f"w-{group}-{index}", labels=labels, annotations=annotations, nodeName=node)


LEADER, WORKER = a_member(0), a_member(2)


@pytest.mark.parametrize(
    ("index", "expected"), [("0", "pg-w-w-uid-group-0"), ("3", "pg-w-w-uid-group-3"), (None, "pg-w-w-uid")]
)
def test_each_replica_is_a_group(index: str | None, expected: str) -> None:
    group = the_group(a_set(4), pod=a_member(1, group=index))
    assert (group.name, group.min_member) == (expected, 4)


def test_leader_and_workers_are_parts() -> None:
    group = the_group(a_set(4), pod=LEADER)
    assert parts_of(group) == {"leader": "1 pods", "workers": "3 pods"}
    assert [group.part_of(pod) for pod in (LEADER, WORKER)] == ["leader", "workers"]


def test_a_replica_of_one_has_no_workers() -> None:
    assert parts_of(the_group(a_set(1), pod=LEADER)) == {"leader": "1 pods"}


READY: dict[str, tuple[tuple[GroupedPod, ...], int]] = {
    "the leader waits": ((LEADER,), 1),
    "the leader has a node": ((a_member(0, node="n"),), 5),
    "workers are there": ((LEADER, WORKER), 5),
    "as many as the pods say": ((a_member(0, node="n", size="3"),), 3),
}


@pytest.mark.parametrize(("members", "expected"), READY.values(), ids=READY)
def test_where_workers_wait_for_their_leader_it_starts_alone(members: tuple[GroupedPod, ...], expected: int) -> None:
    group = the_group(a_set(5, startup="LeaderReady"), pod=members[0], members=members)
    assert group.min_member == expected
    assert sum(part.min_member or 0 for part in group.sub_groups) == expected


def test_a_leader_that_starts_alone_is_in_no_segment_yet() -> None:
    owner = a_set(5, startup="LeaderReady", segment=2)
    assert parts_of(the_group(owner, pod=LEADER, members=(LEADER,))) == {"leader": "1 pods"}
    assert "segment-1" in parts_of(the_group(owner, pod=LEADER, members=(LEADER, WORKER)))


CUTS: dict[str, tuple[dict[str, Any], dict[str, str], list[str]]] = {
    "the leader on top of the first": (
        a_set(5, segment=2),
        {
            "segment-0": "2 parts",
            "segment-1": "2 pods",
            "leader": "1 pods in segment-0",
            "workers": "2 pods in segment-0",
        },
        ["leader", "workers", "workers", "segment-1", "segment-1"],
    ),
    "the leader counted in the first": (
        a_set(6, segment=3),
        {
            "segment-0": "2 parts",
            "segment-1": "3 pods",
            "leader": "1 pods in segment-0",
            "workers": "2 pods in segment-0",
        },
        ["leader", "workers", "workers", "segment-1", "segment-1", "segment-1"],
    ),
    "a shorter last one": (
        a_set(6, segment=4),
        {
            "segment-0": "2 parts",
            "segment-1": "2 pods",
            "leader": "1 pods in segment-0",
            "workers": "3 pods in segment-0",
        },
        ["leader", "workers", "workers", "workers", "segment-1", "segment-1"],
    ),
    "a single one with the leader on top": (
        a_set(5, segment=4),
        {"segment-0": "2 parts", "leader": "1 pods in segment-0", "workers": "4 pods in segment-0"},
        ["leader", "workers", "workers", "workers", "workers"],
    ),
    "a single one with the leader in it": (
        a_set(4, segment=4),
        {"segment-0": "2 parts", "leader": "1 pods in segment-0", "workers": "3 pods in segment-0"},
        ["leader", "workers", "workers", "workers"],
    ),
    "the leader apart": (
        a_set(5, segment=2, policy="LeaderExcluded"),
        {"leader": "1 pods", "segment-0": "2 pods", "segment-1": "2 pods"},
        ["leader", "segment-0", "segment-0", "segment-1", "segment-1"],
    ),
}


@pytest.mark.parametrize(("owner", "parts", "places"), CUTS.values(), ids=CUTS)
def test_a_replica_is_cut_into_segments(owner: dict[str, Any], parts: dict[str, str], places: list[str]) -> None:
    group = the_group(owner, pod=LEADER)
    assert parts_of(group) == parts
    assert [group.part_of(a_member(index)) for index in range(len(places))] == places
    leaves = [part for part in group.sub_groups if part.min_sub_group is None]
    assert {part.name: places.count(part.name) for part in leaves} == {part.name: part.min_member for part in leaves}


@pytest.mark.parametrize(
    "said",
    [
        pytest.param({"segment": 2}, id="in the spec"),
        pytest.param({"annotations": {SIZE: "2"}}, id="on the set"),
        pytest.param({"template": {SIZE: "2"}}, id="in the template of the workers"),
        pytest.param({"segment": 2, "annotations": {SIZE: "4"}}, id="the spec before the set"),
        pytest.param({"annotations": {SIZE: "2"}, "template": {SIZE: "4"}}, id="the set before the template"),
    ],
)
def test_the_size_of_a_segment_is_said_in_one_of_three_places(said: dict[str, Any]) -> None:
    assert parts_of(the_group(a_set(5, **said), pod=LEADER))["segment-1"] == "2 pods"


def test_segments_stay_together() -> None:
    template = {
        "kai.scheduler/segment-topology-required-placement": "rack",
        "kai.scheduler/segment-topology-preferred-placement": "node",
    }
    owner = a_set(5, segment=2, annotations={"kai.scheduler/topology": "dc"}, template=template)
    together = TopologyConstraint(topology="dc", required_topology_level="rack", preferred_topology_level="node")
    assert {part.name: part.topology_constraint for part in the_group(owner, pod=LEADER).sub_groups} == {
        "segment-0": together,
        "segment-1": together,
        "leader": None,
        "workers": None,
    }


@pytest.mark.parametrize(
    ("owner", "problem"),
    [
        pytest.param(a_set(None), "has None in spec.leaderWorkerTemplate.size", id="no size"),
        pytest.param(a_set(0), "has 0 in spec.leaderWorkerTemplate.size", id="no pods"),
        pytest.param(a_set(2, startup="Whenever"), "startupPolicy 'Whenever'", id="no known policy"),
        pytest.param(a_set(4, segment=1), "have 1 pods: make it 2 to 4", id="segments of one"),
        pytest.param(a_set(4, segment=5), "have 5 pods: make it 2 to 4", id="segments larger than a replica"),
        pytest.param(a_set(4, annotations={SIZE: "two"}), "is 'two'", id="no number"),
        pytest.param(
            a_set(4, segment=2, policy="LeaderExcluded"),
            "3 workers of .* do not divide into segments of 2",
            id="a rest",
        ),
        pytest.param(a_set(20_003, segment=2), "would have 10001 segments", id="too many segments"),
    ],
)
def test_a_set_that_makes_no_sense_is_told(owner: dict[str, Any], problem: str) -> None:
    with pytest.raises(Ungroupable, match=problem):
        the_group(owner, pod=LEADER)


@pytest.mark.parametrize("index", ["-1", "x"])
def test_a_number_that_is_none_is_told(index: str) -> None:
    with pytest.raises(Ungroupable, match="worker-index of pod"):
        the_group(a_set(4)).part_of(a_member(index))


def test_a_pod_without_a_number_is_a_worker() -> None:
    assert the_group(a_set(4)).part_of(a_member(None)) == "workers"
    assert the_group(a_set(5, segment=2)).part_of(a_member(None)) == ""
