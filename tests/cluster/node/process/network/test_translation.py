"""Services that the kernel leads, in the real network of the pods: servers see their clients' own addresses."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from shoal.cluster.node.process.network.balance import is_translated, wanted_fronts
from shoal.cluster.node.process.network.catalogue import Catalogue
from shoal.cluster.node.process.network.proxy import Proxy
from shoal.cluster.node.process.runtime.netfilter import Netfilter
from shoal.cluster.node.process.runtime.protocol import SocketSpec
from shoal.cluster.node.process.runtime.service_table import new_table
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
from tests.support.node.runtime_program import in_a_process
from tests.support.programs.ordinary_user import USER, is_root
from tests.support.waiting import eventually

ADDRESS = "10.96.0.7"
TARGETS = [{"name": "http", "port": 8080, "protocol": "TCP"}, {"name": "dns", "port": 5353, "protocol": "UDP"}]
PORTS = [{"name": "http", "port": 80, "protocol": "TCP"}, {"name": "dns", "port": 53, "protocol": "UDP"}]


@pytest.fixture(autouse=True)
def only_where_the_kernel_translates(pods: PodNetworks) -> None:
    if not pods.runtime.facts.has_translation:
        pytest.skip("; ".join(pods.runtime.facts.shortfalls))


def web(**spec: Any) -> Any:
    return a_service("web", ADDRESS, **({"ports": PORTS} | spec))


def behind(*pods: PodNetwork) -> Any:
    return a_slice("web", *[an_endpoint(pod.address) for pod in pods], ports=TARGETS)


@asynccontextmanager
async def translating(pods: PodNetworks, catalogue: Catalogue) -> AsyncIterator[Proxy]:
    proxy = Proxy(catalogue, node="local", machine=MACHINE)
    async with in_background(proxy.run(pods.runtime, translates=True)):
        await settled(proxy, catalogue)
        yield proxy


async def settled(proxy: Proxy, catalogue: Catalogue) -> None:
    """Waits for the rules; those of the test before are there until the first ones of this are."""

    def is_written() -> bool:
        translation = proxy._translation
        return translation is not None and not translation._is_new and proxy.translated == expected(catalogue)

    await eventually(is_written)


def expected(catalogue: Catalogue) -> Any:
    found = {key: catalogue.service(*key) for key in catalogue.service_keys()}
    wanted = {key: wanted_fronts(*one, node="local", machine=MACHINE) for key, one in found.items() if one is not None}
    translated = {
        key: {front: balance for front, balance in fronts.items() if is_translated(front, balance)}
        for key, fronts in wanted.items()
    }
    return {key: fronts for key, fronts in translated.items() if fronts}


async def serve(*backends: PodNetwork) -> None:
    """Servers for connections and for datagrams, which say who they are and whom they see."""
    loop = asyncio.get_running_loop()
    for pod in backends:
        listener, datagrams = await pod.listen(8080), await pod.listen(5353, is_datagram=True)

        def accept(pod: PodNetwork = pod, listener: socket.socket = listener) -> None:
            connection, client = listener.accept()
            connection.sendall(f"{pod.address} {client[0]}".encode())
            connection.close()

        def answer(pod: PodNetwork = pod, datagrams: socket.socket = datagrams) -> None:
            _, client = datagrams.recvfrom(100)
            datagrams.sendto(f"{pod.address} {client[0]}".encode(), client)

        loop.add_reader(listener, accept)
        loop.add_reader(datagrams, answer)


@pytest.fixture(autouse=True)
async def no_readers_left(pods: PodNetworks) -> AsyncIterator[None]:
    """Pods close the sockets of their servers themselves."""
    yield
    loop = asyncio.get_running_loop()
    for pod in pods._made:
        for one in pod._held:
            if one.fileno() >= 0:
                loop.remove_reader(one)


async def heard(connection: socket.socket) -> tuple[str, str]:
    async with asyncio.timeout(WITHIN):
        server, client = (await asyncio.get_running_loop().sock_recv(connection, 100)).decode().split()
    return server, client


async def call(client: PodNetwork, address: str = ADDRESS, port: int = 80) -> tuple[str, str]:
    connection = await client.dial(address, port)
    with contextlib.closing(connection):
        return await heard(connection)


async def send(way: socket.socket) -> tuple[str, str]:
    await asyncio.get_running_loop().sock_sendall(way, b"?")
    return await heard(way)


async def datagram(client: PodNetwork, address: str = ADDRESS, port: int = 53) -> tuple[str, str]:
    with contextlib.closing(await client.dial(address, port, is_datagram=True)) as way:
        return await send(way)


async def of_node(pods: PodNetworks, address: str, port: int, *, is_datagram: bool = False) -> tuple[str, str]:
    """What a program in the node's own network gets, such as one of a pod with hostNetwork."""
    with contextlib.closing(await pods.runtime.socket(SocketSpec(is_datagram=is_datagram))) as way:
        async with asyncio.timeout(WITHIN):
            await asyncio.get_running_loop().sock_connect(way, (address, port))
        return await send(way) if is_datagram else await heard(way)


