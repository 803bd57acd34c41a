"""Simulated nodes on the embedded server: how they appear, fall silent, and what is written for them."""

from __future__ import annotations

import asyncio
from typing import Any

from shoal.api.core import NODES, PODS
from shoal.kube import Manager
from shoal.kube.leases import LEASES
from tests.cluster.node.conftest import Simulation, conditions
from tests.support.clusters.client import until
from tests.support.clusters.in_process import writes_of
from tests.support.waiting import eventually


def is_ready(node: dict[str, Any]) -> bool:
    return conditions(node).get("Ready") == "True"


async def test_a_pool_has_its_nodes_with_gpus_and_labels_after_one_request_each(simulation: Simulation) -> None:
    async with simulation.running("3x8:H100", "1x0") as manager:
        node = await simulation.node("sim-0-2", is_ready)
        plain = await simulation.node("sim-1-0", is_ready)
        lease = await until(lambda: simulation.cluster.read(LEASES, "shoal-simulated", "kube-node-lease"))
        assert writes_of(manager) == 4 + 2  # and a lease that was not there
    labels, status = node["metadata"]["labels"], node["status"]
    assert labels["nvidia.com/gpu.product"] == "NVIDIA-H100-80GB-HBM3"
    assert (labels["nvidia.com/gpu.count"], labels["nvidia.com/gpu.memory"]) == ("8", "81559")
    assert status["allocatable"] == {"cpu": "192", "memory": "2Ti", "nvidia.com/gpu": "8", "pods": "110"}
    assert "simulated" in status["nodeInfo"]["kubeletVersion"]
    assert node["metadata"]["annotations"]["shoal.dev/lease"] == lease["metadata"]["name"]
    assert "nvidia.com/gpu.count" not in plain["metadata"]["labels"]
    addresses = {one["status"]["addresses"][0]["address"] for one in await simulation.cluster.all(NODES)}
    assert len(addresses) == 4


async def test_after_a_restart_nothing_is_written_but_the_lease(simulation: Simulation) -> None:
    await simulation.add_node("mine")
    async with simulation.running("2x8:H100"):
        await simulation.node("mine", is_ready)
        await simulation.add_pod("web", node="mine")
        await simulation.phase("web", "Running")
        await simulation.node("sim-0-1", is_ready)
    async with simulation.running("2x8:H100") as manager:
        await eventually(lambda: writes_of(manager) == 1)
        await until(lambda: _at_rest(manager))
        assert writes_of(manager) == 1


async def _at_rest(manager: Manager) -> bool:
    """Whether each of the three nodes and the pod were looked at."""
    done = {
        sample.labels["controller"]: sample.value
        for family in manager.metrics.reconciles.collect()
        for sample in family.samples
        if sample.name.endswith("_total") and sample.labels["result"] == "success"
    }
    return done.get("simulated-nodes", 0) >= 3 and done.get("simulated-pods", 0) >= 1


async def test_a_pool_that_shrinks_or_changes_is_followed_and_others_stay(simulation: Simulation) -> None:
    async with simulation.running("4x8:H100", "2x1:T4"):
        await simulation.node("sim-1-1", is_ready)
    async with simulation.running("2x4:A100"):

        async def names() -> list[str]:
            return [node["metadata"]["name"] for node in await simulation.cluster.all(NODES)]

        async def has_shrunk() -> bool:
            return await names() == ["sim-0-0", "sim-0-1", "sim-1-0", "sim-1-1"]

        await until(has_shrunk)
        changed = await simulation.node(
            "sim-0-1", lambda node: node["status"]["allocatable"].get("nvidia.com/gpu") == "4"
        )
    assert changed["metadata"]["labels"]["nvidia.com/gpu.product"] == "NVIDIA-A100-SXM4-80GB"
    assert (changed["status"]["capacity"]["cpu"], changed["status"]["allocatable"]["cpu"]) == ("64", "64")


async def test_a_node_of_kwok_keeps_what_its_manifest_says(simulation: Simulation) -> None:
    status = {"allocatable": {"cpu": "7", "memory": "9Gi", "pods": "3"}}
    metadata = {"name": "kwok-a", "annotations": {"kwok.x-k8s.io/node": "fake"}}
    await simulation.cluster.make(NODES, {"metadata": metadata, "status": status})
    await simulation.cluster.make(NODES, {"metadata": {"name": "real"}})
    async with simulation.running():
        node = await simulation.node("kwok-a", is_ready)
    assert node["status"]["capacity"] == node["status"]["allocatable"] == status["allocatable"]
    assert conditions(await simulation.node("real", lambda node: True)) == {}


async def test_a_node_that_is_down_loses_its_lease_and_comes_back_ready(simulation: Simulation) -> None:
    async with simulation.running("1x8:H100"):
        await simulation.node("sim-0-0", is_ready)
        await simulation.annotate_node("sim-0-0", sim_down="true")
        await simulation.node("sim-0-0", lambda node: "shoal.dev/lease" not in node["metadata"]["annotations"])
        # As the controller of nodes' lives does it.
        lost = {"type": "Ready", "status": "Unknown", "reason": "NodeStatusUnknown", "message": "lost"}
        patch = {"status": {"conditions": [lost]}}
        await simulation.client.strategic_patch(NODES, "sim-0-0", patch, subresource="status")
        await simulation.add_pod("late", node="sim-0-0")
        await simulation.add_pod("going", node="sim-0-0")
        await asyncio.sleep(0.2)
        assert conditions(await simulation.node("sim-0-0", lambda node: True))["Ready"] == "Unknown"
        assert (await simulation.phase("late", "Pending"))["status"].get("startTime") is None
        await simulation.client.delete(PODS, "going", "default")
        await simulation.annotate_node("sim-0-0", sim_down=None)
        node = await simulation.node("sim-0-0", is_ready)
        assert node["metadata"]["annotations"]["shoal.dev/lease"] == "shoal-simulated"
        await simulation.phase("late", "Running")
        await simulation.gone("going")
