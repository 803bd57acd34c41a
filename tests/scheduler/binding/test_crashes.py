"""A binder that dies at any of its writes, and is started anew: the pod is bound once, and nothing is left behind."""

from __future__ import annotations

import asyncio

import pytest

from shoal.api import kai_names as names
from shoal.api.core import CONFIG_MAPS, PODS
from shoal.kube import Manager
from shoal.kube import running as running_manager
from shoal.kube.errors import ConnectionFault
from shoal.kube.transport import Request, Transport
from shoal.scheduler.binding import add_binding
from tests.scheduler.binding.stage import Stage
from tests.support.clusters.faults import FaultyTransport
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest

GROUP = "0f5c0d9e-0000-4000-8000-000000000001"
SHARED = {names.GPU_FRACTION: "0.5", names.SHARED_GPU_CONFIG_MAP: "web-abc-shared-gpu"}
WRITES = 11
"""What a binding takes: the room, the reservation at the second try, two maps, the label, the binding, the status."""


class Mortal:
    """Lets a process write so often, and then no more; its last words may still arrive, unanswered."""

    def __init__(self, writes: int, last_words: Transport | None) -> None:
        self._left = writes
        self._last_words = last_words
        self.is_dead = asyncio.Event()

    async def __call__(self, request: Request) -> None:
        if request.method == "GET" or "events" in request.path:
            return
        if self._left > 0:
            self._left -= 1
            return
        if self._last_words is not None and not self.is_dead.is_set():
            self.is_dead.set()
            await self._last_words.send(request)
        self.is_dead.set()
        raise ConnectionFault("the process is dead", lasting=True)


@pytest.mark.parametrize("arrives", [False, True], ids=["before", "after"])
@pytest.mark.parametrize("writes", range(WRITES))
async def test_a_shared_device_is_bound_once_wherever_the_binder_died(
    cluster: Cluster, writes: int, arrives: bool
) -> None:
    stage = Stage(cluster)
    await stage.add_node("n1")
    pod = await stage.add_pod("web", annotations=SHARED)
    transport = FaultyTransport(cluster.server.transport())
    mortal = transport.meanwhile = Mortal(writes, cluster.server.transport() if arrives else None)
    manager = Manager(transport, name="mortal")
    add_binding(manager)
    running = asyncio.create_task(manager.run())
    await stage.order_part(pod, "n1", GROUP)
    giving = asyncio.create_task(stage.give_device("n1", GROUP, "GPU-7"))
    done = asyncio.create_task(stage.request("web", "Succeeded"))
    dead = asyncio.create_task(mortal.is_dead.wait())
    await asyncio.wait([done, dead], return_when=asyncio.FIRST_COMPLETED)
    running.cancel()
    await asyncio.wait([running])
    async with cluster.controllers(add_binding) as again:
        bound = await stage.bound("web")
        await done
        await giving
        await at_rest(again)
        assert len(await stage.reservations()) == 1
        before = writes_of(again)
        await stage.run("web")
        await at_rest(again)
        assert writes_of(again) == before
        await cluster.client.delete(PODS, "web", "default", grace_seconds=0)
        await stage.no_reservations()
    assert mortal.is_dead.is_set(), "the binder got by with fewer writes: lower the number of them"
    dead.cancel()
    assert (bound["spec"]["nodeName"], bound["metadata"]["labels"]) == ("n1", {names.GPU_GROUP: GROUP})
    told = await cluster.read(CONFIG_MAPS, "web-abc-shared-gpu-0") or {}
    assert told["data"]["NVIDIA_VISIBLE_DEVICES"] == "GPU-7"


async def test_a_binding_whose_answer_was_lost_is_no_failure(cluster: Cluster) -> None:
    stage = Stage(cluster)
    await stage.add_node("n1")
    pod = await stage.add_pod("web")
    real = cluster.server.transport()
    lost: list[Request] = []

    async def lose_answer(request: Request) -> None:
        if request.path.endswith("/binding") and not lost:
            lost.append(request)
            await real.send(request)
            raise ConnectionFault("the answer was lost")

    transport = FaultyTransport(real)
    transport.meanwhile = lose_answer
    manager = Manager(transport, name="unlucky")
    add_binding(manager)
    async with running_manager(manager):
        await stage.order(pod, "n1")
        request = await stage.request("web", "Succeeded")
    assert lost
    assert "failedAttempts" not in request["status"]
