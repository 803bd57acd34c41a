"""How long news may wait that nobody waits for, so that several steps are told at once.

What follows in quick steps (pods that are made, Jobs that become ready) would be written as often as there are steps,
and wake every reader each time. A controller that finds such news asks how long it still waits, and comes back then.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from shoal.kube.store import Key


class Patience:
    """Remembers since when each key has something that is not told; who has told it says so by ``forget``.

    It does not forget by itself: telling may fail, and what has waited for long enough does not wait again.
    """

    def __init__(
        self, seconds: float = 1.0, *, scale: float = 1.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        """``seconds`` is how long news waits with which no other patience is named; ``scale`` shortens all waits."""
        self._seconds = seconds
        self._scale = scale
        self._clock = clock
        self._waits: dict[Key, tuple[float, float]] = {}
        """The least patience that there was with a key's news, and since when."""

    def left(self, key: Key, seconds: float | None = None) -> float:
        """Seconds for which the news of a key still waits; 0 when it has waited for long enough.

        News with which there is less patience than with what waits already begins to wait anew: otherwise each step of
        one that took long would be told by itself.
        """
        patience = (self._seconds if seconds is None else seconds) * self._scale
        now = self._clock()
        least, since = self._waits.get(key, (patience, now))
        if patience < least:
            least, since = patience, now
        self._waits[key] = least, since
        return max(0.0, since + patience - now)

    def forget(self, key: Key) -> None:
        """Nothing of this key waits any more."""
        self._waits.pop(key, None)
