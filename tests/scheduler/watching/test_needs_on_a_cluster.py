"""Pods that need volumes, devices and ConfigMaps, on a real API server with simulated nodes: they wait, then run."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from shoal.api import kai_names as names
from shoal.api.core import CONFIG_MAPS, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from shoal.api.resource_k8s_io import DEVICE_CLASSES, RESOURCE_CLAIMS, RESOURCE_SLICES
from shoal.api.storage import STORAGE_CLASSES
from shoal.cluster.controllers.node_lifecycle import add_node_lifecycle
from shoal.cluster.controllers.volumes import LOCAL_CLASS, PROVISIONER, add_volumes
from shoal.cluster.node.simulated import Pool, add_simulated_nodes
from shoal.kube import Manager
from shoal.scheduler.everything import add_everything
from tests.scheduler.builders import kai_pod_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest

FIRST, SECOND = "sim-0-0", "sim-0-1"


@asynccontextmanager
async def scheduled(cluster: Cluster, folder: Path) -> AsyncIterator[Manager]:
    """Two simulated nodes, somebody who looks after volumes, and the scheduler."""

    def add_others(manager: Manager) -> None:
        add_simulated_nodes(manager, sockets=folder, pools=[Pool.parse("2x4:H100")])
        add_node_lifecycle(manager)
        add_volumes(manager, folder=folder / "volumes")

    def add_scheduler(manager: Manager) -> None:
        add_everything(manager)

    async with cluster.controllers(add_others), cluster.controllers(add_scheduler) as manager:
        yield manager


async def make_pod(cluster: Cluster, name: str, **given: Any) -> None:
    await cluster.make(PODS, kai_pod_manifest(name, **given))


async def make_claim(cluster: Cluster, name: str, of: str, *, mode: str = "ReadWriteOnce") -> None:
    spec = {"accessModes": [mode], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": of}
    await cluster.make(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": name}, "spec": spec})


async def make_class(cluster: Cluster, name: str, *, mode: str, provisioner: str) -> None:
    await cluster.make(
        STORAGE_CLASSES, {"metadata": {"name": name}, "provisioner": provisioner, "volumeBindingMode": mode}
    )


async def make_volume(cluster: Cluster, name: str, of: str, node: str) -> None:
    """A volume that one node alone reaches."""
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": [node]}
    await cluster.make(
        PERSISTENT_VOLUMES,
        {
            "metadata": {"name": name},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "storageClassName": of,
                "local": {"path": "/mnt/disk"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}},
            },
        },
    )


def using(*claims: str) -> list[dict[str, Any]]:
    return [{"name": claim, "persistentVolumeClaim": {"claimName": claim}} for claim in claims]


async def node_of(cluster: Cluster, name: str) -> str:
    """Where a pod runs, once it does."""

    async def look() -> str:
        found = await cluster.read(PODS, name) or {}
        is_running = found.get("status", {}).get("phase") == "Running"
        return str(found["spec"]["nodeName"]) if is_running else ""

    place: str = await until(look)
    return place


async def waits(cluster: Cluster, name: str, because: str) -> None:
    """Waits until a pod says that it waits, and why."""

    async def look() -> bool:
        found = await cluster.read(PODS, name) or {}
        told = found.get("status", {}).get("conditions", [])
        return any(
            one["type"] == "PodScheduled" and one["status"] == "False" and because in one.get("message", "")
            for one in told
        )

    await until(look)


async def test_a_pod_waits_for_a_claim_that_is_missing_and_runs_once_a_volume_can_be_made(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with scheduled(cluster, tmp_path) as manager:
        await make_pod(cluster, "web", volumes=using("data"))
        await waits(cluster, "web", "claim data does not exist")
        await at_rest(manager)
        before = writes_of(manager)
        await at_rest(manager)
        assert writes_of(manager) == before
        await make_class(cluster, "late", mode="WaitForFirstConsumer", provisioner=PROVISIONER)
        await make_claim(cluster, "data", "late")
        place = await node_of(cluster, "web")
        claim = await cluster.read(PERSISTENT_VOLUME_CLAIMS, "data") or {}
        assert claim["status"]["phase"] == "Bound"
        assert claim["metadata"]["annotations"]["volume.kubernetes.io/selected-node"] == place


async def test_a_pod_goes_where_the_volume_of_its_claim_is(cluster: Cluster, tmp_path: Path) -> None:
    async with scheduled(cluster, tmp_path):
        await make_class(cluster, "soon", mode="Immediate", provisioner="kubernetes.io/no-provisioner")
        await make_claim(cluster, "data", "soon")
        await make_pod(cluster, "web", volumes=using("data"))
        await waits(cluster, "web", "claim data has no volume yet")
        await make_volume(cluster, "disk", "soon", SECOND)
        assert await node_of(cluster, "web") == SECOND


async def test_a_claim_that_waits_for_its_pod_gets_the_volume_of_the_pods_node(
    cluster: Cluster, tmp_path: Path
) -> None:
    async with scheduled(cluster, tmp_path):
        await make_class(cluster, "late", mode="WaitForFirstConsumer", provisioner="kubernetes.io/no-provisioner")
        await make_volume(cluster, "disk", "late", SECOND)
        await make_claim(cluster, "data", "late")
        await make_pod(cluster, "web", volumes=using("data"))
        assert await node_of(cluster, "web") == SECOND
        claim = await cluster.read(PERSISTENT_VOLUME_CLAIMS, "data") or {}
        assert claim["spec"]["volumeName"] == "disk"
        await make_claim(cluster, "more", "late")
        await make_pod(cluster, "next", volumes=using("more"))
        await waits(cluster, "next", "cannot reach the volumes or claims")
        await make_volume(cluster, "another", "late", FIRST)
        assert await node_of(cluster, "next") == FIRST


async def test_a_claim_for_one_pod_is_used_by_one_pod_after_the_other(cluster: Cluster, tmp_path: Path) -> None:
    async with scheduled(cluster, tmp_path):
        await make_claim(cluster, "data", LOCAL_CLASS, mode="ReadWriteOncePod")
        await make_pod(cluster, "first", volumes=using("data"))
        await node_of(cluster, "first")
        await make_pod(cluster, "second", volumes=using("data"))
        await waits(cluster, "second", "claim data may be used by one pod at a time, and pod first uses it")
        await cluster.client.delete(PODS, "first", "default")
        await node_of(cluster, "second")


async def test_a_pod_brings_its_own_claim(cluster: Cluster, tmp_path: Path) -> None:
    template = {
        "spec": {
            "accessModes": ["ReadWriteOnce"],
            "resources": {"requests": {"storage": "1Gi"}},
            "storageClassName": LOCAL_CLASS,
        }
    }
    async with scheduled(cluster, tmp_path):
        await make_pod(cluster, "web", volumes=[{"name": "scratch", "ephemeral": {"volumeClaimTemplate": template}}])
        await node_of(cluster, "web")
        claim = await cluster.read(PERSISTENT_VOLUME_CLAIMS, "web-scratch") or {}
        assert claim["status"]["phase"] == "Bound"


async def test_a_pod_waits_for_a_config_map(cluster: Cluster, tmp_path: Path) -> None:
    settings = {"envFrom": [{"configMapRef": {"name": "settings"}}, {"configMapRef": {"name": "no", "optional": True}}]}
    async with scheduled(cluster, tmp_path):
        await make_pod(cluster, "web", containers=[{"name": "main", **settings}])
        await waits(cluster, "web", "ConfigMap settings does not exist")
        await cluster.make(CONFIG_MAPS, {"metadata": {"name": "settings"}, "data": {}})
        await node_of(cluster, "web")


async def test_a_pod_gets_the_devices_that_it_claims(cluster: Cluster, tmp_path: Path) -> None:
    async with scheduled(cluster, tmp_path):
        await make_pod(cluster, "web", resourceClaims=[{"name": "own", "resourceClaimName": "gpus"}])
        await waits(cluster, "web", "claim gpus of devices does not exist")
        selector = {"cel": {"expression": "device.driver == 'gpu.x.io'"}}
        await cluster.make(DEVICE_CLASSES, {"metadata": {"name": "gpu.x.io"}, "spec": {"selectors": [selector]}})
        pool = {"name": SECOND, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": "gpu.x.io", "nodeName": SECOND, "pool": pool, "devices": [{"name": "gpu-0"}]}
        await cluster.make(RESOURCE_SLICES, {"metadata": {"name": "devices"}, "spec": spec})
        request = {"name": "gpu", "exactly": {"deviceClassName": "gpu.x.io"}}
        claim = {"metadata": {"name": "gpus"}, "spec": {"devices": {"requests": [request]}}}
        await cluster.make(RESOURCE_CLAIMS, claim)
        await waits(cluster, "web", "claim gpus of GPUs names no queue")
        labels = {"metadata": {"labels": {names.QUEUE: names.DEFAULT_QUEUE}}}
        await cluster.client.merge_patch(RESOURCE_CLAIMS, "gpus", labels, "default")
        assert await node_of(cluster, "web") == SECOND
        status = (await cluster.read(RESOURCE_CLAIMS, "gpus") or {})["status"]
        [device] = status["allocation"]["devices"]["results"]
        assert (device["driver"], device["device"]) == ("gpu.x.io", "gpu-0")
        assert [one["name"] for one in status["reservedFor"]] == ["web"]
