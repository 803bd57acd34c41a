"""Ports of pods, in both forms that clients speak, against servers on this machine's own loopback."""

from __future__ import annotations

import asyncio
import socket
import struct
import zlib
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import pytest
from aiohttp import web

from shoal.cluster.node.kubelet.ports import TUNNEL
from shoal.cluster.node.kubelet.spdy import DICTIONARY, BadFrame, Data, FrameReader, FrameWriter, GoAway, Ping
from shoal.cluster.node.process.answers.forwarding import Forwarding
from shoal.cluster.node.process.runtime.protocol import SocketSpec
from tests.cluster.node.process.answers.conftest import open_descriptors
from tests.support.waiting import eventually

Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Loopback:
    """A pod's network that is this machine's own."""

    async def socket(self, spec: SocketSpec) -> socket.socket:
        made = socket.socket(socket.AF_INET6 if spec.is_version_6 else socket.AF_INET)
        made.setblocking(False)
        return made


class Client:
    """kubectl's end of a tunnel, frame by frame."""

    def __init__(self, websocket: aiohttp.ClientWebSocketResponse[bool]) -> None:
        self.websocket = websocket
        self.received: dict[int, bytearray] = {}
        self.ended: set[int] = set()
        self.reset: set[int] = set()
        self._compressor = zlib.compressobj(zdict=DICTIONARY)
        self._decompressor = zlib.decompressobj(zdict=DICTIONARY)
        self._next = 1
        self._reading = asyncio.create_task(self._read())

    async def open(self, kind: str, port: int, request: int) -> int:
        words = [b"streamtype", kind.encode(), b"port", b"%d" % port, b"requestid", b"%d" % request]
        block = struct.pack(">I", 3) + b"".join(struct.pack(">I", len(word)) + word for word in words)
        packed = self._compressor.compress(block) + self._compressor.flush(zlib.Z_SYNC_FLUSH)
        number, self._next = self._next, self._next + 2
        body = struct.pack(">IIBB", number, 0, 0, 0) + packed
        frame = struct.pack(">II", 0x80030001, len(body)) + body
        # A frame may be cut anywhere.
        await self.websocket.send_bytes(frame[:7])
        await self.websocket.send_bytes(frame[7:])
        self.received[number] = bytearray()
        return number

    async def connect(self, port: int, request: int = 0) -> tuple[int, int]:
        """The streams for errors and for data of a new connection."""
        return await self.open("error", port, request), await self.open("data", port, request)

    async def send(self, stream: int, data: bytes, *, is_last: bool = False) -> None:
        await self.websocket.send_bytes(FrameWriter.data(stream, data, is_last=is_last))

    async def _read(self) -> None:
        unread = b""
        async for message in self.websocket:
            unread += message.data
            while len(unread) >= 8:
                first, second = struct.unpack_from(">II", unread)
                size = second & 0xFFFFFF
                if len(unread) < 8 + size:
                    break
                body, unread = unread[8 : 8 + size], unread[8 + size :]
                if first < 1 << 31:
                    self.received[first] += body
                    if second >> 24:
                        self.ended.add(first)
                elif first & 0xFFFF == 2:
                    assert self._decompressor.decompress(body[4:]) == b"\0\0\0\0"
                elif first & 0xFFFF == 3:
                    self.reset.add(struct.unpack_from(">I", body)[0])
                elif first & 0xFFFF == 6:
                    self.received[0] = bytearray(body)


@asynccontextmanager
async def an_agent(tmp_path: Path) -> AsyncIterator[aiohttp.ClientSession]:
    """An agent that forwards to this machine, and a client of its."""

    async def serve(request: web.Request) -> web.StreamResponse:
        return await Forwarding(Loopback(), uid="u-1", name="default/web").serve(request)  # type: ignore[arg-type]

    app = web.Application()
    app.router.add_get("/forward", serve)
    runner = web.AppRunner(app, handler_cancellation=True, shutdown_timeout=1)
    await runner.setup()
    await web.UnixSite(runner, str(tmp_path / "a.sock")).start()
    try:
        async with aiohttp.ClientSession(connector=aiohttp.UnixConnector(str(tmp_path / "a.sock"))) as session:
            yield session
    finally:
        await runner.cleanup()


@asynccontextmanager
async def a_tunnel(tmp_path: Path) -> AsyncIterator[Client]:
    async with an_agent(tmp_path) as session, session.ws_connect("http://a/forward", protocols=[TUNNEL]) as websocket:
        assert websocket.protocol == TUNNEL
        client = Client(websocket)
        yield client
        await websocket.close()
        await client._reading


