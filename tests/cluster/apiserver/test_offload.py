"""Long computations run in worker threads, and users share them fairly."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator

import pytest

from shoal.cluster.apiserver import offload as module
from shoal.cluster.apiserver.cel import compile_expression
from shoal.cluster.apiserver.offload import HEAVY_BYTES, Offload
from shoal.cluster.apiserver.refusals import Refused

WITHIN = 20.0


@pytest.fixture
def offload() -> Iterator[Offload]:
    made = Offload()
    yield made
    made.close()


class Held:
    """A computation that goes on until it is let go."""

    def __init__(self) -> None:
        self.begun = threading.Event()
        self.let_go = threading.Event()

    def __call__(self) -> bool:
        self.begun.set()
        return self.let_go.wait(WITHIN)


async def begun(held: Held) -> None:
    assert await asyncio.to_thread(held.begun.wait, WITHIN)


@pytest.mark.parametrize(("size", "is_here"), [(HEAVY_BYTES - 1, True), (HEAVY_BYTES, False)])
async def test_what_is_large_is_computed_with_in_another_thread(offload: Offload, size: int, is_here: bool) -> None:
    where = await offload.compute("ann", size, threading.get_ident)
    assert (where == threading.get_ident()) is is_here


async def test_rules_of_a_small_object_that_take_long_are_evaluated_again_in_another_thread(offload: Offload) -> None:
    program = compile_expression("lists.range(300).all(x, lists.range(300).all(y, x + y >= 0))", {})
    where: list[int] = []

    def validate() -> object:
        where.append(threading.get_ident())
        return program.evaluate({})

    assert await offload.compute("ann", 10, validate) is True
    assert where[0] == threading.get_ident()
    assert where[1] != threading.get_ident()


async def test_a_user_with_many_computations_leaves_room_for_another(offload: Offload) -> None:
    first = Held()
    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as tasks:
        running = [tasks.create_task(offload.run("ann", first))]
        await begun(first)
        running += [tasks.create_task(offload.run("ann", lambda: True)) for _ in range(10)]
        assert await offload.run("bob", lambda: "answered") == "answered"
        assert not any(each.done() for each in running)
        first.let_go.set()
    assert all(each.result() for each in running)


async def test_a_client_that_leaves_does_not_free_the_thread_it_uses(offload: Offload) -> None:
    first, second = Held(), Held()
    gone = asyncio.create_task(offload.run("ann", first))
    await begun(first)
    gone.cancel()
    with pytest.raises(asyncio.CancelledError):
        await gone
    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as tasks:
        following = tasks.create_task(offload.run("ann", second))
        await offload.run("bob", lambda: True)
        assert not second.begun.is_set()
        first.let_go.set()
        await begun(second)
        second.let_go.set()
    assert following.result()


async def test_one_that_waits_and_leaves_does_not_keep_the_next_from_its_turn(offload: Offload) -> None:
    first = Held()
    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as tasks:
        tasks.create_task(offload.run("ann", first))
        await begun(first)
        waiting = asyncio.create_task(offload.run("ann", lambda: "second"))
        last = tasks.create_task(offload.run("ann", lambda: "third"))
        await asyncio.sleep(0)
        waiting.cancel()
        first.let_go.set()
    assert last.result() == "third"


async def test_more_than_may_wait_are_refused(offload: Offload, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_MOST_WAITING", 2)
    first = Held()
    async with asyncio.timeout(WITHIN), asyncio.TaskGroup() as tasks:
        tasks.create_task(offload.run("ann", first))
        await begun(first)
        for _ in range(2):
            tasks.create_task(offload.run("ann", lambda: True))
        await asyncio.sleep(0)
        with pytest.raises(Refused) as refused:
            await offload.run("ann", lambda: True)
        first.let_go.set()
    assert refused.value.status.code == 429
