"""How often one object's status is written while what it tells keeps changing.

A thousand pods that start one after the other would write the figures of their gang a thousand times, and those of its
queues as often. The first change is told at once, the others together a moment later; the last one is always told.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from typing import Final, Generic, TypeVar

K = TypeVar("K", bound=Hashable)

EVERY: Final = 0.25
"""Seconds between two writes of one object."""
RACE_LOST: Final = 0.05
"""Seconds after which a write is tried again that lost a race against another writer."""


class WritePace(Generic[K]):
    """Remembers when each object was last written."""

    def __init__(self, seconds: float = EVERY, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._last: dict[K, float] = {}

    def left(self, key: K) -> float:
        """Seconds until the object may be written again; 0 when it may be now."""
        last = self._last.get(key)
        if last is None:
            return 0.0
        left = last + self._seconds - self._clock()
        if left <= 0:
            del self._last[key]  # it is as if it had never been written: what is at rest is not remembered
        return max(0.0, left)

    def wrote(self, key: K) -> None:
        """The object was written just now."""
        self._last[key] = self._clock()

    def forget(self, key: K) -> None:
        """The object is gone."""
        self._last.pop(key, None)
