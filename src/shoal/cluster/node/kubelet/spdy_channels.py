"""Commands by SPDY: a stream for each channel, named when it is opened.

This is how API servers before 1.36 come to a kubelet, and kubectl before 1.31. The streams that the request speaks of
are all opened before anything is said on them.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
import structlog
from aiohttp import web

from shoal.cluster.inflow import Inflow
from shoal.cluster.node.kubelet.channels import ERROR, RESIZE, STDERR, STDIN, STDOUT, Close, Input, Said, Size, Wanted
from shoal.cluster.node.kubelet.spdy import BadFrame
from shoal.cluster.node.kubelet.spdy_streams import SpdyStream, SpdyStreams
from shoal.cluster.node.kubelet.wires import BareWire, accept_spdy

logger = structlog.get_logger(__name__)

PROTOCOLS = ("v4.channel.k8s.io",)
_NAMES = {"error": ERROR, "stdin": STDIN, "stdout": STDOUT, "stderr": STDERR, "resize": RESIZE}
_LONGEST_SIZE = 256
_ALL_WITHIN = 30.0
_LEAVES_WITHIN = 10.0
"""How long a client that was told how it ended may take to close the connection."""


class SpdyEnds:
    """The agent's ends of a command's streams."""

    def __init__(self, request: web.Request, wire: BareWire, wanted: Wanted) -> None:
        self.response = wire.response
        self._streams = SpdyStreams(request, wire)
        taken = {STDIN: wanted.stdin, STDOUT: wanted.stdout, STDERR: wanted.stderr, RESIZE: wanted.tty}
        self._missing = {ERROR} | {channel for channel, is_taken in taken.items() if is_taken}
        self._ends: dict[int, SpdyStream] = {}
        self._settled = asyncio.Event()
        """Set when all streams are there, or the client has left."""
        self._said: asyncio.Queue[Said | None] = asyncio.Queue(1)

    @staticmethod
    async def accept(request: web.Request, wanted: Wanted) -> SpdyEnds:
        """Accepts a client; raises Refused."""
        return SpdyEnds(request, await accept_spdy(request, PROTOCOLS), wanted)

    @asynccontextmanager
    async def opened(self) -> AsyncIterator[None]:
        """Listens to the client for the length of a block, which begins when all streams are there."""
        listening = asyncio.create_task(self._listen())
        try:
            with suppress(TimeoutError):
                async with asyncio.timeout(_ALL_WITHIN):
                    await self._settled.wait()
            if self._missing:
                raise ConnectionResetError("the client has not opened all of its streams")
            yield
        finally:
            listening.cancel()
            await asyncio.wait({listening})

    async def receive(self) -> Said | None:
        """What the client says next; None when it has left."""
        return await self._said.get()

    async def send(self, channel: int, data: bytes) -> None:
        """Sends output; waits while the client takes none."""
        await self._ends[channel].write(data)

    async def finish(self, status: bytes) -> None:
        """Says how it ended, and waits for the client to close: whoever closes first may lose what was sent last."""
        await self.send(ERROR, status)
        for stream in self._ends.values():
            stream.inflow.give_up()
            await stream.end()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LEAVES_WITHIN):
                while await self.receive() is not None:
                    pass

    async def _listen(self) -> None:
        """Hears what the client says, until it leaves."""
        async with asyncio.TaskGroup() as group:
            try:
                async for stream in self._streams.opened():
                    await self._take(stream, group)
            except ConnectionError:
                pass
            except BadFrame as error:
                logger.warning("a client runs a command in a language that is not understood", problem=str(error))
            self._settled.set()
            for stream in self._ends.values():
                stream.forget()
        await self._said.put(None)

    async def _take(self, stream: SpdyStream, group: asyncio.TaskGroup) -> None:
        channel = _NAMES.get(stream.headers.get("streamtype", ""))
        if channel is None or channel not in self._missing:
            await stream.refuse()
            return
        await stream.accept()
        self._ends[channel] = stream
        self._missing.discard(channel)
        if not self._missing:
            self._settled.set()
        if channel == STDIN:
            group.create_task(self._hear_input(stream.inflow))
        elif channel == RESIZE:
            group.create_task(self._hear_sizes(stream.inflow))

    async def _hear_input(self, inflow: Inflow) -> None:
        with suppress(ConnectionError):
            while data := await inflow.get():
                await self._said.put(Input(data))
            await self._said.put(Close())

    async def _hear_sizes(self, inflow: Inflow) -> None:
        unread = b""
        with suppress(ConnectionError):
            while data := await inflow.get():
                *lines, unread = (unread[-_LONGEST_SIZE:] + data).split(b"\n")
                for line in lines:
                    with suppress(msgspec.MsgspecError):
                        await self._said.put(msgspec.json.decode(line, type=Size))
