"""The model is told of gangs in other words, on a real API server: whichever kinds it serves, in whichever order."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec
import pytest

from shoal.api import kai_names as names
from shoal.api import scheduling_sigs_k8s_io, scheduling_volcano_sh
from shoal.api.core import PODS
from shoal.api.core.pods import Pod
from shoal.api.scheduling_k8s_io import PRIORITY_CLASSES, WORKLOADS_V1ALPHA1
from shoal.api.scheduling_run_ai import QUEUES
from shoal.api.scheduling_sigs_k8s_io import POD_GROUPS as KOORDINATOR_GROUPS
from shoal.api.scheduling_volcano_sh import POD_GROUPS as VOLCANO_GROUPS
from shoal.cli.processes.api import define
from shoal.cluster.controllers.node_lifecycle import add_node_lifecycle
from shoal.cluster.node.simulated import Pool, add_simulated_nodes
from shoal.kube import Manager, NotFound
from shoal.scheduler.binding import add_binding
from shoal.scheduler.defaults import add_defaults
from shoal.scheduler.everything import SchedulerSettings, add_scheduler
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.watching.dialects import add_dialects
from shoal.scheduler.watching.dialects.workloads import COMPOSITES, POD_GROUPS
from shoal.scheduler.watching.groups import GROUPED_SCHEDULERS, SCHEDULERS
from shoal.scheduler.watching.mirror import Mirror, MirrorSettings
from shoal.scheduler.watching.watches import Watches
from tests.scheduler.watching.dialects.builders import tree
from tests.support.builders.pods import pod_manifest
from tests.support.builders.queues import queue_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting import eventually
from tests.support.waiting.at_rest import at_rest

SETTINGS = MirrorSettings(scheduler_names=SCHEDULERS, grouped=GROUPED_SCHEDULERS)
TOGETHER = "gang.scheduling.koordinator.sh/groups"


class Seen:
    """What a mirror makes of a cluster."""

    def __init__(self) -> None:
        self.mirror = Mirror(SETTINGS)
        self.woken = 0

    def add(self, manager: Manager) -> None:
        Watches(manager, self.mirror, lambda: None)
        add_dialects(manager, self.mirror, self.wake)

    def wake(self) -> None:
        self.woken += 1

    def jobs(self) -> dict[str, Job]:
        self.mirror.catch_up(0.0)
        return {job.name: job for job in self.mirror.cluster.jobs.values()}

    async def until(self, condition: Callable[[dict[str, Job]], object]) -> dict[str, Job]:
        await eventually(lambda: condition(self.jobs()))
        return self.jobs()


@pytest.fixture
async def gangs(cluster: Cluster) -> AsyncIterator[Seen]:
    """A mirror of a cluster that serves Kubernetes' Workloads, and neither Koordinator's kinds nor Volcano's."""
    seen = Seen()
    async with cluster.controllers(seen.add):
        yield seen


def volcano_pod(name: str, group: str, *, task: str = "", **more: Any) -> dict[str, Any]:
    marks = {"scheduling.k8s.io/group-name": group, **({"volcano.sh/task-spec": task} if task else {})}
    return pod_manifest(name, scheduler="volcano", annotations=marks, **more)


def koordinator_pod(name: str, group: str, **more: Any) -> dict[str, Any]:
    return pod_manifest(name, scheduler="koord-scheduler", labels={"pod-group.scheduling.sigs.k8s.io": group}, **more)


