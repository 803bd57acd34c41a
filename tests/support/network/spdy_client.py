"""A client that speaks SPDY to a kubelet as API servers before 1.36 do: on the connection itself, frame by frame."""

from __future__ import annotations

import asyncio
import struct
import zlib
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from shoal.cluster.node.kubelet.spdy import DICTIONARY, FrameWriter

_OPENED, _ACCEPTED, _RESET, _PING = 1, 2, 3, 6


class SpdyClient:
    """What was received on each stream, and which of them the server accepted, ended and reset."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer
        self._compressor = zlib.compressobj(zdict=DICTIONARY)
        self._next = 1
        self.received: dict[int, bytearray] = {}
        self.accepted: set[int] = set()
        self.ended: set[int] = set()
        self.reset: set[int] = set()
        self.pings: list[int] = []
        self.reading = asyncio.create_task(self._read())

    async def open(self, **headers: str) -> int:
        """A new stream with these headers; its number."""
        words = [word.encode() for header in headers.items() for word in header]
        block = struct.pack(">I", len(headers)) + b"".join(struct.pack(">I", len(word)) + word for word in words)
        packed = self._compressor.compress(block) + self._compressor.flush(zlib.Z_SYNC_FLUSH)
        number, self._next = self._next, self._next + 2
        self.received[number] = bytearray()
        body = struct.pack(">IIBB", number, 0, 0, 0) + packed
        await self.write(struct.pack(">II", 0x80030000 | _OPENED, len(body)) + body)
        return number

    async def send(self, stream: int, data: bytes, *, is_last: bool = False) -> None:
        await self.write(FrameWriter.data(stream, data, is_last=is_last))

    async def write(self, frame: bytes) -> None:
        self._writer.write(frame)
        await self._writer.drain()

    def leave(self) -> None:
        self._writer.transport.abort()

    async def _read(self) -> None:
        while head := await self._reader.read(1):
            first, second = struct.unpack(">II", head + await self._reader.readexactly(7))
            body = await self._reader.readexactly(second & 0xFFFFFF)
            if first < 1 << 31:
                self.received[first] += body
                if second >> 24:
                    self.ended.add(first)
                continue
            number = struct.unpack_from(">I", body)[0]
            match first & 0xFFFF:
                case kind if kind == _ACCEPTED:
                    self.accepted.add(number)
                case kind if kind == _RESET:
                    self.reset.add(number)
                case kind if kind == _PING:
                    self.pings.append(number)


@asynccontextmanager
async def spdy_client(socket: Path, path: str, *protocols: str) -> AsyncIterator[SpdyClient]:
    """A client whose request was upgraded; raises AssertionError with the answer where it was not."""
    reader, writer = await asyncio.open_unix_connection(str(socket))
    offered = "".join(f"X-Stream-Protocol-Version: {protocol}\r\n" for protocol in protocols)
    request = f"POST {path} HTTP/1.1\r\nHost: agent\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n{offered}"
    writer.write(f"{request}Content-Length: 0\r\n\r\n".encode())
    answer = await reader.readuntil(b"\r\n\r\n")
    if not answer.startswith(b"HTTP/1.1 101 "):
        length = int(answer.lower().partition(b"content-length: ")[2].split()[0])
        writer.transport.abort()
        raise AssertionError((answer + await reader.readexactly(length)).decode())
    client = SpdyClient(reader, writer)
    try:
        yield client
    finally:
        client.leave()
        client.reading.cancel()
        await asyncio.wait({client.reading})
