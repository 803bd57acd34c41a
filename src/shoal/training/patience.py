"""How long a status waits that nobody waits for.

A Job is made, becomes active, then ready, then it is done; each step may come a moment after the other. Who counts for
every one of them tells almost the same four times, and wakes every reader of it each time. So what only counts waits
for a while, the shorter the more there is to tell, and is told as it is then; what decides something (a condition, an
end, a restart, an error) is told at once, with all counters as they are.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Final, TypeAlias

from shoal.api.jobset import ReplicatedJobStatus
from shoal.api.trainer import JobStatus
from shoal.kube import Key

Counters: TypeAlias = ReplicatedJobStatus | JobStatus
"""How the Jobs of one template are."""

SOON: Final = 1.0
"""Seconds after which it is told that Jobs are ready, done or stopped."""
LATER: Final = 5.0
"""The same where Jobs have begun, and are not ready yet: most of them are by then."""
AT_FIRST: Final = 300.0
"""The same where all that is to be told is that nothing has happened yet: counters that are missing say as much."""


def patience_with_counters(before: Iterable[Counters], after: Iterable[Counters]) -> float:
    """Seconds for which a change of counters alone can wait."""
    told, seen = list(before), list(after)
    if _reached(told) != _reached(seen):
        return SOON
    if told or any(each.active for each in seen):
        return LATER
    return AT_FIRST


def _reached(counters: Iterable[Counters]) -> list[tuple[str, int, int, int, int]]:
    """What one may look for, by template."""
    counted = [(each.name, each.ready, each.succeeded, each.failed, each.suspended) for each in counters]
    return [one for one in counted if any(one[1:])]


class Patience:
    """Remembers since when each object has something to tell."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waits: dict[Key, tuple[float, float]] = {}
        """The least patience that there was with an object's news, and since when."""

    def left(self, key: Key, seconds: float) -> float:
        """Seconds for which an object's news still waits; 0 when it has waited for long enough, and is told now.

        News with which there is less patience than with what waits already begins to wait anew: otherwise each step of
        one that took long would be told by itself.
        """
        now = self._clock()
        least, since = self._waits.get(key, (seconds, now))
        if seconds < least:
            least, since = seconds, now
        self._waits[key] = least, since
        left = since + seconds - now
        if left > 0:
            return left
        self.forget(key)
        return 0.0

    def forget(self, key: Key) -> None:
        """Nothing of this object waits any more."""
        self._waits.pop(key, None)
