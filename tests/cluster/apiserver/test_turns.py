"""A burst of writes leaves room for reads, and every write has its turn."""

from __future__ import annotations

import asyncio

from shoal.cluster.apiserver.turns import Turns

LONG = 0.003
"""What a write takes by the clock of these tests; a turn of the loop has room for 5 ms."""


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


async def burst(writes: int, *, each: float) -> tuple[list[int], list[int]]:
    """The order in which writes that come together are carried out, and how many came between two looks at others."""
    clock = Clock()
    turns = Turns(clock)
    order: list[int] = []
    between: list[int] = []

    async def write(number: int) -> None:
        await turns.mine("ann")
        clock.now += each
        order.append(number)

    async def others() -> None:
        seen = 0
        while seen < writes:
            await asyncio.sleep(0)
            between.append(len(order) - seen)
            seen = len(order)

    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(others())
        for number in range(writes):
            tasks.create_task(write(number))
    return order, between


async def test_reads_come_between_the_long_writes_of_a_burst() -> None:
    order, between = await burst(32, each=LONG)

    assert order == list(range(32)), "the first to come is the first to go"
    assert max(between) <= 2


async def test_one_write_of_another_does_not_wait_behind_a_burst() -> None:
    clock = Clock()
    turns = Turns(clock)
    order: list[str] = []

    async def write(who: str) -> None:
        await turns.mine(who)
        clock.now += LONG
        order.append(who)

    async with asyncio.TaskGroup() as tasks:
        for who in [*["controller"] * 50, "ann", "bob", "ann"]:
            tasks.create_task(write(who))

    first, others = order[:9], order[9:]
    assert first.count("ann") == 2
    assert first.count("bob") == 1
    assert others == ["controller"] * 44


async def test_short_writes_go_many_at_once() -> None:
    _, between = await burst(200, each=0.0001)

    assert max(between) >= 15


async def test_a_write_alone_does_not_wait() -> None:
    turns = Turns(Clock())
    for _ in range(3):
        mine = turns.mine("ann")
        try:
            mine.send(None)
        except StopIteration:
            continue
        raise AssertionError("it waited")


async def test_a_writer_that_gave_up_does_not_hold_up_the_next() -> None:
    clock = Clock()
    turns = Turns(clock)
    order: list[int] = []

    async def write(number: int) -> None:
        await turns.mine("ann")
        clock.now += 1.0
        order.append(number)

    tasks = [asyncio.create_task(write(number)) for number in range(4)]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.wait(tasks)

    assert order == [0, 2, 3]
