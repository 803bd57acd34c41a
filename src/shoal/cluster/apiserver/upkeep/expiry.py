"""Events go an hour after they were last written, as in Kubernetes: otherwise a cluster would fill up with its past.

How long ago something was written is told by its revision: the sweep notes now and then how far the store has come, and
an hour later everything that has not been written since is too old. Nothing needs to be decoded for that. What was
there before the server started counts as written when it did.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable
from functools import partial

from shoal.cluster.apiserver.state import State
from shoal.cluster.apiserver.storage import Changed, Encoded, Record, renumbered

EVENTS = "events"
LIFETIME = 3600.0

_EVERY = 60.0
_AT_ONCE = 100


class EventExpiry:
    """Removes old Events; ``clock`` gives seconds."""

    def __init__(self, state: State, clock: Callable[[], float] = time.monotonic) -> None:
        self._store = state.store
        self._clock = clock
        self._moments: deque[tuple[float, int]] = deque()

    async def run(self) -> None:
        """Sweeps for ever."""
        while True:
            await self.sweep()
            await asyncio.sleep(_EVERY)

    async def sweep(self) -> None:
        """Removes what has grown too old, a few at a time, and notes how far the store has come."""
        now = self._clock()
        self._moments.append((now, self._store.revision))
        outlived = 0
        while self._moments and now - self._moments[0][0] >= LIFETIME:
            _, outlived = self._moments.popleft()
        if not outlived:
            return
        old = [record for record in self._store.page(EVENTS, None).records if record.revision <= outlived]
        for start in range(0, len(old), _AT_ONCE):
            removals = [removal for record in old[start : start + _AT_ONCE] if (removal := self._removal(record))]
            await asyncio.gather(*removals)

    def _removal(self, record: Record) -> asyncio.Future[Record] | None:
        last = partial(_last_state, record)
        try:
            return self._store.remove(EVENTS, record.namespace, record.name, last, previous=record)
        except Changed:
            return None


def _last_state(record: Record, revision: int) -> Encoded:
    return Encoded(data=renumbered(record.data, revision), labels=record.labels, fields=record.fields, uid=record.uid)
