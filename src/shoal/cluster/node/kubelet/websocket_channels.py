"""Commands by WebSocket: each message begins with the number of its channel. One is in hand at a time, both ways.

From version 5 of the protocol on a client can say that its input has ended.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import aiohttp
import msgspec
from aiohttp import web

from shoal.cluster.node.kubelet.channels import ERROR, RESIZE, STDERR, STDIN, STDOUT, Close, Input, Said, Size, Wanted
from shoal.cluster.node.kubelet.wires import accept_websocket
from shoal.kube.streams.commands import CLOSE, PROTOCOLS


class WebSocketEnds:
    """The agent's end of a command's WebSocket."""

    def __init__(self, websocket: web.WebSocketResponse, wanted: Wanted) -> None:
        self.response = websocket
        self._wanted = wanted

    @staticmethod
    async def accept(request: web.Request, wanted: Wanted) -> WebSocketEnds:
        """Accepts a client; raises Refused."""
        return WebSocketEnds(await accept_websocket(request, PROTOCOLS), wanted)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Tells the client that all is well, for which it takes the first message, though empty."""
        await self.send(STDOUT if self._wanted.stdout else STDERR if self._wanted.stderr else ERROR, b"")
        yield

    async def receive(self) -> Said | None:
        """What the client says next; None when it has left."""
        while True:
            message = await self.response.receive()
            if message.type is not aiohttp.WSMsgType.BINARY:
                return None
            said = _said(message.data)
            if said is not None:
                return said

    async def send(self, channel: int, data: bytes) -> None:
        """Sends output; waits while the client takes none."""
        await self.response.send_bytes(bytes([channel]) + data)

    async def finish(self, status: bytes) -> None:
        """Says how it ended, and closes."""
        await self.send(ERROR, status)
        await self.response.close()


def _said(message: bytes) -> Said | None:
    """What a message means; None where it is about a channel that a client has no business with."""
    channel, data = message[:1], message[1:]
    if channel == bytes([STDIN]) and data:
        return Input(data)
    if channel == bytes([CLOSE]) and data == bytes([STDIN]):
        return Close()
    if channel == bytes([RESIZE]):
        with suppress(msgspec.MsgspecError):
            return msgspec.json.decode(data, type=Size)
    return None
