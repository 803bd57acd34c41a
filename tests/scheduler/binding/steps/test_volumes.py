"""Volumes before pods: claims that wait for a node are told it, and no pod is bound before its claims are."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.core import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from shoal.api.scheduling_run_ai import BIND_REQUESTS
from shoal.api.storage import STORAGE_CLASSES
from shoal.kube import Manager
from shoal.scheduler.binding import BindingSettings, add_binding
from shoal.scheduler.storage import NO_PROVISIONER, SELECTED_NODE
from tests.scheduler.binding.stage import Stage
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster
from tests.support.waiting.at_rest import at_rest

VOLUMES = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]


@pytest.fixture
async def stage(cluster: Cluster) -> Stage:
    found = Stage(cluster)
    await found.add_node("n1")
    for name, mode in (("late", "WaitForFirstConsumer"), ("soon", "Immediate")):
        await cluster.make(
            STORAGE_CLASSES, {"metadata": {"name": name}, "provisioner": "x.io/disk", "volumeBindingMode": mode}
        )
    return found


async def add_claim(stage: Stage, storage_class: str, *, volume: str = "", mode: str = "ReadWriteOnce") -> None:
    spec: dict[str, Any] = {
        "accessModes": [mode],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": storage_class,
    }
    await stage.cluster.make(
        PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "data"}, "spec": {**spec, "volumeName": volume}}
    )
    if volume:
        await stage.cluster.set_status(PERSISTENT_VOLUME_CLAIMS, "data", {"phase": "Bound"})


async def give_volume(stage: Stage, volume: str = "pv-1") -> None:
    await stage.cluster.client.merge_patch(
        PERSISTENT_VOLUME_CLAIMS, "data", {"spec": {"volumeName": volume}}, "default"
    )
    await stage.cluster.set_status(PERSISTENT_VOLUME_CLAIMS, "data", {"phase": "Bound"})


async def selected_node(stage: Stage) -> str | None:
    claim = await stage.cluster.read(PERSISTENT_VOLUME_CLAIMS, "data") or {}
    found: str | None = claim["metadata"].get("annotations", {}).get(SELECTED_NODE)
    return found


async def test_a_claim_that_waits_for_a_node_is_told_it_and_the_pod_is_bound_once_it_has_its_volume(
    stage: Stage,
) -> None:
    await add_claim(stage, "late")
    pod = await stage.add_pod("web", volumes=VOLUMES)
    async with stage.cluster.controllers(add_binding) as manager:
        await stage.order(pod, "n1")
        assert await until(lambda: selected_node(stage)) == "n1"
        await at_rest(manager)
        assert "nodeName" not in (await stage.pod("web"))["spec"]
        await give_volume(stage)
        await stage.bound("web")


async def test_a_bound_claim_keeps_nobody_waiting_and_is_not_written(stage: Stage) -> None:
    await add_claim(stage, "late", volume="pv-1")
    pod = await stage.add_pod("web", volumes=VOLUMES)
    async with stage.cluster.controllers(add_binding):
        await stage.order(pod, "n1")
        await stage.bound("web")
    assert await selected_node(stage) is None


async def test_a_claim_that_is_bound_by_itself_is_waited_for_and_told_nothing(stage: Stage) -> None:
    await add_claim(stage, "soon")
    pod = await stage.add_pod("web", volumes=VOLUMES)
    other = await stage.add_pod("other")
    async with stage.cluster.controllers(add_binding) as manager:
        await stage.order(pod, "n1")
        await stage.order(other, "n1")
        await stage.bound("other")
        await at_rest(manager)
        assert await selected_node(stage) is None
        assert "nodeName" not in (await stage.pod("web"))["spec"]
        await give_volume(stage)
        await stage.bound("web")


async def test_a_claim_without_a_volume_for_too_long_is_let_go_elsewhere(stage: Stage) -> None:
    def add_impatient(manager: Manager) -> None:
        add_binding(manager, BindingSettings(volume_timeout=1.5))

    await add_claim(stage, "late")
    pod = await stage.add_pod("web", volumes=VOLUMES)
    async with stage.cluster.controllers(add_impatient):
        await stage.order(pod, "n1")
        failed = await stage.request("web", "Failed")
    assert "no volume was bound to claim data" in failed["status"]["reason"]
    assert await selected_node(stage) is None


async def test_a_claim_that_is_not_there_fails_the_binding(stage: Stage) -> None:
    pod = await stage.add_pod("web", volumes=VOLUMES)
    async with stage.cluster.controllers(add_binding):
        await stage.order(pod, "n1")
        failed = await stage.request("web", "Failed")
    assert failed["status"]["reason"].startswith("claim data does not exist")


async def add_volume(stage: Stage, name: str, node: str, *, of: str = "late") -> None:
    """A volume that one node alone reaches, and that is there to be had."""
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    body = {
        "metadata": {"name": name},
        "spec": {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "storageClassName": of,
            "local": {"path": "/mnt/disk"},
            "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
        },
    }
    await stage.cluster.make(PERSISTENT_VOLUMES, body)
    await stage.cluster.set_status(PERSISTENT_VOLUMES, name, {"phase": "Available"})


async def test_a_claim_gets_a_volume_of_the_node_before_one_is_made_for_it(stage: Stage) -> None:
    await stage.add_node("n2", **{"kubernetes.io/hostname": "n2"})
    for node in ("n1", "n2"):
        await add_volume(stage, f"disk-{node}", node)
    await add_claim(stage, "late")
    pod = await stage.add_pod("web", volumes=VOLUMES)

    async def owner() -> str:
        volume = await stage.cluster.read(PERSISTENT_VOLUMES, "disk-n2") or {}
        return str(volume["spec"].get("claimRef", {}).get("name", ""))

    async with stage.cluster.controllers(add_binding) as manager:
        await stage.order(pod, "n2")
        assert await until(owner) == "data"
        await at_rest(manager)
        assert "nodeName" not in (await stage.pod("web"))["spec"]
        await give_volume(stage, "disk-n2")
        await stage.bound("web")
    assert await selected_node(stage) is None
    other = await stage.cluster.read(PERSISTENT_VOLUMES, "disk-n1") or {}
    assert "claimRef" not in other["spec"]


async def test_two_claims_do_not_get_the_same_volume(stage: Stage) -> None:
    await stage.add_node("n2", **{"kubernetes.io/hostname": "n2"})
    await stage.cluster.make(
        STORAGE_CLASSES,
        {
            "metadata": {"name": "static"},
            "provisioner": NO_PROVISIONER,
            "volumeBindingMode": "WaitForFirstConsumer",
        },
    )
    await add_volume(stage, "disk", "n2", of="static")
    pods = []
    for name in ("a", "b"):
        spec = {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": "static",
        }
        await stage.cluster.make(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": name}, "spec": spec})
        volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": name}}]
        pods.append(await stage.add_pod(name, volumes=volumes))

    async def failures() -> list[str]:
        requests = await stage.cluster.all(BIND_REQUESTS)
        return [one["status"]["reason"] for one in requests if one.get("status", {}).get("phase") == "Failed"]

    async with stage.cluster.controllers(add_binding) as manager:
        for pod in pods:
            await stage.order(pod, "n2")
        [reason] = await until(failures)
        await at_rest(manager)
        assert len(await failures()) == 1
    assert "node n2 reaches no volume of class static" in reason


async def test_a_node_that_does_not_reach_the_volume_of_a_claim_is_refused(stage: Stage) -> None:
    await add_volume(stage, "pv-1", "elsewhere")
    await add_claim(stage, "late", volume="pv-1")
    pod = await stage.add_pod("web", volumes=VOLUMES)
    async with stage.cluster.controllers(add_binding):
        await stage.order(pod, "n1")
        failed = await stage.request("web", "Failed")
    assert failed["status"]["reason"] == "node n1 does not reach volume pv-1 of claim data"


async def test_a_provisioner_that_gives_the_node_back_has_the_pod_placed_anew(stage: Stage) -> None:
    await add_claim(stage, "late")
    pod = await stage.add_pod("web", volumes=VOLUMES)
    async with stage.cluster.controllers(add_binding):
        await stage.order(pod, "n1")
        await until(lambda: selected_node(stage))
        await stage.cluster.client.merge_patch(
            PERSISTENT_VOLUME_CLAIMS, "data", {"metadata": {"annotations": {SELECTED_NODE: None}}}, "default"
        )
        failed = await stage.request("web", "Failed")
    assert failed["status"]["reason"] == "no volume could be made on node n1 for claim data"
    assert await selected_node(stage) is None


async def test_a_claim_for_one_pod_is_given_to_one_of_two_that_are_bound_at_once(stage: Stage) -> None:
    await stage.add_node("n2")
    await add_claim(stage, "late", volume="pv-1", mode="ReadWriteOncePod")
    pods = {name: await stage.add_pod(name, volumes=VOLUMES) for name in ("a", "b")}
    async with stage.cluster.controllers(add_binding) as manager:
        await stage.order(pods["a"], "n1")
        await stage.order(pods["b"], "n2")

        async def are_decided() -> bool:
            requests = await stage.cluster.all(BIND_REQUESTS)
            return sorted(one.get("status", {}).get("phase", "") for one in requests) == ["Failed", "Succeeded"]

        await until(are_decided)
        await at_rest(manager)
    placed = [pod["metadata"]["name"] for pod in await stage.cluster.all(PODS) if pod["spec"].get("nodeName")]
    assert len(placed) == 1