def a_group(name: str, **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": spec}


def a_joined_group(name: str, minimum: int, *others: str) -> dict[str, Any]:
    listed = json.dumps([f"default/{one}" for one in sorted((name, *others))])
    return {"metadata": {"name": name, "annotations": {TOGETHER: listed}}, "spec": {"minMember": minimum}}


def sets(job: Job) -> dict[str, int]:
    return {name: len(one.tasks) for name, one in job.pod_sets.items()}


ONE_GPU = {names.NVIDIA_GPU: 1}
LLAMA, FIRST = "podgroup.scheduling.volcano.sh/llama", "podgroup.scheduling.sigs.k8s.io/a"


async def serve(cluster: Cluster, *groups: Any) -> None:
    """Lets the server serve kinds that it did not know."""
    for group in groups:
        await define(cluster.client, group.DEFINITIONS)

        async def is_served(resource: Any = group.POD_GROUPS) -> bool:
            try:
                await cluster.all(resource)
            except NotFound:
                return False
            return True

        await until(is_served)


async def test_pods_of_a_workload_are_a_gang_for_each_group_and_replica(cluster: Cluster, gangs: Seen) -> None:
    groups = [{"name": "workers", "policy": {"gang": {"minCount": 2}}}, {"name": "rest", "policy": {"basic": {}}}]
    for replica in ("0", "1"):
        for number in range(2):
            reference = {"name": "llama", "podGroup": "workers", "podGroupReplicaKey": replica}
            body = pod_manifest(f"w{replica}-{number}", scheduler="default-scheduler", workloadRef=reference)
            await cluster.make(PODS, body)
    reference = {"name": "llama", "podGroup": "rest"}
    await cluster.make(PODS, pod_manifest("r", scheduler="default-scheduler", workloadRef=reference))
    await eventually(lambda: gangs.woken >= 5)
    assert gangs.jobs() == {}
    await cluster.make(WORKLOADS_V1ALPHA1, a_group("llama", podGroups=groups))
    jobs = await gangs.until(lambda found: len(found) == 3)
    assert {name: (tree(job.root), job.pending) for name, job in jobs.items()} == {
        "workload/llama/workers/0": ({"default": 2}, 2),
        "workload/llama/workers/1": ({"default": 2}, 2),
        "workload/llama/rest": ({"default": 0}, 1),
    }
    await cluster.client.delete(PODS, "r", "default", grace_seconds=0)
    await gangs.until(lambda found: set(found) == {"workload/llama/workers/0", "workload/llama/workers/1"})
    await cluster.client.delete(WORKLOADS_V1ALPHA1.documents(), "llama", "default")
    await gangs.until(lambda found: not found)
    assert len(gangs.mirror._strays) == 2


async def test_a_kind_that_is_served_later_is_watched_from_then_on(cluster: Cluster, gangs: Seen) -> None:
    for number in range(2):
        await cluster.make(PODS, volcano_pod(f"p{number}", "llama"))
    await eventually(lambda: gangs.woken >= 2)
    assert gangs.jobs() == {}
    await serve(cluster, scheduling_volcano_sh)
    await cluster.make(VOLCANO_GROUPS, a_group("llama", minMember=2))
    [job] = (await gangs.until(lambda found: LLAMA in found)).values()
    assert (job.is_ready, job.pending) == (True, 2)


async def test_volcanos_pods_are_where_their_task_says_also_when_the_group_changes(
    cluster: Cluster, gangs: Seen
) -> None:
    await serve(cluster, scheduling_volcano_sh)
    await cluster.make(VOLCANO_GROUPS, a_group("llama", minMember=2))
    await cluster.make(PODS, volcano_pod("p", "llama", task="ps"))
    await cluster.make(PODS, volcano_pod("w", "llama", task="worker"))
    await gangs.until(lambda found: LLAMA in found and sets(found[LLAMA]) == {"default": 2})
    tasks = {"spec": {"minTaskMember": {"ps": 1, "worker": 1}}}
    await cluster.client.merge_patch(VOLCANO_GROUPS.documents(), "llama", tasks, "default")
    wanted = {"task ps": 1, "task worker": 1, "others": 0}
    await gangs.until(lambda found: sets(found[LLAMA]) == wanted)
    moved = {"metadata": {"annotations": {"volcano.sh/task-spec": "worker"}}}
    await cluster.client.merge_patch(PODS.documents(), "p", moved, "default")
    jobs = await gangs.until(lambda found: sets(found[LLAMA]) == {**wanted, "task ps": 0, "task worker": 2})
    assert not jobs[LLAMA].is_ready


async def test_a_gang_goes_to_volcanos_queue_once_there_is_one_here(cluster: Cluster, gangs: Seen) -> None:
    await serve(cluster, scheduling_volcano_sh)
    await cluster.make(VOLCANO_GROUPS, a_group("llama", minMember=1, queue="team"))
    await gangs.until(lambda found: LLAMA in found and found[LLAMA].queue == "default-queue")
    await cluster.make(QUEUES, queue_manifest("team", quota=-1))
    await gangs.until(lambda found: found[LLAMA].queue == "team")


async def test_a_gangs_priority_follows_its_class(cluster: Cluster, gangs: Seen) -> None:
    await serve(cluster, scheduling_volcano_sh)
    await cluster.make(VOLCANO_GROUPS, a_group("llama", minMember=1, priorityClassName="high"))
    await gangs.until(lambda found: LLAMA in found and found[LLAMA].priority == names.DEFAULT_PRIORITY)
    await cluster.make(PRIORITY_CLASSES, {"metadata": {"name": "high"}, "value": 90})
    await gangs.until(lambda found: found[LLAMA].priority == 90)


async def test_koordinators_groups_come_together_and_part_again(cluster: Cluster, gangs: Seen) -> None:
    await serve(cluster, scheduling_sigs_k8s_io)
    for name in ("a", "b"):
        await cluster.make(PODS, koordinator_pod(f"{name}-0", name))
    await cluster.make(KOORDINATOR_GROUPS, a_joined_group("a", 1, "b"))
    jobs = await gangs.until(lambda found: FIRST in found)
    assert (tree(jobs[FIRST].root), jobs[FIRST].is_ready) == ({"a": 1, "b": 1}, False)
    await cluster.make(KOORDINATOR_GROUPS, a_joined_group("b", 1, "a"))
    jobs = await gangs.until(lambda found: sets(found[FIRST]) == {"a": 1, "b": 1})
    assert (len(jobs), jobs[FIRST].is_ready) == (1, True)
    apart = {"metadata": {"annotations": {TOGETHER: None}}}
    await cluster.client.merge_patch(KOORDINATOR_GROUPS.documents(), "b", apart, "default")
    jobs = await gangs.until(lambda found: len(found) == 2)
    assert (sets(jobs[FIRST]), jobs[FIRST].is_ready) == ({"a": 1, "b": 0}, False)
    assert jobs["podgroup.scheduling.sigs.k8s.io/b"].is_ready


async def test_what_changes_nothing_of_a_gang_is_not_told(cluster: Cluster, gangs: Seen) -> None:
    await serve(cluster, scheduling_volcano_sh)
    await cluster.make(VOLCANO_GROUPS, a_group("llama", minMember=1))
    await cluster.make(PODS, volcano_pod("p", "llama"))
    before = (await gangs.until(lambda found: LLAMA in found and found[LLAMA].pending))[LLAMA]
    woken = gangs.woken
    await cluster.client.merge_patch(
        VOLCANO_GROUPS.documents(), "llama", {"status": {"phase": "Running", "running": 1}}, "default"
    )
    await eventually(lambda: gangs.woken > woken)
    assert gangs.jobs()[LLAMA] is before


async def test_a_pod_of_a_scheduler_that_is_not_served_has_no_part_in_a_gang(cluster: Cluster, gangs: Seen) -> None:
    await serve(cluster, scheduling_volcano_sh)
    await cluster.make(VOLCANO_GROUPS, a_group("llama", minMember=1))
    marks, labels = {"scheduling.k8s.io/group-name": "llama"}, {names.QUEUE: "theirs"}
    await cluster.make(PODS, pod_manifest("theirs", scheduler="somebody-else", annotations=marks, labels=labels))
    await cluster.make(PODS, volcano_pod("ours", "llama"))
    jobs = await gangs.until(lambda found: LLAMA in found and found[LLAMA].pending)
    assert ([task.name for task in jobs[LLAMA].tasks.values()], jobs[LLAMA].queue) == (["ours"], "default-queue")


async def test_a_group_that_nobody_can_understand_holds_up_no_other(cluster: Cluster, gangs: Seen) -> None:
    await serve(cluster, scheduling_sigs_k8s_io)
    bottomless = {"metadata": {"name": "bad", "annotations": {TOGETHER: "[" * 100_000}}, "spec": {"minMember": 1}}
    await cluster.make(KOORDINATOR_GROUPS, bottomless)
    await cluster.make(KOORDINATOR_GROUPS, a_group("a", minMember=1))
    await cluster.make(PODS, koordinator_pod("q", "bad"))
    await cluster.make(PODS, koordinator_pod("p", "a"))
    jobs = await gangs.until(lambda found: FIRST in found and found[FIRST].pending)
    assert set(jobs) == {FIRST}


def read(kind: type[Any], name: str, spec: dict[str, Any]) -> Any:
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "resourceVersion": "1"}
    return msgspec.convert({"metadata": metadata, "spec": spec}, kind)


