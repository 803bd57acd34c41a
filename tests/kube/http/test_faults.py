"""Everything that can happen to a connection is a ConnectionFault with a sentence that helps, and without a secret."""

from __future__ import annotations

import asyncio
import socket
import traceback
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from shoal.kube.connection import Connection
from shoal.kube.credentials import bearer_token
from shoal.kube.errors import ConnectionFault
from shoal.kube.http import HttpTransport
from shoal.kube.tls import Tls
from shoal.kube.transport import Request
from tests.support.network.http_servers import Raw, raw_server

SECRET = "eyJ-a-token"

GET = Request(method="GET", path="/api/v1/pods", timeout=5)


async def fault_of(server: str, request: Request = GET, **options: float) -> ConnectionFault:
    transport = HttpTransport(
        Connection(server=server, credentials=bearer_token(SECRET), tls=Tls(insecure=True)),
        **options,  # type: ignore[arg-type]
    )
    try:
        with pytest.raises(ConnectionFault) as caught:
            await transport.send(request)
    finally:
        await transport.close()
    fault = caught.value
    assert server in str(fault)
    assert str(request) in str(fault)
    assert SECRET not in "".join(traceback.format_exception(fault))
    shown: BaseException | None = fault
    while shown is not None:
        assert SECRET not in repr(shown)
        shown = shown.__cause__
    return fault


def answering(data: bytes) -> Raw:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(data)
        await writer.drain()

    return speak


async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def resetting(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.transport.abort()


async def half_compressed(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await answering(b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\noops")(reader, writer)


@pytest.mark.parametrize(
    ("speak", "says"),
    [
        pytest.param(answering(b""), "closed the connection without an answer", id="closes"),
        pytest.param(resetting, "closed the connection|broke the connection", id="resets"),
        pytest.param(answering(b"SSH-2.0-OpenSSH_9.2\r\n"), "did not answer in HTTP", id="speaks-something-else"),
        pytest.param(
            answering(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{"), "broke off its answer", id="stops-in-a-body"
        ),
        pytest.param(
            answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nab"),
            "broke off its answer",
            id="stops-in-a-chunk",
        ),
        pytest.param(
            answering(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\nab\r\n"),
            "broke off its answer|did not answer in HTTP",
            id="sends-no-chunk",
        ),
        pytest.param(half_compressed, "broke off its answer|did not answer in HTTP", id="sends-no-gzip"),
    ],
)
async def test_an_answer_that_is_none_is_a_fault(speak: Raw, says: str) -> None:
    async with raw_server(speak) as port:
        fault = await fault_of(f"http://127.0.0.1:{port}", Request(method="POST", path="/api/v1/pods", body=b"{}"))
    assert_matches(says, fault)
    assert fault.sent


async def test_a_server_that_is_too_slow_is_given_up() -> None:
    async with raw_server(silent) as port:
        fault = await fault_of(f"http://127.0.0.1:{port}", Request(method="GET", path="/api/v1/pods", timeout=0.1))
    assert_matches("gave no answer within 0.1 s", fault)
    assert fault.sent


async def a_port_nobody_listens_on() -> str:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"http://127.0.0.1:{free.getsockname()[1]}"


async def a_name_nobody_has() -> str:
    return "http://no-such-host.invalid:6443"


async def a_missing_socket() -> str:
    return "unix:///no/such/socket"


@pytest.mark.parametrize(
    ("server", "says"),
    [
        pytest.param(a_port_nobody_listens_on, "cannot be reached: Connection refused", id="refused"),
        pytest.param(a_name_nobody_has, "does not resolve", id="no-such-name"),
        pytest.param(a_missing_socket, "cannot be reached: No such file or directory", id="no-such-socket"),
    ],
)
async def test_a_server_that_is_not_there_never_got_the_request(
    server: Callable[[], Awaitable[str]], says: str
) -> None:
    fault = await fault_of(await server())
    assert_matches(says, fault)
    assert not fault.sent


async def test_a_plain_server_is_not_mistaken_for_one_with_tls() -> None:
    async def plain(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read(1)
        writer.write(b"HTTP/1.0 400 Bad Request\r\n\r\n")

    async with raw_server(plain) as port:
        fault = await fault_of(f"https://127.0.0.1:{port}")
    assert_matches("does not agree with us on TLS: (wrong version number|record layer failure)", fault)
    assert not fault.sent


async def test_a_server_that_accepts_and_says_nothing_is_given_up_while_connecting() -> None:
    async with raw_server(silent) as port:
        forever = Request(method="POST", path="/api/v1/pods", body=b"{}", timeout=None)
        fault = await fault_of(f"https://127.0.0.1:{port}", forever, connect_timeout=0.2)
    assert_matches("no connection in time", fault)
    assert not fault.sent


async def test_a_socket_that_is_no_server_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    fault = await fault_of(f"unix://{tmp_path}/file")
    assert_matches("cannot be reached", fault)


def assert_matches(pattern: str, fault: ConnectionFault) -> None:
    with pytest.raises(ConnectionFault, match=pattern):
        raise fault
