from __future__ import annotations

import asyncio

from shoal.training.sharing import SharedReads
from tests.support.waiting import eventually


class Shelf:
    """Something to be read whose readers wait until they are let go; each sees what is there when its read begins."""

    def __init__(self) -> None:
        self.content = "old"
        self.begun: list[tuple[str, asyncio.Future[None]]] = []

    async def read(self, key: str) -> str:
        seen, gate = f"{self.content} {key}", asyncio.get_running_loop().create_future()
        self.begun.append((key, gate))
        await gate
        return seen

    def let_go(self, number: int) -> None:
        self.begun[number][1].set_result(None)

    async def until_begun(self, count: int) -> None:
        await eventually(lambda: len(self.begun) >= count)


async def test_all_who_ask_while_a_read_is_under_way_share_the_next_one_and_see_what_is_new() -> None:
    shelf = Shelf()
    reads = SharedReads(shelf.read, patience=60)
    first = asyncio.create_task(reads("a"))
    await shelf.until_begun(1)
    shelf.content = "new"
    later = [asyncio.create_task(reads("a")) for _ in range(5)]
    await asyncio.sleep(0)
    shelf.let_go(0)
    assert await first == "old a"
    await shelf.until_begun(2)
    shelf.let_go(1)
    assert await asyncio.gather(*later) == ["new a"] * 5
    assert len(shelf.begun) == 2


async def test_those_who_ask_for_something_else_do_not_wait() -> None:
    shelf = Shelf()
    reads = SharedReads(shelf.read, patience=60)
    asked = [asyncio.create_task(reads(key)) for key in ("a", "b")]
    await shelf.until_begun(2)
    for number in range(2):
        shelf.let_go(number)
    assert await asyncio.gather(*asked) == ["old a", "old b"]


async def test_a_read_that_hangs_holds_up_the_next_only_for_a_while() -> None:
    shelf = Shelf()
    reads = SharedReads(shelf.read, patience=0.01)
    hanging = asyncio.create_task(reads("a"))
    await shelf.until_begun(1)
    later = asyncio.create_task(reads("a"))
    await shelf.until_begun(2)
    shelf.let_go(1)
    assert await later == "old a"
    assert not hanging.done()
    shelf.let_go(0)
    assert await hanging == "old a"


async def test_who_gives_up_takes_the_read_from_nobody() -> None:
    shelf = Shelf()
    reads = SharedReads(shelf.read, patience=60)
    asked = [asyncio.create_task(reads("a")) for _ in range(2)]
    await shelf.until_begun(1)
    asked[0].cancel()
    shelf.let_go(0)
    assert await asked[1] == "old a"
    assert asked[0].cancelled()


async def test_an_error_is_told_to_all_who_asked_and_to_none_after_them() -> None:
    problems = [OSError("cut off")]

    async def read(key: str) -> str:
        if problems:
            raise problems.pop()
        return key

    reads = SharedReads(read)
    asked = await asyncio.gather(reads("a"), reads("a"), return_exceptions=True)
    assert [str(each) for each in asked] == ["cut off"] * 2
    assert await reads("a") == "a"


async def test_who_asks_after_the_answer_reads_anew() -> None:
    made = list[str]()

    async def read(key: str) -> int:
        made.append(key)
        return len(made)

    reads = SharedReads(read)
    assert [await reads("a") for _ in range(3)] == [1, 2, 3]
