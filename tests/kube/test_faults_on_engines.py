"""Faults of a server and of the way to it, in the middle of five hundred reconciles: all converge, none is lost,
no child is made twice."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import random
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from examples.greeter import DEFINITION, GREETINGS, greeter
from shoal.api.core import CONFIG_MAPS, PODS, SERVICE_ACCOUNTS
from shoal.api.meta import owner_reference
from shoal.cluster.kubernetes import Part, RealKubernetes
from shoal.kube import (
    ApiError,
    Client,
    ConnectionFault,
    Controller,
    Expired,
    HttpTransport,
    Key,
    Manager,
    Settings,
    by_owner,
    load_connection,
    running,
)
from shoal.kube.backoff import Backoff
from shoal.kube.cache import Cache
from shoal.kube.queue import RetryLimits
from shoal.kube.store import BY_OWNER
from shoal.kube.transport import Response
from tests.support.clusters.client import QUICK_PACE, QUICK_RETRIES, client_to, install, until
from tests.support.clusters.engines import EngineWithFaults
from tests.support.clusters.faults import FaultyTransport, expire_watches_once, sometimes
from tests.support.clusters.real import StartKube
from tests.support.waiting import eventually

pytestmark = pytest.mark.timeout(300)

COUNT = 500
NAMESPACE = "default"


@asynccontextmanager
async def operator(kubeconfig: Path) -> AsyncIterator[tuple[Manager, FaultyTransport]]:
    transport = FaultyTransport(HttpTransport(load_connection(kubeconfig)))
    manager = Manager(transport, name="greeter", settings=Settings(namespace=NAMESPACE, pace=QUICK_PACE))
    controller = greeter(manager)
    controller._retries = QUICK_RETRIES
    manager.add(controller)
    try:
        async with running(manager):
            yield manager, transport
    finally:
        await transport.close()


async def persist(attempt: Callable[[], Awaitable[object]], within: float = 60.0) -> None:
    """Does something for a test through every fault that the test causes."""
    async with asyncio.timeout(within):
        while True:
            with contextlib.suppress(ApiError, ConnectionFault):
                await attempt()
                return
            await asyncio.sleep(0.1)


async def create_all(client: Client, count: int = COUNT) -> None:
    for number in range(count):
        body = {"metadata": {"name": f"g-{number}"}, "spec": {"name": f"Person {number}"}}

        async def ensure(body: Mapping[str, object] = body, name: str = f"g-{number}") -> None:
            await client.apply(GREETINGS, body, NAMESPACE, name=name, field_manager="test")

        await persist(ensure)


async def converged(client: Client, count: int = COUNT) -> bool:
    try:
        children = (await client.list(CONFIG_MAPS, NAMESPACE)).items
        parents = (await client.list(GREETINGS, NAMESPACE)).items
    except (ApiError, ConnectionFault):
        return False
    ours = [child for child in children if child.metadata.controller is not None]
    return len(ours) == count and sum(1 for parent in parents if parent.status.config_map) == count


async def check_result(client: Client, manager: Manager, count: int = COUNT) -> None:
    """Every object has exactly its own child, with the right words; and then nothing is written any more."""
    await until(lambda: converged(client, count), within=120)
    children = [child for child in (await client.list(CONFIG_MAPS, NAMESPACE)).items if child.metadata.controller]
    owners = Counter(child.metadata.controller.name for child in children if child.metadata.controller)
    assert owners == Counter(f"g-{number}" for number in range(count))
    for child in children:
        assert child.metadata.controller is not None
        number = child.metadata.controller.name.removeprefix("g-")
        assert child.data == {"words": f"Hello, Person {number}!"}
    informer = manager.cache.informer(GREETINGS)
    await eventually(lambda: len(informer.items()) == count and all(g.status.config_map for g in informer.items()))
    await eventually(lambda: not informer.problem)


async def test_killing_the_api_server_in_the_middle(engine_with_faults: EngineWithFaults) -> None:
    async with (
        client_to(engine_with_faults.kubeconfig) as client,
        operator(engine_with_faults.kubeconfig) as (manager, _),
    ):
        await install(client, DEFINITION)
        creating = asyncio.create_task(create_all(client))
        greetings = manager.cache.informer(GREETINGS)
        for reached in (100, 300):
            await eventually(lambda reached=reached: len(greetings.items()) > reached, within=60)  # type: ignore[misc]
            await asyncio.to_thread(engine_with_faults.kill_api_server)
            await asyncio.to_thread(engine_with_faults.restart_api_server)
        await creating
        await check_result(client, manager)


@pytest.mark.slow
async def test_killing_etcd_in_the_middle(kube_with_faults: RealKubernetes) -> None:
    async with (
        client_to(kube_with_faults.kubeconfig) as client,
        operator(kube_with_faults.kubeconfig) as (manager, _),
    ):
        await install(client, DEFINITION)
        creating = asyncio.create_task(create_all(client))
        await eventually(lambda: len(manager.cache.informer(GREETINGS).items()) > 100, within=60)
        await asyncio.to_thread(kube_with_faults.kill_etcd)
        await asyncio.to_thread(kube_with_faults.restart_etcd)
        await creating
        await check_result(client, manager)


@pytest.mark.slow
async def test_watches_that_break_expire_and_answers_that_are_late_or_refused(
    engine_with_faults: EngineWithFaults,
) -> None:
    async with (
        client_to(engine_with_faults.kubeconfig) as client,
        operator(engine_with_faults.kubeconfig) as (manager, transport),
    ):
        await install(client, DEFINITION)
        chance = random.Random(20)
        transport.delay = lambda: chance.random() * 0.02
        transport.faults += [
            sometimes(0.05, 429, "TooManyRequests", seed=1, headers={"Retry-After": "0"}),
            sometimes(0.05, 503, "ServiceUnavailable", seed=2),
            sometimes(0.03, 500, "InternalError", seed=3),
        ]
        creating = asyncio.create_task(create_all(client))
        turns = itertools.cycle([False, False, True])
        while not creating.done() or transport.streams_cut < 6:
            await asyncio.sleep(0.3)
            # Some resume where they were, some are told that the server has forgotten that version.
            transport.faults[3:] = [expire_watches_once(set())] if next(turns) else []
            transport.cut_streams()
        transport.faults.clear()
        await creating
        await check_result(client, manager)
        assert transport.streams_opened > transport.streams_cut


@pytest.mark.slow
async def test_an_api_server_that_stops_answering_for_a_while(engine_with_faults: EngineWithFaults) -> None:
    async with (
        client_to(engine_with_faults.kubeconfig) as client,
        operator(engine_with_faults.kubeconfig) as (manager, _),
    ):
        await install(client, DEFINITION)
        creating = asyncio.create_task(create_all(client))
        await eventually(lambda: len(manager.cache.informer(GREETINGS).items()) > 100, within=60)
        engine_with_faults.pause()
        await asyncio.sleep(1.5)
        engine_with_faults.resume()
        await creating
        await check_result(client, manager)


@pytest.mark.slow
async def test_what_went_while_the_server_forgot_is_told_after_a_real_410(start_kube: StartKube) -> None:
    """This server forgets within a second, so that a watch which was away for longer gets a genuine 410."""
    kube = start_kube(extra_flags={Part.API_SERVER: ["--etcd-compaction-interval=1s"]})
    async with client_to(kube.kubeconfig) as client:
        for name in ("stays", "goes", "changes"):
            await client.create(CONFIG_MAPS, {"metadata": {"name": name}}, NAMESPACE)
        transport = FaultyTransport(HttpTransport(load_connection(kube.kubeconfig)))
        cache = Cache(Client(transport), namespace=NAMESPACE, pace=QUICK_PACE)
        informer = cache.informer(CONFIG_MAPS)
        changes: list[tuple[str, str]] = []
        task = asyncio.create_task(cache.run())
        await cache.wait_for_sync(30)
        seen_up_to = str(informer._progress)
        informer.subscribe(
            lambda change: changes.append(("gone" if change.after is None else "is", change.latest.metadata.name))
        )
        changes.clear()
        transport.faults.append(lambda request: Response(503, {}, b"{}"))
        transport.cut_streams()
        await client.delete(CONFIG_MAPS, "goes", NAMESPACE)
        await client.merge_patch(CONFIG_MAPS, "changes", {"data": {"x": "1"}}, NAMESPACE)
        await client.create(CONFIG_MAPS, {"metadata": {"name": "new"}}, NAMESPACE)

        async def has_forgotten() -> bool:
            await asyncio.to_thread(kube.kill_api_server)
            await asyncio.to_thread(kube.restart_api_server)
            try:
                async for _ in client.watch(CONFIG_MAPS, NAMESPACE, resource_version=seen_up_to, timeout_seconds=1):
                    return False
            except Expired:
                return True
            except (ApiError, ConnectionFault):
                pass
            return False

        await until(has_forgotten, within=90)
        transport.faults.clear()
        await eventually(lambda: informer.get("new", NAMESPACE), within=30)
        task.cancel()
        await asyncio.wait([task])
        await transport.close()
        assert ("gone", "goes") in changes
        assert {name for what, name in changes if what == "is"} == {"changes", "new"}


@pytest.mark.slow
async def test_a_controller_that_makes_pods_with_generated_names_never_makes_too_many(
    engine_with_faults: EngineWithFaults,
) -> None:
    """The cache lags on purpose (every watch is cut again and again), and each key is reconciled as fast as it can."""
    async with client_to(engine_with_faults.kubeconfig) as client:
        await install(client, DEFINITION)
        await client.create(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, NAMESPACE)
        transport = FaultyTransport(HttpTransport(load_connection(engine_with_faults.kubeconfig)))
        manager = Manager(transport, name="pods", settings=Settings(namespace=NAMESPACE, pace=QUICK_PACE))
        greetings = manager.cache.informer(GREETINGS)
        informer = manager.cache.informer(PODS, indexes={BY_OWNER: by_owner})
        writer = manager.writer("pods")

        async def reconcile(key: Key) -> None:
            greeting = greetings.store.get(key)
            if greeting is None:
                return
            have = informer.find(BY_OWNER, greeting.metadata.uid)
            for _ in range(3 - len(have)):
                body = {
                    "metadata": {"generateName": f"{key.name}-", "namespace": NAMESPACE},
                    "spec": {"containers": [{"name": "c", "image": "i"}]},
                }
                await writer.create(PODS, body, owner=owner_reference(greeting, GREETINGS))

        retries = RetryLimits(backoff=Backoff(initial=0.001, cap=0.01), rate=1e6, burst=10**6)
        controller = Controller("pods", GREETINGS, reconcile, owns=[PODS], retries=retries)
        manager.add(controller)
        async with running(manager):
            await create_all(client, 50)
            for _ in range(30):
                transport.cut_streams()
                for number in range(50):
                    controller.enqueue(Key(NAMESPACE, f"g-{number}"))
                await asyncio.sleep(0.02)

            async def enough() -> bool:
                return len((await client.list(PODS, NAMESPACE)).items) >= 150

            await until(enough)
            await eventually(lambda: len(informer.items()) >= 150)
        await transport.close()
        made = Counter(
            pod.metadata.controller.name
            for pod in (await client.list(PODS, NAMESPACE)).items
            if pod.metadata.controller
        )
        assert made == Counter({f"g-{number}": 3 for number in range(50)})
