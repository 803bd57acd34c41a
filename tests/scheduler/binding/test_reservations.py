"""Shared devices on a real server: reservations are made once, waited for with nobody held up, and given back."""

from __future__ import annotations

import asyncio

import pytest

from shoal.api import kai_names as names
from shoal.api.core import CONFIG_MAPS, PODS
from shoal.api.scheduling_run_ai import BIND_REQUESTS
from shoal.kube import Manager
from shoal.scheduler.binding import BindingSettings, ReservationSettings, add_binding
from tests.scheduler.binding.stage import RESERVATIONS, Stage
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest

GROUP = "0f5c0d9e-0000-4000-8000-000000000001"
OTHER = "0f5c0d9e-0000-4000-8000-000000000002"
SHARED = {names.GPU_FRACTION: "0.5", names.SHARED_GPU_CONFIG_MAP: "web-abc-shared-gpu"}


@pytest.fixture
def stage(cluster: Cluster) -> Stage:
    return Stage(cluster)


def add_impatient(manager: Manager) -> None:
    add_binding(manager, BindingSettings(reservations=ReservationSettings(timeout=0.5)))


async def test_a_pod_waits_for_its_device_and_is_bound_with_it(stage: Stage) -> None:
    await stage.add_node("n1")
    toleration = {"key": "gpu", "operator": "Exists", "effect": "NoSchedule"}
    pod = await stage.add_pod("web", annotations=SHARED, tolerations=[toleration])
    plain = await stage.add_pod("plain")
    async with stage.cluster.controllers(add_binding):
        await stage.order_part(pod, "n1", GROUP)
        reservation = await stage.reservation("n1", GROUP)
        await stage.order(plain, "n1")
        await stage.bound("plain")  # on the same node, and does not wait for the other
        assert "nodeName" not in (await stage.pod("web"))["spec"]
        await stage.give_device("n1", GROUP, "GPU-7")
        bound = await stage.bound("web")
        await stage.request("web", "Succeeded")
    spec, labels = reservation["spec"], reservation["metadata"]["labels"]
    assert (spec["nodeName"], labels[names.GPU_GROUP]) == ("n1", GROUP)
    assert spec["containers"][0]["resources"]["limits"] == {names.NVIDIA_GPU: "1"}
    assert toleration in spec["tolerations"]
    assert bound["metadata"]["labels"] == {names.GPU_GROUP: GROUP}
    assert bound["metadata"]["annotations"][names.RECEIVED_RESOURCE_TYPE] == "Fraction"


async def test_a_container_is_told_its_device_and_its_part(stage: Stage) -> None:
    await stage.add_node("n1")
    pod = await stage.add_pod("web", annotations=SHARED)
    async with stage.cluster.controllers(add_binding):
        await stage.order_part(pod, "n1", GROUP)
        await stage.give_device("n1", GROUP, "GPU-7")
        await stage.bound("web")
    told = await stage.cluster.read(CONFIG_MAPS, "web-abc-shared-gpu-0") or {}
    assert told["data"] == {"NVIDIA_VISIBLE_DEVICES": "GPU-7", "GPU_PORTION": "0.50", "RUNAI_NUM_OF_GPUS": "0.50"}
    assert [owner["uid"] for owner in told["metadata"]["ownerReferences"]] == [pod["metadata"]["uid"]]
    whole = await stage.cluster.read(CONFIG_MAPS, "web-abc-shared-gpu-0-evar") or {}
    assert whole["data"] == {"NVIDIA_VISIBLE_DEVICES": "GPU-7"}


async def test_pods_of_one_group_share_one_reservation_which_goes_with_the_last(stage: Stage) -> None:
    await stage.add_node("n1")
    pods = [await stage.add_pod(name, annotations={names.GPU_FRACTION: "0.3"}) for name in ("a", "b", "c")]
    for pod in pods:
        await stage.order_part(pod, "n1", GROUP)  # before anybody looks, so that all are met at once
    async with stage.cluster.controllers(add_binding) as manager:
        await stage.give_device("n1", GROUP, "GPU-7")
        for name in ("a", "b", "c"):
            await stage.bound(name)
            assert "failedAttempts" not in (await stage.request(name, "Succeeded"))["status"]
            await stage.run(name)
        assert len(await stage.reservations()) == 1
        await stage.cluster.set_status(PODS, "a", {"phase": "Succeeded"})
        await stage.cluster.client.delete(PODS, "b", "default", grace_seconds=0)
        await at_rest(manager)
        assert len(await stage.reservations()) == 1
        await stage.cluster.client.delete(PODS, "c", "default", grace_seconds=0)
        await stage.no_reservations()


async def test_a_pod_on_two_devices_has_a_label_for_each(stage: Stage) -> None:
    await stage.add_node("n1")
    pod = await stage.add_pod("web", annotations={**SHARED, names.GPU_FRACTION_DEVICES: "2"})
    async with stage.cluster.controllers(add_binding):
        await stage.order_part(pod, "n1", GROUP, OTHER)
        await stage.give_device("n1", GROUP, "GPU-1")
        await stage.reservation("n1", OTHER)
        assert "nodeName" not in (await stage.pod("web"))["spec"]
        await stage.give_device("n1", OTHER, "GPU-2")
        bound = await stage.bound("web")
    assert bound["metadata"]["labels"] == {f"{names.GPU_GROUP}/{group}": group for group in (GROUP, OTHER)}
    told = await stage.cluster.read(CONFIG_MAPS, "web-abc-shared-gpu-0") or {}
    assert told["data"]["NVIDIA_VISIBLE_DEVICES"] == "GPU-1,GPU-2"


