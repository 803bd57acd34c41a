"""Commands and ports by SPDY, as API servers before 1.36 and kubectl before 1.31 ask kubelets for them."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from shoal.cluster.node.kubelet import serving
from shoal.cluster.node.kubelet.channels import STDERR, STDOUT, Channels, Close, Input, Size, Wanted
from shoal.cluster.node.kubelet.joining import join
from shoal.cluster.node.kubelet.outcomes import exited
from shoal.cluster.node.kubelet.ports import PortConnection, serve_ports
from shoal.cluster.node.kubelet.spdy import FrameWriter
from tests.support.network.spdy_client import SpdyClient, spdy_client
from tests.support.waiting import eventually

Talk = Callable[[Channels], Awaitable[None]]
EXEC = "/exec/default/web/main"
ALL = "v5.channel.k8s.io", "v4.channel.k8s.io", "v3.channel.k8s.io"
"""What client-go offers, the best first."""


async def repeat(channels: Channels) -> None:
    """Says what it hears, and complains of sizes, until there is no more to hear."""
    while (said := await channels.receive()) is not None:
        match said:
            case Input(data):
                await channels.send(STDOUT, data)
            case Size(width, height):
                await channels.send(STDOUT, b"%dx%d" % (width, height))
            case Close():
                await channels.send(STDERR, b"over")
                await channels.finish(exited(3))
                return


class Agent:
    """An agent whose commands talk as they are told to, and whose ports say their numbers."""

    def __init__(self, talk: Talk) -> None:
        self._talk = talk
        self.is_over = asyncio.Event()

    async def connect(self, request: web.Request, verb: str, *_: str) -> web.StreamResponse:
        try:
            if verb == "portForward":
                return await serve_ports(request, self._carry)
            return await join(request, Wanted.of(request.query), self._talk)
        finally:
            self.is_over.set()

    async def _carry(self, connection: PortConnection) -> None:
        await connection.write(b"%d:" % connection.port + await connection.read())
        await connection.close()


@asynccontextmanager
async def an_agent(folder: Path, talk: Talk = repeat) -> AsyncIterator[tuple[Agent, Path]]:
    agent: Any = Agent(talk)
    async with serving(agent, folder / "agent.sock"):
        yield agent, folder / "agent.sock"


async def streams(client: SpdyClient, *names: str) -> list[int]:
    return [await client.open(streamtype=name) for name in names]


async def test_a_command_has_its_input_its_outputs_and_its_exit_code(tmp_path: Path) -> None:
    async with (
        an_agent(tmp_path) as (agent, socket),
        spdy_client(socket, f"{EXEC}?input=1&output=1&error=1", *ALL) as client,
    ):
        error, stdin, stdout, stderr = await streams(client, "error", "stdin", "stdout", "stderr")
        for _ in range(100):
            await client.send(stdin, bytes(30_000))
        await client.send(stdin, b"", is_last=True)
        await eventually(lambda: client.ended == {error, stdin, stdout, stderr})
        assert client.accepted == client.ended
        assert (len(client.received[stdout]), bytes(client.received[stderr])) == (3_000_000, b"over")
        assert json.loads(client.received[error])["details"]["causes"] == [{"reason": "ExitCode", "message": "3"}]
        assert not agent.is_over.is_set()  # it is for the client to close
        client.leave()
        await agent.is_over.wait()


async def test_a_terminal_has_a_stream_for_its_size(tmp_path: Path) -> None:
    async with (
        an_agent(tmp_path) as (_, socket),
        spdy_client(socket, f"{EXEC}?output=1&error=1&tty=1", *ALL) as client,
    ):
        _, stdout, resize = await streams(client, "error", "stdout", "resize")
        await client.send(resize, b'{"Width":80,"Hei')
        await client.send(resize, b'ght":24}\nnonsense\n{"Width":1,"Height":2}\n')
        await eventually(lambda: client.received[stdout] == b"80x241x2")


async def test_pings_are_answered_and_streams_that_nobody_asked_for_are_not_wanted(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as (_, socket), spdy_client(socket, f"{EXEC}?output=1", *ALL) as client:
        await streams(client, "error", "stdout")
        unknown, twice, unasked = await streams(client, "nonsense", "stdout", "stdin")
        await client.write(FrameWriter.ping(7))
        await eventually(lambda: client.pings == [7])
        assert client.reset == {unknown, twice, unasked}


@pytest.mark.parametrize("opened", [[], ["error", "stdin"], ["error", "stdin", "stdout"]], ids=["none", "some", "all"])
async def test_a_client_that_leaves_is_let_go_whatever_it_has_opened(tmp_path: Path, opened: list[str]) -> None:
    async with an_agent(tmp_path) as (agent, socket):
        async with spdy_client(socket, f"{EXEC}?input=1&output=1", *ALL) as client:
            await streams(client, *opened)
            await eventually(lambda: len(client.accepted) == len(opened))
        async with asyncio.timeout(10):
            await agent.is_over.wait()


async def test_a_client_that_writes_more_than_is_read_hears_how_it_ended(tmp_path: Path) -> None:
    is_enough = asyncio.Event()

    async def listen_little(channels: Channels) -> None:
        await is_enough.wait()
        await channels.send(STDOUT, b"enough")
        await channels.finish(exited(0))

    async with (
        an_agent(tmp_path, listen_little) as (_, socket),
        spdy_client(socket, f"{EXEC}?input=1&output=1", *ALL) as client,
    ):
        error, stdin, stdout = await streams(client, "error", "stdin", "stdout")

        async def write() -> None:
            while True:
                await client.send(stdin, bytes(1 << 16))

        writing = asyncio.create_task(write())
        await asyncio.wait({writing}, timeout=0.3)
        is_enough.set()
        await eventually(lambda: {error, stdout} <= client.ended)
        assert client.received[stdout] == b"enough"
        assert json.loads(client.received[error])["status"] == "Success"
        writing.cancel()


async def test_a_version_that_is_not_known_is_refused(tmp_path: Path) -> None:
    async with an_agent(tmp_path) as (_, socket):
        with pytest.raises(AssertionError, match=r"403 Forbidden(?s:.*)unable to negotiate protocol") as refused:
            async with spdy_client(socket, f"{EXEC}?output=1", "v1.channel.k8s.io"):
                pass
    assert "server accepts [v4.channel.k8s.io]" in str(refused.value)


async def test_ports_are_forwarded_in_two_streams_for_each_connection(tmp_path: Path) -> None:
    async with (
        an_agent(tmp_path) as (_, socket),
        spdy_client(socket, "/portForward/default/web", "portforward.k8s.io") as client,
    ):
        opened = {}
        for port in ("80", "81"):
            error = await client.open(streamtype="error", port=port, requestid=port)
            opened[port] = error, await client.open(streamtype="data", port=port, requestid=port)
            await client.send(opened[port][1], b"hello", is_last=True)
        await eventually(lambda: len(client.ended) == 4)
        assert {port: bytes(client.received[data]) for port, (_, data) in opened.items()} == {
            "80": b"80:hello",
            "81": b"81:hello",
        }
