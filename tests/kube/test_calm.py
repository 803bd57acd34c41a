"""What nobody waits for lets the rest go first, and goes on in the end."""

from __future__ import annotations

import asyncio
import time

from shoal.kube.calm import Calm
from tests.support.waiting import eventually


class Load:
    """So much is to be done."""

    def __init__(self, things: int) -> None:
        self.things = things

    def __call__(self) -> int:
        return self.things


async def test_where_little_is_to_be_done_nobody_waits() -> None:
    calm = Calm(Load(3), busy_from=4)
    async with asyncio.timeout(1):
        await calm.wait(3600)


async def test_all_who_wait_go_on_once_it_is_calm() -> None:
    load = Load(10)
    calm = Calm(load, busy_from=4)
    waiting = [asyncio.create_task(calm.wait(3600)) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    load.things = 3
    await eventually(lambda: all(task.done() for task in waiting))


async def test_nobody_waits_for_ever() -> None:
    calm = Calm(Load(10), busy_from=4)
    began = time.monotonic()
    await calm.wait(0.02)
    assert time.monotonic() - began >= 0.02
    assert not calm.is_calm


async def test_one_who_gives_up_is_not_waited_for() -> None:
    load = Load(10)
    calm = Calm(load, busy_from=4)
    gone, other = asyncio.create_task(calm.wait(3600)), asyncio.create_task(calm.wait(3600))
    await asyncio.sleep(0)
    gone.cancel()
    await asyncio.wait([gone])
    load.things = 0
    await eventually(other.done)
