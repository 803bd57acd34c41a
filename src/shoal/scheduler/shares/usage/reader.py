"""The last figures that a server gave, as long as they are fresh: a cycle never waits for a server."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping
from typing import Protocol

import structlog

from shoal.scheduler.model.amounts import Amounts
from shoal.scheduler.shares.usage.prometheus import UsageUnavailable

_log = structlog.get_logger(__name__)


class Source(Protocol):
    """Whoever can be asked."""

    async def fetch(self, now: float) -> Mapping[str, Amounts]:
        """By queue the part of the cluster that it used; raises UsageUnavailable."""
        ...


class UsageReader:
    """Asks again and again, in the background."""

    def __init__(
        self,
        source: Source,
        *,
        interval: float,
        staleness: float,
        clock: Callable[[], float],
        on_answer: Callable[[float], None] = lambda seconds: None,
    ) -> None:
        """``on_answer`` is told how many seconds an answer took."""
        self._source = source
        self._interval = interval
        self._staleness = max(interval, staleness)
        self._clock = clock
        self._on_answer = on_answer
        self._last: tuple[float, Mapping[str, Amounts]] | None = None
        self._is_read = asyncio.Event()
        self._is_failing = False

    def usage(self, now: float) -> Mapping[str, Amounts]:
        """The last figures; none where they are too old, as if nobody had used anything."""
        if self._last is None or now - self._last[0] > self._staleness:
            return {}
        return self._last[1]

    async def run(self) -> None:
        """Asks until it is cancelled."""
        while True:
            await self.refresh()
            await asyncio.sleep(self._interval)

    async def refresh(self) -> None:
        """Asks once. The figures are as old as the question; where no answer comes, the last ones stay."""
        now, begin = self._clock(), time.perf_counter()
        try:
            self._last = now, await self._source.fetch(now)
        except UsageUnavailable as problem:
            if not self._is_failing:
                _log.warning("past use of queues is unknown", reason=str(problem))
            self._is_failing = True
            return
        self._on_answer(time.perf_counter() - begin)
        if self._is_failing:
            _log.info("past use of queues is known again")
        self._is_failing = False
        self._is_read.set()

    async def first(self, within: float) -> bool:
        """Waits for the first figures, but not for ever; says whether they are there."""
        try:
            async with asyncio.timeout(within):
                await self._is_read.wait()
        except TimeoutError:
            return False
        return True
