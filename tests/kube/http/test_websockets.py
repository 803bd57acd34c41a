"""WebSockets: what servers choose, how they end, and what a refusal means."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import WSMsgType, web

from shoal.kube.connection import Connection
from shoal.kube.credentials import Credentials, anonymous, bearer_token, token_file
from shoal.kube.errors import ApiError, ConnectionFault, Forbidden, NotFound, Unauthorized
from shoal.kube.http import HttpTransport, answers
from shoal.kube.tls import Tls
from shoal.kube.transport import Request
from tests.support.network.http_servers import Handler, raw_server, serving
from tests.support.network.tls import Authority

EXEC = Request(method="GET", path="/api/v1/namespaces/a/pods/b/exec", query={"stdin": "true"}, timeout=5)
PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")


@asynccontextmanager
async def transport_to(handler: Handler, credentials: Credentials | None = None) -> AsyncIterator[HttpTransport]:
    async with serving(handler) as server:
        transport = HttpTransport(Connection(server=server, credentials=credentials or anonymous()))
        try:
            yield transport
        finally:
            await transport.close()


async def echo(request: web.Request) -> web.WebSocketResponse:
    websocket = web.WebSocketResponse(protocols=("v4.channel.k8s.io",))
    await websocket.prepare(request)
    async for message in websocket:
        if message.data == b"bye":
            break
        await websocket.send_bytes(message.data)
    await websocket.close()
    return websocket


async def test_messages_go_both_ways_until_the_server_closes() -> None:
    async with transport_to(echo) as transport, transport.websocket(EXEC, PROTOCOLS) as websocket:
        assert websocket.protocol == "v4.channel.k8s.io"
        for data in (b"\x00one", b"", b"x" * 1_000_000):
            await websocket.send(data)
            assert await anext(websocket.messages()) == data
        await websocket.send(b"bye")
        assert [message async for message in websocket.messages()] == []


async def test_the_request_is_signed_and_carries_its_query() -> None:
    seen: list[web.Request] = []

    async def handler(request: web.Request) -> web.WebSocketResponse:
        seen.append(request)
        return await echo(request)

    async with transport_to(handler, bearer_token("t")) as transport, transport.websocket(EXEC, PROTOCOLS):
        pass
    assert seen[0].headers["Authorization"] == "Bearer t"
    assert seen[0].headers["Sec-WebSocket-Protocol"] == "v5.channel.k8s.io,v4.channel.k8s.io"
    assert seen[0].query["stdin"] == "true"


async def test_text_is_taken_as_bytes() -> None:
    async def handler(request: web.Request) -> web.WebSocketResponse:
        websocket = web.WebSocketResponse()
        await websocket.prepare(request)
        await websocket.send_str("grüße")
        await websocket.close()
        return websocket

    async with transport_to(handler) as transport, transport.websocket(EXEC, PROTOCOLS) as websocket:
        assert [message async for message in websocket.messages()] == ["grüße".encode()]


async def test_a_close_with_a_complaint_is_a_fault() -> None:
    async def handler(request: web.Request) -> web.WebSocketResponse:
        websocket = web.WebSocketResponse()
        await websocket.prepare(request)
        await websocket.close(code=1011, message=b"out of memory")
        return websocket

    async with transport_to(handler) as transport, transport.websocket(EXEC, PROTOCOLS) as websocket:
        with pytest.raises(ConnectionFault, match="closed with code 1011: out of memory"):
            await anext(websocket.messages())


async def test_a_connection_that_breaks_off_is_a_fault() -> None:
    async def handler(request: web.Request) -> web.WebSocketResponse:
        websocket = web.WebSocketResponse()
        await websocket.prepare(request)
        await websocket.send_bytes(b"one")
        assert request.transport is not None
        request.transport.close()
        return websocket

    async with transport_to(handler) as transport, transport.websocket(EXEC, PROTOCOLS) as websocket:
        messages = websocket.messages()
        assert await anext(messages) == b"one"
        with pytest.raises(ConnectionFault, match=r"broke off|broke"):
            await anext(messages)


async def test_a_message_to_a_broken_connection_is_a_fault() -> None:
    async def handler(request: web.Request) -> web.WebSocketResponse:
        websocket = web.WebSocketResponse()
        await websocket.prepare(request)
        await websocket.close()
        return websocket

    async with transport_to(handler) as transport, transport.websocket(EXEC, PROTOCOLS) as websocket:
        assert [message async for message in websocket.messages()] == []
        with pytest.raises(ConnectionFault):
            await websocket.send(b"late")


async def test_closing_ends_the_wait_for_messages() -> None:
    async with transport_to(echo) as transport, transport.websocket(EXEC, PROTOCOLS) as websocket:

        async def collect() -> list[bytes]:
            return [message async for message in websocket.messages()]

        collecting = asyncio.create_task(collect())
        await websocket.send(b"one")
        await asyncio.sleep(0)
        await websocket.close()
        assert await asyncio.wait_for(collecting, 10) in ([], [b"one"])


async def test_waiting_for_a_message_can_be_given_up_and_taken_up_again() -> None:
    async with transport_to(echo) as transport, transport.websocket(EXEC, PROTOCOLS) as websocket:
        messages = websocket.messages()
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.01):
                await anext(messages)
        await websocket.send(b"still there")
        assert await anext(messages) == b"still there"


STATUS = b'{"kind":"Status","status":"Failure","reason":"NotFound","message":"pods \\"b\\" not found","code":404}'


@pytest.mark.parametrize(
    ("code", "body", "error", "says"),
    [
        pytest.param(404, STATUS, NotFound, 'pods "b" not found', id="status"),
        pytest.param(403, b"no", Forbidden, "no", id="plain-text"),
        pytest.param(401, b"", Unauthorized, "401", id="unauthorized"),
        pytest.param(200, b"a web page", ApiError, "a web page", id="no-upgrade"),
    ],
)
async def test_an_answer_that_is_no_upgrade_is_the_error_it_means(
    code: int, body: bytes, error: type[ApiError], says: str
) -> None:
    async def handler(request: web.Request) -> web.Response:
        return web.Response(status=code, body=body)

    async with transport_to(handler) as transport:
        with pytest.raises(error, match=says) as caught:
            async with transport.websocket(EXEC, PROTOCOLS):
                pass
    assert caught.value.code == code
    assert EXEC.path in str(caught.value)


async def test_a_refusal_of_the_token_is_answered_with_a_fresh_one(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old")
    credentials = token_file(tmp_path / "token")
    await credentials.sign()
    (tmp_path / "token").write_text("new")

    async def door(request: web.Request) -> web.StreamResponse:
        return await echo(request) if request.headers["Authorization"] == "Bearer new" else web.Response(status=401)

    async with transport_to(door, credentials) as transport, transport.websocket(EXEC, PROTOCOLS) as websocket:
        await websocket.send(b"in")
        assert await anext(websocket.messages()) == b"in"


async def test_a_server_that_never_answers_the_handshake_is_given_up() -> None:
    async def silent(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with raw_server(silent) as port:
        transport = HttpTransport(Connection(server=f"http://127.0.0.1:{port}"))
        with pytest.raises(ConnectionFault, match=r"no answer within 0\.1 s"):
            async with transport.websocket(Request(method="GET", path="/exec", timeout=0.1), PROTOCOLS):
                pass
        await transport.close()


async def test_a_quiet_websocket_is_pinged_so_that_no_gateway_forgets_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(answers, "PING_SECONDS", 0.01)
    pings = 0

    async def handler(request: web.Request) -> web.WebSocketResponse:
        nonlocal pings
        websocket = web.WebSocketResponse(autoping=False)
        await websocket.prepare(request)
        while pings < 3:
            message = await websocket.receive()
            if message.type is not WSMsgType.PING:
                break
            pings += 1
        await websocket.close()
        return websocket

    async with transport_to(handler) as transport, transport.websocket(EXEC, PROTOCOLS) as websocket:
        assert [message async for message in websocket.messages()] == []
    assert pings == 3


async def test_websockets_go_over_tls_under_the_servers_own_name(tmp_path: Path) -> None:
    authority = Authority()
    context = authority.server_context(tmp_path, hosts=("kubernetes.default",))
    async with serving(echo, tls=context) as server:
        tls = Tls(authorities=authority.pem, server_name="kubernetes.default")
        transport = HttpTransport(Connection(server=server, tls=tls))
        async with transport.websocket(EXEC, PROTOCOLS) as websocket:
            await websocket.send(b"hello")
            assert await anext(websocket.messages()) == b"hello"
        await transport.close()


async def test_websockets_go_over_a_unix_socket(tmp_path: Path) -> None:
    async with serving(echo, socket=tmp_path / "s") as server:
        transport = HttpTransport(Connection(server=server))
        async with transport.websocket(EXEC, PROTOCOLS) as websocket:
            await websocket.send(b"hello")
            assert await anext(websocket.messages()) == b"hello"
        await transport.close()
