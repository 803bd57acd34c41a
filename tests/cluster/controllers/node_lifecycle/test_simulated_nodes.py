"""A simulated node that falls silent, together with the controller that notices."""

from __future__ import annotations

from pathlib import Path

import pytest

from shoal.api.core import NODES, PODS
from shoal.cluster.controllers.node_lifecycle import add_node_lifecycle
from shoal.cluster.node.simulated import Pool, add_simulated_nodes, nodes
from shoal.kube import Manager
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster

UNREACHABLE = "node.kubernetes.io/unreachable"
POD = {
    "metadata": {"name": "web"},
    "spec": {
        "containers": [{"name": "web", "image": "web"}],
        "tolerations": [{"key": UNREACHABLE, "operator": "Exists", "effect": "NoExecute", "tolerationSeconds": 1}],
    },
}


async def test_a_node_that_is_down_is_lost_evicted_from_and_comes_back(
    cluster: Cluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "RENEW_EVERY", 0.2)  # ten seconds are too long for a test

    def add(manager: Manager) -> None:
        add_simulated_nodes(manager, sockets=tmp_path / "agents", pools=[Pool.parse("2x0")])
        add_node_lifecycle(manager, grace=1.5)

    async def ready(name: str) -> str:
        node = await cluster.read(NODES, name)
        conditions = (node or {}).get("status", {}).get("conditions", [])
        return next((one["status"] for one in conditions if one["type"] == "Ready"), "")

    async def say(down: str | None) -> None:
        patch = {"metadata": {"annotations": {"shoal.dev/sim-down": down}}}
        await cluster.client.merge_patch(NODES.documents(), "sim-0-0", patch)

    async with cluster.controllers(add):

        async def is_up() -> bool:
            return await ready("sim-0-0") == "True" == await ready("sim-0-1")

        await until(is_up)
        await cluster.make(PODS, POD)
        await cluster.client.bind(PODS, "web", "default", node="sim-0-0")
        await say("true")

        async def is_evicted() -> bool:
            pod = await cluster.read(PODS, "web")
            return pod is not None and "deletionTimestamp" in pod["metadata"]

        await until(is_evicted)
        assert await ready("sim-0-0") == "Unknown"
        assert await ready("sim-0-1") == "True", "the other one is vouched for"
        lost = await cluster.read(NODES, "sim-0-0")
        assert lost is not None
        assert {taint["key"] for taint in lost["spec"]["taints"]} == {UNREACHABLE}
        await say(None)

        async def is_back() -> bool:
            node = await cluster.read(NODES, "sim-0-0")
            is_clean = node is not None and not node["spec"].get("taints")
            return is_clean and await ready("sim-0-0") == "True" and await cluster.read(PODS, "web") is None

        await until(is_back)
