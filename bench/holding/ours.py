"""Pods in an informer of ours: ``python -m bench.holding.ours hold|follow trimmed|whole SERVER COUNT``.

Through the shared cache as a manager uses it: streaming list, a store with one index, the collector off until the first
picture is complete, one listener.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvloop

from bench.holding.account import Followed, Held, Moment, resident, tell
from bench.holding.views import TRIMMED, WHOLE
from shoal.api.meta import Resource
from shoal.kube import Cache, Change, Client, Connection, HttpTransport, by_namespace, configure_logs

VIEWS: dict[str, Resource[Any]] = {"trimmed": TRIMMED, "whole": WHOLE}


async def hold(resource: Resource[Any], client: Client, count: int) -> Held:
    cache = Cache(client)
    pods = cache.informer(resource, indexes={"namespace": by_namespace})
    before, began = resident(), Moment.now()
    async with synced(cache):
        ended = Moment.now()
        assert len(pods.store) == count
        return Held(
            pods=count,
            seconds=ended.clock - began.clock,
            cpu_seconds=ended.cpu - began.cpu,
            memory=resident() - before,
        )


async def follow(resource: Resource[Any], client: Client, count: int) -> Followed:
    cache = Cache(client)
    pods = cache.informer(resource, indexes={"namespace": by_namespace})
    async with synced(cache):
        began, done = Moment.now(), asyncio.Event()
        heard = 0

        def count_change(change: Change[Any]) -> None:
            nonlocal heard
            heard += not change.is_resync
            if heard == count:
                done.set()

        pods.subscribe(count_change)
        await done.wait()
        ended = Moment.now()
        return Followed(changes=count, seconds=ended.clock - began.clock, cpu_seconds=ended.cpu - began.cpu)


@asynccontextmanager
async def synced(cache: Cache) -> AsyncIterator[None]:
    """Runs a cache around a block that begins with the first picture."""
    running = asyncio.create_task(cache.run())
    try:
        await cache.wait_for_sync(within=300)
        yield
    finally:
        running.cancel()
        await asyncio.wait([running])


async def main(what: str, view: str, server: str, count: str) -> None:
    client = Client(HttpTransport(Connection(server=server)))
    measure = hold if what == "hold" else follow
    tell(await measure(VIEWS[view], client, int(count)))
    await client.close()


if __name__ == "__main__":
    configure_logs()
    uvloop.run(main(*sys.argv[1:]))
