"""Real servers on this machine for a transport to talk to: HTTP (TCP, TLS, Unix), raw TCP, and two kinds of proxies."""

from __future__ import annotations

import asyncio
import ssl
from base64 import b64decode
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

from aiohttp import web

Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
Raw = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def serving(
    handler: Handler, *, tls: ssl.SSLContext | None = None, socket: Path | None = None
) -> AsyncIterator[str]:
    """Serves every request by one handler; gives the URL."""

    async def answer(request: web.Request) -> web.StreamResponse:
        return await handler(request)

    application = web.Application(client_max_size=1 << 26)
    application.router.add_route("*", r"/{path:[\s\S]*}", answer)
    runner = web.AppRunner(application, handler_cancellation=True, shutdown_timeout=0.1, access_log=None)
    await runner.setup()
    try:
        if socket is not None:
            await web.UnixSite(runner, str(socket)).start()
            yield f"unix://{socket}"
        else:
            await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
            yield f"{'https' if tls else 'http'}://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def raw_server(speak: Raw) -> AsyncIterator[int]:
    """Lets a function speak to every connection, byte by byte; gives the port."""
    speaking: set[asyncio.Task[None]] = set()

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError, asyncio.IncompleteReadError):
                await speak(reader, writer)
        finally:
            writer.close()

    def accepted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(converse(reader, writer))
        speaking.add(task)
        task.add_done_callback(speaking.discard)

    server = await asyncio.start_server(accepted, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in speaking:
            task.cancel()
        if speaking:
            await asyncio.wait(speaking)
        await server.wait_closed()


@dataclass
class ConnectProxy:
    """What an HTTP proxy saw."""

    port: int = 0
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    """The first line and the headers of everything that was said to the proxy itself."""


@asynccontextmanager
async def connect_proxy(
    *, password: str = "", resolve: Callable[[str], str] = lambda host: host
) -> AsyncIterator[ConnectProxy]:
    """An HTTP proxy (tunnels for CONNECT, forwarding for whole URLs) that resolves names itself.

    With ``password`` it serves user "ann" alone.
    """
    seen = ConnectProxy()

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        first, *lines = head.strip().split("\r\n")
        headers = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        seen.requests.append((first, headers))
        if password:
            scheme, _, given = headers.get("proxy-authorization", "").partition(" ")
            if scheme != "Basic" or b64decode(given).decode() != f"ann:{password}":
                writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
                return
        method, target, version = first.split(" ")
        if method == "CONNECT":
            host, _, port = target.rpartition(":")
            remote = await asyncio.open_connection(resolve(host), int(port))
            writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        else:
            host, _, port = target.removeprefix("http://").partition("/")[0].rpartition(":")
            path = "/" + target.removeprefix("http://").partition("/")[2]
            remote = await asyncio.open_connection(resolve(host), int(port))
            remote[1].write(f"{method} {path} {version}\r\n".encode() + head.partition("\r\n")[2].encode())
        await pump((reader, writer), remote)

    async with raw_server(speak) as seen.port:
        yield seen


@dataclass
class SocksProxy:
    """What a SOCKS proxy was asked for."""

    port: int = 0
    targets: list[tuple[str, int]] = field(default_factory=list)


@asynccontextmanager
async def socks_proxy(
    *, password: str = "", resolve: Callable[[str], str] = lambda host: host, refuse: int = 0
) -> AsyncIterator[SocksProxy]:
    """A SOCKS5 proxy that resolves names itself; with ``password`` for user "ann" alone."""
    seen = SocksProxy()

    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        _, count = await reader.readexactly(2)
        methods = await reader.readexactly(count)
        wanted = 2 if password else 0
        writer.write(bytes([5, wanted if wanted in methods else 0xFF]))
        if wanted not in methods:
            return
        if password:
            _, length = await reader.readexactly(2)
            user = (await reader.readexactly(length)).decode()
            given = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
            writer.write(bytes([1, 0 if (user, given) == ("ann", password) else 1]))
        _, _, _, kind = await reader.readexactly(4)
        if kind == 3:
            host = (await reader.readexactly((await reader.readexactly(1))[0])).decode()
        else:
            assert kind == 1
            host = ".".join(map(str, await reader.readexactly(4)))
        port = int.from_bytes(await reader.readexactly(2), "big")
        seen.targets.append((host, port))
        if refuse:
            writer.write(bytes([5, refuse, 0, 1, 0, 0, 0, 0, 0, 0]))
            return
        remote = await asyncio.open_connection(resolve(host), port)
        writer.write(bytes([5, 0, 0, 1, 127, 0, 0, 1, 0, 0]))
        await pump((reader, writer), remote)

    async with raw_server(speak) as seen.port:
        yield seen


Ends = tuple[asyncio.StreamReader, asyncio.StreamWriter]


async def pump(one: Ends, other: Ends) -> None:
    """Carries bytes both ways until one side ends."""

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(ConnectionError):
            while data := await reader.read(65536):
                writer.write(data)
                await writer.drain()

    ways = [asyncio.create_task(carry(one[0], other[1])), asyncio.create_task(carry(other[0], one[1]))]
    try:
        await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
    finally:
        other[1].close()
        for way in ways:
            way.cancel()
        await asyncio.wait(ways)
