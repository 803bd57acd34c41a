"""Exclusive placement: where leaders and followers go, and what becomes of followers that went astray."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.batch import COMPLETION_INDEX
from shoal.api.core import NODES, PODS, Pod
from shoal.api.jobset import names
from shoal.training.jobset.placement import (
    NOT_YET,
    Place,
    is_astray,
    leader_among,
    place_of,
    placed,
    refusal,
)
from shoal.training.jobset.rbac import RULES
from tests.support.builders.nodes import a_node
from tests.support.builders.pods import controller_reference, pod_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import errors_of
from tests.training.jobset.builders import a_pod_template, a_replicated_job
from tests.training.jobset.conftest import JobSetWorld

RACK = "example.com/rack"
HERE = Place("node-1", "r1")


def a_placed_pod(index: int = 0, *, topology: str = RACK, strategy: bool = False, **spec: Any) -> dict[str, Any]:
    """A pod of a Job that has a domain of the topology for itself."""
    annotations = {names.JOB_SET_NAME: "train", COMPLETION_INDEX: str(index)}
    if topology:
        annotations[names.EXCLUSIVE_TOPOLOGY] = topology
    if strategy:
        annotations[names.NODE_SELECTOR_STRATEGY] = ""
    labels = {names.JOB_SET_NAME: "train", names.JOB_KEY: "key"}
    owner = controller_reference("Job", "j", version="batch/v1", uid="job")
    return pod_manifest(f"p-{index}", labels=labels, annotations=annotations, owner=owner, **spec)


def typed(body: dict[str, Any], **status: Any) -> Pod:
    return msgspec.convert({**body, "status": status}, Pod)


def test_a_leader_keeps_its_own_job_near_and_others_of_its_priority_away() -> None:
    kept = {"podAffinity": {"preferredDuringSchedulingIgnoredDuringExecution": []}, "nodeAffinity": {"a": 1}}
    found = placed(a_placed_pod(priority=7, affinity=kept), None)
    assert found["metadata"]["labels"][names.PRIORITY] == "7"
    affinity = found["spec"]["affinity"]
    assert affinity["nodeAffinity"] == {"a": 1}
    assert affinity["podAffinity"]["preferredDuringSchedulingIgnoredDuringExecution"] == []
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    assert affinity["podAffinity"][required] == [
        {
            "labelSelector": {"matchExpressions": [{"key": names.JOB_KEY, "operator": "In", "values": ["key"]}]},
            "topologyKey": RACK,
            "namespaceSelector": {},
        }
    ]
    assert affinity["podAntiAffinity"][required] == [
        {
            "labelSelector": {
                "matchExpressions": [
                    {"key": names.JOB_KEY, "operator": "Exists"},
                    {"key": names.JOB_KEY, "operator": "NotIn", "values": ["key"]},
                    {"key": names.PRIORITY, "operator": "In", "values": ["7"]},
                ]
            },
            "topologyKey": RACK,
            "namespaceSelector": {},
        }
    ]


@pytest.mark.parametrize(
    ("pod", "place", "selector", "why"),
    [
        pytest.param(a_placed_pod(1), HERE, {RACK: "r1"}, "", id="after its leader"),
        pytest.param(
            a_placed_pod(1, nodeSelector={"a": "b"}), HERE, {"a": "b", RACK: "r1"}, "", id="with its own selector"
        ),
        pytest.param(a_placed_pod(1), None, None, NOT_YET, id="not before its leader"),
        pytest.param(
            a_placed_pod(1), Place("node-1", None), None, "label node node-1 with it", id="not to an unknown domain"
        ),
        pytest.param(a_placed_pod(0), None, None, "", id="a leader follows nobody"),
        pytest.param(a_placed_pod(1, topology=""), None, None, "", id="nor does a pod that is placed anywhere"),
        pytest.param(a_placed_pod(1, strategy=True), None, None, "", id="nor one on labelled nodes"),
    ],
)
def test_a_follower_goes_where_its_leader_is(
    pod: dict[str, Any], place: Place | None, selector: dict[str, str] | None, why: str
) -> None:
    found = placed(pod, place)
    assert found["spec"].get("nodeSelector") == selector
    assert why in refusal(found, place)
    assert bool(refusal(found, place)) is bool(why)


def test_a_pod_of_nobody_is_left_as_it_is() -> None:
    pod = a_placed_pod(1, priority=3)
    del pod["metadata"]["annotations"][names.JOB_SET_NAME]
    assert placed(pod, HERE) is pod
    assert refusal(pod, None) == ""


def test_the_leader_is_the_first_pod_of_the_same_job_that_runs() -> None:
    first, second = typed(a_placed_pod(0)), typed(a_placed_pod(1))
    assert leader_among([second, first], "job") is first
    assert leader_among([second, first], "another") is None
    assert leader_among([second, typed(a_placed_pod(0), phase="Failed")], "job") is None


def test_a_leader_is_in_the_domain_of_its_node() -> None:
    node = a_node("node-1", labels={RACK: "r1"})
    assert place_of(typed(a_placed_pod(0, nodeName="node-1")), RACK, node) == HERE
    assert place_of(typed(a_placed_pod(0, nodeName="node-1")), RACK, None) == Place("node-1", None)
    assert place_of(typed(a_placed_pod(0)), RACK, None) is None


@pytest.mark.parametrize(("selector", "expected"), [({RACK: "r1"}, False), ({RACK: "r2"}, True), ({}, True)])
def test_a_follower_that_selects_another_domain_is_astray(selector: dict[str, str], expected: bool) -> None:
    assert is_astray(typed(a_placed_pod(1, nodeSelector=selector)), RACK, "r1") is expected


async def test_followers_are_sent_after_a_leader_that_is_elsewhere(world: JobSetWorld) -> None:
    pods = a_pod_template(nodeSelector={RACK: "r2"})
    for number in (1, 2):
        await world.cluster.make(NODES, {"metadata": {"name": f"n{number}", "labels": {RACK: f"r{number}"}}})
    async with world.running_with_rights(RULES) as manager:
        await world.make(
            a_replicated_job(pods=pods, parallelism=2, completions=2), annotations={names.EXCLUSIVE_TOPOLOGY: RACK}
        )

        async def both() -> list[dict[str, Any]] | None:
            found = await world.pods("train-workers-0")
            return found if len(found) == 2 else None

        leader, follower = await until(both, within=10)
        await world.cluster.client.bind(PODS, leader["metadata"]["name"], "default", node="n1")

        async def is_replaced() -> bool:
            found = await world.pods("train-workers-0")
            uids = {pod["metadata"]["uid"] for pod in found}
            return leader["metadata"]["uid"] in uids and follower["metadata"]["uid"] not in uids

        await until(is_replaced, within=10)
        assert errors_of(manager) == 0
