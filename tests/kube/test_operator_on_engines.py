"""A whole operator on each API server: it converges, heals, rests, and leaves what is not its own alone."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any

import aiohttp
import pytest

from examples.greeter import DEFINITION, GREETINGS, greeter
from shoal.api.core import CONFIG_MAPS, EVENTS
from shoal.kube import (
    Client,
    Conflict,
    Controller,
    HttpTransport,
    Manager,
    NotFound,
    Settings,
    Writer,
    load_connection,
    running,
)
from shoal.kube.queue import RESYNC
from shoal.kube.store import Key
from tests.support.clusters.client import QUICK_PACE, client_to, install, until, writes
from tests.support.clusters.engines import Engine
from tests.support.waiting import eventually

MAPS = CONFIG_MAPS.documents()


@pytest.fixture
async def client(engine: Engine) -> AsyncIterator[Client]:
    async with client_to(engine.kubeconfig) as client:
        await install(client, DEFINITION)
        yield client


@asynccontextmanager
async def operator(engine: Engine, namespace: str, **settings: Any) -> AsyncIterator[Manager]:
    transport = HttpTransport(load_connection(engine.kubeconfig))
    chosen = Settings(namespace=namespace, pace=QUICK_PACE, **settings)
    manager = Manager(transport, name="greeter", settings=chosen)
    manager.add(greeter(manager))
    try:
        async with running(manager):
            yield manager
    finally:
        await transport.close()


async def greet(client: Client, namespace: str, *names: str) -> None:
    for name in names:
        await client.create(GREETINGS, {"metadata": {"name": name}, "spec": {"name": name.title()}}, namespace)


async def words(client: Client, namespace: str, name: str) -> str:
    try:
        child = await client.get(CONFIG_MAPS, f"{name}-words", namespace)
    except NotFound:
        return ""
    return child.data.get("words", "")


async def test_every_object_gets_its_child_and_status(engine: Engine, client: Client, namespace: str) -> None:
    await greet(client, namespace, "ann")
    async with operator(engine, namespace):
        await greet(client, namespace, "bob")
        for name in ("ann", "bob"):
            await until(lambda name=name: words(client, namespace, name))  # type: ignore[misc]

            async def reported(name: str = name) -> bool:
                return (await client.get(GREETINGS, name, namespace)).status.config_map == f"{name}-words"

            await until(reported)
    child = await client.get(MAPS, "bob-words", namespace)
    assert child.content["data"] == {"words": "Hello, Bob!"}
    owner = child.metadata.controller
    assert owner is not None
    assert (owner.kind, owner.name, owner.block_owner_deletion) == ("Greeting", "bob", True)


async def test_a_controller_at_rest_writes_nothing_even_after_a_restart(
    engine: Engine, client: Client, namespace: str
) -> None:
    names = [f"person-{number}" for number in range(20)]
    await greet(client, namespace, *names)
    async with operator(engine, namespace):
        for name in names:
            await until(lambda name=name: words(client, namespace, name))  # type: ignore[misc]
    async with operator(engine, namespace) as manager:
        await eventually(lambda: reconciles(manager) >= len(names))
        for name in names:
            manager._controllers[0].queue.add(Key(namespace, name), priority=RESYNC)
        await eventually(lambda: reconciles(manager) >= 2 * len(names))
        assert writes(manager.metrics) == 0


def reconciles(manager: Manager) -> float:
    value = manager.metrics.registry.get_sample_value(
        "controller_runtime_reconcile_total", {"controller": "greeter", "result": "success"}
    )
    return value or 0


async def test_what_others_break_is_mended_and_what_they_add_is_left(
    engine: Engine, client: Client, namespace: str
) -> None:
    await greet(client, namespace, "ann")
    async with operator(engine, namespace):
        await until(lambda: words(client, namespace, "ann"))
        patch = {"data": {"words": "Go away!", "more": "kept"}}
        await client.merge_patch(MAPS, "ann-words", patch, namespace, field_manager="vandal")

        async def mended() -> bool:
            return await words(client, namespace, "ann") == "Hello, Ann!"

        await until(mended)
        assert (await client.get(CONFIG_MAPS, "ann-words", namespace)).data["more"] == "kept"
        await client.merge_patch(MAPS, "ann-words", {"data": {"words": None}}, namespace, field_manager="vandal")
        await until(mended)
        await client.delete(MAPS, "ann-words", namespace)
        await until(mended)


async def test_a_changed_wish_reaches_the_child(engine: Engine, client: Client, namespace: str) -> None:
    await greet(client, namespace, "ann")
    async with operator(engine, namespace):
        await until(lambda: words(client, namespace, "ann"))
        await client.merge_patch(GREETINGS, "ann", {"spec": {"name": "Eve"}}, namespace)

        async def changed() -> bool:
            return await words(client, namespace, "ann") == "Hello, Eve!"

        await until(changed)


async def test_an_object_of_the_same_name_is_never_taken_over(engine: Engine, client: Client, namespace: str) -> None:
    await client.create(MAPS, {"metadata": {"name": "ann-words"}, "data": {"words": "mine"}}, namespace)
    await greet(client, namespace, "ann", "bob")
    async with operator(engine, namespace) as manager:
        await until(lambda: words(client, namespace, "bob"))
        errors = manager.metrics.reconcile_errors.labels("greeter")
        await eventually(lambda: errors._value.get() >= 2)
        assert await words(client, namespace, "ann") == "mine"
        assert manager.metrics.panics.labels("greeter")._value.get() == 0

        async def told() -> list[Any]:
            listing = await client.list(EVENTS, namespace, field_selector="involvedObject.name=ann")
            return [event.content["message"] for event in listing.items]

        [message] = await until(told)
        assert message.endswith("/ann-words exists and is not owned by Greeting ann: delete it, or rename Greeting ann")
        await client.delete(MAPS, "ann-words", namespace)

        async def ours() -> bool:
            return await words(client, namespace, "ann") == "Hello, Ann!"

        await until(ours)


async def test_an_object_that_does_not_decode_is_told_once_and_the_others_go_on(
    engine: Engine, client: Client, namespace: str
) -> None:
    loose = DEFINITION.manifest()
    loose["metadata"]["name"] = "greetings.loose.shoal.dev"
    loose["spec"]["group"] = "loose.shoal.dev"
    anything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    loose["spec"]["versions"][0]["schema"]["openAPIV3Schema"] = anything
    await install(client, loose)
    resource = replace(GREETINGS, group="loose.shoal.dev")
    seen: list[str] = []

    async def reconcile(key: Key) -> None:
        seen.append(key.name)

    transport = HttpTransport(load_connection(engine.kubeconfig))
    manager = Manager(transport, name="loose", settings=Settings(namespace=namespace, pace=QUICK_PACE))
    manager.add(Controller("loose", resource, reconcile))
    documents = resource.documents()
    await client.create(documents, {"metadata": {"name": "bad"}, "spec": {"name": 5}}, namespace)
    await client.create(documents, {"metadata": {"name": "good"}, "spec": {"name": "Ann"}}, namespace)
    async with running(manager):
        await eventually(lambda: "good" in seen)
        for number in range(3):
            patch = {"metadata": {"labels": {"touched": str(number)}}}
            await client.merge_patch(documents, "bad", patch, namespace)
        await client.create(documents, {"metadata": {"name": "later"}, "spec": {"name": "Bob"}}, namespace)
        await eventually(lambda: "later" in seen)

        async def told() -> list[dict[str, Any]]:
            listing = await client.list(EVENTS, namespace, field_selector="involvedObject.name=bad")
            return [event.content for event in listing.items]

        events = await until(told)
        assert "bad" not in seen
        await client.merge_patch(documents, "bad", {"spec": {"name": "Mended"}}, namespace)
        await eventually(lambda: "bad" in seen)
    await transport.close()
    assert [(event["type"], event["reason"], event["count"]) for event in events] == [("Warning", "DecodeFailed", 1)]
    assert events[0]["message"] == "Expected `str`, got `int` - at `$.spec.name`"


async def test_a_kind_that_is_not_served_yet_blocks_nobody(engine: Engine, client: Client, namespace: str) -> None:
    late = DEFINITION.manifest()
    late["metadata"]["name"] = "greetings.late.shoal.dev"
    late["spec"]["group"] = "late.shoal.dev"
    resource = replace(GREETINGS, group="late.shoal.dev")
    seen: list[str] = []

    async def reconcile(key: Key) -> None:
        seen.append(key.name)

    await greet(client, namespace, "ann")
    transport = HttpTransport(load_connection(engine.kubeconfig))
    manager = Manager(transport, name="late", settings=Settings(namespace=namespace, pace=QUICK_PACE))
    manager.add(greeter(manager))
    manager.add(Controller("late", resource, reconcile))
    async with running(manager):
        await until(lambda: words(client, namespace, "ann"))
        await install(client, late)
        await client.create(resource, {"metadata": {"name": "bob"}, "spec": {"name": "Bob"}}, namespace)
        await eventually(lambda: seen == ["bob"])
    await transport.close()


async def test_probes_and_metrics_answer(engine: Engine, client: Client, namespace: str) -> None:
    await greet(client, namespace, "ann")
    async with (
        operator(engine, namespace, health_address="127.0.0.1:0", metrics_address="127.0.0.1:0") as manager,
        aiohttp.ClientSession() as session,
    ):
        await until(lambda: words(client, namespace, "ann"))
        base = f"http://127.0.0.1:{manager.health_port}"
        async with session.get(f"{base}/healthz") as answer:
            assert (answer.status, await answer.text()) == (200, "ok")
        async with session.get(f"{base}/readyz?verbose") as answer:
            assert "[+]informers ok" in await answer.text()
        async with session.get(f"http://127.0.0.1:{manager.metrics_port}/metrics") as answer:
            text = await answer.text()
    for name in (
        'controller_runtime_reconcile_total{controller="greeter",result="success"}',
        'controller_runtime_max_concurrent_reconciles{controller="greeter"} 10.0',
        'workqueue_depth{controller="greeter",name="greeter",priority="0"}',
        'rest_client_requests_total{code="200",host="',
        "controller_runtime_reconcile_time_seconds_bucket",
        "workqueue_longest_running_processor_seconds",
    ):
        assert name in text, name


async def test_a_stop_lets_the_running_reconcile_finish(engine: Engine, client: Client, namespace: str) -> None:
    begun, go_on, finished = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def reconcile(key: Key) -> None:
        begun.set()
        await go_on.wait()
        await client.merge_patch(GREETINGS, key.name, {"metadata": {"labels": {"done": "yes"}}}, namespace)
        finished.set()

    await greet(client, namespace, "ann")
    transport = HttpTransport(load_connection(engine.kubeconfig))
    manager = Manager(transport, name="slow", settings=Settings(namespace=namespace))
    manager.add(Controller("slow", GREETINGS, reconcile))
    run = asyncio.create_task(manager.run())
    async with asyncio.timeout(20):
        await begun.wait()
        manager.stop()
        await asyncio.sleep(0)
        assert not run.done()
        go_on.set()
        await run
    await transport.close()
    assert finished.is_set()


async def test_a_finalizer_holds_an_object_until_it_is_cleared(client: Client, namespace: str) -> None:
    await greet(client, namespace, "ann")
    writer = Writer(client, "cleaner")
    seen = await client.get(GREETINGS, "ann", namespace)
    await client.merge_patch(GREETINGS, "ann", {"metadata": {"labels": {"a": "b"}}}, namespace)
    with pytest.raises(Conflict):
        await writer.set_finalizer(GREETINGS, seen, "shoal.dev/clean")
    seen = await client.get(GREETINGS, "ann", namespace)
    assert await writer.set_finalizer(GREETINGS, seen, "shoal.dev/clean")
    seen = await client.get(GREETINGS, "ann", namespace)
    assert not await writer.set_finalizer(GREETINGS, seen, "shoal.dev/clean"), "it is there: nothing is written"
    await client.delete(GREETINGS, "ann", namespace)
    seen = await client.get(GREETINGS, "ann", namespace)
    assert seen.metadata.is_deleting
    assert await writer.clear_finalizer(GREETINGS, seen, "shoal.dev/clean")
    with pytest.raises(NotFound):
        await client.get(GREETINGS, "ann", namespace)
    assert not await writer.clear_finalizer(GREETINGS, seen, "shoal.dev/clean"), "it is gone: that is no error"
