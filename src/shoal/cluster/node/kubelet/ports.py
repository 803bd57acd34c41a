"""Port forwarding, in the forms that there are.

kubectl speaks SPDY, on the connection itself or, in later releases, through the messages of a WebSocket
(``SPDY/3.1+portforward.k8s.io``): any number of connections come and go, each in two streams, for its data and for what
went wrong. Other clients speak channels (``v4.channel.k8s.io``): one connection for each port that was named, opened at
once, which neither end can close for itself alone, and of which none can be held back without the others.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Awaitable, Callable, Sequence
from typing import Protocol

import structlog
from aiohttp import web

from shoal.cluster.inflow import Inflow
from shoal.cluster.node.kubelet.answers import Refused
from shoal.cluster.node.kubelet.departures import while_connected
from shoal.cluster.node.kubelet.spdy import BadFrame
from shoal.cluster.node.kubelet.spdy_streams import SpdyStream, SpdyStreams
from shoal.cluster.node.kubelet.wires import (
    WebSocketWire,
    Wire,
    accept_spdy,
    accept_websocket,
    check_websocket,
    is_spdy,
)

logger = structlog.get_logger(__name__)

TUNNEL = "SPDY/3.1+portforward.k8s.io"
CHANNELS = ("v4.channel.k8s.io", "portforward.k8s.io")
SPDY_PROTOCOLS = ("portforward.k8s.io",)
PIECE = 64 * 1024


class PortConnection(Protocol):
    """A client's connection to a port of a pod."""

    port: int
    can_half_close: bool
    """Whether a client that has heard all may still have more to say."""

    @abstractmethod
    async def read(self) -> bytes:
        """What the client sent; nothing where it will send no more. Raises ConnectionError where it has given up."""

    @abstractmethod
    async def write(self, data: bytes) -> None:
        """Sends to the client; waits while it takes nothing. Raises ConnectionError where it has given up."""

    @abstractmethod
    async def close(self) -> None:
        """Tells the client that there is no more to come."""

    @abstractmethod
    async def fail(self, message: str) -> None:
        """Tells the client why there is no connection, or, without a message, that it broke."""


Carry = Callable[[PortConnection], Awaitable[None]]


async def serve_ports(request: web.Request, carry: Carry) -> web.StreamResponse:
    """Accepts a client and has each of its connections carried, until it leaves; raises Refused."""
    if is_spdy(request):
        bare = await accept_spdy(request, SPDY_PROTOCOLS)
        await _served(_Streams(request, bare), carry)
        return bare.response
    protocols = (TUNNEL, *CHANNELS)
    check_websocket(request, protocols)
    is_tunnel = TUNNEL in request.headers.get("Sec-WebSocket-Protocol", "")
    ports = [] if is_tunnel else _ports(request.query.getall("port", []))
    websocket = await accept_websocket(request, protocols)
    wire = WebSocketWire(websocket)
    await _served(_Streams(request, wire) if websocket.ws_protocol == TUNNEL else _Ports(request, wire, ports), carry)
    await websocket.close()
    return websocket


async def _served(session: _Streams | _Ports, carry: Carry) -> None:
    try:
        await session.run(carry)
    except ConnectionError:
        pass
    except BadFrame as error:
        logger.warning("a client forwards ports in a language that is not understood", problem=str(error))


async def _carried(connection: PortConnection, carry: Carry) -> None:
    """Carries one connection to its end, whatever that is: the others go on."""
    try:
        await carry(connection)
    except ConnectionError:
        pass
    except Exception:
        logger.exception("a forwarded connection failed", port=connection.port)


# Channels


