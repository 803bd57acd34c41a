"""Patience with nodes that reject or break their daemon: each failed pod is deleted later than the one before.

A pod that fails at once would otherwise be made and deleted without end. What is known is forgotten with the process.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable
from dataclasses import dataclass

INITIAL = 1.0
LONGEST = 900.0
_SWEEP_EVERY = 60.0


@dataclass
class _Waiting:
    seconds: float
    since: float


class FailedPods:
    """How long to wait before the next failed pod of a node is deleted."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[Hashable, _Waiting] = {}
        self._swept = clock()

    def delay(self, key: Hashable) -> float:
        """The seconds that are left to wait; 0 where a failed pod may be deleted now."""
        known = self._waiting.get(key)
        if known is None or self._is_over(known):
            return 0.0
        return max(0.0, known.since + known.seconds - self._clock())

    def deleted(self, key: Hashable) -> None:
        """A failed pod was deleted: the next one waits twice as long."""
        self._sweep()
        known = self._waiting.get(key)
        if known is None or self._is_over(known):
            self._waiting[key] = _Waiting(INITIAL, self._clock())
        else:
            self._waiting[key] = _Waiting(min(known.seconds * 2, LONGEST), self._clock())

    def _is_over(self, waiting: _Waiting) -> bool:
        """Whether a node has been well for so long that its failures count no more."""
        return self._clock() - waiting.since > 2 * LONGEST

    def _sweep(self) -> None:
        now = self._clock()
        if now - self._swept < _SWEEP_EVERY:
            return
        self._swept = now
        self._waiting = {key: waiting for key, waiting in self._waiting.items() if not self._is_over(waiting)}
