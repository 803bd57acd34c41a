"""Connections that a client had upgraded, as pieces of bytes both ways: the messages of a WebSocket, or all that comes.

Kubernetes has clients of both kinds. kubectl and newer API servers come by WebSocket; API servers before 1.36 and those
that were written against them upgrade to SPDY, which begins right behind the answer to the request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Any, Protocol, cast

import aiohttp
from aiohttp import web

from shoal.cluster.node.kubelet.answers import Refused
from shoal.cluster.node.kubelet.inflow import Inflow

LARGEST_MESSAGE = 16 << 20
SPDY = "SPDY/3.1"
_VERSION = "X-Stream-Protocol-Version"


class Wire(Protocol):
    """Carries bytes, in pieces that are cut anywhere."""

    @property
    def response(self) -> web.StreamResponse:
        """What the client was answered with."""
        ...

    def pieces(self) -> AsyncIterator[bytes]:
        """What the client sends, until it leaves."""
        ...

    async def send(self, data: bytes) -> None:
        """Sends to the client; waits while it takes nothing. Raises ConnectionError where it has left."""
        ...


class WebSocketWire:
    """The binary messages of a WebSocket."""

    def __init__(self, websocket: web.WebSocketResponse) -> None:
        self.response = websocket

    async def pieces(self) -> AsyncIterator[bytes]:
        """What the client sends, until it leaves."""
        async for message in self.response:
            if message.type is aiohttp.WSMsgType.BINARY:
                yield message.data

    async def send(self, data: bytes) -> None:
        """Sends a message."""
        await self.response.send_bytes(data)


class BareWire:
    """All that comes on a connection behind the request that upgraded it."""

    def __init__(self, request: web.Request, response: web.StreamResponse) -> None:
        """The response is 101, and sent."""
        self.response = response
        self._transport = request.transport
        self._unread = Inflow()
        self._is_paused = False
        # Where aiohttp has bytes read as a WebSocket it takes whatever reads them.
        request.protocol.set_parser(cast(Any, self))

    async def pieces(self) -> AsyncIterator[bytes]:
        """What the client sends, until it leaves."""
        while data := await self._unread.get():
            yield data
            if self._is_paused and not self._unread.is_over_full and self._transport is not None:
                self._is_paused = False
                self._transport.resume_reading()

    async def send(self, data: bytes) -> None:
        """Sends to the client; waits while it takes nothing."""
        await self.response.write(data)

    # As aiohttp calls what reads for it

    def feed_data(self, data: bytes) -> tuple[bool, bytes]:
        """Takes what came; whether it was the last, and what is not for us."""
        self._unread.put(bytes(data))
        if self._unread.is_over_full and not self._is_paused and self._transport is not None:
            self._is_paused = True
            self._transport.pause_reading()
        return False, b""

    def feed_eof(self) -> None:
        """The client has left."""
        self._unread.end()


def is_spdy(request: web.Request) -> bool:
    """Whether a client wants to speak SPDY on the connection itself."""
    is_upgrade = "upgrade" in request.headers.get("Connection", "").lower()
    return is_upgrade and request.headers.get("Upgrade", "").lower() == SPDY.lower()


async def accept_spdy(request: web.Request, protocols: Sequence[str]) -> BareWire:
    """A connection on which SPDY is spoken, in the first of the client's versions that is known; raises Refused."""
    offered = [name.strip() for line in request.headers.getall(_VERSION, ()) for name in line.split(",")]
    agreed = next((name for name in offered if name in protocols), None)
    if agreed is None:
        words = f"client supports [{' '.join(offered)}], server accepts [{' '.join(protocols)}]"
        raise Refused(403, f"unable to upgrade: unable to negotiate protocol: {words}")
    response = web.StreamResponse(status=101, headers={"Connection": "Upgrade", "Upgrade": SPDY, _VERSION: agreed})
    response.force_close()
    await response.prepare(request)
    return BareWire(request, response)


def check_websocket(request: web.Request, protocols: tuple[str, ...]) -> None:
    """Raises Refused where a request asks for no WebSocket, or for none of these protocols."""
    offered = {name.strip() for name in request.headers.get("Sec-WebSocket-Protocol", "").split(",")}
    if not web.WebSocketResponse(protocols=protocols).can_prepare(request):
        raise Refused(400, "Upgrade request required: connect by WebSocket")
    if not offered & set(protocols):
        raise Refused(400, f"none of the WebSocket subprotocols is known here: offer one of {', '.join(protocols)}")


async def accept_websocket(request: web.Request, protocols: tuple[str, ...]) -> web.WebSocketResponse:
    """A WebSocket that speaks one of these protocols; raises Refused."""
    check_websocket(request, protocols)
    websocket = web.WebSocketResponse(protocols=protocols, max_msg_size=LARGEST_MESSAGE, compress=False)
    await websocket.prepare(request)
    return websocket
