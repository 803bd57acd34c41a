"""Queues on a real server: their figures, children and conditions follow what happens, and rest when nothing does."""

from __future__ import annotations

import time
from typing import Any

from shoal.api.scheduling_run_ai import POD_GROUPS, QUEUES
from shoal.kube import Manager
from shoal.scheduler.pace import EVERY
from shoal.scheduler.queues import QueueSettings, add_queues
from tests.scheduler.builders import pod_group_manifest
from tests.scheduler.queues.builders import figures
from tests.support.builders.queues import queue_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, errors_of, writes_of
from tests.support.waiting.at_rest import at_rest


async def status_of(cluster: Cluster, name: str) -> dict[str, Any]:
    found = await cluster.read(QUEUES, name)
    assert found is not None
    status: dict[str, Any] = found.get("status", {})
    return status


async def held(cluster: Cluster, name: str, part: str = "allocated") -> dict[str, Any]:
    amounts: dict[str, Any] = (await status_of(cluster, name)).get(part, {})
    return amounts


async def holds(cluster: Cluster, name: str, amounts: dict[str, str], part: str = "allocated") -> None:
    """Waits until a queue's status says these amounts."""

    async def says_so() -> bool:
        return await held(cluster, name, part) == amounts

    await until(says_so)


async def has_condition(cluster: Cluster, name: str, type_: str, status: str) -> dict[str, Any]:
    async def found() -> dict[str, Any] | None:
        conditions = (await status_of(cluster, name)).get("conditions", [])
        return next((each for each in conditions if (each["type"], each["status"]) == (type_, status)), None)

    condition: dict[str, Any] = await until(found)
    return condition


async def a_tree(cluster: Cluster) -> None:
    """top → (a → (a1, a2), b)."""
    for name, parent in (("top", ""), ("a", "top"), ("b", "top"), ("a1", "a"), ("a2", "a")):
        await cluster.make(QUEUES, queue_manifest(name, parent, quota={"gpu": 4}))


async def a_gang_with(cluster: Cluster, name: str, queue: str, status: dict[str, Any]) -> None:
    await cluster.make(POD_GROUPS, pod_group_manifest(name, queue))
    await cluster.set_status(POD_GROUPS, name, status)


async def settled(manager: Manager) -> int:
    """How many writes there were once nothing more happens, delayed ones included."""

    async def is_idle() -> bool:
        await at_rest(manager)
        return manager.is_idle

    await until(is_idle)
    return writes_of(manager)


async def test_a_queue_knows_its_children(cluster: Cluster) -> None:
    await a_tree(cluster)
    async with cluster.controllers(add_queues):

        async def knows(name: str, children: list[str]) -> bool:
            return bool((await status_of(cluster, name)).get("childQueues", []) == children)

        await until(lambda: knows("top", ["a", "b"]))
        await until(lambda: knows("a", ["a1", "a2"]))
        await cluster.client.merge_patch(QUEUES.documents(), "a2", {"spec": {"parentQueue": "b"}})
        await until(lambda: knows("a", ["a1"]))
        await until(lambda: knows("b", ["a2"]))
        await cluster.client.delete(QUEUES, "a2")
        await until(lambda: knows("b", []))


async def test_figures_of_gangs_go_up_to_the_root(cluster: Cluster) -> None:
    await a_tree(cluster)
    await a_gang_with(cluster, "one", "a1", figures(2, cpu="500m", kept=True))
    async with cluster.controllers(add_queues):
        await a_gang_with(cluster, "two", "a2", figures(1, waiting=3))
        await a_gang_with(cluster, "three", "b", figures(4))
        await holds(cluster, "a1", {"cpu": "500m", "nvidia.com/gpu": "2"})
        await holds(cluster, "a", {"cpu": "500m", "nvidia.com/gpu": "3"})
        await holds(cluster, "a", {"cpu": "500m", "nvidia.com/gpu": "6"}, "requested")
        await holds(cluster, "top", {"cpu": "500m", "nvidia.com/gpu": "7"})
        await holds(cluster, "top", {"cpu": "500m", "nvidia.com/gpu": "2"}, "allocatedNonPreemptible")
        await cluster.client.delete(POD_GROUPS, "one", "default")
        await holds(cluster, "a1", {})
        await holds(cluster, "top", {"nvidia.com/gpu": "5"})