async def test_parts_of_a_composite_group_become_one_gang_when_all_is_there(cluster: Cluster) -> None:
    """On pictures of what a server of 1.37 serves: the embedded one is older, and drops the pods' field."""
    seen = Seen()
    manager = Manager(cluster.server.transport(), name="not run")
    seen.add(manager)

    def show(resource: Any, *items: Any) -> None:
        manager.cache.informer(resource).replace(items, [], "1")

    spec = {"schedulerName": "default-scheduler", "schedulingGroup": {"podGroupName": "x"}}
    show(PODS, read(Pod, "p", spec), read(Pod, "q", {**spec, "schedulingGroup": {"podGroupName": "y"}}))
    part = {"parentCompositePodGroupName": "all", "schedulingPolicy": {"gang": {"minCount": 1}}}
    newest = POD_GROUPS[0]
    show(newest, *(read(newest.type, name, part) for name in ("x", "y")))
    assert seen.jobs() == {}
    show(COMPOSITES, read(COMPOSITES.type, "all", {"schedulingPolicy": {"gang": {"minGroupCount": 2}}}))
    [job] = seen.jobs().values()
    assert (job.name, sets(job), job.is_ready) == ("compositepodgroup/all", {"x": 1, "y": 1}, True)
    show(newest, read(newest.type, "x", part))
    [job] = seen.jobs().values()
    assert (sets(job), job.is_ready) == ({"x": 1, "not there yet (1)": 0}, False)
    show(COMPOSITES)
    assert seen.jobs() == {}


