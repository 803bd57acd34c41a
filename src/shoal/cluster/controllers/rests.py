"""Leaving an owner of many children alone for a moment after each look at them.

Each change of a child asks for a look at all of them. Where ten thousand change one after the other, looking would take
all the time that there is; after a rest, one look does for the changes of many. What an owner itself asks for anew does
not wait.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from shoal.api.meta import HasMetadata
from shoal.kube import Key
from shoal.kube.store import key_of

MANY = 1000
"""An owner with fewer children is looked at on every change."""
PER_SECOND = 25_000
"""Children that are looked at in a second at most, owner by owner: about a third of what one process can do."""


def rest_after(children: int) -> float:
    """Seconds for which an owner is left alone after a look at so many children."""
    return 0.0 if children < MANY else children / PER_SECOND


class Rests:
    """Which owners rest, and for how long; what is known may be lost."""

    def __init__(
        self,
        rest_after: Callable[[int], float] = rest_after,
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._rest_after = rest_after
        self._clock = clock
        self._resting: dict[Key, tuple[str, int, float]] = {}

    def left(self, owner: HasMetadata) -> float:
        """The seconds that an owner still rests; 0 where it does not, or is another than it was."""
        uid, generation, until = self._resting.get(key_of(owner), ("", 0, 0.0))
        if (uid, generation) != (owner.metadata.uid, owner.metadata.generation):
            return 0.0
        return max(0.0, until - self._clock())

    def begin(self, owner: HasMetadata, *, children: int) -> None:
        """An owner with so many children was looked at, and rests."""
        seconds = self._rest_after(children)
        if seconds > 0:
            metadata = owner.metadata
            self._resting[key_of(owner)] = (metadata.uid, metadata.generation, self._clock() + seconds)

    def forget(self, key: Key) -> None:
        """An owner is gone."""
        self._resting.pop(key, None)