async def test_a_device_that_does_not_become_known_fails_the_binding_and_is_given_back(stage: Stage) -> None:
    await stage.add_node("n1")
    pod = await stage.add_pod("web", annotations=SHARED)
    async with stage.cluster.controllers(add_impatient):
        await stage.order_part(pod, "n1", GROUP)
        failed = await stage.request("web", "Failed")
        await stage.no_reservations()
    assert "within 0.5 s" in failed["status"]["reason"]
    assert (await stage.pod("web"))["metadata"].get("labels", {}) == {}


async def test_a_reservation_that_the_node_refuses_fails_the_binding_at_once(stage: Stage) -> None:
    await stage.add_node("n1")
    pod = await stage.add_pod("web", annotations=SHARED)
    async with stage.cluster.controllers(add_binding):
        await stage.order_part(pod, "n1", GROUP)
        name = (await stage.reservation("n1", GROUP))["metadata"]["name"]
        refusal = {"phase": "Failed", "reason": "OutOfnvidia.com/gpu"}
        await stage.cluster.set_status(PODS, name, refusal, RESERVATIONS)
        failed = await stage.request("web", "Failed")
        await stage.no_reservations()
    assert "OutOfnvidia.com/gpu" in failed["status"]["reason"]


async def test_what_was_made_for_a_pod_is_undone_where_it_is_refused_in_the_end(stage: Stage) -> None:
    await stage.add_node("n1")
    pod = await stage.add_pod("web", annotations=SHARED, schedulingGates=[{"name": "closed"}])
    async with stage.cluster.controllers(add_binding):
        await stage.order_part(pod, "n1", GROUP)
        await stage.give_device("n1", GROUP, "GPU-7")
        await stage.request("web", "Failed")
        await stage.no_reservations()
    assert (await stage.pod("web"))["metadata"].get("labels", {}) == {}
    assert await stage.cluster.read(CONFIG_MAPS, "web-abc-shared-gpu-0") is None


async def test_a_request_that_is_withdrawn_gives_its_reservation_back(stage: Stage) -> None:
    await stage.add_node("n1")
    pod = await stage.add_pod("web", annotations=SHARED)
    async with stage.cluster.controllers(add_binding):
        await stage.order_part(pod, "n1", GROUP)
        await stage.reservation("n1", GROUP)
        await stage.cluster.client.delete(BIND_REQUESTS, "web", "default")
        await stage.no_reservations()


async def test_a_running_pod_whose_reservation_vanished_is_deleted(stage: Stage) -> None:
    await stage.add_node("n1")
    pod = await stage.add_pod("web", annotations=SHARED)
    await stage.cluster.make(PODS, {"metadata": {"name": "unconcerned"}, "spec": (pod["spec"])})
    async with stage.cluster.controllers(add_binding):
        await stage.order_part(pod, "n1", GROUP)
        await stage.give_device("n1", GROUP, "GPU-7")
        await stage.bound("web")
        await stage.run("web")
        name = (await stage.reservation("n1", GROUP))["metadata"]["name"]
        await stage.cluster.client.delete(PODS, name, RESERVATIONS, grace_seconds=0)

        async def is_going() -> bool:
            found = await stage.cluster.read(PODS, "web")
            return found is None or "deletionTimestamp" in found["metadata"]

        await until(is_going, within=20)
    assert "deletionTimestamp" not in (await stage.pod("unconcerned"))["metadata"]


async def test_a_binder_killed_before_its_device_is_known_binds_once_when_it_is_back(stage: Stage) -> None:
    await stage.add_node("n1")
    pod = await stage.add_pod("web", annotations=SHARED)
    manager = Manager(stage.cluster.server.transport(), name="killed")
    add_binding(manager)
    killed = asyncio.create_task(manager.run())
    await stage.order_part(pod, "n1", GROUP)
    made = await stage.reservation("n1", GROUP)
    killed.cancel()
    await asyncio.wait([killed])
    await stage.give_device("n1", GROUP, "GPU-7")
    async with stage.cluster.controllers(add_binding) as again:
        bound = await stage.bound("web")
        await stage.request("web", "Succeeded")
        await at_rest(again)
        assert [made["metadata"]["name"]] == await stage.reservations()
        before = writes_of(again)
        await stage.cluster.client.delete(PODS, "web", "default", grace_seconds=0)
        await stage.no_reservations()
        assert writes_of(again) == before + 1, "the end of the reservation"
    assert bound["spec"]["nodeName"] == "n1"


async def test_a_reservation_whose_order_went_while_nobody_looked_is_no_orphan(stage: Stage) -> None:
    await stage.add_node("n1")
    pod = await stage.add_pod("web", annotations=SHARED)
    async with stage.cluster.controllers(add_binding):
        await stage.order_part(pod, "n1", GROUP)
        await stage.reservation("n1", GROUP)
    await stage.cluster.client.delete(BIND_REQUESTS, "web", "default")
    assert await stage.reservations()
    async with stage.cluster.controllers(add_binding):
        await stage.no_reservations()


async def test_a_request_to_share_without_a_group_fails(stage: Stage) -> None:
    await stage.add_node("n1")
    pod = await stage.add_pod("web", annotations=SHARED)
    async with stage.cluster.controllers(add_binding):
        await stage.order_part(pod, "n1")
        failed = await stage.request("web", "Failed")
    assert "names no GPU group" in failed["status"]["reason"]
