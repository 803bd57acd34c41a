"""Writes take turns, so that a burst of them leaves room for those who only want to read.

A write is a millisecond or two of work in one piece. Thirty of them that arrive together would be carried out before
the event loop looks at its sockets again, and a read that came a moment later would wait for all of them. So only as
many are let in at once as fit into a few milliseconds, and what arrives meanwhile is answered in between. Of those who
wait one after the other has a turn, with that of its writes that came first: a hundred writes of a controller keep
nobody else waiting for longer than one of them takes.
"""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Callable

_AT_ONCE = 0.002
_WEIGHT = 0.25


class Turns:
    """Lets writes in, a few in each turn of the event loop."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._waiting: dict[str, deque[asyncio.Future[None]]] = {}
        """The writes of each who waits, the one first whose turn is next."""
        self._is_watching = False
        self._began = 0.0
        self._let_in = 0
        self._usual = _AT_ONCE
        """What one write takes, as far as the last ones tell."""

    async def mine(self, who: str) -> None:
        """Returns when it is the caller's turn: at once, unless writes have just taken long or wait already."""
        if not self._is_watching:
            self._is_watching = True
            self._begin(0)
            asyncio.get_running_loop().call_soon(self._next)
        elif self._waiting or self._clock() - self._began >= _AT_ONCE:
            turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
            self._waiting.setdefault(who, deque()).append(turn)
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
            turn = self._taken()
            if not turn.done():
                turn.set_result(None)
                let_in += 1
        self._begin(let_in)
        asyncio.get_running_loop().call_soon(self._next)

    def _taken(self) -> asyncio.Future[None]:
        """Takes the next write out; who has more of them comes again behind the others."""
        who, writes = next(iter(self._waiting.items()))
        del self._waiting[who]
        turn = writes.popleft()
        if writes:
            self._waiting[who] = writes
        return turn
