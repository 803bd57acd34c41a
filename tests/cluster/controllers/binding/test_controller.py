"""Pods get nodes on the embedded server."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from shoal.api.core import EVENTS, NODES, PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS
from shoal.api.storage import STORAGE_CLASSES
from shoal.cluster.controllers.binding import add_binding
from shoal.cluster.controllers.binding.candidates import Candidates, Choice
from shoal.cluster.controllers.binding.controller import Binding
from shoal.cluster.controllers.binding.demand import Load
from shoal.kube import ConnectionFault, Manager, running
from tests.cluster.controllers.binding.builders import pending_manifest, worker_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of


async def make_node(cluster: Cluster, name: str, **chosen: Any) -> None:
    manifest = worker_manifest(name, **chosen)
    status = manifest.pop("status")
    await cluster.make(NODES, manifest)
    # The server taints a new node until its agent has come.
    await cluster.client.merge_patch(NODES, name, {"spec": {"taints": manifest["spec"].get("taints")}})
    await cluster.set_status(NODES, name, status)


async def make_pod(cluster: Cluster, name: str, **chosen: Any) -> None:
    await cluster.make(PODS, pending_manifest(name, **chosen))


async def node_of(cluster: Cluster, name: str) -> str:
    pod = await cluster.read(PODS, name)
    assert pod is not None
    return str(pod["spec"].get("nodeName", ""))


async def told(cluster: Cluster, name: str) -> dict[str, Any]:
    pod = await cluster.read(PODS, name)
    assert pod is not None
    conditions = pod["status"].get("conditions") or []
    return next((found for found in conditions if found["type"] == "PodScheduled"), {})


async def events(cluster: Cluster, reason: str) -> list[tuple[str, str]]:
    return sorted(
        (event["involvedObject"]["name"], event["message"])
        for event in await cluster.all(EVENTS)
        if event["reason"] == reason
    )


async def test_pods_get_nodes_and_say_so(cluster: Cluster) -> None:
    for name in ("a", "b"):
        await make_node(cluster, name, gpu="4")
    for number in range(8):
        await make_pod(cluster, f"p{number}", requests={"gpu": "1", "cpu": "100m"})
    async with cluster.controllers(add_binding):
        pods = [f"p{number}" for number in range(8)]
        await until(lambda: _all_bound(cluster, pods))
        assert sorted([await node_of(cluster, pod) for pod in pods]) == ["a"] * 4 + ["b"] * 4
        assert (await told(cluster, "p0"))["status"] == "True"
        await until(lambda: _counts(events(cluster, "Scheduled"), 8))
        node = await node_of(cluster, "p0")
        assert (await events(cluster, "Scheduled"))[0] == ("p0", f"Successfully assigned default/p0 to {node}")


async def test_a_pod_that_fits_nowhere_says_why_once_and_gets_the_next_free_place(cluster: Cluster) -> None:
    await make_node(cluster, "a", gpu="1")
    await make_node(cluster, "b", unschedulable=True, gpu="8")
    await make_pod(cluster, "first", requests={"gpu": "1"})
    async with cluster.controllers(add_binding) as manager:
        await until(lambda: _all_bound(cluster, ["first"]))
        await make_pod(cluster, "second", requests={"gpu": "1"})
        condition = await until(lambda: told(cluster, "second"))
        message = "0/2 nodes are available: 1 Insufficient nvidia.com/gpu, 1 node(s) were unschedulable."
        assert (condition["status"], condition["reason"]) == ("False", "Unschedulable")
        assert condition["message"] == message
        assert condition["lastTransitionTime"]
        await until(lambda: _counts(events(cluster, "FailedScheduling"), 1))
        assert await events(cluster, "FailedScheduling") == [("second", message)]
        before = writes_of(manager)
        await make_pod(cluster, "bystander", requests={"cpu": "1"})
        await until(lambda: _all_bound(cluster, ["bystander"]))
        await cluster.client.delete(PODS, "bystander", "default", grace_seconds=0)
        await until(lambda: _counts(events(cluster, "Scheduled"), 2))
        assert writes_of(manager) == before + 2  # the bystander's bind and its event: the waiting pod says it once
        await cluster.client.delete(PODS, "first", "default", grace_seconds=0)
        await until(lambda: _all_bound(cluster, ["second"]))


async def test_a_finished_pod_makes_room_and_a_new_node_helps(cluster: Cluster) -> None:
    await make_node(cluster, "a", gpu="1")
    for name in ("one", "two", "three"):
        await make_pod(cluster, name, requests={"gpu": "1"})
    async with cluster.controllers(add_binding):
        first = (await until(lambda: _bound(cluster)))[0]
        await until(lambda: _counts(events(cluster, "FailedScheduling"), 2))
        await cluster.set_status(PODS, first, {"phase": "Succeeded"})
        await until(lambda: _counts(_bound(cluster), 2))
        await make_node(cluster, "b", gpu="1")
        await until(lambda: _all_bound(cluster, ["one", "two", "three"]))


async def test_gates_other_schedulers_and_pods_on_their_way_out_are_left_alone(cluster: Cluster) -> None:
    await make_node(cluster, "a")
    await make_pod(cluster, "gated", schedulingGates=[{"name": "wait"}])
    await make_pod(cluster, "foreign", schedulerName="mine")
    await make_pod(cluster, "kai", schedulerName="kai-scheduler")
    async with cluster.controllers(add_binding):
        await until(lambda: _all_bound(cluster, ["kai"]))
        assert await node_of(cluster, "gated") == ""
        assert (await told(cluster, "gated"))["reason"] == "SchedulingGated"
        assert await told(cluster, "foreign") == {}
        patch = {"spec": {"schedulingGates": None}}
        await cluster.client.merge_patch(PODS, "gated", patch, "default")
        await until(lambda: _all_bound(cluster, ["gated"]))
        assert await node_of(cluster, "foreign") == ""


async def test_a_restart_writes_nothing_and_knows_what_is_taken(cluster: Cluster) -> None:
    await make_node(cluster, "a", gpu="1")
    await make_pod(cluster, "first", requests={"gpu": "1"})
    async with cluster.controllers(add_binding):
        await until(lambda: _all_bound(cluster, ["first"]))
        await make_pod(cluster, "second", requests={"gpu": "1"})
        await until(lambda: told(cluster, "second"))
        await until(lambda: _counts(events(cluster, "FailedScheduling"), 1))
    async with cluster.controllers(add_binding) as manager:
        await make_pod(cluster, "third", requests={"gpu": "9"})
        await until(lambda: told(cluster, "third"))
        await until(lambda: _counts(events(cluster, "FailedScheduling"), 2))
        assert writes_of(manager) == 2  # what the third pod says, and its event


async def test_a_more_important_pod_is_first_in_line(cluster: Cluster) -> None:
    await make_node(cluster, "a", gpu="1")
    await make_pod(cluster, "plain", requests={"gpu": "1"})
    await make_pod(cluster, "vital", requests={"gpu": "1"}, priorityClassName="system-node-critical")
    async with cluster.controllers(add_binding):
        await until(lambda: _all_bound(cluster, ["vital"]))
        await until(lambda: told(cluster, "plain"))
        assert await node_of(cluster, "plain") == ""


async def test_a_pod_waits_for_its_claim_and_goes_where_its_volume_is(cluster: Cluster) -> None:
    await make_node(cluster, "a", cpu="64")
    await make_node(cluster, "b")
    volumes = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    await make_pod(cluster, "p", volumes=volumes)
    async with cluster.controllers(add_binding):
        condition = await until(lambda: told(cluster, "p"))
        assert condition["message"] == '0/2 nodes are available: persistentvolumeclaim "data" not found.'
        claim = {
            "metadata": {"name": "data"},
            "spec": {
                "accessModes": ["ReadWriteOnce"],
                "resources": {"requests": {"storage": "1Gi"}},
                "storageClassName": "",
            },
        }
        await cluster.make(PERSISTENT_VOLUME_CLAIMS, claim)
        unbound = "0/2 nodes are available: pod has unbound immediate PersistentVolumeClaims."
        await until(lambda: _says(cluster, "p", unbound))
        term = {"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": ["b"]}]}
        volume = {
            "metadata": {"name": "v"},
            "spec": {
                "capacity": {"storage": "1Gi"},
                "accessModes": ["ReadWriteOnce"],
                "local": {"path": "/x"},
                "nodeAffinity": {"required": {"nodeSelectorTerms": [term]}},
            },
        }
        await cluster.make(PERSISTENT_VOLUMES, volume)
        bound = {"metadata": {"annotations": {"pv.kubernetes.io/bind-completed": "yes"}}, "spec": {"volumeName": "v"}}
        await cluster.client.merge_patch(PERSISTENT_VOLUME_CLAIMS, "data", bound, "default")
        await until(lambda: _all_bound(cluster, ["p"]))
        assert await node_of(cluster, "p") == "b"


async def test_a_claim_that_waits_for_its_first_consumer_is_told_the_node(cluster: Cluster) -> None:
    await make_node(cluster, "a")
    lazy = {"metadata": {"name": "lazy"}, "provisioner": "x", "volumeBindingMode": "WaitForFirstConsumer"}
    await cluster.make(STORAGE_CLASSES, lazy)
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "lazy"}
    await cluster.make(PERSISTENT_VOLUME_CLAIMS, {"metadata": {"name": "data"}, "spec": spec})
    await make_pod(cluster, "p", volumes=[{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}])
    async with cluster.controllers(add_binding):

        async def selected() -> str:
            claim = await cluster.read(PERSISTENT_VOLUME_CLAIMS, "data")
            assert claim is not None
            return str((claim["metadata"].get("annotations") or {}).get("volume.kubernetes.io/selected-node", ""))

        assert await until(selected) == "a"
        assert await node_of(cluster, "p") == ""


async def test_a_bind_that_fails_is_given_back_and_tried_again(cluster: Cluster) -> None:
    await make_node(cluster, "a", gpu="1")
    await make_pod(cluster, "p", requests={"gpu": "1"})
    manager = Manager(cluster.server.transport(), name="controllers")
    binding = Binding(manager, ["default-scheduler"])
    manager.add_leader_task(binding.run)
    really, tries = manager.client.bind, 0

    async def bind(*given: Any, **chosen: Any) -> None:
        nonlocal tries
        tries += 1
        if tries == 1:
            raise ConnectionFault("the line is dead")
        await really(*given, **chosen)
        if tries == 2:
            raise ConnectionFault("the answer was lost")

    manager.client.bind = bind  # type: ignore[method-assign]
    async with running(manager):
        await until(lambda: _all_bound(cluster, ["p"]))
        await make_pod(cluster, "q", requests={"gpu": "1"})
        await until(lambda: told(cluster, "q"))
        assert tries == 2
        assert await node_of(cluster, "q") == ""


async def test_a_pod_that_breaks_the_rules_does_not_hold_up_the_others(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    await make_node(cluster, "a")
    really = Candidates.choose

    def choose(self: Candidates, load: Load, **more: Any) -> Choice:
        if load.labels.get("app") == "poison":
            raise KeyError("poison")
        return really(self, load, **more)

    monkeypatch.setattr(Candidates, "choose", choose)
    async with cluster.controllers(add_binding):
        await make_pod(cluster, "bad", labels={"app": "poison"})
        await make_pod(cluster, "good")
        await until(lambda: _all_bound(cluster, ["good"]))
        assert await node_of(cluster, "bad") == ""


async def test_pods_of_many_shapes_all_land_where_they_fit(cluster: Cluster) -> None:
    await asyncio.gather(*(make_node(cluster, f"n{number}", cpu="8", gpu="4") for number in range(10)))
    names = [f"p{number}" for number in range(100)]
    async with cluster.controllers(add_binding):
        shapes = [{"gpu": "1"}, {"cpu": "200m"}, {"cpu": "100m", "memory": "64Mi"}, {}]
        await asyncio.gather(*(make_pod(cluster, name, requests=shapes[i % 4]) for i, name in enumerate(names)))
        await until(lambda: _all_bound(cluster, names))


async def _all_bound(cluster: Cluster, names: list[str]) -> bool:
    pods = {pod["metadata"]["name"]: pod["spec"].get("nodeName") for pod in await cluster.all(PODS)}
    return all(pods.get(name) for name in names)


async def _bound(cluster: Cluster) -> list[str]:
    return [pod["metadata"]["name"] for pod in await cluster.all(PODS) if pod["spec"].get("nodeName")]


async def _says(cluster: Cluster, name: str, message: str) -> bool:
    return bool((await told(cluster, name)).get("message") == message)


async def _counts(found: Any, count: int) -> bool:
    return len(await found) == count