@asynccontextmanager
async def a_server(serve: Serve, host: str = "127.0.0.1") -> AsyncIterator[int]:
    async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            await serve(reader, writer)
        except ConnectionError:
            pass
        finally:
            writer.close()

    server = await asyncio.start_server(accept, host, 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(1 << 16):
        writer.write(data)
        await writer.drain()


async def count(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Answers only when it has heard all."""
    writer.write(b"%d bytes" % len(await reader.read()))


async def test_many_connections_come_and_go_in_one_tunnel(tmp_path: Path) -> None:
    async with a_server(echo) as port, a_tunnel(tmp_path) as client:
        streams = [await client.connect(port, request) for request in range(50)]
        for number, (_, data) in enumerate(streams):
            await client.send(data, b"%d" % number)
        await eventually(lambda: all(client.received[data] for _, data in streams))
        assert [bytes(client.received[data]) for _, data in streams] == [b"%d" % number for number in range(50)]
        for _, data in streams:
            await client.send(data, b"", is_last=True)
        everything = {stream for pair in streams for stream in pair}
        await eventually(lambda: client.ended == everything)
        assert not client.reset


async def test_a_client_that_has_said_all_still_gets_its_answer(tmp_path: Path) -> None:
    async with a_server(count) as port, a_tunnel(tmp_path) as client:
        error, data = await client.connect(port)
        await client.send(data, b"x" * 1000)
        await client.send(data, b"y", is_last=True)
        await eventually(lambda: client.ended == {error, data})
        assert bytes(client.received[data]) == b"1001 bytes"


async def test_much_is_carried_both_ways_though_the_pod_is_slow(tmp_path: Path) -> None:
    async with a_server(count) as port, a_tunnel(tmp_path) as client:
        _, data = await client.connect(port)
        for _ in range(320):
            await client.send(data, bytes(100_000))
        await client.send(data, b"", is_last=True)
        await eventually(lambda: bytes(client.received[data]) == b"32000000 bytes")

    async def pour(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(bytes(32_000_000))
        await writer.drain()

    async with a_server(pour) as port, a_tunnel(tmp_path) as client:
        _, data = await client.connect(port)
        await eventually(lambda: data in client.ended)
        assert len(client.received[data]) == 32_000_000


async def test_a_pod_that_does_not_listen_stops_the_client_and_not_the_agent(tmp_path: Path) -> None:
    released = asyncio.Event()

    async def deaf(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await released.wait()
        await count(reader, writer)

    async with a_server(deaf) as port, a_tunnel(tmp_path) as client:
        _, data = await client.connect(port)
        sent = 0

        async def send() -> None:
            nonlocal sent
            for _ in range(640):
                await client.send(data, bytes(100_000))
                sent += 100_000
            await client.send(data, b"", is_last=True)

        sending = asyncio.create_task(send())
        await asyncio.wait({sending}, timeout=0.5)
        assert sent < 40_000_000
        released.set()
        await eventually(lambda: bytes(client.received[data]) == b"64000000 bytes")


async def test_a_port_that_nobody_listens_on_is_an_error_with_the_reason(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        port = unused.getsockname()[1]
    async with a_tunnel(tmp_path) as client:
        error, data = await client.connect(port)
        await eventually(lambda: client.reset == {error, data})
        assert client.received[error].decode() == (
            f"error forwarding port {port} to pod default/web, uid u-1: failed to connect to localhost:{port} inside "
            f"the pod's network, IPv4: dial tcp4 127.0.0.1:{port}: connect: connection refused "
            f"IPv6: dial tcp6 [::1]:{port}: connect: connection refused"
        )


async def test_a_server_that_has_the_newer_address_alone_is_reached(tmp_path: Path) -> None:
    async with a_server(echo, "::1") as port, a_tunnel(tmp_path) as client:
        _, data = await client.connect(port)
        await client.send(data, b"six")
        await eventually(lambda: client.received[data] == b"six")


async def test_a_connection_that_the_pod_breaks_spares_the_others(tmp_path: Path) -> None:
    async def break_off(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        connection = writer.get_extra_info("socket")
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        writer.transport.abort()

    async with a_server(break_off) as bad, a_server(echo) as good, a_tunnel(tmp_path) as client:
        error, data = await client.connect(bad, 1)
        _, other = await client.connect(good, 2)
        await client.send(data, b"x")
        await eventually(lambda: data in client.reset and error in client.ended)
        assert not client.received[error]
        await client.send(other, b"well")
        await eventually(lambda: client.received[other] == b"well")


async def test_a_client_that_gives_up_ends_the_pods_connection(tmp_path: Path) -> None:
    seen: list[bytes] = []

    async def listen(reader: asyncio.StreamReader, _: asyncio.StreamWriter) -> None:
        seen.append(await reader.readexactly(1))
        seen.append(await reader.read())

    async with a_server(listen) as port, a_tunnel(tmp_path) as client:
        _, first = await client.connect(port, 1)
        await client.send(first, b"a")
        await eventually(lambda: seen == [b"a"])
        await client.websocket.send_bytes(FrameWriter.reset(first, 5))
        await eventually(lambda: seen == [b"a", b""])
        _, second = await client.connect(port, 2)
        await client.send(second, b"b")
        await eventually(lambda: len(seen) == 3)
    await eventually(lambda: seen == [b"a", b"", b"b", b""])


async def test_pings_are_answered_and_what_is_no_stream_is_refused(tmp_path: Path) -> None:
    async with a_tunnel(tmp_path) as client:
        await client.websocket.send_bytes(FrameWriter.ping(7))
        await eventually(lambda: bytes(client.received.get(0, b"")) == b"\0\0\0\7")
        wrong = await client.open("nonsense", 80, 1)
        far = await client.open("data", 70_000, 2)
        await eventually(lambda: client.reset == {wrong, far})


async def test_channels_carry_one_connection_for_each_port(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as unused:
        closed = unused.getsockname()[1]
    async with a_server(echo) as port, an_agent(tmp_path) as session:
        url = f"http://a/forward?port={port},{closed}"
        async with session.ws_connect(url, protocols=["v4.channel.k8s.io"]) as websocket:
            numbers = {number: (port, closed)[number // 2].to_bytes(2, "little") for number in range(4)}
            assert {(await websocket.receive_bytes())[0] for _ in range(4)} == set(numbers)
            assert b"connection refused" in (said := await websocket.receive_bytes())
            assert said[0] == 3
            await websocket.send_bytes(b"\0hello")
            assert await websocket.receive_bytes() == b"\0hello"


async def test_a_channel_ends_with_the_pods_connection(tmp_path: Path) -> None:
    async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hi and bye")

    async with a_server(greet) as port, an_agent(tmp_path) as session:
        async with session.ws_connect(f"http://a/forward?port={port}", protocols=["v4.channel.k8s.io"]) as websocket:
            said = [message.data async for message in websocket]
        assert said[2:] == [b"\0hi and bye"]


async def test_channels_for_what_is_no_port_are_refused(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as session:
        for ports in ("", "?port=0", "?port=80,x", "?port=70000"):
            with pytest.raises(aiohttp.WSServerHandshakeError):
                await session.ws_connect(f"http://a/forward{ports}", protocols=["v4.channel.k8s.io"])


async def test_nothing_stays_open(tmp_path: Path) -> None:
    async def connect_often(session: aiohttp.ClientSession, port: int) -> None:
        async with session.ws_connect("http://a/forward", protocols=[TUNNEL]) as websocket:
            client = Client(websocket)
            for request in range(20):
                _, data = await client.connect(port, request)
                await client.send(data, b"x")
            await eventually(lambda: sum(map(len, client.received.values())) == 20)
        await client._reading

    async with a_server(echo) as port, an_agent(tmp_path) as session:
        before = open_descriptors()
        for _ in range(5):
            await connect_often(session, port)
        # What the event loop and the session make for themselves once is theirs to keep.
        await eventually(lambda: open_descriptors() < before + 10)


def test_frames_are_read_however_they_are_cut() -> None:
    writer = FrameWriter()
    sent = (
        writer.data(1, b"abc")
        + writer.ping(9)
        + writer.data(3, b"", is_last=True)
        + b"\x80\x03\0\7\0\0\0\x08"
        + bytes(8)
    )
    for step in (1, 3, len(sent)):
        reader = FrameReader()
        frames = [frame for start in range(0, len(sent), step) for frame in reader.feed(sent[start : start + step])]
        assert frames[:3] == [Data(1, b"abc", False), Ping(9), Data(3, b"", True)]
        assert isinstance(frames[3], GoAway)


def test_headers_that_are_nonsense_are_refused() -> None:
    body = struct.pack(">IIBB", 1, 0, 0, 0) + b"nonsense"
    with pytest.raises(BadFrame):
        list(FrameReader().feed(struct.pack(">II", 0x80030001, len(body)) + body))
    bomb = zlib.compressobj(zdict=DICTIONARY)
    packed = bomb.compress(bytes(10 << 20)) + bomb.flush(zlib.Z_SYNC_FLUSH)
    body = struct.pack(">IIBB", 1, 0, 0, 0) + packed
    with pytest.raises(BadFrame, match="too long"):
        list(FrameReader().feed(struct.pack(">II", 0x80030001, len(body)) + body))
