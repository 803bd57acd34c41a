"""How long a status waits that nobody waits for.

A Job becomes active, then ready, then it is done; each step may come a moment after the other. Who counts for every one
of them tells the same thing three times, and wakes every reader of it each time. So what only counts waits for a
moment, and is told as it is then; what decides something (a condition, an end, a restart, an error) is told at once,
with all counters as they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from shoal.kube import Key

SOON: Final = 1.0
"""Seconds after which counters are told: most of them are superseded by then."""
AT_FIRST: Final = 30.0
"""The same where all that is to be told is that nothing has happened yet: it mostly has by then."""


class Patience:
    """Remembers since when each object has something to tell."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._since: dict[Key, float] = {}

    def left(self, key: Key, seconds: float) -> float:
        """Seconds for which an object's news still waits; 0 when it has waited for long enough, and is told now."""
        now = self._clock()
        left = self._since.setdefault(key, now) + seconds - now
        if left > 0:
            return left
        self.forget(key)
        return 0.0

    def forget(self, key: Key) -> None:
        """Nothing of this object waits any more."""
        self._since.pop(key, None)