async def test_a_server_sees_the_address_of_its_client(pods: PodNetworks) -> None:
    client, server = await pods.pod(), await pods.pod()
    await serve(server)

    async with translating(pods, a_catalogue(web(), behind(server))) as proxy:
        assert await call(client) == (server.address, client.address)
        assert await datagram(client) == (server.address, client.address)
        assert proxy.listening == {}, "no process relays anything"


async def test_pods_reach_each_other_by_address_and_see_each_other(pods: PodNetworks) -> None:
    client, server = await pods.pod(), await pods.pod()
    await serve(server)

    async with translating(pods, a_catalogue()):
        assert await call(client, server.address, 8080) == (server.address, client.address)
        assert await datagram(client, server.address, 5353) == (server.address, client.address)


async def test_connections_are_spread_over_all_endpoints(pods: PodNetworks) -> None:
    client, *servers = [await pods.pod() for _ in range(4)]
    await serve(*servers)

    async with translating(pods, a_catalogue(web(), behind(*servers))):
        found = Counter([(await call(client))[0] for _ in range(90)])
        datagrams = Counter([(await datagram(client))[0] for _ in range(90)])

    # By chance alone each gets 30; fewer than 8 happens once in many millions.
    for spread in (found, datagrams):
        assert {server.address for server in servers} == set(spread)
        assert min(spread.values()) >= 8


async def test_a_service_without_endpoints_refuses_at_once(pods: PodNetworks) -> None:
    client, server = await pods.pod(), await pods.pod()
    await serve(server)
    catalogue = a_catalogue(web())

    async with translating(pods, catalogue) as proxy:
        for endpoints in ([], [server], []):
            put(catalogue, behind(*endpoints))
            await settled(proxy, catalogue)
            if endpoints:
                assert await call(client) == (server.address, client.address)
                continue
            with pytest.raises(ConnectionRefusedError):
                await call(client)
            with pytest.raises(ConnectionRefusedError):
                await datagram(client)


async def test_an_endpoint_that_goes_away_gets_nothing_new(pods: PodNetworks) -> None:
    client, one, two = [await pods.pod() for _ in range(3)]
    await serve(one, two)
    catalogue = a_catalogue(web(), behind(one, two))

    async with translating(pods, catalogue) as proxy:
        put(catalogue, behind(two))
        await settled(proxy, catalogue)

        assert {(await call(client))[0] for _ in range(12)} == {two.address}


async def test_datagrams_go_elsewhere_when_their_endpoint_is_gone(pods: PodNetworks) -> None:
    client, one, two = [await pods.pod() for _ in range(3)]
    await serve(one, two)
    catalogue = a_catalogue(web(), behind(one))

    async with translating(pods, catalogue) as proxy:
        way = await client.dial(ADDRESS, 53, is_datagram=True)
        assert await send(way) == (one.address, client.address)
        put(catalogue, behind(two))
        await settled(proxy, catalogue)

        assert await send(way) == (two.address, client.address)


async def test_datagrams_that_were_refused_arrive_when_there_is_an_endpoint(pods: PodNetworks) -> None:
    client, server = await pods.pod(), await pods.pod()
    await serve(server)
    catalogue = a_catalogue(web())

    async with translating(pods, catalogue) as proxy:
        way = await client.dial(ADDRESS, 53, is_datagram=True)
        with pytest.raises(ConnectionRefusedError):
            await send(way)
        put(catalogue, behind(server))
        await settled(proxy, catalogue)

        assert await send(way) == (server.address, client.address)