class _Ports:
    """Two channels for each port: its data and its error, both of which open with the port's number."""

    def __init__(self, request: web.Request, wire: Wire, ports: Sequence[int]) -> None:
        self._request = request
        self._wire = wire
        self._connections = [_Channel(wire, 2 * index, port) for index, port in enumerate(ports)]

    async def run(self, carry: Carry) -> None:
        """Carries all connections until the last has ended, or the client leaves."""
        carrying = asyncio.create_task(self._carry(carry))
        receiving = asyncio.create_task(self._receive())
        try:
            await asyncio.wait({carrying, receiving}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            carrying.cancel()
            receiving.cancel()
            await asyncio.gather(carrying, receiving, return_exceptions=True)

    async def _carry(self, carry: Carry) -> None:
        for connection in self._connections:
            await connection.open()
        async with asyncio.TaskGroup() as group:
            for connection in self._connections:
                group.create_task(_carried(connection, carry))

    async def _receive(self) -> None:
        async for message in self._wire.pieces():
            index, is_error = divmod(message[0], 2) if message else (len(self._connections), 1)
            if is_error or index >= len(self._connections):
                continue
            inflow = self._connections[index].inflow
            inflow.put(message[1:])
            if inflow.is_over_full:
                await while_connected(self._request, inflow.room())


class _Channel:
    can_half_close = False

    def __init__(self, wire: Wire, number: int, port: int) -> None:
        self.port = port
        self.inflow = Inflow()
        self._wire = wire
        self._number = number

    async def open(self) -> None:
        for number in (self._number, self._number + 1):
            await self._wire.send(bytes([number]) + self.port.to_bytes(2, "little"))

    async def read(self) -> bytes:
        return await self.inflow.get()

    async def write(self, data: bytes) -> None:
        await self._wire.send(bytes([self._number]) + data)

    async def close(self) -> None:
        self.inflow.give_up()

    async def fail(self, message: str) -> None:
        self.inflow.give_up()
        if message:
            await self._wire.send(bytes([self._number + 1]) + message.encode())


def _ports(given: Sequence[str]) -> list[int]:
    """The ports that are named, in as many parameters as one likes; raises Refused."""
    words = [word for value in given for word in value.split(",")]
    if not words:
        raise Refused(400, 'query parameter "port" is required')
    for word in words:
        if not word.isdecimal() or not 0 < int(word) < 1 << 16:
            raise Refused(400, f'unable to parse "{word}" as a port')
    if len(words) > 64:
        raise Refused(400, f"{len(words)} ports are too many for one connection")
    return [int(word) for word in words]


# Streams


class _Streams:
    """Two streams for each connection, which are told to belong together by the name of a request."""

    def __init__(self, request: web.Request, wire: Wire) -> None:
        self._streams = SpdyStreams(request, wire)
        self._halves: dict[str, dict[str, SpdyStream]] = {}
        self._carrying: set[asyncio.Task[None]] = set()

    async def run(self, carry: Carry) -> None:
        """Carries connections as they come, until the client leaves."""
        try:
            async for stream in self._streams.opened():
                await self._take(stream, carry)
        finally:
            for task in self._carrying:
                task.cancel()
            if self._carrying:
                await asyncio.wait(self._carrying)

    async def _take(self, stream: SpdyStream, carry: Carry) -> None:
        kind, port = stream.headers.get("streamtype", ""), stream.headers.get("port", "")
        is_port = port.isdecimal() and 0 < int(port) < 1 << 16
        if kind not in ("data", "error") or not is_port:
            await stream.refuse()
            return
        # Clients of old name no request, but open the stream for errors right before the one for data.
        request = stream.headers.get("requestid") or f"{stream.number - 2 * (kind == 'data')}"
        halves = self._halves.setdefault(request, {})
        halves[kind] = stream
        await stream.accept()
        if len(halves) == 2:
            del self._halves[request]
            connection = _Streamed(int(port), halves["data"], halves["error"])
            task = asyncio.create_task(_carried_and_forgotten(connection, carry))
            self._carrying.add(task)
            task.add_done_callback(self._carrying.discard)


async def _carried_and_forgotten(connection: _Streamed, carry: Carry) -> None:
    try:
        await _carried(connection, carry)
    finally:
        connection.data.forget()
        connection.error.forget()


class _Streamed:
    can_half_close = True

    def __init__(self, port: int, data: SpdyStream, error: SpdyStream) -> None:
        self.port = port
        self.data = data
        self.error = error

    async def read(self) -> bytes:
        return await self.data.inflow.get()

    async def write(self, data: bytes) -> None:
        await self.data.write(data)

    async def close(self) -> None:
        await self.data.end()
        await self.error.end()

    async def fail(self, message: str) -> None:
        if message:
            await self.error.write(message.encode())
            await self.error.give_up()
        else:
            # A client that finds an error here gives up all of its connections: a broken one is no reason to.
            await self.error.end()
        await self.data.give_up()
