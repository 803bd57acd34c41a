"""The adjuster on a real server."""

from __future__ import annotations

from typing import Any

from shoal.api.core import NAMESPACES, PODS, SERVICE_ACCOUNTS
from shoal.kube import Manager
from shoal.scheduler.scale_adjuster import add_scale_adjuster
from tests.scheduler.builders import kai_pod_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest

ROOM = "kai-scale-adjust"


async def make_room(cluster: Cluster) -> None:
    await cluster.make(NAMESPACES, {"metadata": {"name": ROOM}})
    await cluster.make(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, ROOM)


async def add_waiting(cluster: Cluster, name: str, **annotations: str) -> None:
    """A pod that the scheduler has found no place for."""
    marks = {key.replace("_", "-"): value for key, value in annotations.items()}
    await cluster.make(PODS, kai_pod_manifest(name, annotations=marks, automountServiceAccountToken=False))
    condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
    await cluster.set_status(PODS, name, {"conditions": [condition]})


async def asking(cluster: Cluster, *names: str) -> list[dict[str, Any]]:
    """The pods that ask for GPUs, once they are these."""

    async def look() -> list[dict[str, Any]] | bool:
        found = await cluster.all(PODS, ROOM)
        return found or True if [pod["metadata"]["name"] for pod in found] == list(names) else False

    found: list[dict[str, Any]] = await until(look, within=20)
    return found


class Clock:
    """Stands still until a test moves it."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def test_a_gpu_is_asked_for_until_the_pod_has_its_place(cluster: Cluster) -> None:
    await make_room(cluster)
    await add_waiting(cluster, "plain")
    await add_waiting(cluster, "beside", gpu_fraction="0.5")
    await add_waiting(cluster, "web", gpu_fraction="0.5")
    async with cluster.controllers(add_scale_adjuster) as manager:
        [made] = await asking(cluster, "default-beside")
        await until(lambda: _is_marked(cluster, "default-beside"))
        await at_rest(manager)
        before = writes_of(manager)
        await cluster.set_status(PODS, "plain", {"message": "a change that is no concern"})
        await at_rest(manager)
        assert writes_of(manager) == before
        await cluster.client.bind(PODS, "beside", "default", node="n1")
        await asking(cluster)
    assert made["spec"]["containers"][0]["resources"]["limits"] == {"nvidia.com/gpu": "1"}


async def _is_marked(cluster: Cluster, name: str) -> bool:
    pod = await cluster.read(PODS, name, ROOM) or {}
    found = (pod.get("status") or {}).get("conditions") or []
    return any((one["type"], one.get("reason")) == ("PodScheduled", "Unschedulable") for one in found)


async def test_after_one_is_removed_none_is_made_for_a_while(cluster: Cluster) -> None:
    await make_room(cluster)
    await add_waiting(cluster, "first", gpu_fraction="0.5")
    clock = Clock()

    def add(manager: Manager) -> None:
        add_scale_adjuster(manager, clock=clock)

    async with cluster.controllers(add) as manager:
        await asking(cluster, "default-first")
        await cluster.client.delete(PODS, "first", "default", grace_seconds=0)
        await asking(cluster)
        await add_waiting(cluster, "second", gpu_fraction="0.5")
        await at_rest(manager)
        assert await cluster.all(PODS, ROOM) == []
        clock.now = 61.0
        await add_waiting(cluster, "third", gpu_fraction="0.2")
        [made] = await asking(cluster, "default-second")
    assert made["metadata"]["labels"]["shared-gpu-pod-name"] == "second"


async def test_the_namespace_is_made_where_it_is_missing(cluster: Cluster) -> None:
    await add_waiting(cluster, "web", gpu_fraction="0.5")
    async with cluster.controllers(add_scale_adjuster):

        async def is_there() -> bool:
            return await cluster.read(NAMESPACES, ROOM) is not None

        await until(is_there, within=20)


async def test_pods_of_others_in_the_namespace_are_left_alone(cluster: Cluster) -> None:
    await make_room(cluster)
    spec = {"automountServiceAccountToken": False, "containers": [{"name": "main", "image": "busybox"}]}
    await cluster.make(PODS, {"metadata": {"name": "foreign"}, "spec": spec}, ROOM)
    await add_waiting(cluster, "web", gpu_fraction="0.5")
    async with cluster.controllers(add_scale_adjuster) as manager:
        await asking(cluster, "default-web", "foreign")
        await at_rest(manager)
    await asking(cluster, "default-web", "foreign")
