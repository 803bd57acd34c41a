"""The whole scheduler on a real API server with simulated nodes: queues, gangs, shared GPUs, reclaim."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from shoal.api import kai_names as names
from shoal.api.core import EVENTS, PODS
from shoal.api.scheduling_k8s_io import PRIORITY_CLASSES
from shoal.api.scheduling_run_ai import BIND_REQUESTS, POD_GROUPS, QUEUES
from shoal.api.visualizer import ClusterView, Publish, TaskStatus
from shoal.cluster.controllers.node_lifecycle import add_node_lifecycle
from shoal.cluster.node.simulated import Pool, add_simulated_nodes
from shoal.kube import Manager
from shoal.scheduler.everything import SchedulerSettings, add_everything
from shoal.scheduler.watching.mirror import MirrorSettings
from tests.scheduler.builders import gpu_queue_manifest, kai_pod_manifest, pod_group_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest


@asynccontextmanager
async def scheduled(
    cluster: Cluster,
    sockets: Path,
    nodes: str,
    publish: Publish | None = None,
    settings: SchedulerSettings = SchedulerSettings(),
) -> AsyncIterator[Manager]:
    def add_nodes(manager: Manager) -> None:
        add_simulated_nodes(manager, sockets=sockets, pools=[Pool.parse(nodes)])
        add_node_lifecycle(manager)

    def add_all(manager: Manager) -> None:
        add_everything(manager, settings, publish)

    async with cluster.controllers(add_nodes), cluster.controllers(add_all) as manager:
        yield manager


async def places(cluster: Cluster) -> dict[str, str]:
    pods = await cluster.all(PODS, "default")
    return {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in pods}


async def test_a_pod_with_nothing_but_its_schedulers_name_runs(cluster: Cluster, tmp_path: Path) -> None:
    async with scheduled(cluster, tmp_path, "1x8:H100") as manager:
        await cluster.client.create(PODS, kai_pod_manifest("alone", gpus=1), "default")

        async def is_running() -> bool:
            found = await cluster.read(PODS, "alone", "default") or {}
            return bool(found.get("status", {}).get("phase") == "Running")

        await until(is_running)
        groups = await cluster.all(POD_GROUPS, "default")
        assert [one["spec"]["queue"] for one in groups] == [names.DEFAULT_QUEUE]
        assert not await cluster.all(BIND_REQUESTS, "default"), "nothing was to be made before it was bound"
        await at_rest(manager)
        before = writes_of(manager)
        await at_rest(manager)
        assert writes_of(manager) == before


async def test_a_gang_waits_until_all_of_it_fits_and_starts_when_room_is_made(cluster: Cluster, tmp_path: Path) -> None:
    async with scheduled(cluster, tmp_path, "1x4:H100"):
        await cluster.client.create(POD_GROUPS, pod_group_manifest("first", minMember=3), "default")
        for index in range(3):
            await cluster.client.create(PODS, kai_pod_manifest(f"first-{index}", group="first", gpus=1), "default")

        async def has(name: str, count: int) -> bool:
            found = await places(cluster)
            return sum(bool(node) for pod_name, node in found.items() if pod_name.startswith(name)) == count

        await until(lambda: has("first", 3))
        await cluster.client.create(POD_GROUPS, pod_group_manifest("second", minMember=2), "default")
        for index in range(2):
            await cluster.client.create(PODS, kai_pod_manifest(f"second-{index}", group="second", gpus=1), "default")
        await cluster.client.create(PODS, kai_pod_manifest("small", gpus=1), "default")
        await until(lambda: has("small", 1))
        assert await has("second", 0)
        for index in range(3):
            await cluster.client.delete(PODS, f"first-{index}", "default")
        await until(lambda: has("second", 2))


async def test_a_queue_below_its_quota_takes_back_what_another_borrowed(cluster: Cluster, tmp_path: Path) -> None:
    async with scheduled(cluster, tmp_path, "1x4:H100"):
        for name in ("a", "b"):
            await cluster.client.create(QUEUES, gpu_queue_manifest(name, names.DEFAULT_PARENT_QUEUE, quota=2))
        for index in range(4):
            await cluster.client.create(
                PODS, kai_pod_manifest(f"a-{index}", labels={names.QUEUE: "a"}, gpus=1), "default"
            )

        async def is_full() -> bool:
            return sum(map(bool, (await places(cluster)).values())) == 4

        await until(is_full)
        for index in range(2):
            await cluster.client.create(
                PODS, kai_pod_manifest(f"b-{index}", labels={names.QUEUE: "b"}, gpus=1), "default"
            )

        async def is_shared() -> bool:
            found = await places(cluster)
            running = [name for name, node in found.items() if node]
            return sorted(name[0] for name in running) == ["a", "a", "b", "b"]

        await until(is_shared)


async def test_a_pod_whose_queue_is_not_there_says_so_until_it_is(cluster: Cluster, tmp_path: Path) -> None:
    async with scheduled(cluster, tmp_path, "1x1:H100"):
        await cluster.client.create(
            PODS, kai_pod_manifest("early", labels={names.QUEUE: "tomorrow"}, gpus=1), "default"
        )

        async def says() -> bool:
            found = await cluster.read(PODS, "early", "default") or {}
            told = [one.get("message", "") for one in found.get("status", {}).get("conditions", [])]
            return any("queue tomorrow does not exist: create it, or name another" in message for message in told)

        async def is_placed() -> bool:
            return bool((await places(cluster))["early"])

        await until(says)
        await cluster.client.create(QUEUES, gpu_queue_manifest("tomorrow", names.DEFAULT_PARENT_QUEUE, quota=1))
        await until(is_placed)


async def test_who_is_evicted_from_a_gang_of_another_scheduler_is_told_so_himself(
    cluster: Cluster, tmp_path: Path
) -> None:
    """There is no PodGroup of KAI's to tell it on."""
    served = frozenset({"volcano"})
    settings = SchedulerSettings(mirror=MirrorSettings(scheduler_names=served, grouped=frozenset()))
    async with scheduled(cluster, tmp_path, "1x1:H100", settings=settings):
        for name, priority in (("lowly", "train"), ("urgent", "build-preemptible")):
            body = kai_pod_manifest(name, gpus=1)
            body["spec"] |= {"schedulerName": "volcano", "priorityClassName": priority}

            async def has_class(wanted: str = priority) -> bool:
                return await cluster.read(PRIORITY_CLASSES, wanted) is not None

            await until(has_class)
            await cluster.client.create(PODS, body, "default")

            async def is_placed(wanted: str = name) -> bool:
                return bool((await places(cluster)).get(wanted))

            await until(is_placed)
        events = await cluster.all(EVENTS, "default")
        evicted = [event["involvedObject"] for event in events if event["reason"] == "Evict"]
        assert [(about["kind"], about["name"]) for about in evicted] == [("Pod", "lowly")]


