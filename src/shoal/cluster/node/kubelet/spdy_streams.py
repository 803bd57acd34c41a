"""The streams of SPDY: any number of them on one connection, each opened by the client, and read and ended by itself.

One stream cannot be held back without the others. Each may be behind by ``MOST_UNREAD`` bytes; then all wait for it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping

from aiohttp import web

from shoal.cluster.inflow import Inflow
from shoal.cluster.node.kubelet.departures import while_connected
from shoal.cluster.node.kubelet.spdy import (
    CANCEL,
    PROTOCOL_ERROR,
    REFUSED_STREAM,
    Data,
    FrameReader,
    FrameWriter,
    GoAway,
    Opened,
    Ping,
    Reset,
)
from shoal.cluster.node.kubelet.wires import Wire

_MOST_STREAMS = 10_000


class SpdyStream:
    """One stream, as the agent sees it."""

    def __init__(self, streams: SpdyStreams, number: int, headers: Mapping[str, str]) -> None:
        """The names of headers are in small letters."""
        self.number = number
        self.headers = headers
        self.inflow = Inflow()
        self._streams = streams

    async def accept(self) -> None:
        """Lets the client use it."""
        await self._streams.send(self._streams.writer.accepted(self.number))

    async def refuse(self, status: int = PROTOCOL_ERROR) -> None:
        """Tells the client that it is not wanted."""
        self.forget()
        await self._streams.send(FrameWriter.reset(self.number, status))

    async def write(self, data: bytes) -> None:
        """Sends to the client; waits while it takes nothing."""
        await self._streams.send(FrameWriter.data(self.number, data))

    async def end(self) -> None:
        """Tells the client that there is no more to come."""
        await self._streams.send(FrameWriter.data(self.number, b"", is_last=True))

    async def give_up(self) -> None:
        """Ends it both ways, whatever was still to come."""
        await self._streams.send(FrameWriter.reset(self.number, CANCEL))

    def forget(self) -> None:
        """Whatever still comes on it goes nowhere."""
        self.inflow.give_up()
        self._streams.forget(self.number)


class SpdyStreams:
    """The streams that a client opens; going through them is what reads the connection."""

    def __init__(self, request: web.Request, wire: Wire) -> None:
        self.writer = FrameWriter()
        self._request = request
        self._wire = wire
        self._frames = FrameReader()
        self._known: dict[int, SpdyStream] = {}

    async def opened(self) -> AsyncIterator[SpdyStream]:
        """Each stream as it is opened, to be accepted or refused, until the client leaves; raises BadFrame."""
        async for piece in self._wire.pieces():
            for frame in self._frames.feed(piece):
                match frame:
                    case GoAway():
                        return
                    case Opened():
                        if (stream := await self._new(frame)) is not None:
                            yield stream
                    case Ping(number):
                        await self.send(self.writer.ping(number))
                    case Data(number) | Reset(number) if (known := self._known.get(number)) is not None:
                        await self._take(frame, known.inflow)

    async def send(self, frame: bytes) -> None:
        """Sends a frame; waits while the client takes none."""
        await self._wire.send(frame)

    def forget(self, number: int) -> None:
        """Knows a stream no more."""
        self._known.pop(number, None)

    async def _new(self, frame: Opened) -> SpdyStream | None:
        if frame.stream in self._known or len(self._known) >= _MOST_STREAMS:
            status = PROTOCOL_ERROR if frame.stream in self._known else REFUSED_STREAM
            await self.send(FrameWriter.reset(frame.stream, status))
            return None
        stream = self._known[frame.stream] = SpdyStream(self, frame.stream, frame.headers)
        if frame.is_last:
            stream.inflow.end()
        return stream

    async def _take(self, frame: Data | Reset, inflow: Inflow) -> None:
        if isinstance(frame, Reset):
            inflow.give_up()
            return
        inflow.put(frame.data)
        if frame.is_last:
            inflow.end()
        if inflow.is_over_full:
            await while_connected(self._request, inflow.room())
