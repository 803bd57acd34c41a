"""The last view that a scheduler has published, and those who wait for the next one."""

from __future__ import annotations

import asyncio
import secrets
import threading
from contextlib import suppress
from typing import NamedTuple

from shoal.api.visualizer import ClusterView


class Published(NamedTuple):
    """A view, and which one it is of those that this publisher had."""

    version: int
    view: ClusterView


class Publisher:
    """Holds the latest view. To publish is to put one reference in the place of another, from any thread."""

    def __init__(self) -> None:
        self.epoch = secrets.token_hex(4)
        """Tells this publisher's versions from those of one before it, or beside it."""
        self._lock = threading.Lock()  # held for a few instructions; nothing is awaited or encoded meanwhile
        self._latest: Published | None = None
        self._waiting: set[asyncio.Future[None]] = set()

    @property
    def latest(self) -> Published | None:
        """The last view, or none before the first cycle has ended."""
        return self._latest

    def publish(self, view: ClusterView) -> None:
        """Puts a view in the place of the last one, and wakes those who wait."""
        with self._lock:
            version = 1 if self._latest is None else self._latest.version + 1
            self._latest = Published(version, view)
            waiting, self._waiting = self._waiting, set()
        for future in waiting:
            with suppress(RuntimeError):  # their loop was closed meanwhile
                future.get_loop().call_soon_threadsafe(_wake, future)

    async def after(self, version: int) -> Published:
        """The latest view that is newer than a version, as soon as there is one."""
        while True:
            future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            with self._lock:
                if self._latest is not None and self._latest.version > version:
                    return self._latest
                self._waiting.add(future)
            try:
                await future
            finally:
                with self._lock:
                    self._waiting.discard(future)


def _wake(future: asyncio.Future[None]) -> None:
    if not future.done():
        future.set_result(None)
