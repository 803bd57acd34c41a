"""The server of names, asked from inside of a pod's network."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import dns.flags
import dns.message
import dns.rcode

from shoal.cluster.node.process.network import dns as server_module
from shoal.cluster.node.process.network.catalogue import Catalogue
from shoal.cluster.node.process.network.dns import DnsServer
from shoal.cluster.node.process.network.names import Names
from tests.cluster.node.process.network.builders import a_catalogue, a_service, a_slice, an_endpoint, put
from tests.cluster.node.process.network.conftest import WITHIN, PodNetwork, PodNetworks, in_background
from tests.support.clusters.client import until

NODE = "10.88.0.1"
MANY = a_slice("many", *[an_endpoint(f"10.88.{n // 250}.{n % 250 + 2}") for n in range(300)])


@asynccontextmanager
async def answering(pods: PodNetworks, catalogue: Catalogue) -> AsyncIterator[PodNetwork]:
    """A pod in whose network names are answered."""
    asker = await pods.pod()
    async with in_background(DnsServer(Names(catalogue)).run(pods.runtime)):

        async def listens() -> bool:
            try:
                (await asker.dial(NODE, 53)).close()
            except ConnectionRefusedError:
                return False
            return True

        await until(listens, within=WITHIN)
        yield asker


async def ask(asker: PodNetwork, name: str, type_: str = "A") -> dns.message.Message:
    way = await asker.dial(NODE, 53, is_datagram=True)
    loop = asyncio.get_running_loop()
    async with asyncio.timeout(WITHIN):
        await loop.sock_sendall(way, dns.message.make_query(name, type_).to_wire())
        return dns.message.from_wire(await loop.sock_recv(way, 65535))


def addresses(message: dns.message.Message) -> list[str]:
    return [one.to_text() for found in message.answer for one in found]


async def test_a_pod_asks_the_node_for_a_service(pods: PodNetworks) -> None:
    catalogue = a_catalogue(a_service("web", "10.96.0.7"))
    async with answering(pods, catalogue) as asker:
        assert addresses(await ask(asker, "web.default.svc.cluster.local")) == ["10.96.0.7"]
        assert (await ask(asker, "example.com")).rcode() == dns.rcode.NXDOMAIN

        put(catalogue, a_service("web", "10.96.0.8"))

        assert addresses(await ask(asker, "web.default.svc.cluster.local")) == ["10.96.0.8"]


async def test_what_a_datagram_cannot_hold_is_asked_for_by_a_connection(pods: PodNetworks) -> None:
    async with answering(pods, a_catalogue(a_service("many"), MANY)) as asker:
        assert (await ask(asker, "many.default.svc.cluster.local")).flags & dns.flags.TC

        connection = await asker.dial(NODE, 53)
        reader, writer = await asyncio.open_connection(sock=connection)
        found = []
        async with asyncio.timeout(WITHIN):
            # Several questions on one connection, the first one in pieces, the others at once.
            questions = [
                dns.message.make_query(name, "A").to_wire()
                for name in ("many.default.svc.cluster.local", "nothing.default.svc.cluster.local", "localhost")
            ]
            wire = b"".join(len(question).to_bytes(2, "big") + question for question in questions)
            for piece in (wire[:1], wire[1:9], wire[9:]):
                writer.write(piece)
                await writer.drain()
            for _ in questions:
                length = int.from_bytes(await reader.readexactly(2), "big")
                found.append(dns.message.from_wire(await reader.readexactly(length)))
        writer.close()

    assert [len(addresses(message)) for message in found] == [300, 0, 1]
    assert found[1].rcode() == dns.rcode.NXDOMAIN


async def test_the_first_of_many_addresses_is_not_always_the_same(pods: PodNetworks) -> None:
    few = a_slice("few", *[an_endpoint(f"10.88.0.{n}") for n in (2, 3, 4)])
    async with answering(pods, a_catalogue(a_service("few"), few)) as asker:
        answers = [addresses(await ask(asker, "few.default.svc.cluster.local")) for _ in range(60)]

    assert {len(set(answer)) for answer in answers} == {3}
    assert {answer[0] for answer in answers} == {"10.88.0.2", "10.88.0.3", "10.88.0.4"}


async def test_noise_takes_nothing_from_others(pods: PodNetworks) -> None:
    async with answering(pods, a_catalogue(a_service("web", "10.96.0.7"))) as asker:
        way = await asker.dial(NODE, 53, is_datagram=True)
        for noise in (b"", b"\0", b"\xff" * 600, dns.message.make_query("a", "A").to_wire()[:-3]):
            way.send(noise)
        silent = await asker.dial(NODE, 53)
        silent.send(b"\xff")
        half = await asker.dial(NODE, 53)
        half.send(b"\0\x40half")
        half.close()

        assert addresses(await ask(asker, "web.default.svc.cluster.local")) == ["10.96.0.7"]


async def test_a_connection_beyond_the_limit_is_closed(pods: PodNetworks) -> None:
    server = DnsServer(Names(a_catalogue()))
    server._connections = server_module.CONNECTIONS
    asker = await pods.pod()
    async with in_background(server.run(pods.runtime)):

        async def closed() -> bool:
            try:
                connection = await asker.dial(NODE, 53)
            except ConnectionRefusedError:
                return False
            return await _is_ended(connection)

        await until(closed, within=WITHIN)


async def _is_ended(connection: socket.socket) -> bool:
    async with asyncio.timeout(WITHIN):
        return not await asyncio.get_running_loop().sock_recv(connection, 1)