async def test_a_connection_outlives_its_service(pods: PodNetworks) -> None:
    loop = asyncio.get_running_loop()
    client, server = await pods.pod(), await pods.pod()
    echo = await server.echo(8080)
    service = web()
    catalogue = a_catalogue(service, behind(server))

    async with translating(pods, catalogue) as proxy:
        connection = await client.dial(ADDRESS, 80)
        await loop.sock_recv(connection, 100)
        remove(catalogue, service)
        await settled(proxy, catalogue)
        await loop.sock_sendall(connection, b"still there?")

        async with asyncio.timeout(WITHIN):
            assert await loop.sock_recv(connection, 100) == b"still there?"
    echo.close()


async def test_a_pod_reaches_itself_through_its_service(pods: PodNetworks) -> None:
    pod, other = await pods.pod(), await pods.pod()
    await serve(pod)

    async with translating(pods, a_catalogue(web(), behind(pod))):
        assert await call(pod) == (pod.address, "10.88.0.1"), "its own address would be one it does not answer"
        assert await datagram(pod) == (pod.address, "10.88.0.1")
        assert await call(other) == (pod.address, other.address)


async def test_a_client_keeps_its_endpoint_where_the_service_says_so(pods: PodNetworks) -> None:
    clients, servers = [await pods.pod() for _ in range(4)], [await pods.pod() for _ in range(3)]
    await serve(*servers)
    catalogue = a_catalogue(web(sessionAffinity="ClientIP"), behind(*servers))

    async with translating(pods, catalogue) as proxy:
        kept = {}
        for client in clients:
            found = {(await call(client))[0] for _ in range(8)}
            assert len(found) == 1
            kept[client.address] = found.pop()

        gone = next(server for server in servers if server.address == kept[clients[0].address])
        put(catalogue, behind(*[server for server in servers if server is not gone]))
        await settled(proxy, catalogue)
        for client in clients:
            found = {(await call(client))[0] for _ in range(8)}
            assert len(found) == 1
            assert gone.address not in found
            if kept[client.address] != gone.address:
                assert found == {kept[client.address]}, "who was elsewhere stays there"


async def test_a_client_is_forgotten_after_the_time_that_the_service_says(pods: PodNetworks) -> None:
    client, *servers = [await pods.pod() for _ in range(4)]
    await serve(*servers)
    affinity = {"sessionAffinity": "ClientIP", "sessionAffinityConfig": {"clientIP": {"timeoutSeconds": 1}}}

    async with translating(pods, a_catalogue(web(**affinity), behind(*servers))):
        seen: set[str] = set()

        for _ in range(30):
            seen.add((await call(client))[0])
            if len(seen) > 1:
                break
            await asyncio.sleep(1.2)  # each call begins the Service's second anew
        assert len(seen) > 1


async def test_node_ports_answer_pods_and_programs_of_the_node(pods: PodNetworks) -> None:
    client, server = await pods.pod(), await pods.pod()
    await serve(server)
    tcp, udp = free_port(), free_port()
    ports = [PORTS[0] | {"nodePort": tcp}, PORTS[1] | {"nodePort": udp}]

    async with translating(pods, a_catalogue(web(type="NodePort", ports=ports), behind(server))):
        assert await call(client, "10.88.0.1", tcp) == (server.address, client.address)
        assert await datagram(client, "10.88.0.1", udp) == (server.address, client.address)
        for address, first, second in ((ADDRESS, 80, 53), ("10.88.0.1", tcp, udp)):
            assert await of_node(pods, address, first) == (server.address, "10.88.0.1")
            assert await of_node(pods, address, second, is_datagram=True) == (server.address, "10.88.0.1")
        assert await of_node(pods, server.address, 5353, is_datagram=True) == (server.address, "10.88.0.1")


async def test_node_ports_and_load_balancers_answer_on_the_loopback_of_the_machine(pods: PodNetworks) -> None:
    server = await pods.pod()
    await serve(server)
    ports = [
        PORTS[0] | {"nodePort": free_port(), "port": 8080},
        PORTS[1] | {"nodePort": free_port(), "port": 5353},
    ]
    own = f"10.96.{os.getpid() % 250}.7"
    balancer = a_service("web", own, type="LoadBalancer", ports=ports)

    async with translating(pods, a_catalogue(balancer, behind(server))) as proxy:
        await eventually(lambda: sum(map(len, proxy.listening.values())) == 4)
        for address, tcp, udp in (
            ("127.0.0.1", ports[0]["nodePort"], ports[1]["nodePort"]),
            (f"127.{own[3:]}", 8080, 5353),
        ):
            for number, kind in ((tcp, socket.SOCK_STREAM), (udp, socket.SOCK_DGRAM)):
                with socket.socket(socket.AF_INET, kind) as way:
                    way.setblocking(False)
                    async with asyncio.timeout(WITHIN):
                        await asyncio.get_running_loop().sock_connect(way, (address, number))
                    answer = await (send(way) if kind == socket.SOCK_DGRAM else heard(way))
                    assert answer == (server.address, "10.88.0.1")


