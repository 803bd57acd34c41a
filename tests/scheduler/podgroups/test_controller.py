"""Gangs on a real server: their figures follow their pods, and rest when nothing happens."""

from __future__ import annotations

import asyncio
import time

from shoal.api.core import NODES, PODS
from shoal.api.scheduling_k8s_io import PRIORITY_CLASSES
from shoal.api.scheduling_run_ai import POD_GROUPS
from shoal.kube import Manager
from shoal.scheduler.pace import EVERY
from shoal.scheduler.podgroups import add_pod_groups
from tests.scheduler.builders import pod_group_manifest
from tests.scheduler.podgroups.builders import FRACTION, gang_pod_manifest, scheduled
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, errors_of, writes_of
from tests.support.waiting.at_rest import at_rest


async def says(cluster: Cluster, gang: str, **wanted: dict[str, str]) -> None:
    """Waits until a gang's status says exactly these amounts."""

    async def says_so() -> bool:
        found = await cluster.read(POD_GROUPS, gang)
        assert found is not None
        status = found.get("status", {}).get("resourcesStatus", {})
        return {part: amounts for part, amounts in status.items() if amounts} == wanted

    await until(says_so)


async def settled(manager: Manager) -> int:
    """How many writes there were once nothing more happens, delayed ones included."""

    async def is_idle() -> bool:
        await at_rest(manager)
        return manager.is_idle

    await until(is_idle)
    return writes_of(manager)


async def test_a_gang_says_what_its_pods_ask_for_and_hold(cluster: Cluster) -> None:
    await cluster.make(POD_GROUPS, pod_group_manifest())
    await cluster.make(PODS, gang_pod_manifest("p0", requests={"cpu": "500m", "memory": "1Gi"}))
    async with cluster.controllers(add_pod_groups):
        await says(cluster, "gang", requested={"cpu": "500m", "memory": "1Gi"})
        await cluster.make(PODS, gang_pod_manifest("p1", requests={"cpu": "1500m", "nvidia.com/gpu": "1"}))
        await cluster.set_status(PODS, "p1", scheduled())
        held = {"cpu": "1500m", "nvidia.com/gpu": "1"}
        asked = {"cpu": "2", "memory": "1Gi", "nvidia.com/gpu": "1"}
        await says(cluster, "gang", requested=asked, allocated=held)
        await cluster.set_status(PODS, "p1", scheduled("Running"))
        await cluster.set_status(PODS, "p1", scheduled("Succeeded"))
        await says(cluster, "gang", requested={"cpu": "500m", "memory": "1Gi"})
        await cluster.client.delete(PODS, "p0", "default")
        await says(cluster, "gang")


async def test_a_pod_that_joins_later_counts_from_then_on(cluster: Cluster) -> None:
    await cluster.make(POD_GROUPS, pod_group_manifest())
    await cluster.make(PODS, gang_pod_manifest("p", gang="", requests={"cpu": "1"}))
    async with cluster.controllers(add_pod_groups):
        annotated = {"metadata": {"annotations": {"pod-group-name": "gang"}}}
        await cluster.client.merge_patch(PODS.documents(), "p", annotated, "default")
        await says(cluster, "gang", requested={"cpu": "1"})
        await cluster.make(POD_GROUPS, pod_group_manifest("late"))
        moved = {"metadata": {"annotations": {"pod-group-name": "late"}}}
        await cluster.client.merge_patch(PODS.documents(), "p", moved, "default")
        await says(cluster, "late", requested={"cpu": "1"})
        await says(cluster, "gang")


async def test_what_cannot_be_evicted_is_said_apart(cluster: Cluster) -> None:
    await cluster.make(PRIORITY_CLASSES, {"metadata": {"name": "serving"}, "value": 110})
    await cluster.make(POD_GROUPS, pod_group_manifest(priorityClassName="serving"))
    await cluster.make(PODS, gang_pod_manifest("p", requests={"cpu": "1"}))
    await cluster.set_status(PODS, "p", scheduled("Running"))
    one = {"cpu": "1"}
    async with cluster.controllers(add_pod_groups):
        await says(cluster, "gang", requested=one, allocated=one, allocatedNonPreemptible=one)
        changed = {"spec": {"preemptibility": "preemptible"}}
        await cluster.client.merge_patch(POD_GROUPS.documents(), "gang", changed, "default")
        await says(cluster, "gang", requested=one, allocated=one)
        changed_back = {"spec": {"preemptibility": None, "priorityClassName": "late"}}
        await cluster.client.merge_patch(POD_GROUPS.documents(), "gang", changed_back, "default")
        await says(cluster, "gang", requested=one, allocated=one)
        await cluster.make(PRIORITY_CLASSES, {"metadata": {"name": "late"}, "value": 100})
        await says(cluster, "gang", requested=one, allocated=one, allocatedNonPreemptible=one)


