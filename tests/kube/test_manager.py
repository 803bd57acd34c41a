"""The manager in the phases in which it has nothing yet: reading, waiting for the lease, starting services."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from typing import Any

import aiohttp
import msgspec
import pytest

from shoal.api.meta import PartialObject, Resource
from shoal.api.meta.time import format_micro_time
from shoal.kube import Controller, Election, Manager, NotSynced, Settings, running
from shoal.kube.backoff import Backoff
from shoal.kube.reflector import Pace
from shoal.kube.store import Key
from shoal.kube.transport import Request
from tests.support.network.scripted import Answer, ScriptedTransport, bookmark, refusal
from tests.support.waiting import eventually

BOOKS = Resource(type=PartialObject, group="library.example", version="v1", kind="Book", plural="books")
QUICK = Pace(backoff=Backoff(initial=0.005, cap=0.01), unserved=Backoff(initial=0.005, cap=0.01))


async def nothing(key: Key) -> None:
    return


def manager_on(script: Callable[[Request], Awaitable[Answer]], **options: Any) -> Manager:
    settings = Settings(pace=QUICK, **options.pop("settings", {}))
    manager = Manager(ScriptedTransport(script), name="test", settings=settings, **options)
    manager.add(Controller("books", BOOKS, nothing))
    return manager


async def empty(request: Request) -> Answer:
    """A server that has no books, and no lease."""
    if "watch" in dict(request.query):
        return Answer(frames=[bookmark(7, ends_initial_events=True)], stays_open=True)
    return refusal(404, "NotFound")


async def forbidden(request: Request) -> Answer:
    return refusal(403, "Forbidden")


async def test_kinds_that_cannot_be_read_in_time_are_named_with_the_reason() -> None:
    manager = manager_on(forbidden, settings={"sync_within": 0.1})
    with pytest.raises(NotSynced, match=r"books\.v1\.library\.example: Forbidden"):
        await manager.run()


async def test_readiness_says_what_is_not_read_yet() -> None:
    manager = manager_on(forbidden, settings={"health_address": "127.0.0.1:0"})
    task = asyncio.create_task(manager.run())
    await eventually(lambda: manager.health_port)
    async with aiohttp.ClientSession() as session:
        async with session.get(f"http://127.0.0.1:{manager.health_port}/readyz") as answer:
            assert answer.status == 500
            assert "[-]informers failed: not read yet: books.v1.library.example" in await answer.text()
        async with session.get(f"http://127.0.0.1:{manager.health_port}/healthz") as answer:
            assert answer.status == 200, "slow is not dead"
        async with session.get(f"http://127.0.0.1:{manager.health_port}/healthz/other") as answer:
            assert answer.status == 404
    manager.stop()
    await asyncio.wait_for(task, 5)


async def test_a_stop_while_reading_ends_at_once() -> None:
    manager = manager_on(forbidden)
    task = asyncio.create_task(manager.run())
    await asyncio.sleep(0.01)
    manager.stop()
    await asyncio.wait_for(task, 5)


async def test_a_stop_while_another_leads_ends_at_once_and_writes_nothing() -> None:
    now = format_micro_time(datetime.now(UTC))
    spec = {"holderIdentity": "other", "leaseDurationSeconds": 15, "renewTime": now}
    lease = {"metadata": {"name": "l", "namespace": "n", "resourceVersion": "5"}, "spec": spec}
    written: list[str] = []

    async def held(request: Request) -> Answer:
        if request.method != "GET":
            written.append(str(request))
        return Answer(lease) if "leases" in request.path else await empty(request)

    manager = manager_on(held, election=Election(name="l", namespace="n", retry_every=0.01))
    task = asyncio.create_task(manager.run())
    await asyncio.wait_for(manager.wait_until_ready(), 5)
    manager.stop()
    await asyncio.wait_for(task, 5)
    assert written == []


async def test_a_service_that_fails_ends_the_process_with_its_reason() -> None:
    manager = manager_on(empty)

    async def broken() -> None:
        raise OSError("cannot listen on :9443: address in use")

    manager.add_service(broken)
    with pytest.raises(OSError, match="address in use"):
        await asyncio.wait_for(manager.run(), 5)


async def test_a_leader_task_that_fails_ends_the_process_with_its_reason() -> None:
    manager = manager_on(empty)

    async def broken() -> None:
        raise RuntimeError("a fault of the task")

    manager.add_leader_task(broken)
    with pytest.raises(RuntimeError, match="a fault of the task"):
        await asyncio.wait_for(manager.run(), 5)


async def test_a_service_may_end_when_its_work_is_done() -> None:
    manager = manager_on(empty)

    async def quick() -> None:
        return

    manager.add_service(quick)
    manager.add_leader_task(quick)
    async with running(manager):
        await asyncio.wait_for(manager.wait_until_working(), 5)
        await asyncio.sleep(0.05)
        assert manager._working.is_set()


async def test_a_lease_won_in_the_moment_of_a_stop_is_given_up() -> None:
    spec: dict[str, Any] = {}

    async def granting(request: Request) -> Answer:
        if "leases" not in request.path:
            return await empty(request)
        if request.method == "GET" and not spec:
            return refusal(404, "NotFound")
        if request.method != "GET":
            spec.update(msgspec.json.decode(request.body or b"{}")["spec"])
            manager.stop()
        return Answer({"metadata": {"name": "l", "namespace": "n", "resourceVersion": "5"}, "spec": spec})

    manager = manager_on(granting, election=Election(name="l", namespace="n", retry_every=0.5))
    await asyncio.wait_for(manager.run(), 5)
    assert spec["holderIdentity"] == ""


async def test_services_run_before_this_process_leads_and_end_with_it() -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def service() -> None:
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    manager = manager_on(forbidden)
    manager.add_service(service)
    task = asyncio.create_task(manager.run())
    await asyncio.wait_for(began.wait(), 5)
    manager.stop()
    await asyncio.wait_for(task, 5)
    assert ended.is_set()


async def test_an_address_that_is_taken_is_named() -> None:
    async with running(manager_on(empty, settings={"health_address": "127.0.0.1:0"})) as first:
        second = manager_on(empty, settings={"health_address": f"127.0.0.1:{first.health_port}"})
        with pytest.raises(OSError, match=r"cannot listen on 127\.0\.0\.1:\d+: .*choose another address"):
            await second.run()
