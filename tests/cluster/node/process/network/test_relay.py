"""Two connections that are one."""

from __future__ import annotations

import asyncio
import hashlib
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from shoal.cluster.node.process.network.relay import Relay
from tests.support.waiting import eventually

WITHIN = 10.0


class Related:
    """The two outer ends, the relay between them, and whether it is over."""

    def __init__(
        self, client: socket.socket, backend: socket.socket, inner: tuple[socket.socket, socket.socket]
    ) -> None:
        self.client = client
        self.backend = backend
        self.inner = inner
        self.ended: list[Relay] = []
        self.relay = Relay(inner[0], inner[1], memoryview(bytearray(65536)), on_end=self.ended.append)


async def _pair() -> tuple[socket.socket, socket.socket]:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        one = socket.create_connection(listener.getsockname())
        other, _ = listener.accept()
    for end in (one, other):
        end.setblocking(False)
    return one, other


@asynccontextmanager
async def related() -> AsyncIterator[Related]:
    (client, front), (back, backend) = await _pair(), await _pair()
    made = Related(client, backend, (front, back))
    made.relay.start()
    try:
        yield made
    finally:
        made.relay.abort()
        client.close()
        backend.close()


async def read_all(source: socket.socket) -> bytes:
    loop = asyncio.get_running_loop()
    found = bytearray()
    async with asyncio.timeout(WITHIN):
        while said := await loop.sock_recv(source, 65536):
            found += said
    return bytes(found)


async def test_bytes_arrive_as_they_were_sent_in_both_directions_at_once() -> None:
    loop = asyncio.get_running_loop()
    there, back = os.urandom(5_000_000), os.urandom(3_000_000)

    async def say(sink: socket.socket, said: bytes) -> None:
        await loop.sock_sendall(sink, said)
        sink.shutdown(socket.SHUT_WR)

    async with related() as ends:
        _, _, at_backend, at_client = await asyncio.gather(
            say(ends.client, there), say(ends.backend, back), read_all(ends.backend), read_all(ends.client)
        )
        await eventually(lambda: ends.ended)

    assert hashlib.sha256(at_backend).digest() == hashlib.sha256(there).digest()
    assert hashlib.sha256(at_client).digest() == hashlib.sha256(back).digest()


async def test_one_who_has_said_all_can_still_listen() -> None:
    loop = asyncio.get_running_loop()
    async with related() as ends:
        await loop.sock_sendall(ends.client, b"question")
        ends.client.shutdown(socket.SHUT_WR)
        assert await read_all(ends.backend) == b"question"
        assert not ends.ended

        await loop.sock_sendall(ends.backend, b"answer")
        ends.backend.close()

        assert await read_all(ends.client) == b"answer"
        await eventually(lambda: ends.ended)
        assert [one.fileno() for one in ends.inner] == [-1, -1]


async def test_one_who_does_not_listen_holds_the_other_back() -> None:
    async with related() as ends:
        sent = 0
        is_full = 0
        async with asyncio.timeout(WITHIN):
            while is_full < 20:  # nothing could be sent for as many turns of the loop
                try:
                    sent += ends.client.send(bytes(65536))
                    is_full = 0
                except BlockingIOError:
                    is_full += 1
                    await asyncio.sleep(0.005)
        # What is on its way is in the kernel's buffers of two connections, and one buffer of ours at most.
        assert sent < 60_000_000

        ends.client.shutdown(socket.SHUT_WR)
        assert len(await read_all(ends.backend)) == sent


@pytest.mark.parametrize("who", ["client", "backend"])
async def test_a_failure_on_one_side_is_one_on_the_other(who: str) -> None:
    loop = asyncio.get_running_loop()
    async with related() as ends:
        failing, other = (ends.client, ends.backend) if who == "client" else (ends.backend, ends.client)
        failing.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        failing.close()

        with pytest.raises(ConnectionResetError):
            async with asyncio.timeout(WITHIN):
                await loop.sock_recv(other, 1)
        assert len(ends.ended) == 1


async def test_what_was_said_before_the_end_arrives_though_nobody_listened_yet() -> None:
    loop = asyncio.get_running_loop()
    said = os.urandom(2_000_000)
    async with related() as ends:

        async def say() -> None:
            await loop.sock_sendall(ends.backend, said)
            ends.backend.close()

        saying = asyncio.create_task(say())
        await eventually(lambda: ends.inner[0].fileno() >= 0)
        assert await read_all(ends.client) == said
        await saying
