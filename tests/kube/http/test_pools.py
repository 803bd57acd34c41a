"""How connections are kept, shared and limited, and that giving up a request never spoils another."""

from __future__ import annotations

import asyncio
import random
import socket
from contextlib import suppress
from pathlib import Path

import pytest
from aiohttp import web

from shoal.kube.connection import Connection
from shoal.kube.errors import ConnectionFault
from shoal.kube.http import HttpTransport
from shoal.kube.http.pools import watched_socket
from shoal.kube.tls import Tls
from shoal.kube.transport import Request
from tests.support.network.http_servers import serving
from tests.support.network.tls import Authority
from tests.support.waiting import eventually


class Peers:
    """Echoes the path, and knows which connections it came over and how many requests were under way at once."""

    def __init__(self) -> None:
        self.connections: set[object] = set()
        self.under_way = 0
        self.most_under_way = 0
        self.gate = asyncio.Event()
        self.gate.set()

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self.connections.add(request.transport)
        self.under_way += 1
        self.most_under_way = max(self.most_under_way, self.under_way)
        try:
            if request.query.get("slow"):
                await asyncio.sleep(float(request.query["slow"]))
            await self.gate.wait()
            if "stream" in request.query:
                answer = web.StreamResponse()
                await answer.prepare(request)
                await answer.write(b"first")
                await asyncio.Event().wait()
            return web.Response(text=request.path)
        finally:
            self.under_way -= 1


async def test_requests_one_after_the_other_share_a_connection() -> None:
    peers = Peers()
    async with serving(peers) as server:
        transport = HttpTransport(Connection(server=server))
        for _ in range(5):
            await transport.send(Request(method="GET", path="/api"))
        await transport.close()
    assert len(peers.connections) == 1


async def test_no_more_requests_are_under_way_than_the_limit() -> None:
    peers = Peers()
    async with serving(peers) as server:
        transport = HttpTransport(Connection(server=server), limit=3)
        requests = (transport.send(Request(method="GET", path=f"/{n}", query={"slow": "0.01"})) for n in range(30))
        answers = await asyncio.gather(*requests)
        await transport.close()
    assert [answer.body for answer in answers] == [f"/{n}".encode() for n in range(30)]
    assert peers.most_under_way == 3


async def test_streams_never_keep_a_request_waiting() -> None:
    peers = Peers()
    async with serving(peers) as server:
        transport = HttpTransport(Connection(server=server), limit=1)

        async def watch(stop: asyncio.Event) -> None:
            async with transport.stream(Request(method="GET", path="/watch", query={"stream": ""})) as stream:
                async for _ in stream.chunks():
                    await stop.wait()
                    return

        stop = asyncio.Event()
        watches = [asyncio.create_task(watch(stop)) for _ in range(20)]
        await eventually(lambda: peers.under_way == 20)
        answer = await transport.send(Request(method="GET", path="/quick", timeout=10))
        stop.set()
        await asyncio.gather(*watches)
        await transport.close()
    assert answer.body == b"/quick"


async def test_a_request_that_is_given_up_frees_its_place() -> None:
    peers = Peers()
    async with serving(peers) as server:
        transport = HttpTransport(Connection(server=server), limit=2)
        peers.gate.clear()
        stuck = [asyncio.create_task(transport.send(Request(method="GET", path="/stuck"))) for _ in range(6)]
        await eventually(lambda: peers.under_way == 2)
        for task in stuck:
            task.cancel()
        await asyncio.gather(*stuck, return_exceptions=True)
        peers.gate.set()
        answers = await asyncio.gather(
            *(transport.send(Request(method="GET", path=f"/{n}", timeout=10)) for n in range(10))
        )
        await transport.close()
    assert [answer.body for answer in answers] == [f"/{n}".encode() for n in range(10)]


@pytest.mark.parametrize("is_encrypted", [pytest.param(False, id="plain"), pytest.param(True, id="tls")])
@pytest.mark.parametrize("seed", range(3))
async def test_requests_given_up_at_any_moment_never_mix_up_the_answers(
    seed: int, is_encrypted: bool, tmp_path: Path
) -> None:
    """Cancelled while waiting for a place, connecting, sending, or reading: the rest still get their own answers."""
    chance = random.Random(seed)
    peers = Peers()
    authority = Authority()
    context = authority.server_context(tmp_path, hosts=("127.0.0.1",)) if is_encrypted else None
    async with serving(peers, tls=context) as server:
        transport = HttpTransport(Connection(server=server, tls=Tls(authorities=authority.pem)), limit=8)

        async def ask(n: int) -> bool:
            give_up = chance.random() < 0.5
            query = {"slow": f"{chance.random() * 0.01:.4f}"} if chance.random() < 0.5 else {}
            request = Request(method="GET", path=f"/{n}", query=query)
            if not give_up:
                answer = await transport.send(request)
                assert answer.body == f"/{n}".encode()
                return True
            with suppress(TimeoutError):
                async with asyncio.timeout(chance.random() * 0.012):
                    answer = await transport.send(request)
                    assert answer.body == f"/{n}".encode()
            return False

        async with asyncio.timeout(60):
            finished = await asyncio.gather(*(ask(n) for n in range(300)))
            answers = await asyncio.gather(*(transport.send(Request(method="GET", path=f"/{n}")) for n in range(20)))
        await transport.close()
    assert 50 < sum(finished) < 250
    assert [answer.body for answer in answers] == [f"/{n}".encode() for n in range(20)]


async def test_closing_ends_what_is_under_way_with_a_fault() -> None:
    peers = Peers()
    async with serving(peers) as server:
        transport = HttpTransport(Connection(server=server))
        peers.gate.clear()
        request = asyncio.create_task(transport.send(Request(method="GET", path="/stuck")))
        await eventually(lambda: peers.under_way == 1)
        await transport.close()
        with pytest.raises(ConnectionFault):
            await asyncio.wait_for(request, 10)


def test_a_peer_that_vanishes_is_noticed_by_the_kernel() -> None:
    opened = watched_socket((socket.AF_INET, socket.SOCK_STREAM, 0, "", ("127.0.0.1", 1)))
    with opened:
        assert opened.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
        idle = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)
        probes = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPCNT)
        interval = opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL)
        assert idle + probes * interval <= 60
        assert opened.getsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT) <= 30_000
