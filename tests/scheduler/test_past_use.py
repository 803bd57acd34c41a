"""Time-based fair share on a running scheduler: who had the cluster for long gives way to who had nothing."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from shoal.api import kai_names as names
from shoal.api.core import PODS
from shoal.api.scheduling_run_ai import QUEUES
from shoal.cluster.controllers.node_lifecycle import add_node_lifecycle
from shoal.cluster.node.simulated import Pool, add_simulated_nodes
from shoal.kube import Manager
from shoal.scheduler.everything import SchedulerSettings, add_everything
from shoal.scheduler.shares.usage import UsageSettings
from tests.scheduler.builders import kai_pod_manifest
from tests.scheduler.test_everything import places
from tests.support.builders.queues import queue_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster


async def running(cluster: Cluster) -> Counter[str]:
    """Pods that have a place, by queue."""
    return Counter(name[0] for name, node in (await places(cluster)).items() if node)


async def contended(cluster: Cluster, folder: Path, usage: UsageSettings | None, *, until_b_has: int) -> None:
    """One of two equal queues has the whole cluster; then the other one asks for all of it, too."""

    def add_nodes(manager: Manager) -> None:
        add_simulated_nodes(manager, sockets=folder, pools=[Pool.parse("1x4:H100")])
        add_node_lifecycle(manager)

    def add_all(manager: Manager) -> None:
        add_everything(manager, SchedulerSettings(usage=usage))

    async with cluster.controllers(add_nodes), cluster.controllers(add_all) as manager:
        registry = manager.metrics.registry
        for name in "ab":
            await cluster.client.create(QUEUES, queue_manifest(name))
        for index in range(4):
            await cluster.client.create(
                PODS, kai_pod_manifest(f"a-{index}", labels={names.QUEUE: "a"}, gpus=1), "default"
            )
        labels = {"queue_name": "a", "queue_metadata_name": "a", "queue_display_name": ""}

        async def is_used() -> bool:
            known = registry.get_sample_value("kai_queue_gpu_usage", labels) or 0.0
            return (await running(cluster))["a"] == 4 and (usage is None or known > 0.6)

        await until(is_used)
        for index in range(4):
            await cluster.client.create(
                PODS, kai_pod_manifest(f"b-{index}", labels={names.QUEUE: "b"}, gpus=1), "default"
            )

        async def is_given() -> bool:
            return (await running(cluster))["b"] >= until_b_has

        await until(is_given)


async def test_who_had_the_cluster_for_long_gives_way(cluster: Cluster, tmp_path: Path) -> None:
    usage = UsageSettings(fetch_interval=0.3, directory=tmp_path / "usage")
    await contended(cluster, tmp_path, usage, until_b_has=3)
    assert (tmp_path / "usage" / "usage.json").exists()


async def test_without_a_past_both_get_half(cluster: Cluster, tmp_path: Path) -> None:
    await contended(cluster, tmp_path, None, until_b_has=2)
    assert await running(cluster) == {"a": 2, "b": 2}
