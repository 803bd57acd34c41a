"""What a controller has asked for and not yet seen, counted by key.

For pods with generated names the cache cannot be asked whether *that* pod has arrived. A controller that is about to
create three sets an expectation of three, the pod watch lowers it, and until it is met (or too old to be believed) the
controller does not create more.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field

from shoal.kube.store import Key

EXPIRES_AFTER = 300.0
"""An expectation this old is not believed any more: an event was missed, and looking again is the cure."""


@dataclass
class _Expected:
    since: float
    creations: int = 0
    deletions: set[str] = field(default_factory=set)


class Expectations:
    """Creations by number, deletions by uid."""

    def __init__(self, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._expected: dict[Key, _Expected] = {}

    def expect(self, key: Key, *, creations: int = 0, deletions: frozenset[str] = frozenset()) -> None:
        """Call before the requests are sent: their events may be quicker than their answers."""
        known = self._expected.get(key)
        if known is None or self._has_expired(known):
            known = self._expected[key] = _Expected(self._clock())
        known.creations = max(known.creations, 0) + creations
        known.deletions |= deletions
        known.since = self._clock()

    def created(self, key: Key, count: int = 1) -> None:
        """A creation was seen, or its request failed and will never be."""
        if known := self._expected.get(key):
            known.creations -= count

    def deleted(self, key: Key, uid: str) -> None:
        """A deletion was seen, or its request failed."""
        if known := self._expected.get(key):
            known.deletions.discard(uid)

    def are_met(self, key: Key) -> bool:
        """Whether everything expected of a key has been seen, or is too old to wait for."""
        known = self._expected.get(key)
        if known is None:
            return True
        if (known.creations <= 0 and not known.deletions) or self._has_expired(known):
            del self._expected[key]
            return True
        return False

    def forget(self, key: Key) -> None:
        """The object is gone: expect nothing of it."""
        self._expected.pop(key, None)

    def _has_expired(self, expected: _Expected) -> bool:
        return self._clock() - expected.since > EXPIRES_AFTER