@asynccontextmanager
async def scheduled(cluster: Cluster, sockets: Path, nodes: str) -> AsyncIterator[Manager]:
    def add_nodes(manager: Manager) -> None:
        add_simulated_nodes(manager, sockets=sockets, pools=[Pool.parse(nodes)])
        add_node_lifecycle(manager)

    def add_all(manager: Manager) -> None:
        add_defaults(manager)
        add_binding(manager)
        add_scheduler(manager, SchedulerSettings(mirror=SETTINGS))

    async with cluster.controllers(add_nodes), cluster.controllers(add_all) as manager:
        yield manager


async def running(cluster: Cluster, pods: Sequence[str]) -> bool:
    found = {one["metadata"]["name"]: one for one in await cluster.all(PODS)}
    return all(found.get(name, {}).get("status", {}).get("phase") == "Running" for name in pods)


async def test_gangs_of_all_dialects_start_whole_or_not_at_all(cluster: Cluster, tmp_path: Path) -> None:
    await serve(cluster, scheduling_sigs_k8s_io, scheduling_volcano_sh)
    async with scheduled(cluster, tmp_path, "1x4:H100") as manager:
        await cluster.make(KOORDINATOR_GROUPS, a_joined_group("a", 2, "b"))
        await cluster.make(KOORDINATOR_GROUPS, a_joined_group("b", 2, "a"))
        await cluster.make(VOLCANO_GROUPS, a_group("llama", minMember=3))
        for number in range(2):
            await cluster.make(PODS, koordinator_pod(f"a-{number}", "a", limits=ONE_GPU))
        for number in range(3):
            await cluster.make(PODS, volcano_pod(f"v-{number}", "llama", limits=ONE_GPU))

        async def volcano_runs() -> bool:
            return await running(cluster, ["v-0", "v-1", "v-2"])

        await until(volcano_runs)
        for number in range(2):
            await cluster.make(PODS, koordinator_pod(f"b-{number}", "b", limits=ONE_GPU))
        await cluster.make(PODS, pod_manifest("alone", scheduler="default-scheduler", limits=ONE_GPU))

        async def alone_runs() -> bool:
            return await running(cluster, ["alone"])

        await until(alone_runs)
        placed = {one["metadata"]["name"] for one in await cluster.all(PODS) if one["spec"].get("nodeName")}
        assert placed == {"v-0", "v-1", "v-2", "alone"}
        for name in sorted(placed):
            await cluster.client.delete(PODS, name, "default")

        async def both_run() -> bool:
            return await running(cluster, ["a-0", "a-1", "b-0", "b-1"])

        await until(both_run)
        await at_rest(manager)
        before = writes_of(manager)
        await at_rest(manager)
        assert writes_of(manager) == before
