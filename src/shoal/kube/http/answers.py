"""Answers that go on: a streamed body and a WebSocket, as the transport's callers see them.

Both are iterators, not generators, so that waiting for the next piece can be given up (by a timeout, say) and taken up
again.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import suppress

import aiohttp

from shoal.kube.errors import ConnectionFault
from shoal.kube.http.faults import FAULTS, harmless

PING_SECONDS = 15.0
"""How often a WebSocket is pinged, so that no gateway on the way takes it for idle."""

_GOOD_CLOSES = (0, aiohttp.WSCloseCode.OK, aiohttp.WSCloseCode.GOING_AWAY)
"""0 is aiohttp's word for a close frame without a code."""

Fault = Callable[[Exception], ConnectionFault]
"""Makes the fault of a request that an exception means."""


class HttpStream:
    """A body that is read as it comes."""

    def __init__(self, answer: aiohttp.ClientResponse, fault: Fault) -> None:
        self._answer = answer
        self._fault = fault

    @property
    def status(self) -> int:
        """The HTTP status."""
        return self._answer.status

    @property
    def headers(self) -> Mapping[str, str]:
        """The headers of the answer."""
        return self._answer.headers

    def chunks(self) -> AsyncIterator[bytes]:
        """The body, in the pieces it comes in."""
        return self

    def __aiter__(self) -> HttpStream:
        return self

    async def __anext__(self) -> bytes:
        try:
            chunk = await self._answer.content.readany()
        except FAULTS as error:
            raise self._fault(error) from harmless(error)
        if not chunk:
            raise StopAsyncIteration
        return chunk

    async def read(self) -> bytes:
        """The rest of the body."""
        try:
            return await self._answer.content.read()
        except FAULTS as error:
            raise self._fault(error) from harmless(error)


class HttpWebSocket:
    """A WebSocket whose messages are bytes."""

    def __init__(self, opened: aiohttp.ClientWebSocketResponse[bool], fault: Fault, *, described: str) -> None:
        self._opened = opened
        self._fault = fault
        self._described = described
        self._is_closed = False

    @property
    def protocol(self) -> str:
        """The subprotocol that the server chose."""
        return self._opened.protocol or ""

    async def send(self, data: bytes) -> None:
        """Sends one message; waits while the server takes none."""
        try:
            await self._opened.send_bytes(data)
        except FAULTS as error:
            raise self._fault(error) from harmless(error)

    def messages(self) -> AsyncIterator[bytes]:
        """The messages until either side closes; a connection that breaks off is a ConnectionFault."""
        return self

    def __aiter__(self) -> HttpWebSocket:
        return self

    async def __anext__(self) -> bytes:
        if self._is_closed:
            raise StopAsyncIteration
        message = await self._opened.receive()
        match message.type:
            case aiohttp.WSMsgType.BINARY:
                return bytes(message.data)
            case aiohttp.WSMsgType.TEXT:
                return str(message.data).encode()
            case aiohttp.WSMsgType.CLOSE if message.data in _GOOD_CLOSES:
                self._is_closed = True
            case aiohttp.WSMsgType.CLOSE:
                why = f"was closed with code {message.data}: {message.extra or 'no reason given'}"
            case aiohttp.WSMsgType.ERROR:
                why = f"broke: {message.data}"
            case _:
                # aiohttp reports a connection that ends without a close frame as closed; so is one that we close.
                why = "broke off"
        if self._is_closed:
            raise StopAsyncIteration
        raise ConnectionFault(f"{self._described} {why}")

    async def close(self) -> None:
        """Closes the WebSocket; waiting for messages ends."""
        self._is_closed = True
        await self._opened.close()

    async def keep_pinging(self) -> None:
        """Shows life. Nobody waits for the pongs: a server whose process is slow to read is slow to send them."""
        with suppress(*FAULTS):
            while not self._opened.closed:
                await asyncio.sleep(PING_SECONDS)
                await self._opened.ping()
