from __future__ import annotations

import asyncio
from functools import partial

from shoal.api.core import NODES, PODS
from shoal.cluster.controllers.pod_gc import add_pod_gc
from tests.support.builders.pods import pod_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest

HELD = "shoal.dev/test"
collector = partial(add_pod_gc, quarantine=0.3, sweep_every=0.1)


async def make_pod(cluster: Cluster, name: str, *, node: str = "", phase: str = "Running", held: bool = False) -> None:
    await cluster.make(PODS, pod_manifest(name, node=node, metadata={"finalizers": [HELD]} if held else None))
    await cluster.set_status(PODS, name, {"phase": phase})


async def is_gone(cluster: Cluster, name: str) -> bool:
    return await cluster.read(PODS, name) is None


async def is_failed(cluster: Cluster, name: str) -> bool:
    found = await cluster.read(PODS, name) or {}
    return bool(found["status"]["phase"] == "Failed" and found["metadata"].get("deletionGracePeriodSeconds") == 0)


async def test_pods_of_a_node_that_is_gone_are_failed_and_removed(cluster: Cluster) -> None:
    await cluster.make(NODES, {"metadata": {"name": "stays"}})
    await cluster.make(NODES, {"metadata": {"name": "goes"}})
    await make_pod(cluster, "stays", node="stays")
    await make_pod(cluster, "goes", node="goes")
    await make_pod(cluster, "held", node="goes", held=True)
    async with cluster.controllers(collector):
        await cluster.client.delete(NODES, "goes")
        await until(partial(is_gone, cluster, "goes"))
        await until(partial(is_failed, cluster, "held"))
        held = await cluster.read(PODS, "held") or {}
        condition = next(each for each in held["status"]["conditions"] if each["type"] == "DisruptionTarget")
        assert (condition["status"], condition["reason"]) == ("True", "DeletionByPodGC")
        assert condition["message"] == "PodGC: node no longer exists"
        assert condition["observedGeneration"] == held["status"]["observedGeneration"]
        assert not await is_gone(cluster, "stays")
    async with cluster.controllers(collector) as manager:
        await at_rest(manager)
        assert writes_of(manager) == 0


async def test_a_node_that_comes_back_in_time_keeps_its_pods(cluster: Cluster) -> None:
    await make_pod(cluster, "p", node="late")
    async with cluster.controllers(partial(add_pod_gc, quarantine=0.2)):
        await cluster.make(NODES, {"metadata": {"name": "late"}})
        await asyncio.sleep(0.4)  # longer than that
        assert not await is_gone(cluster, "p")


async def test_a_pod_without_a_node_that_is_to_go_is_failed(cluster: Cluster) -> None:
    await make_pod(cluster, "p", held=True, phase="Pending")
    async with cluster.controllers(collector):
        await cluster.client.delete(PODS, "p", "default")
        await until(partial(is_failed, cluster, "p"))


async def test_a_pod_on_a_node_out_of_service_need_not_wait_for_it(cluster: Cluster) -> None:
    await cluster.make(NODES, {"metadata": {"name": "off"}})
    await make_pod(cluster, "leaving", node="off")
    await make_pod(cluster, "staying", node="off")
    await cluster.client.delete(PODS, "leaving", "default")
    async with cluster.controllers(collector):
        assert not await is_gone(cluster, "leaving")
        taints = [{"key": "node.kubernetes.io/out-of-service", "effect": "NoExecute"}]
        await cluster.client.merge_patch(NODES.documents(), "off", {"spec": {"taints": taints}})
        await until(partial(is_gone, cluster, "leaving"))
        assert not await is_gone(cluster, "staying")


async def test_ended_pods_are_kept_up_to_the_threshold(cluster: Cluster) -> None:
    async with cluster.controllers(partial(collector, threshold=3)):
        for number in range(7):
            await make_pod(cluster, f"p{number}", phase="Succeeded")

        async def names() -> list[str]:
            return [pod["metadata"]["name"] for pod in await cluster.all(PODS)]

        async def only_the_youngest() -> bool:
            return len(await names()) == 3

        await until(only_the_youngest)
        await make_pod(cluster, "runs")
    async with cluster.controllers(partial(collector, threshold=3)) as manager:
        await at_rest(manager)
        assert writes_of(manager) == 0
        assert "runs" in await names()