async def test_memory_of_a_gpu_is_a_part_of_the_nodes_device(cluster: Cluster) -> None:
    await cluster.make(NODES, {"metadata": {"name": "n", "labels": {"nvidia.com/gpu.memory": "16000"}}})
    await cluster.make(POD_GROUPS, pod_group_manifest())
    await cluster.make(PODS, gang_pod_manifest("p", annotations={"gpu-memory": "4000", **FRACTION}, node="n"))
    await cluster.set_status(PODS, "p", scheduled("Running"))
    asked = {"run.ai/gpu.memory": "4k"}
    async with cluster.controllers(add_pod_groups):
        await says(cluster, "gang", requested=asked, allocated={"nvidia.com/gpu": "250m"})
        labelled = {"metadata": {"labels": {"nvidia.com/gpu.memory": "8000"}}}
        await cluster.client.merge_patch(NODES.documents(), "n", labelled)
        await says(cluster, "gang", requested=asked, allocated={"nvidia.com/gpu": "500m"})


async def test_nothing_is_written_at_rest_nor_after_a_restart(cluster: Cluster) -> None:
    await cluster.make(POD_GROUPS, pod_group_manifest())
    await cluster.make(POD_GROUPS, pod_group_manifest("empty"))
    for number in range(3):
        await cluster.make(PODS, gang_pod_manifest(f"p{number}", requests={"cpu": "500m", "memory": "1000Mi"}))
    async with cluster.controllers(add_pod_groups) as manager:
        await says(cluster, "gang", requested={"cpu": "1500m", "memory": "3000Mi"})
        before = await settled(manager)
        await cluster.client.merge_patch(PODS.documents(), "p0", {"metadata": {"labels": {"seen": "yes"}}}, "default")

        async def is_seen() -> bool:
            pod = manager.cache.informer(PODS).get("p0", "default")
            return pod is not None and "seen" in pod.metadata.labels

        await until(is_seen)  # an event that concerns no figure
        assert await settled(manager) == before
    async with cluster.controllers(add_pod_groups) as manager:
        assert await settled(manager) == 0
        assert errors_of(manager) == 0


async def test_the_schedulers_part_of_the_status_stays(cluster: Cluster) -> None:
    await cluster.make(POD_GROUPS, pod_group_manifest())
    condition = {"type": "UnschedulableOnNodePool", "nodePool": "default", "status": "True", "transitionID": "1"}
    await cluster.set_status(POD_GROUPS, "gang", {"schedulingConditions": [condition]})
    await cluster.make(PODS, gang_pod_manifest("p", requests={"cpu": "1"}))
    async with cluster.controllers(add_pod_groups):
        await says(cluster, "gang", requested={"cpu": "1"})
    found = await cluster.read(POD_GROUPS, "gang")
    assert found is not None
    assert found["status"]["schedulingConditions"] == [condition]


async def test_a_pod_that_nobody_understands_keeps_no_other_from_counting(cluster: Cluster) -> None:
    await cluster.make(POD_GROUPS, pod_group_manifest())
    await cluster.make(PODS, gang_pod_manifest("odd", requests={"cpu": "1"}, annotations={"gpu-fraction": "most"}))
    await cluster.make(PODS, gang_pod_manifest("even", requests={"cpu": "1"}))
    async with cluster.controllers(add_pod_groups):
        await says(cluster, "gang", requested={"cpu": "2"})


async def test_many_pods_that_start_are_told_in_few_writes(cluster: Cluster) -> None:
    await cluster.make(POD_GROUPS, pod_group_manifest())
    for number in range(60):
        await cluster.make(PODS, gang_pod_manifest(f"p{number}", requests={"cpu": "1"}))
    async with cluster.controllers(add_pod_groups, debounce=1.0) as manager:
        began = time.monotonic()
        await asyncio.gather(*(cluster.set_status(PODS, f"p{number}", scheduled()) for number in range(60)))
        await says(cluster, "gang", requested={"cpu": "60"}, allocated={"cpu": "60"})
        took = time.monotonic() - began
        assert await settled(manager) <= took / EVERY + 2