async def test_the_rules_of_a_process_that_is_gone_are_replaced(pods: PodNetworks) -> None:
    client, one, two = [await pods.pod() for _ in range(3)]
    await serve(one, two)
    old = a_service("old", "10.96.0.9", ports=PORTS)
    old_slice = a_slice("old", an_endpoint(one.address), ports=TARGETS)

    async with translating(pods, a_catalogue(web(), behind(one), old, old_slice)):
        way = await client.dial(ADDRESS, 53, is_datagram=True)
        assert await send(way) == (one.address, client.address)
    assert await call(client) == (one.address, client.address), "the kernel goes on while there is no process"

    async with translating(pods, a_catalogue(web(), behind(two))):
        assert await call(client) == (two.address, client.address)
        assert await send(way) == (two.address, client.address)
        with pytest.raises(ConnectionRefusedError):
            await call(client, "10.96.0.9")


async def test_at_rest_nothing_is_written(pods: PodNetworks, monkeypatch: pytest.MonkeyPatch) -> None:
    server = await pods.pod()
    written: list[int] = []
    apply = Netfilter.apply

    def counted(self: Netfilter, requests: Any) -> None:
        written.append(len(requests))
        apply(self, requests)

    monkeypatch.setattr(Netfilter, "apply", counted)
    catalogue = a_catalogue(web(), behind(server), a_service("other", "10.96.0.8"))
    async with translating(pods, catalogue) as proxy:
        assert len(written) == 1, "all Services are one transaction"
        put(catalogue, web(selector={"changed": "yes"}))
        put(catalogue, behind(server))
        await eventually(lambda: not proxy._changed and not proxy._wake.is_set())
        put(catalogue, a_service("last", "10.96.0.10"))
        put(catalogue, a_slice("last", an_endpoint(server.address)))
        await settled(proxy, catalogue)

    assert len(written) == 2, "only the last one has changed anything"


async def test_rules_that_were_refused_are_written_anew(pods: PodNetworks, monkeypatch: pytest.MonkeyPatch) -> None:
    client, server = await pods.pod(), await pods.pod()
    await serve(server)
    apply = Netfilter.apply
    refusals = iter([True])

    def refused_once(self: Netfilter, requests: Any) -> None:
        if next(refusals, False):
            raise OSError(12, "Cannot allocate memory")
        apply(self, requests)

    monkeypatch.setattr(Netfilter, "apply", refused_once)
    monkeypatch.setattr("shoal.cluster.node.process.network.proxy._AGAIN_AFTER", 0.05)
    async with translating(pods, a_catalogue(web(), behind(server))):
        assert await call(client) == (server.address, client.address)


async def test_a_pod_does_not_reach_the_machine_through_any_service(pods: PodNetworks) -> None:
    client = await pods.pod()
    outside = socket.create_server(("127.0.0.1", 0))
    port = outside.getsockname()[1]
    targets = [{"name": "http", "port": port, "protocol": "TCP"}]
    own = a_slice("web", an_endpoint("127.0.0.1"), an_endpoint("192.0.2.7"), ports=targets)

    with outside:
        async with translating(pods, a_catalogue(web(), own)):
            with pytest.raises(ConnectionRefusedError):
                await call(client)
            with pytest.raises(ConnectionRefusedError):
                await call(client, "10.88.0.1", port)
            with pytest.raises(OSError, match=str(errno.ENETUNREACH)):
                await call(client, "192.0.2.7", port)


async def test_a_process_of_the_runtimes_own_user_may_write_rules(pods: PodNetworks) -> None:
    """The agent runs as the user that the runtime was started by, and not in its user namespace."""
    netfilter = await pods.runtime.socket(SocketSpec(is_netfilter=True))
    is_ordinary = not pods.runtime.facts.has_all_ids

    def write() -> None:
        if is_ordinary and is_root():
            os.setgroups([])
            os.setresgid(USER, USER, USER)
            os.setresuid(USER, USER, USER)
        Netfilter(netfilter).apply(new_table())

    with netfilter:
        in_a_process(write)
