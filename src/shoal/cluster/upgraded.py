"""A connection behind an HTTP upgrade (101), as bytes both ways, on aiohttp's server or client."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import suppress
from typing import Any, Protocol

from shoal.cluster.inflow import Inflow


class ByteStream(Protocol):
    """One end of a connection."""

    def pieces(self) -> AsyncIterator[bytes]:
        """What the other end sends, until it closes."""
        ...

    async def send(self, data: bytes) -> None:
        """Sends; waits while the other end takes nothing. Raises ConnectionError where it is gone."""
        ...


class Upgraded:
    """All that comes on a connection behind the answer 101, cut anywhere; what nobody reads yet is bounded."""

    def __init__(
        self,
        take_over: Callable[[Any], None],
        transport: asyncio.Transport | None,
        send: Callable[[bytes], Awaitable[None]],
    ) -> None:
        """``take_over`` makes aiohttp give this object what comes, as it gives bytes to its reader of WebSockets."""
        self._transport = transport
        self._send = send
        self._unread = Inflow()
        self._is_paused = False
        take_over(self)

    async def pieces(self) -> AsyncIterator[bytes]:
        """What the other end sends, until it closes."""
        while data := await self._unread.get():
            yield data
            if self._is_paused and not self._unread.is_over_full and self._transport is not None:
                self._is_paused = False
                self._transport.resume_reading()

    async def send(self, data: bytes) -> None:
        """Sends; waits while the other end takes nothing."""
        await self._send(data)

    # As aiohttp calls what reads for it

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Takes what came; whether it was the last, and what is left of it."""
        self._unread.put(bytes(data))
        if self._unread.is_over_full and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()
        return False, b""

    def feed_eof(self) -> None:
        """The other end has closed."""
        self._unread.end()


async def carry_both_ways(one: ByteStream, other: ByteStream) -> None:
    """Carries bytes between two connections until either has closed."""
    await until_either_ends(_carry(one, other), _carry(other, one))


async def until_either_ends(*both: Coroutine[Any, Any, None]) -> None:
    """Runs the two directions of a connection until one of them has ended, and then ends the other."""
    ways = [asyncio.create_task(way) for way in both]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for way in ways:
            way.cancel()
        await asyncio.wait(ways)


async def _carry(source: ByteStream, sink: ByteStream) -> None:
    # A connection that breaks has closed: there is nobody left to report it to.
    with suppress(ConnectionError):
        async for piece in source.pieces():
            await sink.send(piece)