async def test_a_queue_that_moves_takes_its_figures_along(cluster: Cluster) -> None:
    await a_tree(cluster)
    await a_gang_with(cluster, "one", "a1", figures(2))
    async with cluster.controllers(add_queues):
        await holds(cluster, "a", {"nvidia.com/gpu": "2"})
        await cluster.client.merge_patch(QUEUES.documents(), "a1", {"spec": {"parentQueue": "b"}})
        await holds(cluster, "a", {})
        await holds(cluster, "b", {"nvidia.com/gpu": "2"})
        await holds(cluster, "top", {"nvidia.com/gpu": "2"})


async def test_nothing_is_written_at_rest_nor_after_a_restart(cluster: Cluster) -> None:
    await a_tree(cluster)
    await a_gang_with(cluster, "one", "a1", figures(5, cpu="1000m"))
    async with cluster.controllers(add_queues) as manager:
        await holds(cluster, "top", {"cpu": "1", "nvidia.com/gpu": "5"})
        before = await settled(manager)
        marked = {"metadata": {"annotations": {"seen": "yes"}}}
        await cluster.client.merge_patch(POD_GROUPS.documents(), "one", marked, "default")

        async def is_seen() -> bool:
            group = manager.cache.informer(POD_GROUPS).get("one", "default")
            return group is not None and "seen" in group.metadata.annotations

        await until(is_seen)  # an event that concerns no figure
        assert await settled(manager) == before
    async with cluster.controllers(add_queues) as manager:
        assert await settled(manager) == 0
        assert errors_of(manager) == 0


async def test_a_status_that_somebody_spoils_is_put_right(cluster: Cluster) -> None:
    await a_tree(cluster)
    await a_gang_with(cluster, "one", "a1", figures(2))
    async with cluster.controllers(add_queues):
        await holds(cluster, "a1", {"nvidia.com/gpu": "2"})
        await cluster.set_status(QUEUES, "a1", {"allocated": {"nvidia.com/gpu": "99"}})
        await holds(cluster, "a1", {"nvidia.com/gpu": "2"})


async def test_many_changes_of_one_gang_are_told_in_few_writes(cluster: Cluster) -> None:
    await cluster.make(QUEUES, queue_manifest("a"))
    await cluster.make(POD_GROUPS, pod_group_manifest("one", "a"))
    async with cluster.controllers(add_queues, debounce=1.0) as manager:
        began = time.monotonic()
        for count in range(1, 101):
            await cluster.set_status(POD_GROUPS, "one", figures(count))
        await holds(cluster, "a", {"nvidia.com/gpu": "100"})
        took = time.monotonic() - began
        assert await settled(manager) <= took / EVERY + 1


async def test_a_circle_of_parents_comes_to_rest(cluster: Cluster) -> None:
    for name, parent in (("x", "y"), ("y", "z"), ("z", "x"), ("self", "self")):
        await cluster.make(QUEUES, queue_manifest(name, parent))
    await a_gang_with(cluster, "one", "x", figures(1))
    await a_gang_with(cluster, "two", "y", figures(2))
    await a_gang_with(cluster, "three", "self", figures(1))
    async with cluster.controllers(add_queues) as manager:
        for name in ("x", "y", "z"):
            await holds(cluster, name, {"nvidia.com/gpu": "3"})
        await holds(cluster, "self", {"nvidia.com/gpu": "1"})
        assert (await has_condition(cluster, "x", "Orphan", "True"))["reason"] == "ParentCycle"
        assert "childQueues" not in await status_of(cluster, "self")
        before = await settled(manager)
        await cluster.client.merge_patch(QUEUES.documents(), "z", {"spec": {"parentQueue": ""}})
        await has_condition(cluster, "x", "Orphan", "False")
        assert await settled(manager) > before


