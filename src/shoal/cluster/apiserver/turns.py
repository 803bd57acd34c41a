"""Writes take turns, so that a burst of them leaves room for those who only want to read.

A write is a millisecond or two of work in one piece. Thirty of them that arrive together would be carried out before
the event loop looks at its sockets again, and a read that came a moment later would wait for all of them. So only as
many are let in at once as fit into a few milliseconds; the others wait in the order in which they came, and what
arrives meanwhile is answered in between.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

_AT_ONCE = 0.005
_WEIGHT = 0.25


class Turns:
    """Lets writes in, a few in each turn of the event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._is_watching = False
        self._began = 0.0
        self._let_in = 0
        self._usual = _AT_ONCE
        """What one write takes, as far as the last ones tell."""

    async def mine(self) -> None:
        """Returns when it is the caller's turn: at once, unless others have just taken long or wait already."""
        if not self._is_watching:
            self._is_watching = True
            self._begin(0)
            asyncio.get_running_loop().call_soon(self._next)
        elif self._waiting or self._clock() - self._began >= _AT_ONCE:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.append(turn)
            await turn
            return
        self._let_in += 1

    def _begin(self, let_in: int) -> None:
        self._let_in = let_in
        self._began = self._clock()

    def _next(self) -> None:
        """Comes behind those that were let in: by now they have done their work, and sockets were looked at."""
        if self._let_in:
            each = (self._clock() - self._began) / self._let_in
            self._usual += _WEIGHT * (each - self._usual)
        if not self._waiting:
            self._is_watching = False
            return
        room = max(1, int(_AT_ONCE / max(self._usual, 1e-6)))
        let_in = 0
        while self._waiting and let_in < room:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_result(None)
                let_in += 1
        self._begin(let_in)
        asyncio.get_running_loop().call_soon(self._next)
