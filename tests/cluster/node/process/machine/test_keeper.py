"""The keeper of the node on the embedded server."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from shoal.api.core import NODES
from shoal.cluster.controllers.node_lifecycle import add_node_lifecycle
from shoal.cluster.node.process.machine import Gpu, Gpus, NodeKeeper, NodeTaken, Presence
from shoal.kube import Manager
from shoal.kube.events import EVENTS
from shoal.kube.leases import LEASES
from tests.cluster.node.process.machine.presences import a_presence, some_gpus
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, in_process_cluster, writes_of


class Machine:
    """A cluster, and the keeper of its node as often as a test starts it."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self.folder = folder
        self.gpus: Sequence[Gpu] = []
        self.looks = 0
        self.renew_every = 10.0

    def look_for_gpus(self) -> Sequence[Gpu]:
        self.looks += 1
        return self.gpus

    @asynccontextmanager
    async def kept(self, presence: Presence, *, runs: bool = True) -> AsyncIterator[tuple[NodeKeeper, Manager]]:
        keepers: list[NodeKeeper] = []

        def add(manager: Manager) -> None:
            gpus = Gpus(self.gpus, self.folder / "gpus.json")
            keeper = NodeKeeper(
                manager,
                presence,
                gpus,
                disk=self.folder,
                look_for_gpus=self.look_for_gpus,
                renew_every=self.renew_every,
                look_every=0.05,
                look_for_gpus_every=0.05,
            )
            keepers.append(keeper)
            if runs:
                manager.add_leader_task(keeper.run)

        async with self.cluster.controllers(add) as manager:
            yield keepers[0], manager

    async def node(self, holds: Callable[[dict[str, Any]], bool] = lambda node: True) -> dict[str, Any]:
        async def look() -> dict[str, Any] | None:
            found = await self.cluster.read(NODES, "local")
            return found if found is not None and holds(found) else None

        found: dict[str, Any] = await until(look, within=10)
        return found

    async def lease(self) -> dict[str, Any]:
        found: dict[str, Any] = await until(lambda: self.cluster.read(LEASES, "local", "kube-node-lease"), within=10)
        return found

    async def events(self) -> list[tuple[str, str, str]]:
        return [
            (event["type"], event["reason"], event["message"])
            for event in await self.cluster.all(EVENTS)
            if event["involvedObject"]["name"] == "local" and event["source"]["component"] == "controllers"
        ]


@pytest.fixture
async def machine(tmp_path: Path) -> AsyncIterator[Machine]:
    async with in_process_cluster(tmp_path / "server") as cluster:
        yield Machine(cluster, tmp_path)


def readiness(node: dict[str, Any]) -> str:
    return next((one["status"] for one in node["status"]["conditions"] if one["type"] == "Ready"), "")


async def test_the_node_registers_is_ready_and_has_a_lease_of_its_own(machine: Machine) -> None:
    async with machine.kept(a_presence()) as (keeper, manager):
        await asyncio.wait_for(keeper.registered.wait(), 10)
        node, lease = await machine.node(), await machine.lease()
        assert await until(machine.events)
        assert writes_of(manager) == 4  # the node, a lease that was not there, the lease, an event
    assert readiness(node) == "True"
    assert lease["spec"]["holderIdentity"] == "local"
    assert lease["metadata"]["ownerReferences"][0]["uid"] == node["metadata"]["uid"]
    assert await machine.events() == [("Normal", "NodeReady", "Node local status is now: NodeReady")]


async def test_at_rest_nothing_is_written_but_the_lease(machine: Machine) -> None:
    presence = a_presence(images=["python"], shortfalls=["no cgroups"], gpus=())
    machine.gpus = some_gpus(2)
    async with machine.kept(presence):
        await machine.lease()
        await until(machine.events)
    before = await machine.node()
    async with machine.kept(presence) as (keeper, manager):
        await asyncio.wait_for(keeper.registered.wait(), 10)
        await until(lambda: _has_written(manager, 1))
        looks = machine.looks
        await until(lambda: _has_looked(machine, looks + 10))
        assert writes_of(manager) == 1
    assert await machine.node() == before
    assert len([event for event in await machine.events() if event[1] == "NodeDegraded"]) == 1


async def _has_written(manager: Manager, count: int) -> bool:
    return writes_of(manager) >= count


async def _has_looked(machine: Machine, count: int) -> bool:
    return machine.looks >= count


