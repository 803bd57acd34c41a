"""What a connection may hold and for how long: over real sockets, before and after anybody knows whose it is."""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path

import pytest

from shoal.cluster.apiserver import server as server_module
from shoal.cluster.apiserver.front import connections, http
from shoal.cluster.apiserver.server import ApiServer, ServerOptions, serving

CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
SOON = 20.0
"""Seconds in which a busy machine notices a deadline of a fraction of one."""

Connect = Callable[[], Awaitable[tuple[asyncio.StreamReader, asyncio.StreamWriter]]]


@pytest.fixture
async def server(tmp_path: Path) -> AsyncIterator[ApiServer]:
    async with serving(ServerOptions(data_dir=tmp_path / "data", port=0, durable=False)) as running:
        yield running


@pytest.fixture
async def connect(server: ApiServer) -> AsyncIterator[Connect]:
    """Opens connections over TLS, without credentials."""
    opened: list[asyncio.StreamWriter] = []
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE

    async def connection() -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server), ssl=context)
        opened.append(writer)
        return reader, writer

    yield connection
    for writer in opened:
        writer.transport.abort()


def port_of(server: ApiServer) -> int:
    return int(server.url.rpartition(":")[2])


def post(server: ApiServer | None, length: int) -> bytes:
    """The headers of a request with a body of so many bytes; with an admin's credentials where a server is given."""
    token = "wrong" if server is None else server.core.credentials.user_tokens.token("admin", ("system:masters",))
    return (
        f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
        f"Authorization: Bearer {token}\r\nContent-Length: {length}\r\n\r\n"
    ).encode()


async def closed(reader: asyncio.StreamReader) -> bytes:
    """Everything that comes until the server ends the connection."""
    async with asyncio.timeout(SOON):
        try:
            return await reader.read()
        except ConnectionError:
            return b""


async def test_a_body_is_not_read_before_its_sender_is_known(connect: Connect) -> None:
    reader, writer = await connect()
    writer.write(post(None, 3_000_000))
    async with asyncio.timeout(SOON):
        assert b" 401 " in await reader.readline()


async def test_a_body_is_not_read_before_its_sender_is_allowed(server: ApiServer, connect: Connect) -> None:
    token = server.core.credentials.user_tokens.token("nobody", ())
    reader, writer = await connect()
    writer.write(
        f"POST {CONFIG_MAPS} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        "Content-Length: 3000000\r\n\r\n".encode()
    )
    async with asyncio.timeout(SOON):
        assert b" 403 " in await reader.readline()


async def test_a_body_that_is_too_long_is_refused_before_it_is_sent(server: ApiServer, connect: Connect) -> None:
    reader, writer = await connect()
    writer.write(post(server, http.BODY_LIMIT + 1))
    async with asyncio.timeout(SOON):
        assert b" 413 " in await reader.readline()


async def test_a_body_that_never_ends_is_a_timeout(
    server: ApiServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(http, "BODY_SECONDS", 0.2)
    reader, writer = await connect()
    writer.write(post(server, 100) + b'{"metadata"')
    async with asyncio.timeout(SOON):
        assert b" 504 " in await reader.readline()


@pytest.mark.parametrize("sent", [b"", b"GET /version HTTP/1.1\r\nHost"], ids=["no-byte", "half-a-header"])
async def test_headers_that_never_end_close_the_connection(
    connect: Connect, monkeypatch: pytest.MonkeyPatch, sent: bytes
) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)
    reader, writer = await connect()
    writer.write(sent)
    assert await closed(reader) == b""


async def test_half_a_header_after_a_whole_request_closes_the_connection(
    connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    reader, writer = await connect()
    writer.write(b"GET /version HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(SOON):
        await reader.readuntil(b"}")
    monkeypatch.setattr(connections, "HEADER_SECONDS", 0.2)
    writer.write(b"GET /version HTTP/1.1\r\nHost")
    await closed(reader)


async def test_a_connection_that_has_been_used_may_rest(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_SECONDS", 1.0)
    reader, writer = await connect()
    writer.write(b"GET /livez HTTP/1.1\r\nHost: x\r\n\r\n")
    async with asyncio.timeout(SOON):
        await reader.readuntil(b"ok")
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(2.0):
            await reader.read(1)


async def test_headers_beyond_a_megabyte_are_refused(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "HEADER_BYTES", 20_000)
    reader, writer = await connect()
    writer.write(b"GET /version HTTP/1.1\r\n" + b"".join(b"x-%d: %s\r\n" % (n, b"x" * 4_000) for n in range(8)))
    assert b" 431 " in await closed(reader)


async def test_a_handshake_that_never_ends_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server_module, "_HANDSHAKE_SECONDS", 0.2)
    async with serving(ServerOptions(data_dir=tmp_path / "data", port=0, durable=False)) as server:
        reader, writer = await asyncio.open_connection("127.0.0.1", port_of(server))
        assert await closed(reader) == b""
        writer.transport.abort()


async def test_of_connections_without_credentials_the_oldest_makes_room(
    server: ApiServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "MOST_UNKNOWN", 3)
    known, writer = await connect()
    token = server.core.credentials.user_tokens.token("admin", ("system:masters",))
    writer.write(f"GET /livez HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    async with asyncio.timeout(SOON):
        await known.readuntil(b"ok")
    unknown = [await connect() for _ in range(4)]
    await closed(unknown[0][0])
    writer.write(f"GET /readyz HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
    async with asyncio.timeout(SOON):
        await known.readuntil(b"ok")


async def test_a_client_that_does_not_read_its_answer_is_cut_off(
    server: ApiServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    body = b'{"metadata":{"name":"large"},"data":{"k":"' + b"x" * 900_000 + b'"}}'
    other, writer = await connect()
    writer.write(post(server, len(body)) + body)
    async with asyncio.timeout(SOON):
        assert b" 201 " in await other.readline()
    monkeypatch.setattr(connections, "READING_SECONDS", 0.5)
    client = socket.socket(socket.AF_UNIX)
    client.setblocking(False)
    loop = asyncio.get_running_loop()
    await loop.sock_connect(client, str(server.socket))
    await loop.sock_sendall(client, f"GET {CONFIG_MAPS}/large HTTP/1.1\r\nHost: x\r\n\r\n".encode() * 10)
    try:
        async with asyncio.timeout(SOON):
            while True:
                await loop.sock_sendall(client, b"GET /livez HTTP/1.1\r\n")
                await asyncio.sleep(0.05)
    except ConnectionError:
        pass
    finally:
        client.close()


async def test_a_long_body_does_not_count_as_headers(
    server: ApiServer, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connections, "HEADER_BYTES", 1000)
    body = b'{"metadata":{"name":"long"},"data":{"k":"' + b"x" * 900_000 + b'"}}'
    reader, writer = await connect()
    writer.write(post(server, http.BODY_LIMIT + 1) + b"x" * (http.BODY_LIMIT + 1))
    writer.write(post(server, len(body)) + body)
    async with asyncio.timeout(SOON):
        assert b" 413 " in await reader.readline()
        await reader.readuntil(b'"code":413}')
        assert b" 201 " in await reader.readline()
