"""When the pods of a gang that is not whole are worth writing down.

The pods of a gang are made within moments of each other. Naming them in the PodGang one by one would write the whole
list as often as there are pods, and wake every reader of it each time; so a change waits until the gang is whole, which
loses nothing, since no pod may start before. But the last pod may never come (a quota, a refused template), and those
that are there must be seen: what waited for a second is written as it is. So a gang that fills, or loses and replaces
pods, is written at most once a second until it is whole again, and none is left unnamed for good.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Final

from shoal.kube import Key

PATIENCE: Final = 1.0
"""Seconds that a change waits for the rest of its gang."""
SOON: Final = 0.5
"""Seconds after which a status is told that nobody waits for: most of them are superseded by then."""
AT_FIRST: Final = 2.0
"""The same for the first status of a gang: one whose pods come at once is told of when it has them."""

RACE_LOST: Final = 0.05
"""Seconds after which a status is told that lost a race against another writer."""


class Patience:
    """Remembers since when each gang has something that is not written down."""

    def __init__(self, seconds: float = PATIENCE, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._seconds = seconds
        self._clock = clock
        self._since: dict[Key, float] = {}

    def left(self, key: Key, seconds: float | None = None) -> float:
        """Seconds for which the changes of a gang still wait; 0 when they have waited for long enough."""
        now = self._clock()
        return max(0.0, self._since.setdefault(key, now) + (self._seconds if seconds is None else seconds) - now)

    def forget(self, key: Key) -> None:
        """Nothing of this gang waits any more."""
        self._since.pop(key, None)