async def test_an_orphan_says_so_until_its_parent_is_there(cluster: Cluster) -> None:
    await cluster.make(QUEUES, queue_manifest("child", "late"))
    await cluster.make(QUEUES, queue_manifest("grandchild", "child"))
    async with cluster.controllers(add_queues):
        condition = await has_condition(cluster, "grandchild", "Orphan", "True")
        assert "'late'" in condition["message"]
        await cluster.make(QUEUES, queue_manifest("late"))
        await has_condition(cluster, "child", "Orphan", "False")
        await has_condition(cluster, "grandchild", "Orphan", "False")
        await cluster.client.delete(QUEUES, "late")
        await has_condition(cluster, "grandchild", "Orphan", "True")


async def test_a_queue_over_its_quota_says_so(cluster: Cluster) -> None:
    await cluster.make(QUEUES, queue_manifest("a", quota={"gpu": 1, "cpu": -1, "memory": -1}))
    await a_gang_with(cluster, "one", "a", figures(2))
    async with cluster.controllers(add_queues):
        condition = await has_condition(cluster, "a", "OverQuota", "True")
        assert condition["message"] == "holds 2 GPUs of a quota of 1"
        await cluster.set_status(POD_GROUPS, "one", figures(1))
        await has_condition(cluster, "a", "OverQuota", "False")


def sample(manager: Manager, name: str, **labels: str) -> float | None:
    """A metric of a queue; None where there is none with these labels."""
    for family in manager.metrics.registry.collect():
        for found in family.samples:
            if found.name == name and labels.items() <= found.labels.items():
                return found.value
    return None


async def test_metrics_follow_a_queue_and_go_with_it(cluster: Cluster) -> None:
    settings = QueueSettings(
        queue_label_to_metric_label={"team": "queue_team", "cost": "queue_cost"},
        queue_label_to_default_metric_value={"cost": "none"},
    )
    quotas = {"gpu": 1, "cpu": 2500, "memory": -1}
    await cluster.make(QUEUES, queue_manifest("a", quota=quotas, labels={"team": "red"}, displayName="Team A"))
    await a_gang_with(cluster, "one", "a", figures(1.5, cpu="750m"))
    async with cluster.controllers(lambda manager: add_queues(manager, settings)) as manager:
        await holds(cluster, "a", {"cpu": "750m", "nvidia.com/gpu": "1500m"})
        labels = {
            "queue_name": "a",
            "queue_metadata_name": "a",
            "queue_display_name": "Team A",
            "queue_team": "red",
            "queue_cost": "none",
        }
        wanted = {
            "kai_queue_info": 1,
            "kai_queue_deserved_gpus": 1,
            "kai_queue_quota_cpu_cores": 2.5,
            "kai_queue_quota_memory_bytes": -1,
            "kai_queue_allocated_gpus": 1.5,
            "kai_queue_allocated_cpu_cores": 0.75,
            "kai_queue_allocated_memory_bytes": 0,
        }
        assert {name: sample(manager, name, **labels) for name in wanted} == wanted
        await cluster.client.merge_patch(QUEUES.documents(), "a", {"metadata": {"labels": {"team": "blue"}}})

        async def is_blue_alone() -> bool:
            old, new = (sample(manager, "kai_queue_info", queue_team=team) for team in ("red", "blue"))
            return (old, new) == (None, 1)

        await until(is_blue_alone)
        await cluster.client.delete(QUEUES, "a")

        async def is_gone() -> bool:
            return sample(manager, "kai_queue_info", queue_name="a") is None

        await until(is_gone)


async def test_the_namespace_of_metrics_can_be_chosen(cluster: Cluster) -> None:
    await cluster.make(QUEUES, queue_manifest("a"))
    settings = QueueSettings(metrics_namespace="mine")
    async with cluster.controllers(lambda manager: add_queues(manager, settings)) as manager:

        async def is_there() -> bool:
            return sample(manager, "mine_queue_info", queue_name="a") == 1

        await until(is_there)
        assert sample(manager, "kai_queue_info", queue_name="a") is None
