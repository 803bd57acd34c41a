"""The last figures that a server gave, as long as they are fresh."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping

import pytest

from shoal.scheduler.model.amounts import Amounts
from shoal.scheduler.shares.usage.prometheus import UsageUnavailable
from shoal.scheduler.shares.usage.reader import UsageReader
from tests.scheduler.shares.builders import gpus


class Server:
    """Answers with what it was given, or not."""

    def __init__(self) -> None:
        self.now = 0.0
        self.usage: Mapping[str, Amounts] | None = None
        self.asked = 0

    async def fetch(self, now: float) -> Mapping[str, Amounts]:
        self.asked += 1
        if self.usage is None:
            raise UsageUnavailable("nobody is there")
        return self.usage


def a_reader(server: Server, *, interval: float = 60, staleness: float = 300) -> UsageReader:
    return UsageReader(server, interval=interval, staleness=staleness, clock=lambda: server.now)


async def test_before_the_first_answer_nobody_used_anything() -> None:
    assert a_reader(Server()).usage(0) == {}


async def test_the_last_answer_stays_while_it_is_fresh() -> None:
    server = Server()
    reader = a_reader(server)
    server.usage = {"a": gpus(0.5)}
    await reader.refresh()

    server.usage, server.now = None, 250.0
    await reader.refresh()

    assert reader.usage(300) == {"a": gpus(0.5)}
    assert reader.usage(301) == {}


async def test_an_answer_that_comes_again_is_taken() -> None:
    server = Server()
    reader = a_reader(server)
    await reader.refresh()
    server.usage, server.now = {"a": gpus(0.5)}, 1000.0

    await reader.refresh()

    assert reader.usage(1000) == {"a": gpus(0.5)}


async def test_figures_are_fresh_at_least_until_the_next_are_asked_for() -> None:
    server = Server()
    server.usage = {"a": gpus(0.5)}
    reader = a_reader(server, interval=600, staleness=1)
    await reader.refresh()

    assert reader.usage(600) == {"a": gpus(0.5)}


async def test_the_first_figures_are_waited_for_but_not_for_ever() -> None:
    server = Server()
    reader = a_reader(server)
    assert not await reader.first(0.01)

    server.usage = {}
    await reader.refresh()

    assert await reader.first(60)


async def test_it_asks_again_and_again_until_it_is_stopped() -> None:
    server = Server()
    server.usage = {"a": gpus(0.5)}
    running = asyncio.create_task(a_reader(server, interval=0.001).run())

    async with asyncio.timeout(30):
        while server.asked < 3:
            await asyncio.sleep(0.001)
    running.cancel()

    with pytest.raises(asyncio.CancelledError):
        await running
