"""Services in the network of the pods: connections and datagrams from one pod to others."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from shoal.cluster.node.process.client import Runtime
from shoal.cluster.node.process.network.balance import Front, wanted_fronts
from shoal.cluster.node.process.network.catalogue import Catalogue
from shoal.cluster.node.process.network.datagrams import DatagramFront
from shoal.cluster.node.process.network.dialing import Dialer
from shoal.cluster.node.process.network.proxy import Proxy
from shoal.cluster.node.process.network.streams import Relays
from shoal.cluster.node.process.network.turns import Turns
from shoal.cluster.node.process.runtime.protocol import SocketSpec
from shoal.kube import Key
from tests.cluster.node.process.network.builders import (
    MACHINE,
    a_catalogue,
    a_service,
    a_slice,
    an_endpoint,
    put,
    remove,
)
from tests.cluster.node.process.network.conftest import WITHIN, PodNetwork, PodNetworks, free_port, in_background
from tests.support.waiting import eventually

ADDRESS = "10.96.0.7"
PORT = {"name": "http", "port": 8080, "protocol": "TCP"}
UDP_SERVICE = {"name": "u", "port": 53, "protocol": "UDP"}
UDP_TARGET = {"name": "u", "port": 5353, "protocol": "UDP"}
KEY = Key("default", "web")


def behind(*addresses: str) -> Any:
    return a_slice("web", *[an_endpoint(address) for address in addresses], ports=[PORT])


@asynccontextmanager
async def proxying(pods: PodNetworks, catalogue: Catalogue) -> AsyncIterator[Proxy]:
    """A proxy that listens on all that it should."""
    proxy = Proxy(catalogue, node="local", machine=MACHINE)
    async with in_background(proxy.run(pods.runtime, translates=False)):
        await settled(proxy, catalogue)
        yield proxy


async def settled(proxy: Proxy, catalogue: Catalogue) -> None:
    await eventually(lambda: proxy.listening == expected(catalogue))


def expected(catalogue: Catalogue) -> Any:
    found = {key: catalogue.service(*key) for key in catalogue.service_keys()}
    wanted = {key: wanted_fronts(*one, node="local", machine=MACHINE) for key, one in found.items() if one is not None}
    return {key: one for key, one in wanted.items() if one}


async def heard(connection: socket.socket) -> bytes:
    async with asyncio.timeout(WITHIN):
        return await asyncio.get_running_loop().sock_recv(connection, 65536)


async def who(client: PodNetwork, address: str = ADDRESS, port: int = 80) -> str:
    """Who answers behind a service."""
    connection = await client.dial(address, port)
    said = await heard(connection)
    connection.close()
    return said.decode().strip()


async def test_a_pod_reaches_all_pods_behind_a_service(pods: PodNetworks) -> None:
    client, *backends = [await pods.pod() for _ in range(3)]
    one, two = (backend.address for backend in backends)
    servers = [await backend.echo(8080) for backend in backends]
    catalogue = a_catalogue(a_service("web", ADDRESS), behind(one, two))

    async with proxying(pods, catalogue):
        found = [await who(client) for _ in range(6)]

    assert (found.count(one), found.count(two)) == (3, 3)
    for server in servers:
        server.close()


async def test_a_service_without_anything_behind_it_refuses_at_once(pods: PodNetworks) -> None:
    client, backend = await pods.pod(), await pods.pod()
    server = await backend.echo(8080)
    catalogue = a_catalogue(a_service("web", ADDRESS))

    async with proxying(pods, catalogue) as proxy:
        with pytest.raises(ConnectionRefusedError):
            await client.dial(ADDRESS, 80)

        put(catalogue, behind(backend.address))
        await settled(proxy, catalogue)
        assert await who(client) == backend.address

        put(catalogue, behind())
        await settled(proxy, catalogue)
        with pytest.raises(ConnectionRefusedError):
            await client.dial(ADDRESS, 80)
    server.close()


async def test_a_backend_that_refuses_is_passed_over(pods: PodNetworks) -> None:
    client, backend, deaf = [await pods.pod() for _ in range(3)]
    server = await backend.echo(8080)

    async with proxying(pods, a_catalogue(a_service("web", ADDRESS), behind(backend.address, deaf.address))):
        assert [await who(client) for _ in range(4)] == [backend.address] * 4
    server.close()


async def test_where_all_refuse_the_client_is_told_so(pods: PodNetworks) -> None:
    client, deaf = await pods.pod(), await pods.pod()

    async with proxying(pods, a_catalogue(a_service("web", ADDRESS), behind(deaf.address))):
        connection = await client.dial(ADDRESS, 80)
        with pytest.raises(ConnectionResetError):
            await heard(connection)


async def test_a_client_stays_with_its_backend_where_the_service_says_so(pods: PodNetworks) -> None:
    client, *backends = [await pods.pod() for _ in range(3)]
    one, two = (backend.address for backend in backends)
    servers = [await backend.echo(8080) for backend in backends]
    service = a_service("web", ADDRESS, sessionAffinity="ClientIP")

    async with proxying(pods, a_catalogue(service, behind(one, two))):
        assert len({await who(client) for _ in range(6)}) == 1
    for server in servers:
        server.close()


async def test_a_pod_reaches_itself_and_a_node_port(pods: PodNetworks) -> None:
    pod = await pods.pod()
    server = await pod.echo(8080)
    port = free_port()
    service = a_service("web", ADDRESS, ports=[{"name": "http", "port": 80, "nodePort": port}])

    async with proxying(pods, a_catalogue(service, behind(pod.address))):
        assert await who(pod) == await who(pod, "10.88.0.1", port) == pod.address
    server.close()


async def test_a_connection_outlives_its_service(pods: PodNetworks) -> None:
    loop = asyncio.get_running_loop()
    client, backend = await pods.pod(), await pods.pod()
    server = await backend.echo(8080)
    service = a_service("web", ADDRESS)
    catalogue = a_catalogue(service, behind(backend.address))

    async with proxying(pods, catalogue) as proxy:
        connection = await client.dial(ADDRESS, 80)
        await heard(connection)
        remove(catalogue, service)
        await settled(proxy, catalogue)
        await loop.sock_sendall(connection, b"still there?")

        assert await heard(connection) == b"still there?"
    server.close()


async def test_a_port_that_goes_from_one_service_to_another_is_listened_on_at_once(pods: PodNetworks) -> None:
    client, backend = await pods.pod(), await pods.pod()
    server = await backend.echo(8080)
    number = free_port()
    port = {"name": "http", "port": 80, "nodePort": number}
    owners = [a_service("web", ADDRESS, ports=[port]), a_service("api", "10.96.0.8", ports=[port])]
    slices = [a_slice(name, an_endpoint(backend.address), ports=[PORT], name=name) for name in ("web", "api")]
    catalogue = a_catalogue(owners[1], *slices)

    async with proxying(pods, catalogue) as proxy:
        for _ in range(3):
            for old, new in (owners[::-1], owners):
                remove(catalogue, old)
                put(catalogue, new)
                await settled(proxy, catalogue)
                assert await who(client, "10.88.0.1", number) == backend.address
    server.close()


async def test_only_what_differs_is_touched(pods: PodNetworks) -> None:
    client, *backends = [await pods.pod() for _ in range(3)]
    one, two = (backend.address for backend in backends)
    servers = [await backend.echo(8080) for backend in backends]
    asked: list[SocketSpec] = []

    class Counting:
        async def socket(self, spec: SocketSpec) -> socket.socket:
            asked.append(spec)
            return await pods.runtime.socket(spec)

    catalogue = a_catalogue(a_service("web", ADDRESS), behind(one), a_service("other", "10.96.0.8"))
    proxy = Proxy(catalogue, node="local", machine=MACHINE)
    async with in_background(proxy.run(Counting(), translates=False)):
        await settled(proxy, catalogue)
        put(catalogue, behind(two))
        put(catalogue, a_service("web", ADDRESS, selector={"changed": "yes"}))
        await settled(proxy, catalogue)
        assert await who(client) == two

    assert [spec.address for spec in asked if spec.address] == [ADDRESS]
    for server in servers:
        server.close()


async def test_many_connections_at_once(pods: PodNetworks) -> None:
    loop = asyncio.get_running_loop()
    client, backend = await pods.pod(), await pods.pod()
    server = await backend.echo(8080)

    async def talk(number: int) -> bytes:
        connection = await client.dial(ADDRESS, 80)
        await loop.sock_sendall(connection, f"{number}".encode())
        connection.shutdown(socket.SHUT_WR)
        said = b""
        while more := await heard(connection):
            said += more
        connection.close()
        return said

    async with proxying(pods, a_catalogue(a_service("web", ADDRESS), behind(backend.address))):
        found = await asyncio.gather(*map(talk, range(150)))

    assert found == [f"{backend.address}\n{number}".encode() for number in range(150)]
    server.close()


async def test_nobody_takes_all_descriptors(runtime: Runtime) -> None:
    turns = Turns(4)

    assert [turns.take("greedy") for _ in range(3)] == [True, True, False]
    assert [turns.take("other") for _ in range(3)] == [True, True, False]
    turns.give_back("greedy")
    assert turns.take("other") is False
    assert turns.take("third") is True


# Datagrams


async def answer_datagrams(listener: socket.socket, name: bytes) -> None:
    loop = asyncio.get_running_loop()

    def answer() -> None:
        said, client = listener.recvfrom(65535)
        listener.sendto(name + b":" + said, client)

    loop.add_reader(listener, answer)


async def said_back(way: socket.socket, said: bytes) -> bytes:
    await asyncio.get_running_loop().sock_sendall(way, said)
    return await heard(way)


def datagram_service(*addresses: str) -> Catalogue:
    return a_catalogue(
        a_service("web", ADDRESS, ports=[UDP_SERVICE]),
        a_slice("web", *[an_endpoint(address) for address in addresses], ports=[UDP_TARGET]),
    )


async def test_datagrams_of_one_client_go_to_one_backend_and_answers_come_back(pods: PodNetworks) -> None:
    client, *backends = [await pods.pod() for _ in range(3)]
    one, two = (backend.address for backend in backends)
    listeners = [await backend.listen(5353, is_datagram=True) for backend in backends]
    for backend, listener in zip(backends, listeners, strict=True):
        await answer_datagrams(listener, backend.address.encode())

    async with proxying(pods, datagram_service(one, two)):
        ways = [await client.dial(ADDRESS, 53, is_datagram=True) for _ in range(2)]
        first = [await said_back(ways[0], bytes([n])) for n in range(5)]
        second = await said_back(ways[1], b"x")
        large = await said_back(ways[0], b"x" * 30_000)

    assert len({answer.rpartition(b":")[0] for answer in first}) == 1
    assert second.rpartition(b":")[0] != first[0].rpartition(b":")[0]
    assert len(large) > 30_000
    for listener in listeners:
        asyncio.get_running_loop().remove_reader(listener)


async def test_who_talked_with_a_backend_that_is_gone_talks_with_another(pods: PodNetworks) -> None:
    client, *backends = [await pods.pod() for _ in range(3)]
    one, two = (backend.address for backend in backends)
    listeners = [await backend.listen(5353, is_datagram=True) for backend in backends]
    for backend, listener in zip(backends, listeners, strict=True):
        await answer_datagrams(listener, backend.address.encode())
    catalogue = datagram_service(one)

    async with proxying(pods, catalogue) as proxy:
        way = await client.dial(ADDRESS, 53, is_datagram=True)
        assert (await said_back(way, b"a")).startswith(one.encode())
        put(catalogue, a_slice("web", an_endpoint(two), ports=[UDP_TARGET]))
        await settled(proxy, catalogue)

        assert (await said_back(way, b"b")).startswith(two.encode())
    for listener in listeners:
        asyncio.get_running_loop().remove_reader(listener)


async def test_a_quiet_client_is_forgotten(pods: PodNetworks) -> None:
    client, backend = await pods.pod(), await pods.pod()
    listener = await backend.listen(5353, is_datagram=True)
    await answer_datagrams(listener, b"it")
    (balance,) = expected(datagram_service(backend.address))[KEY].values()
    dialer = Dialer(pods.runtime)
    relays = Relays(dialer, Turns(10))
    own = await pods.runtime.socket(SocketSpec(is_datagram=True, address=ADDRESS, port=53))
    front = DatagramFront(own, balance, dialer, relays.turns, idle=0.05)
    way = await client.dial(ADDRESS, 53, is_datagram=True)

    assert await said_back(way, b"a") == b"it:a"
    await eventually(lambda: not front._flows and front._sweeping is None)
    assert await said_back(way, b"b") == b"it:b"

    front.close()
    dialer.close()
    asyncio.get_running_loop().remove_reader(listener)


# Any order of changes


class Nowhere:
    """Gives sockets that listen nowhere in particular: what is opened and closed matters, not where."""

    def __init__(self) -> None:
        self.given: list[tuple[Front, socket.socket]] = []

    async def socket(self, spec: SocketSpec) -> socket.socket:
        await asyncio.sleep(0)
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM if spec.is_datagram else socket.SOCK_STREAM)
        made.setblocking(False)
        made.bind(("127.0.0.1", 0))
        if not spec.is_datagram:
            made.listen()
        self.given.append((Front(spec.address, spec.port, spec.is_datagram), made))
        return made

    @property
    def open(self) -> list[Front]:
        return sorted(front for front, made in self.given if made.fileno() >= 0)


some_services = st.builds(
    lambda name, address, ports: a_service(name, address, ports=ports),
    st.sampled_from(("web", "api")),
    st.just("None"),
    st.lists(st.sampled_from((PORT, UDP_SERVICE)), max_size=2, unique_by=lambda port: str(port["name"])),
) | st.builds(
    lambda name, ports: a_service(name, {"web": "10.96.0.7", "api": "10.96.0.8"}[name], ports=ports),
    st.sampled_from(("web", "api")),
    st.lists(st.sampled_from((PORT, UDP_SERVICE)), max_size=2, unique_by=lambda port: str(port["name"])),
)
some_slices = st.builds(
    lambda service, name, addresses: a_slice(
        service, *[an_endpoint(address) for address in addresses], name=name, ports=[PORT, UDP_TARGET]
    ),
    st.sampled_from(("web", "api")),
    st.sampled_from(("s1", "s2")),
    st.lists(st.sampled_from(("10.88.0.2", "10.88.0.3", "10.244.0.2")), max_size=2, unique=True),
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.too_slow], deadline=None)
@given(st.lists(st.tuples(some_services | some_slices, st.booleans(), st.booleans()), max_size=15))
def test_what_is_listened_on_after_any_changes_is_what_should_be(happened: list[tuple[Any, bool, bool]]) -> None:
    async def story() -> None:
        catalogue = Catalogue()
        proxy = Proxy(catalogue, node="local", machine=MACHINE)
        sockets = Nowhere()
        async with in_background(proxy.run(sockets, translates=False)):
            for one, is_removed, is_pause in happened:
                (remove if is_removed else put)(catalogue, one)
                if is_pause:
                    await asyncio.sleep(0)
            await settled(proxy, catalogue)
            wanted = [front for fronts in expected(catalogue).values() for front in fronts]
            assert sockets.open == sorted(wanted)
        assert sockets.open == []

    asyncio.run(story())
