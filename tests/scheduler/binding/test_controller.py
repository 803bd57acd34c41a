"""The binder on a real server: plain pods, failures, and what it writes."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import pytest

from shoal.api import kai_names as names
from shoal.api.core import EVENTS, PODS
from shoal.api.meta import parse_time
from shoal.api.scheduling_run_ai import BIND_REQUESTS
from shoal.scheduler.binding import add_binding
from shoal.scheduler.binding.backoff import FAILED_AT, FAILURES_BEFORE
from tests.scheduler.binding.stage import Stage
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest


@pytest.fixture
def stage(cluster: Cluster) -> Stage:
    return Stage(cluster)


async def events_about(stage: Stage, pod: str) -> list[tuple[str, str]]:
    found = await stage.cluster.all(EVENTS)
    return [(each["type"], each["reason"]) for each in found if each["involvedObject"]["name"] == pod]


async def test_a_pod_is_bound_with_two_writes_and_the_binder_rests(stage: Stage) -> None:
    await stage.add_node("n1")
    pod = await stage.add_pod("web")
    async with stage.cluster.controllers(add_binding) as manager:
        await at_rest(manager)
        before = writes_of(manager)
        await stage.order(pod, "n1")
        await stage.request("web", "Succeeded")
        bound = await stage.bound("web")
        await until(lambda: events_about(stage, "web"))
        await at_rest(manager)
        written = writes_of(manager) - before
    assert bound["spec"]["nodeName"] == "n1"
    assert bound["metadata"]["annotations"][names.RECEIVED_RESOURCE_TYPE] == "Regular"
    assert await events_about(stage, "web") == [("Normal", "Bound")]
    assert written == 3, "the binding, the request's status, and the event"


async def test_a_binder_that_is_started_anew_writes_nothing(stage: Stage) -> None:
    await stage.add_node("n1")
    pod = await stage.add_pod("web")
    async with stage.cluster.controllers(add_binding):
        await stage.order(pod, "n1")
        await stage.request("web", "Succeeded")
    async with stage.cluster.controllers(add_binding) as manager:
        await at_rest(manager)
        assert writes_of(manager) == 0


async def test_many_pods_are_bound_where_they_were_ordered_to(stage: Stage) -> None:
    for node in range(4):
        await stage.add_node(f"n{node}")
    pods = [await stage.add_pod(f"p{number}") for number in range(40)]
    async with stage.cluster.controllers(add_binding):
        for number, pod in enumerate(pods):
            await stage.order(pod, f"n{number % 4}")
        for number in range(40):
            assert (await stage.bound(f"p{number}"))["spec"]["nodeName"] == f"n{number % 4}"


async def test_a_pod_that_is_bound_already_is_left_alone(stage: Stage) -> None:
    await stage.add_node("n1")
    pod = await stage.add_pod("web")
    await stage.cluster.client.bind(PODS, "web", "default", node="n1")
    async with stage.cluster.controllers(add_binding) as manager:
        await stage.order(pod, "n1")
        await stage.request("web", "Succeeded")
        await at_rest(manager)
        assert writes_of(manager) == 1
        assert await events_about(stage, "web") == []


async def test_a_request_for_a_pod_that_went_elsewhere_fails_and_says_where(stage: Stage) -> None:
    await stage.add_node("n1")
    pod = await stage.add_pod("web")
    await stage.cluster.client.bind(PODS, "web", "default", node="n2")
    async with stage.cluster.controllers(add_binding):
        await stage.order(pod, "n1")
        failed = await stage.request("web", "Failed")
    assert "n2" in failed["status"]["reason"]


async def test_a_request_for_an_earlier_pod_of_the_same_name_moves_nobody(stage: Stage) -> None:
    await stage.add_node("n1")
    old = await stage.add_pod("web")
    await stage.cluster.client.delete(PODS, "web", "default", grace_seconds=0)
    await stage.add_pod("web")
    other = await stage.add_pod("other")
    async with stage.cluster.controllers(add_binding):
        await stage.order(old, "n1")
        await stage.order(other, "n1")
        await stage.bound("other")
        assert "nodeName" not in (await stage.pod("web"))["spec"]


@pytest.mark.parametrize(
    ("node", "spec", "reason"),
    [
        pytest.param("nowhere", {}, "node nowhere does not exist", id="a node that is not there"),
        pytest.param("n1", {"schedulingGates": [{"name": "wait"}]}, "schedulingGates", id="a gate that is closed"),
    ],
)
async def test_a_refused_pod_fails_is_told_and_keeps_nobody_waiting(
    stage: Stage, node: str, spec: dict[str, Any], reason: str
) -> None:
    await stage.add_node("n1")
    bad = await stage.add_pod("bad", **spec)
    good = await stage.add_pod("good")
    async with stage.cluster.controllers(add_binding) as manager:
        await stage.order(bad, node)
        await stage.order(good, "n1")
        failed = await stage.request("bad", "Failed")
        await stage.bound("good")
        await until(lambda: events_about(stage, "bad"))
        await at_rest(manager)
        before = writes_of(manager)
        await at_rest(manager)
        assert writes_of(manager) == before
    assert reason in failed["status"]["reason"]
    assert failed["status"]["failedAttempts"] == 1
    assert await events_about(stage, "bad") == [("Warning", "FailedBinding")]
    [noted] = [parse_time((await stage.cluster.read(BIND_REQUESTS, "bad") or {})["metadata"]["annotations"][FAILED_AT])]
    assert abs((datetime.now(UTC) - noted).total_seconds()) < 60


async def test_a_request_with_a_limit_is_tried_again_and_succeeds_once_it_can(stage: Stage) -> None:
    pod = await stage.add_pod("web")
    async with stage.cluster.controllers(add_binding):
        await stage.order(pod, "late", backoffLimit=5)
        await stage.request("web", "Failed")
        await stage.add_node("late")
        await stage.request("web", "Succeeded")
        assert (await stage.bound("web"))["spec"]["nodeName"] == "late"


async def test_a_request_is_tried_no_more_than_its_limit(stage: Stage) -> None:
    pod = await stage.add_pod("web")
    other = await stage.add_pod("other")
    async with stage.cluster.controllers(add_binding) as manager:
        await stage.order(pod, "nowhere", backoffLimit=2)
        await stage.request("web", "Failed", attempts=2)
        await stage.add_node("nowhere")
        await stage.order(other, "nowhere")  # looks at the node again
        await stage.request("other", "Succeeded")
        await at_rest(manager)
        assert "nodeName" not in (await stage.pod("web"))["spec"]


async def test_a_request_that_rests_is_not_tried_sooner_by_a_binder_that_is_started_anew(stage: Stage) -> None:
    pod = await stage.add_pod("web")
    async with stage.cluster.controllers(add_binding):
        # Thirty failures before: the next rest is a minute long, and outlasts the test.
        await stage.order(pod, "late", backoffLimit=5, annotations={FAILURES_BEFORE: "30"})
        await stage.request("web", "Failed")
    await stage.add_node("late")
    async with stage.cluster.controllers(add_binding) as manager:
        await at_rest(manager)
        assert "nodeName" not in (await stage.pod("web"))["spec"]
        assert writes_of(manager) == 0


async def test_a_request_for_a_pod_that_is_not_there_fails(stage: Stage) -> None:
    await stage.add_node("n1")
    ghost = {"metadata": {"name": "ghost", "uid": "0"}}
    async with stage.cluster.controllers(add_binding):
        await stage.order(ghost, "n1")
        failed = await stage.request("ghost", "Failed")
    assert "does not exist" in failed["status"]["reason"]
