"""Answers that go on: they arrive as they are sent, break audibly, and leave nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import web

from shoal.kube.connection import Connection
from shoal.kube.credentials import token_file
from shoal.kube.errors import ConnectionFault
from shoal.kube.http import HttpTransport
from shoal.kube.transport import Request
from tests.support.network.http_servers import raw_server, serving

WATCH = Request(method="GET", path="/api/v1/pods", query={"watch": "true"}, timeout=5)


@asynccontextmanager
async def transport_to(server: str) -> AsyncIterator[HttpTransport]:
    transport = HttpTransport(Connection(server=server))
    try:
        yield transport
    finally:
        await transport.close()


def sending(
    send: Callable[[web.StreamResponse], Awaitable[None]],
) -> Callable[[web.Request], Awaitable[web.StreamResponse]]:
    async def handler(request: web.Request) -> web.StreamResponse:
        answer = web.StreamResponse(headers={"Content-Type": "application/json"})
        await answer.prepare(request)
        await send(answer)
        return answer

    return handler


async def test_chunks_arrive_as_they_are_sent() -> None:
    more = asyncio.Event()

    async def send(answer: web.StreamResponse) -> None:
        await answer.write(b"one")
        await more.wait()
        await answer.write(b"two")

    async with (
        serving(sending(send)) as server,
        transport_to(server) as transport,
        transport.stream(WATCH) as stream,
    ):
        assert (stream.status, stream.headers["content-type"]) == (200, "application/json")
        chunks = stream.chunks()
        assert await anext(chunks) == b"one"
        more.set()
        assert await anext(chunks) == b"two"
        assert await anext(chunks, None) is None


async def test_the_rest_can_be_read_at_once() -> None:
    async def send(answer: web.StreamResponse) -> None:
        for _ in range(100):
            await answer.write(b"x" * 10_000)

    async with (
        serving(sending(send)) as server,
        transport_to(server) as transport,
        transport.stream(WATCH) as stream,
    ):
        assert len(await stream.read()) == 1_000_000


async def test_only_the_head_must_come_in_time() -> None:
    async def send(answer: web.StreamResponse) -> None:
        await answer.write(b"one")
        await asyncio.sleep(0.6)
        await answer.write(b"two")

    async with (
        serving(sending(send)) as server,
        transport_to(server) as transport,
        transport.stream(Request(method="GET", path="/api", timeout=0.5)) as stream,
    ):
        assert [chunk async for chunk in stream.chunks()] == [b"one", b"two"]


async def test_a_head_that_does_not_come_in_time_is_a_fault() -> None:
    async def never(request: web.Request) -> web.Response:
        await asyncio.Event().wait()
        return web.Response()

    async with serving(never) as server, transport_to(server) as transport:
        with pytest.raises(ConnectionFault, match=f"{server} gave no answer within 0.1 s"):
            async with transport.stream(Request(method="GET", path="/api", timeout=0.1)):
                pass


async def test_a_stream_that_breaks_says_so_after_what_came_before() -> None:
    async def speak(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\none\r\n")
        await writer.drain()

    async with (
        raw_server(speak) as port,
        transport_to(f"http://127.0.0.1:{port}") as transport,
        transport.stream(WATCH) as stream,
    ):
        chunks = stream.chunks()
        assert await anext(chunks) == b"one"
        with pytest.raises(ConnectionFault, match="broke off its answer"):
            await anext(chunks)


async def test_waiting_for_a_chunk_can_be_given_up_and_taken_up_again() -> None:
    more = asyncio.Event()

    async def send(answer: web.StreamResponse) -> None:
        await more.wait()
        await answer.write(b"late")

    async with (
        serving(sending(send)) as server,
        transport_to(server) as transport,
        transport.stream(WATCH) as stream,
    ):
        chunks = stream.chunks()
        for _ in range(3):
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.01):
                    await anext(chunks)
        more.set()
        assert await anext(chunks) == b"late"


@pytest.mark.parametrize("way", ["leaving", "failing", "cancelled"])
async def test_a_stream_that_is_left_early_is_closed_at_the_server_too(way: str) -> None:
    began, ended = asyncio.Event(), asyncio.Event()

    async def send(answer: web.StreamResponse) -> None:
        try:
            began.set()
            await answer.write(b"one")
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with serving(sending(send)) as server, transport_to(server) as transport:

        async def watch() -> None:
            async with transport.stream(WATCH) as stream:
                async for _ in stream.chunks():
                    if way == "leaving":
                        return
                    if way == "failing":
                        raise ValueError("in the reader")

        watching = asyncio.create_task(watch())
        if way == "cancelled":
            await asyncio.wait_for(began.wait(), 10)
            watching.cancel()
        await asyncio.wait({watching})
        await asyncio.wait_for(ended.wait(), 10)


async def test_a_refusal_of_the_token_is_answered_with_a_fresh_one(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("old")
    credentials = token_file(tmp_path / "token")
    await credentials.sign()
    (tmp_path / "token").write_text("new")

    async def door(request: web.Request) -> web.Response:
        return web.Response(status=200 if request.headers["Authorization"] == "Bearer new" else 401, text="body")

    async with serving(door) as server:
        transport = HttpTransport(Connection(server=server, credentials=credentials))
        async with transport.stream(WATCH) as stream:
            assert (stream.status, await stream.read()) == (200, b"body")
        await transport.close()


async def test_a_refusal_is_a_stream_with_a_body_to_read() -> None:
    async def refuse(request: web.Request) -> web.Response:
        return web.Response(status=410, text="too old")

    async with serving(refuse) as server, transport_to(server) as transport, transport.stream(WATCH) as stream:
        assert (stream.status, await stream.read()) == (410, b"too old")
