"""Connections that a client had upgraded, as pieces of bytes both ways: the messages of a WebSocket, or all that comes.

Kubernetes has clients of both kinds. kubectl and newer API servers come by WebSocket; API servers before 1.36 and those
that were written against them upgrade to SPDY, which begins right behind the answer to the request.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from typing import Protocol

import aiohttp
from aiohttp import web

from shoal.cluster.node.kubelet.answers import Refused
from shoal.cluster.upgraded import Upgraded

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


class BareWire(Upgraded):
    """All that comes on a connection behind the request that upgraded it."""

    def __init__(self, request: web.Request, response: web.StreamResponse) -> None:
        """The response is 101, and sent."""
        self.response = response
        super().__init__(request.protocol.set_parser, request.transport, response.write)


def is_spdy(request: web.Request) -> bool:
    """Whether a client wants to speak SPDY on the connection itself."""
    is_upgrade = "upgrade" in request.headers.get("Connection", "").lower()
    return is_upgrade and request.headers.get("Upgrade", "").lower() == SPDY.lower()


async def accept_bare(request: web.Request, headers: Mapping[str, str]) -> BareWire:
    """Answers that the connection is upgraded, and takes it over."""
    response = web.StreamResponse(status=101, headers={"Connection": "Upgrade", **headers})
    response.force_close()
    await response.prepare(request)
    return BareWire(request, response)


async def accept_spdy(request: web.Request, protocols: Sequence[str]) -> BareWire:
    """A connection on which SPDY is spoken, in the first of the client's versions that is known; raises Refused."""
    offered = [name.strip() for line in request.headers.getall(_VERSION, ()) for name in line.split(",")]
    agreed = next((name for name in offered if name in protocols), None)
    if agreed is None:
        words = f"client supports [{' '.join(offered)}], server accepts [{' '.join(protocols)}]"
        raise Refused(403, f"unable to upgrade: unable to negotiate protocol: {words}")
    return await accept_bare(request, {"Upgrade": SPDY, _VERSION: agreed})


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
