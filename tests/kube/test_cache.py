"""The informers of a process: shared, started on demand, and let go of when nobody needs them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from shoal.api.meta import ObjectMeta, PartialObject, Resource
from shoal.kube import Cache, Client
from shoal.kube.backoff import Backoff
from shoal.kube.freshness import WriteLog, note_write, recording
from shoal.kube.reflector import Pace
from shoal.kube.transport import Request
from tests.support.network.scripted import Answer, ScriptedTransport, bookmark, refusal
from tests.support.waiting import eventually

BOOKS = Resource(type=PartialObject, group="library.example", version="v1", kind="Book", plural="books")
MAPS = Resource(type=PartialObject, group="library.example", version="v1", kind="Map", plural="maps")
QUICK = Backoff(initial=0.005, cap=0.01)


async def only_books(request: Request) -> Answer:
    """A server that refuses to list anything but books."""
    if request.path.endswith("/books"):
        return Answer(frames=[bookmark(7, ends_initial_events=True)], stays_open=True)
    return refusal(403, "Forbidden")


@asynccontextmanager
async def a_running_cache(script: Callable[[Request], Awaitable[Answer]]) -> AsyncIterator[Cache]:
    cache = Cache(Client(ScriptedTransport(script)), pace=Pace(backoff=QUICK, unserved=QUICK))
    task = asyncio.create_task(cache.run())
    await asyncio.sleep(0)
    try:
        async with asyncio.timeout(10):
            yield cache
    finally:
        task.cancel()
        await asyncio.wait([task])


def running_informers() -> list[str]:
    return [task.get_name() for task in asyncio.all_tasks() if task.get_name().startswith("informer ")]


async def test_an_informer_that_is_dropped_ends_and_is_made_anew_when_it_is_asked_for() -> None:
    async with a_running_cache(only_books) as cache:
        books = cache.informer(BOOKS, is_vital=False)
        await books.wait_for_sync()
        cache.drop(books)
        assert cache.informers == []
        await eventually(lambda: not running_informers())
        another = cache.informer(BOOKS, is_vital=False)
        assert another is not books
        await another.wait_for_sync()


async def test_an_informer_that_is_vital_to_somebody_is_not_dropped() -> None:
    async with a_running_cache(only_books) as cache:
        books = cache.informer(BOOKS, is_vital=False)
        assert cache.informer(BOOKS) is books
        cache.drop(books)
        assert cache.informers == [books]


async def test_nobody_waits_for_what_is_not_vital() -> None:
    async with a_running_cache(only_books) as cache:
        cache.informer(BOOKS)
        maps = cache.informer(MAPS, is_vital=False)
        await cache.wait_for_sync(within=5)
        assert not maps.has_synced
        writes = WriteLog()
        with recording(writes):
            note_write(MAPS, ObjectMeta(name="map", namespace="default", resource_version="9"))
        assert cache.shows(writes)
        maps.is_vital = True
        assert not cache.shows(writes)
