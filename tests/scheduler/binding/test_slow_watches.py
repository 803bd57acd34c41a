"""What the binder does not see yet it does not take for what is not so."""

from __future__ import annotations

from contextlib import ExitStack

import pytest

from shoal.api import kai_names as names
from shoal.api.core import PODS
from shoal.api.scheduling_run_ai import BIND_REQUESTS
from shoal.kube import Manager, running
from shoal.kube.transport import Request
from shoal.scheduler.binding import add_binding
from tests.scheduler.binding.stage import Stage
from tests.support.clusters.faults import FaultyTransport, behind
from tests.support.clusters.in_process import Cluster
from tests.support.waiting import eventually
from tests.support.waiting.at_rest import at_rest

GROUP = "0f5c0d9e-0000-4000-8000-000000000001"


@pytest.fixture
def stage(cluster: Cluster) -> Stage:
    return Stage(cluster)


async def test_a_pod_that_is_bound_and_not_seen_so_is_no_failure(stage: Stage) -> None:
    await stage.add_node("n1")
    pod = await stage.add_pod("web")
    async with stage.cluster.controllers(add_binding) as manager:
        await at_rest(manager)
        with behind(manager.cache.informer(PODS)):
            await stage.cluster.client.bind(PODS, "web", "default", node="n1")
            await stage.order(pod, "n1")
            request = await stage.request("web", "Succeeded")
    assert "failedAttempts" not in request["status"]


async def test_a_reservation_stays_while_the_label_of_its_pod_is_not_seen(stage: Stage) -> None:
    await stage.add_node("n1")
    pod = await stage.add_pod("web", annotations={names.GPU_FRACTION: "0.5"})
    transport = FaultyTransport(stage.cluster.server.transport())
    manager = Manager(transport, name="slow")
    add_binding(manager)
    pods, requests = manager.cache.informer(PODS), manager.cache.informer(BIND_REQUESTS)
    with ExitStack() as blindness:

        async def go_blind(request: Request) -> None:
            if request.method == "PATCH" and request.path.endswith("/pods/web"):
                blindness.enter_context(behind(pods))

        transport.meanwhile = go_blind
        async with running(manager):
            await stage.order_part(pod, "n1", GROUP)
            await stage.give_device("n1", GROUP, "GPU-7")

            def is_done() -> bool:
                found = requests.get("web", "default")
                return found is not None and found.status.phase == "Succeeded"

            await eventually(is_done)
            await at_rest(manager)
            seen = pods.get("web", "default")
            assert seen is not None
            assert not seen.metadata.labels
            assert len(await stage.reservations()) == 1
            blindness.close()
            await stage.run("web")
            await at_rest(manager)
            assert len(await stage.reservations()) == 1
            assert "deletionTimestamp" not in (await stage.pod("web"))["metadata"]


async def test_two_who_want_one_device_before_its_reservation_is_seen_both_get_it(stage: Stage) -> None:
    await stage.add_node("n1")
    pods = [await stage.add_pod(name, annotations={names.GPU_FRACTION: "0.5"}) for name in ("a", "b")]
    async with stage.cluster.controllers(add_binding) as manager:
        await at_rest(manager)
        with behind(manager.cache.informer(PODS)):
            with behind(manager.cache.informer(BIND_REQUESTS)):
                for pod in pods:
                    await stage.order_part(pod, "n1", GROUP)
            await stage.reservation("n1", GROUP)
            await at_rest(manager)
        await stage.give_device("n1", GROUP, "GPU-7")
        for name in ("a", "b"):
            assert "failedAttempts" not in (await stage.request(name, "Succeeded"))["status"]
