"""What one end has sent and the other has not read yet: bounded, so that who is slow slows the sender."""

from __future__ import annotations

import asyncio
from collections import deque

MOST_UNREAD = 1 << 20


class Inflow:
    """What a client has sent on one stream and nobody has read yet."""

    def __init__(self) -> None:
        self._pieces: deque[bytes] = deque()
        self._size = 0
        self._is_ended = False
        self._is_broken = False
        self._changed = asyncio.Event()

    @property
    def is_over_full(self) -> bool:
        """Whether more should wait."""
        return self._size > MOST_UNREAD and not self._is_broken

    def put(self, data: bytes) -> None:
        """Takes what came."""
        if data and not self._is_broken:
            self._pieces.append(data)
            self._size += len(data)
            self._changed.set()

    def end(self) -> None:
        """No more will come."""
        self._is_ended = True
        self._changed.set()

    def give_up(self) -> None:
        """Neither side wants to know of the other any more."""
        self._is_broken = True
        self._pieces.clear()
        self._size = 0
        self._changed.set()

    async def get(self) -> bytes:
        """The next piece; nothing at the end. Raises ConnectionResetError where it was given up."""
        while not self._pieces:
            if self._is_broken:
                raise ConnectionResetError("the client has given the connection up")
            if self._is_ended:
                return b""
            await self._change()
        piece = self._pieces.popleft()
        self._size -= len(piece)
        self._changed.set()
        return piece

    async def room(self) -> None:
        """Returns when more may come."""
        while self.is_over_full:
            await self._change()

    async def _change(self) -> None:
        self._changed.clear()
        await self._changed.wait()
