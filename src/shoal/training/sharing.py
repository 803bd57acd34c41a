"""Reads that many ask for at once, made once for all of them, and never older than the question.

Who asks while a read is under way cannot have its answer, which may be from before the question: all who do share the
next one. A thousand TrainJobs of one runtime that are posted at once thus cost far fewer than a thousand reads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)
V = TypeVar("V")

PATIENCE: Final = 0.1
"""Seconds that a read waits at most for the one before it: what hangs holds up nobody else for long."""


class SharedReads(Generic[K, V]):
    """Gives what a read gives that began after it was asked for; ``read`` is called for one key at a time, mostly."""

    def __init__(self, read: Callable[[K], Awaitable[V]], *, patience: float = PATIENCE) -> None:
        self._read = read
        self._patience = patience
        self._under_way: dict[K, asyncio.Task[V]] = {}
        self._next: dict[K, asyncio.Task[V]] = {}

    async def __call__(self, key: K) -> V:
        """Reads, together with all others who wait for the same."""
        task = self._next.get(key)
        if task is None:
            task = self._next[key] = asyncio.create_task(self._turn(key))
            task.add_done_callback(_heed)
        # Who gives up takes it from nobody else.
        return await asyncio.shield(task)

    async def _turn(self, key: K) -> V:
        if (before := self._under_way.get(key)) is not None:
            await asyncio.wait([before], timeout=self._patience)
        task = self._under_way[key] = self._next.pop(key)
        try:
            return await self._read(key)
        finally:
            if self._under_way.get(key) is task:
                del self._under_way[key]


def _heed(task: asyncio.Task[V]) -> None:
    """Those who asked hear of an error; where all have given up, it is nobody's."""
    if not task.cancelled():
        task.exception()
