"""When there is time for what nobody waits for.

A burst of work has parts that others wait for, and parts that can follow when it is over: the events that tell of it,
say. Done in between these would take their share of the server and of this process, and make all wait. So whoever can
wait asks here first, and is let go on once there is little else to do, or after a while in any case: it may be slow
while there is much to do, but it never stands still.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable

BUSY = 16
"""So many things to do are too many for others to go on beside them."""
LOOKS_EVERY = 0.05


class Calm:
    """Tells by a measure of load when there is time; ``load`` counts what is to be done."""

    def __init__(self, load: Callable[[], int], *, busy_from: int = BUSY) -> None:
        self._load = load
        self._busy_from = busy_from
        self._waiting: set[asyncio.Future[None]] = set()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def is_calm(self) -> bool:
        """Whether there is time."""
        return self._load() < self._busy_from

    async def wait(self, within: float) -> None:
        """Waits until there is time, for so many seconds at most."""
        if self.is_calm:
            return
        loop = asyncio.get_running_loop()
        waiting: asyncio.Future[None] = loop.create_future()
        self._waiting.add(waiting)
        if self._timer is None:
            self._timer = loop.call_later(LOOKS_EVERY, self._look)
        try:
            await asyncio.wait([waiting], timeout=within)
        finally:
            self._waiting.discard(waiting)

    def _look(self) -> None:
        """One look for all who wait."""
        self._timer = None
        if self.is_calm:
            for waiting in self._waiting:
                if not waiting.done():
                    waiting.set_result(None)
        elif self._waiting:
            self._timer = asyncio.get_running_loop().call_later(LOOKS_EVERY, self._look)
