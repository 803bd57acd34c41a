"""Claims of devices get what was allocated to them and the pod as consumer; of a refused pod it is taken back."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.resource_k8s_io import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from shoal.scheduler.binding import add_binding
from shoal.scheduler.binding.steps.device_claims import FINALIZER
from tests.scheduler.binding.stage import Stage
from tests.support.clusters.in_process import Cluster

ALLOCATION = {"devices": {"results": [{"request": "gpu", "driver": "gpu.x.io", "pool": "n1", "device": "gpu-0"}]}}
CLAIMS: dict[str, Any] = {"resourceClaims": [{"name": "mine", "resourceClaimName": "gpus"}]}
GIVEN = [{"name": "mine", "allocation": ALLOCATION}]


@pytest.fixture
async def stage(cluster: Cluster) -> Stage:
    found = Stage(cluster)
    await found.add_node("n1")
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.x.io"}}
    await cluster.make(RESOURCE_CLAIMS, {"metadata": {"name": "gpus"}, "spec": {"devices": {"requests": [request]}}})
    return found


async def claim(stage: Stage) -> dict[str, Any]:
    return await stage.cluster.read(RESOURCE_CLAIMS, "gpus") or {}


async def test_a_claim_gets_its_devices_and_its_consumer_before_the_pod_gets_its_node(stage: Stage) -> None:
    pod = await stage.add_pod("web", **CLAIMS)
    async with stage.cluster.controllers(add_binding):
        await stage.order(pod, "n1", resourceClaimAllocations=GIVEN)
        await stage.bound("web")
    status = (await claim(stage))["status"]
    assert status["allocation"]["devices"]["results"][0]["device"] == "gpu-0"
    assert status["reservedFor"] == [{"resource": "pods", "name": "web", "uid": pod["metadata"]["uid"]}]
    assert FINALIZER in (await claim(stage))["metadata"]["finalizers"]


async def test_a_claim_that_two_pods_share_is_allocated_once_and_has_both_as_consumers(stage: Stage) -> None:
    pods = [await stage.add_pod(name, **CLAIMS) for name in ("a", "b")]
    async with stage.cluster.controllers(add_binding):
        for pod in pods:
            await stage.order(pod, "n1", resourceClaimAllocations=GIVEN)
        for name in ("a", "b"):
            await stage.bound(name)
    consumers = (await claim(stage))["status"]["reservedFor"]
    assert {consumer["name"] for consumer in consumers} == {"a", "b"}


async def test_devices_are_free_again_where_the_pod_was_refused(stage: Stage) -> None:
    pod = await stage.add_pod("web", schedulingGates=[{"name": "closed"}], **CLAIMS)
    async with stage.cluster.controllers(add_binding):
        await stage.order(pod, "n1", resourceClaimAllocations=GIVEN)
        await stage.request("web", "Failed")
    status = (await claim(stage)).get("status") or {}
    assert not status.get("allocation")
    assert not status.get("reservedFor")


async def test_an_allocation_for_a_claim_that_the_pod_does_not_have_fails(stage: Stage) -> None:
    pod = await stage.add_pod("web")
    async with stage.cluster.controllers(add_binding):
        await stage.order(pod, "n1", resourceClaimAllocations=GIVEN)
        failed = await stage.request("web", "Failed")
    assert "the pod has no claim mine" in failed["status"]["reason"]


async def add_devices(stage: Stage, node: str, *names: str) -> None:
    """The devices of a node."""
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": "gpu.x.io", "nodeName": node, "pool": pool, "devices": [{"name": name} for name in names]}
    await stage.cluster.make(RESOURCE_SLICES, {"metadata": {"name": f"of-{node}"}, "spec": spec})


async def add_class(stage: Stage, expression: str = "device.driver == 'gpu.x.io'") -> None:
    selectors = [{"cel": {"expression": expression}}]
    await stage.cluster.make(DEVICE_CLASSES, {"metadata": {"name": "gpu.x.io"}, "spec": {"selectors": selectors}})


async def test_where_nobody_said_which_devices_free_ones_of_the_node_are_chosen(stage: Stage) -> None:
    await add_class(stage)
    await add_devices(stage, "n1", "gpu-0", "gpu-1")
    await add_devices(stage, "n2", "gpu-9")
    request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.x.io"}}
    await stage.cluster.make(
        RESOURCE_CLAIMS, {"metadata": {"name": "more"}, "spec": {"devices": {"requests": [request]}}}
    )
    pods = [
        await stage.add_pod("a", **CLAIMS),
        await stage.add_pod("b", resourceClaims=[{"name": "mine", "resourceClaimName": "more"}]),
    ]
    async with stage.cluster.controllers(add_binding):
        for pod in pods:
            await stage.order(pod, "n1")
        for name in ("a", "b"):
            await stage.bound(name)
    found = [await stage.cluster.read(RESOURCE_CLAIMS, name) or {} for name in ("gpus", "more")]
    given = [one["status"]["allocation"]["devices"]["results"][0]["device"] for one in found]
    assert sorted(given) == ["gpu-0", "gpu-1"]
    terms = found[0]["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"]
    assert terms == [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]


async def test_a_node_without_free_devices_is_refused(stage: Stage) -> None:
    await add_class(stage)
    pod = await stage.add_pod("web", **CLAIMS)
    async with stage.cluster.controllers(add_binding):
        await stage.order(pod, "n1")
        failed = await stage.request("web", "Failed")
    assert failed["status"]["reason"] == "node n1 has no free devices for claim gpus"


async def test_a_claim_that_is_not_understood_is_refused_with_what_is_not_understood(stage: Stage) -> None:
    await add_class(stage, "device.driver.startsWith('gpu')")
    await add_devices(stage, "n1", "gpu-0")
    pod = await stage.add_pod("web", **CLAIMS)
    async with stage.cluster.controllers(add_binding):
        await stage.order(pod, "n1")
        failed = await stage.request("web", "Failed")
    assert "device.driver.startsWith" in failed["status"]["reason"]


async def test_a_pod_joins_a_claim_where_its_devices_are_and_nowhere_else(stage: Stage) -> None:
    await stage.add_node("n2")
    await add_class(stage)
    await add_devices(stage, "n1", "gpu-0")
    first, second = [await stage.add_pod(name, **CLAIMS) for name in ("a", "b")]
    async with stage.cluster.controllers(add_binding):
        await stage.order(first, "n1")
        await stage.bound("a")
        await stage.order(second, "n2")
        failed = await stage.request("b", "Failed")
    assert failed["status"]["reason"] == "node n2 does not reach the devices of claim gpus"
    assert [one["name"] for one in (await claim(stage))["status"]["reservedFor"]] == ["a"]


async def test_a_claim_that_is_still_to_be_made_is_waited_for_by_placing_the_pod_anew(stage: Stage) -> None:
    pod = await stage.add_pod("web", resourceClaims=[{"name": "mine", "resourceClaimTemplateName": "one"}])
    async with stage.cluster.controllers(add_binding):
        await stage.order(pod, "n1")
        failed = await stage.request("web", "Failed")
    assert failed["status"]["reason"] == "the pod's claim mine is not made yet"