async def test_gpus_that_come_and_go_show(machine: Machine) -> None:
    async with machine.kept(a_presence()):
        await machine.node()
        machine.gpus = some_gpus(2)
        node = await machine.node(lambda node: node["status"]["allocatable"].get("nvidia.com/gpu") == "2")
        assert node["metadata"]["labels"]["nvidia.com/gpu.count"] == "2"
        machine.gpus = []
        node = await machine.node(lambda node: "nvidia.com/gpu" not in node["status"]["allocatable"])
        assert "nvidia.com/gpu.count" not in node["metadata"]["labels"]
        assert "nvidia.com/gpu" not in node["status"]["capacity"]


async def test_what_is_wrong_is_said_until_it_is_over(machine: Machine) -> None:
    async with machine.kept(a_presence()) as (keeper, _):
        await asyncio.wait_for(keeper.registered.wait(), 10)
        keeper.change(problem="the runtime does not answer")
        node = await machine.node(lambda node: readiness(node) == "False")
        assert node["status"]["conditions"][-1]["message"] == "the runtime does not answer"
        keeper.change(problem="")
        await machine.node(lambda node: readiness(node) == "True")
        await until(lambda: _counts(machine, 3))
    reasons = [reason for _, reason, _ in await machine.events()]
    assert sorted(reasons) == ["NodeNotReady", "NodeReady"]  # two of the same are one that was counted


async def _counts(machine: Machine, count: int) -> bool:
    events = await machine.cluster.all(EVENTS)
    counts = [int(event["count"]) for event in events if event["reason"] in ("NodeReady", "NodeNotReady")]
    return sum(counts) == count


async def test_a_machine_that_lacks_something_warns_once(machine: Machine) -> None:
    sentence = "namespaces are forbidden here: containers see the whole machine"
    async with machine.kept(a_presence(shortfalls=[sentence])):
        await until(lambda: _is_told(machine, ("Warning", "NodeDegraded", sentence)))
        assert readiness(await machine.node()) == "True"


async def _is_told(machine: Machine, event: tuple[str, str, str]) -> bool:
    return event in await machine.events()


async def test_a_node_that_is_deleted_registers_again(machine: Machine) -> None:
    async with machine.kept(a_presence()):
        first = await machine.node()
        await machine.cluster.client.delete(NODES, "local")
        again = await machine.node(lambda node: node["metadata"]["uid"] != first["metadata"]["uid"])
        assert readiness(again) == "True"


async def test_a_node_that_was_given_up_is_ready_again_and_its_taints_go(machine: Machine) -> None:
    machine.renew_every = 0.1
    async with machine.cluster.controllers(lambda manager: add_node_lifecycle(manager, grace=0.6, settle=0.05)):
        async with machine.kept(a_presence()):
            await machine.lease()
        lost = await machine.node(lambda node: readiness(node) == "Unknown" and bool(node["spec"].get("taints")))
        assert lost["spec"]["taints"][0]["key"] == "node.kubernetes.io/unreachable"
        async with machine.kept(a_presence()):
            await machine.node(lambda node: readiness(node) == "True" and not node["spec"].get("taints"))


async def test_labels_and_taints_of_others_stay(machine: Machine) -> None:
    spec = {"taints": [{"key": "mine", "effect": "NoSchedule"}], "unschedulable": True}
    await machine.cluster.make(NODES, {"metadata": {"name": "local", "labels": {"team": "a"}}, "spec": spec})
    async with machine.kept(a_presence()) as (keeper, _):
        await asyncio.wait_for(keeper.registered.wait(), 10)
        node = await machine.node(lambda node: bool(node["status"].get("conditions")))
    assert readiness(node) == "True"
    assert node["metadata"]["labels"]["team"] == "a"
    assert node["spec"]["unschedulable"]
    assert "mine" in [taint["key"] for taint in node["spec"]["taints"]]


async def test_a_node_that_another_agent_speaks_for_is_refused_in_one_sentence(machine: Machine) -> None:
    metadata = {"name": "local", "annotations": {"kwok.x-k8s.io/node": "fake"}}
    await machine.cluster.make(NODES, {"metadata": metadata})
    async with machine.kept(a_presence(), runs=False) as (keeper, _):
        with pytest.raises(
            NodeTaken, match=r"another agent speaks for it: delete it \(kubectl delete node local\), or"
        ):
            await asyncio.wait_for(keeper.run(), 10)