async def test_parts_of_a_gpu_are_given_to_pods_that_share_it(cluster: Cluster, tmp_path: Path) -> None:
    async with scheduled(cluster, tmp_path, "1x1:H100"):
        for name in ("left", "right", "more"):
            fraction = {names.GPU_FRACTION: "0.5"}
            await cluster.client.create(PODS, kai_pod_manifest(name, annotations=fraction), "default")

        async def are_two_running() -> bool:
            return sum(map(bool, (await places(cluster)).values())) == 2

        await until(are_two_running)
        requests = await cluster.all(BIND_REQUESTS, "default")
        groups = {tuple(one["spec"]["selectedGPUGroups"]) for one in requests}
        assert len(groups) == 1


async def test_what_was_decided_is_shown_to_those_who_look(cluster: Cluster, tmp_path: Path) -> None:
    views: list[ClusterView] = []
    async with scheduled(cluster, tmp_path, "1x2:H100", publish=views.append):
        await cluster.client.create(POD_GROUPS, pod_group_manifest("both", minMember=2), "default")
        for index in range(2):
            await cluster.client.create(PODS, kai_pod_manifest(f"both-{index}", group="both", gpus=1), "default")

        async def are_placed() -> bool:
            return all((await places(cluster)).values())

        await until(are_placed)
        await cluster.client.create(PODS, kai_pod_manifest("late", gpus=1), "default")

        async def is_shown() -> bool:
            jobs = {job.name: job for job in views[-1].jobs.get("default", {}).values()} if views else {}
            both = jobs.get("both")
            if both is None or {task.status for task in both.tasks} != {TaskStatus.RUNNING}:
                return False
            return [len(job.tasks) for name, job in jobs.items() if name != "both"] == [1]

        await until(is_shown)
        last = views[-1]
        node = last.nodes["sim-0-0"]
        assert sorted(one.name for one in node.whole_gpus) == ["both-0", "both-1"]
        assert (node.used.gpus, node.allocatable.gpus) == (2, 2)
        assert last.queues[names.DEFAULT_QUEUE].allocated.gpus == 2
        assert last.queues[names.DEFAULT_PARENT_QUEUE].requested.gpus == 3
        late = next(job for job in last.jobs["default"].values() if job.name != "both")
        assert "GPU" in late.waits
        assert (late.position, late.overall) == (1, 1)

        async def is_told() -> bool:
            found = await cluster.read(PODS, "late", "default") or {}
            told = found.get("status", {}).get("conditions", [])
            return any(one["type"] == "PodScheduled" and one.get("reason") == "Unschedulable" for one in told)

        await until(is_told)
        group = await cluster.read(POD_GROUPS, late.name, "default") or {}
        assert [one["type"] for one in group["status"]["schedulingConditions"]] == ["UnschedulableOnNodePool"]
