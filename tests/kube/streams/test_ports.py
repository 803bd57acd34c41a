"""Ports of pods: single connections, and a local port that leads there."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from shoal.kube.errors import ConnectionFault, NotFound
from shoal.kube.streams import forward_port, port_forward, ports
from tests.support.network.http_servers import raw_server
from tests.support.network.streams import pods
from tests.support.waiting import eventually

POD: dict[str, Any] = {"namespace": "a", "pod": "b"}


async def echo(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    while data := await reader.read(65536):
        writer.write(data)
        await writer.drain()


async def greeter(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"hello and good bye")
    await writer.drain()


async def answers_at_the_end_of_a_line(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    line = await reader.readline()
    await asyncio.sleep(0.1)
    writer.write(line.upper())
    await writer.drain()


@asynccontextmanager
async def closed_port() -> AsyncIterator[int]:
    async with raw_server(echo) as port:
        pass
    yield port


async def test_bytes_go_both_ways_and_the_port_number_is_not_among_them() -> None:
    async with (
        pods() as (server, transport),
        raw_server(echo) as port,
        port_forward(transport, **POD, port=port) as connection,
    ):
        for data in (b"one", b"\x00\x01\xff", b"x" * 200_000):
            await connection.write(data)
            received = b""
            while len(received) < len(data):
                received += await connection.read()
            assert received == data
    assert server.queries == [{"ports": [str(port)]}]


async def test_the_end_at_the_pod_is_the_end() -> None:
    async with (
        pods() as (_, transport),
        raw_server(greeter) as port,
        port_forward(transport, **POD, port=port) as connection,
    ):
        assert await connection.read() == b"hello and good bye"
        assert await connection.read() == b""
        assert await connection.read() == b""


async def test_a_port_that_nobody_listens_on_is_explained_in_the_runtimes_words() -> None:
    async with (
        pods() as (_, transport),
        closed_port() as port,
        port_forward(transport, **POD, port=port) as connection,
    ):
        with pytest.raises(ConnectionFault, match=f"port {port} of pod a/b: error forwarding port {port}"):
            await connection.read()


async def test_closing_here_closes_there() -> None:
    async with pods() as (server, transport), raw_server(echo) as port:
        async with port_forward(transport, **POD, port=port) as connection:
            await connection.write(b"x")
            await connection.read()
            await connection.close()
            assert await connection.read() == b""
        await eventually(lambda: server.open_ports == 0)


async def test_a_local_port_carries_many_connections_at_once() -> None:
    async with pods() as (server, transport), raw_server(echo) as port:
        async with forward_port(transport, **POD, port=port) as local:

            async def talk(number: int) -> bytes:
                reader, writer = await asyncio.open_connection("127.0.0.1", local)
                text = f"{number}".encode() * 10_000
                writer.write(text)
                answer = await reader.readexactly(len(text))
                writer.close()
                assert answer == text
                return answer[:1]

            assert len(await asyncio.gather(*(talk(number) for number in range(10)))) == 10
        await eventually(lambda: server.open_ports == 0)


async def test_a_local_port_can_be_chosen() -> None:
    async with (
        closed_port() as local,
        pods() as (_, transport),
        raw_server(greeter) as port,
        forward_port(transport, **POD, port=port, local_port=local) as listening,
    ):
        assert listening == local
        reader, writer = await asyncio.open_connection("127.0.0.1", local)
        assert await reader.read() == b"hello and good bye"
        writer.close()


async def test_a_local_end_that_says_no_more_still_gets_its_answer() -> None:
    async with (
        pods() as (_, transport),
        raw_server(answers_at_the_end_of_a_line) as port,
        forward_port(transport, **POD, port=port) as local,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", local)
        writer.write(b"question\n")
        writer.write_eof()
        assert await reader.read() == b"QUESTION\n"
        writer.close()


async def test_a_local_end_that_is_gone_does_not_keep_the_pods_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ports, "LINGER_SECONDS", 0.05)
    async with (
        pods() as (server, transport),
        raw_server(echo) as port,
        forward_port(transport, **POD, port=port) as local,
    ):
        reader, writer = await asyncio.open_connection("127.0.0.1", local)
        writer.write(b"x")
        await reader.readexactly(1)
        assert server.open_ports == 1
        writer.close()
        await eventually(lambda: server.open_ports == 0)


async def test_one_connection_that_fails_leaves_the_listening_alone() -> None:
    async with pods() as (_, transport), closed_port() as port, forward_port(transport, **POD, port=port) as local:
        for _ in range(3):
            reader, writer = await asyncio.open_connection("127.0.0.1", local)
            assert await reader.read() == b""
            writer.close()


async def test_leaving_closes_the_local_port_and_what_goes_through_it() -> None:
    async with pods() as (server, transport), raw_server(echo) as port:
        async with forward_port(transport, **POD, port=port) as local:
            reader, writer = await asyncio.open_connection("127.0.0.1", local)
            writer.write(b"x")
            await reader.readexactly(1)
        assert await reader.read() == b""
        writer.close()
        await eventually(lambda: server.open_ports == 0)
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection("127.0.0.1", local)


@pytest.mark.parametrize(
    ("arrange", "error", "says"),
    [
        pytest.param({"pod": "missing"}, NotFound, "no such pod", id="no-such-pod"),
        pytest.param({"phase": "Pending"}, ConnectionFault, "pod a/b is Pending: only a running pod", id="pending"),
    ],
)
async def test_a_pod_without_ports_to_forward_is_told_at_once(
    arrange: dict[str, str], error: type[Exception], says: str
) -> None:
    async with pods() as (server, transport):
        server.phase = arrange.get("phase", "Running")
        with pytest.raises(error, match=says):
            async with forward_port(transport, namespace="a", pod=arrange.get("pod", "b"), port=80):
                pass
