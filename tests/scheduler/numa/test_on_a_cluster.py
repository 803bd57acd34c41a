"""Zones on a real API server with simulated nodes: pods wait for them, and say where they are expected."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from shoal.api import kai_names as names
from shoal.api.apiextensions import DEFINITIONS
from shoal.api.core import PODS
from shoal.cluster.controllers.node_lifecycle import add_node_lifecycle
from shoal.cluster.node.simulated import Pool, add_simulated_nodes
from shoal.kube import Manager
from shoal.scheduler.binding import add_binding
from shoal.scheduler.everything import SchedulerSettings, add_everything
from shoal.scheduler.numa import NODE_RESOURCE_TOPOLOGIES, NumaSettings
from shoal.scheduler.session.settings import PLUGINS, Settings
from shoal.scheduler.snapshots import watched_sources
from shoal.scheduler.watching.mirror import MirrorSettings
from tests.scheduler.binding.stage import Stage
from tests.scheduler.builders import kai_pod_manifest
from tests.scheduler.numa.builders import GPU, a_container, a_report
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster

NODE = "sim-0-0"
LOOKING = SchedulerSettings(
    mirror=MirrorSettings(reads_zones=True),
    engine=Settings(plugins=(*PLUGINS, "numa"), numa=NumaSettings()),
)


async def serve_zones(cluster: Cluster) -> None:
    """The kind, as the agents of nodes bring it."""
    kind = NODE_RESOURCE_TOPOLOGIES
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    body = {
        "metadata": {
            "name": kind.full_name,
            "annotations": {"api-approved.kubernetes.io": "https://github.com/kubernetes/enhancements/pull/1870"},
        },
        "spec": {
            "group": kind.group,
            "scope": "Cluster",
            "names": {"plural": kind.plural, "kind": kind.kind, "singular": kind.kind.lower()},
            "versions": [
                {"name": kind.version, "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
            ],
        },
    }
    await cluster.make(DEFINITIONS, body)

    async def is_served() -> bool:
        return (await cluster.client.get(DEFINITIONS, kind.full_name)).is_established

    await until(is_served)


@asynccontextmanager
async def scheduled(cluster: Cluster, folder: Path, settings: SchedulerSettings = LOOKING) -> AsyncIterator[Manager]:
    """A simulated node of four GPUs, and the scheduler."""

    def add_others(manager: Manager) -> None:
        add_simulated_nodes(manager, sockets=folder, pools=[Pool.parse("1x4:H100")])
        add_node_lifecycle(manager)

    def add_scheduler(manager: Manager) -> None:
        add_everything(manager, settings)

    async with cluster.controllers(add_others), cluster.controllers(add_scheduler) as manager:
        yield manager


async def make_pod(cluster: Cluster, name: str, gpus: int) -> None:
    asks = {"cpu": "1", "memory": "1Gi", GPU: str(gpus)}
    await cluster.make(PODS, kai_pod_manifest(name, containers=[a_container(asks)]))


async def running(cluster: Cluster, name: str) -> dict[str, Any]:
    """A pod, once it runs."""

    async def look() -> dict[str, Any] | None:
        found = await cluster.read(PODS, name) or {}
        return found if found.get("status", {}).get("phase") == "Running" else None

    pod: dict[str, Any] = await until(look)
    return pod


async def waits(cluster: Cluster, name: str, because: str) -> None:
    """Waits until a pod says that it waits, and why."""

    async def look() -> bool:
        found = await cluster.read(PODS, name) or {}
        told = found.get("status", {}).get("conditions", [])
        return any(one["type"] == "PodScheduled" and because in one.get("message", "") for one in told)

    await until(look)


def is_watched(manager: Manager) -> bool:
    return any(NODE_RESOURCE_TOPOLOGIES in key for key in manager.cache._informers)


def predicted(pod: dict[str, Any]) -> list[str]:
    said = msgspec.json.decode(pod["metadata"]["annotations"].get(names.NUMA_PREDICTED, "[]"))
    return [one["zone"] for one in said]


async def test_a_pod_waits_for_a_zone_that_has_all_of_it_and_says_in_which_it_is_expected(
    cluster: Cluster, tmp_path: Path
) -> None:
    await serve_zones(cluster)
    await cluster.make(NODE_RESOURCE_TOPOLOGIES, a_report(NODE, {GPU: "2"}, {GPU: "2"}))
    async with scheduled(cluster, tmp_path) as manager:
        assert is_watched(manager)
        for name in ("first", "second"):
            await make_pod(cluster, name, 1)
        pods = [await running(cluster, name) for name in ("first", "second")]
        assert [predicted(pod) for pod in pods] == [["node-0"], ["node-0"]]
        await make_pod(cluster, "large", 2)
        assert predicted(await running(cluster, "large")) == ["node-1"]
        await cluster.client.delete(PODS, "first", "default")
        await cluster.client.delete(PODS, "large", "default")
        await make_pod(cluster, "three", 3)
        await waits(cluster, "three", "not enough room in NUMA zones")
        zones = {"zones": a_report(NODE, {GPU: "4"})["zones"]}
        await cluster.client.merge_patch(NODE_RESOURCE_TOPOLOGIES, NODE, zones)
        assert predicted(await running(cluster, "three")) == ["node-0"]


async def test_where_nobody_reports_zones_pods_are_placed_as_ever(cluster: Cluster, tmp_path: Path) -> None:
    async with scheduled(cluster, tmp_path):
        await make_pod(cluster, "three", 3)
        assert predicted(await running(cluster, "three")) == []


async def test_without_the_plugin_zones_are_not_even_watched(cluster: Cluster, tmp_path: Path) -> None:
    await serve_zones(cluster)
    await cluster.make(NODE_RESOURCE_TOPOLOGIES, a_report(NODE, {GPU: "2"}, {GPU: "2"}))
    async with scheduled(cluster, tmp_path, SchedulerSettings()) as manager:
        await make_pod(cluster, "three", 3)
        assert predicted(await running(cluster, "three")) == []
        assert "nodeResourceTopologies" not in watched_sources(manager)
        assert not is_watched(manager)


async def test_a_snapshot_has_the_zones_that_are_watched(cluster: Cluster) -> None:
    await serve_zones(cluster)
    await cluster.make(NODE_RESOURCE_TOPOLOGIES, a_report(NODE, {GPU: "2"}))
    async with cluster.controllers() as manager:
        source = watched_sources(manager, reads_zones=True)["nodeResourceTopologies"]
        async with asyncio.timeout(20):
            while not source():
                await asyncio.sleep(0.01)
        assert [one.metadata.name for one in source()] == [NODE]


async def test_the_binder_writes_down_the_zones_that_it_was_told(cluster: Cluster) -> None:
    stage = Stage(cluster)

    def add(manager: Manager) -> None:
        add_binding(manager)

    async with cluster.controllers(add):
        await stage.add_node("n0")
        pod = await stage.add_pod("p")
        zones = [{"zone": "node-1", "amount": {"cpu": "2"}}]
        await stage.order(pod, "n0", predictedNUMAZones=zones)

        async def look() -> dict[str, Any] | None:
            found = await cluster.read(PODS, "p") or {}
            return found if found["spec"].get("nodeName") else None

        bound = await until(look)
    assert msgspec.json.decode(bound["metadata"]["annotations"][names.NUMA_PREDICTED]) == zones
