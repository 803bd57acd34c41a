"""What a running scheduler knows of the past: its own memory, or what a server remembers.

Every cycle hands over its queues before it divides anything among them, and each queue learns what it has used. The own
memory notes what queues hold at that moment; where nothing happens, it has a cycle begin once in a while, so that what
is held for hours is counted for hours.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Protocol

import aiohttp
import structlog

from shoal.scheduler.model.amounts import NONE, Amounts
from shoal.scheduler.shares.tree import QueueTree
from shoal.scheduler.shares.usage.history import UsageHistory
from shoal.scheduler.shares.usage.prometheus import PrometheusUsage
from shoal.scheduler.shares.usage.reader import UsageReader
from shoal.scheduler.shares.usage.settings import PROMETHEUS, UsageSettings
from shoal.scheduler.shares.usage.store import UsageStore

_log = structlog.get_logger("shoal.scheduler.usage")


class PastUse(Protocol):
    """Whoever knows what queues used."""

    def tell(self, now: float, shares: QueueTree, total: Amounts) -> None:
        """Tells every queue what part of the cluster it used. Called in a cycle's thread, before shares are divided."""

    async def known(self) -> None:
        """Waits until the past is known, but not for ever."""

    async def run(self) -> None:
        """Keeps it up to date until it is cancelled."""


def past_use(
    settings: UsageSettings,
    *,
    name: str = "",
    wake: Callable[[], None],
    on_answer: Callable[[float], None] = lambda seconds: None,
    clock: Callable[[], float] = time.time,
) -> PastUse:
    """The past that a configuration asks for.

    ``name``: the node pool that is scheduled, if any; each has a memory of its own. ``wake`` has a cycle begin.
    ``on_answer`` is told how many seconds a server took to answer.
    """
    if settings.client_type == PROMETHEUS:
        return AskedUse(settings, on_answer=on_answer, clock=clock)
    file_name = f"usage-{name}" if name else "usage"
    store = None if settings.directory is None else UsageStore(settings.directory, file_name)
    return NotedUse(settings, store, wake=wake)


class NotedUse:
    """The scheduler's own memory."""

    def __init__(self, settings: UsageSettings, store: UsageStore | None, *, wake: Callable[[], None]) -> None:
        self._history = UsageHistory(
            settings.window,
            half_life=settings.half_life,
            longest_gap=settings.staleness,
            answer_lasts=settings.fetch_interval,
        )
        self._interval = settings.fetch_interval
        self._store = store
        self._wake = wake
        self._is_read = False
        self._lock = threading.Lock()
        """Cycles note in their own thread what another one keeps in a file."""
        self._saving = threading.Lock()

    def tell(self, now: float, shares: QueueTree, total: Amounts) -> None:
        """Notes what queues hold, and tells them what they used."""
        with self._lock:
            if self._store is not None and not self._is_read:
                self._store.load(self._history)
            self._is_read = True
            self._history.record(now, {share.name: share.allocated for share in shares}, total)
            usage = self._history.usage(now)
        tell_queues(shares, usage)

    async def known(self) -> None:
        """It is known at once: the first cycle reads the file."""

    async def run(self) -> None:
        """Looks again once in a while, and keeps what was noted."""
        try:
            while True:
                await asyncio.sleep(self._interval)
                self._wake()
                await asyncio.to_thread(self._save)
        finally:
            self._save()

    def _save(self) -> None:
        if self._store is None or not self._is_read:
            return
        with self._saving:
            with self._lock:
                encoded = self._history.encode()
            self._store.save(encoded)


class AskedUse:
    """What a Prometheus server remembers."""

    def __init__(
        self, settings: UsageSettings, *, on_answer: Callable[[float], None], clock: Callable[[], float]
    ) -> None:
        self._settings = settings
        self._source: PrometheusUsage | None = None
        self._reader = UsageReader(
            self,
            interval=settings.fetch_interval,
            staleness=settings.staleness,
            clock=clock,
            on_answer=on_answer,
        )

    async def fetch(self, now: float) -> Mapping[str, Amounts]:
        """Asks the server."""
        assert self._source is not None, "nobody asks before it runs"
        return await self._source.fetch(now)

    def tell(self, now: float, shares: QueueTree, total: Amounts) -> None:
        """Tells queues what they used by the last answer, or nothing where it is too old."""
        tell_queues(shares, self._reader.usage(now))

    async def known(self) -> None:
        """Waits for the first answer, as long as the configuration says."""
        if self._settings.wait_timeout and not await self._reader.first(self._settings.wait_timeout):
            _log.warning("scheduling begins without past use of queues", waited=self._settings.wait_timeout)

    async def run(self) -> None:
        """Asks again and again."""
        async with aiohttp.ClientSession() as session:
            self._source = PrometheusUsage(self._settings, session)
            await self._reader.run()


def tell_queues(shares: QueueTree, usage: Mapping[str, Amounts]) -> None:
    """Lets every queue know what it used; one of which nothing is known used nothing."""
    for share in shares:
        used = usage.get(share.name, NONE)
        if share.queue.usage != used:
            share.queue = replace(share.queue, usage=used)
