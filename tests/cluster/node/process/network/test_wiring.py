"""Names and services of a real API server, in the real network of the runtime."""

from __future__ import annotations

import asyncio
import socket
import ssl
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import dns.message
import pytest

from shoal.api.core import EVENTS, PODS, SERVICE_ACCOUNTS, SERVICES
from shoal.api.discovery_k8s_io import ENDPOINT_SLICES
from shoal.cluster.apiserver.server import ApiServer, ServerOptions, serving
from shoal.cluster.node.process.client import Runtime
from shoal.cluster.node.process.network import PROXIED_SERVICES, add_network
from shoal.cluster.node.process.runtime.protocol import Bind, ContainerSpec
from shoal.kube import Client, Manager, running
from tests.cluster.node.process.network.conftest import WITHIN, PodNetwork, PodNetworks, RuntimeProgram, free_port
from tests.support.clusters.client import transport_to, until, writes
from tests.support.node.runtime_program import SHOWN

API_NAMES = [
    "10.96.0.1",
    "kubernetes",
    "kubernetes.default",
    "kubernetes.default.svc",
    "kubernetes.default.svc.cluster.local",
]


class Network:
    """A server, a client of it, and what serves its names and services."""

    def __init__(self, api: ApiServer, client: Client, manager: Manager) -> None:
        self.api = api
        self.client = client
        self.manager = manager

    async def make_service(
        self, name: str, address: str, backend: str, *, hostname: str = "", number: int = 80, **more: Any
    ) -> None:
        port = {"name": "http", "port": number, "protocol": "TCP", "targetPort": 8080}
        spec = {"clusterIP": address, "ports": [port]} | more
        await self.client.create(SERVICES.documents(), {"metadata": {"name": name}, "spec": spec}, "default")
        endpoint = {"addresses": [backend], "conditions": {"ready": True}} | (
            {"hostname": hostname} if hostname else {}
        )
        await self.client.create(
            ENDPOINT_SLICES.documents(),
            {
                "metadata": {"name": f"{name}-1", "labels": {"kubernetes.io/service-name": name}},
                "addressType": "IPv4",
                "endpoints": [endpoint],
                "ports": [{"name": "http", "port": 8080, "protocol": "TCP"}],
            },
            "default",
        )

    async def make_pod(self, name: str, address: str) -> None:
        spec = {"nodeName": "local", "containers": [{"name": "main", "image": "x"}]}
        await self.client.create(PODS.documents(), {"metadata": {"name": name}, "spec": spec}, "default")
        status = {"status": {"phase": "Running", "podIP": address, "podIPs": [{"ip": address}]}}
        await self.client.merge_patch(PODS.documents(), name, status, "default", subresource="status")


def api_address(api: ApiServer) -> tuple[str, int]:
    where = urlsplit(api.url)
    return where.hostname or "", where.port or 0


@asynccontextmanager
async def network(folder: Path, program: RuntimeProgram) -> AsyncIterator[Network]:
    connections: list[Runtime] = []

    async def connect() -> Runtime:
        connections.append(await Runtime.connect(program.socket))
        return connections[-1]

    async with (
        serving(ServerOptions(data_dir=folder, port=0, durable=False)) as api,
        transport_to(api.kubeconfig) as to,
    ):
        client = Client(to)
        await client.create(SERVICE_ACCOUNTS.documents(), {"metadata": {"name": "default"}}, "default")
        manager = Manager(to, name="network")
        add_network(manager, runtime=connect, api=api_address(api))
        async with running(manager):
            yield Network(api, client, manager)
        for one in connections:
            await one.aclose()


async def said_by(pod: PodNetwork, address: str, port: int) -> bytes:
    """What somebody says to a pod that comes, once somebody does."""

    async def listen() -> bytes:
        try:
            connection = await pod.dial(address, port)
            async with asyncio.timeout(1):
                return await asyncio.get_running_loop().sock_recv(connection, 100)
        except OSError:
            return b""

    said: bytes = await until(listen, within=WITHIN)
    return said


async def test_a_pod_reaches_the_api_server_under_all_its_names(
    pods: PodNetworks, runtime_program: RuntimeProgram, tmp_path: Path
) -> None:
    pod = await pods.pod()
    async with network(tmp_path, runtime_program) as found:
        credentials = found.api.core.credentials
        trusting = ssl.create_default_context(cadata=credentials.authority.decode())
        request = f"GET /version HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {credentials.admin_token}\r\n\r\n"

        async def answer(name: str) -> bytes:
            try:
                connection = await pod.dial("10.96.0.1", 443)
            except ConnectionRefusedError:
                return b""
            reader, writer = await asyncio.open_connection(sock=connection, ssl=trusting, server_hostname=name)
            writer.write(request.encode())
            status = await reader.readline()
            writer.close()
            return status

        for name in API_NAMES:
            status = await until(lambda name=name: answer(name), within=WITHIN)  # type: ignore[misc]
            assert status.startswith(b"HTTP/1.1 200"), name


async def test_a_new_service_is_served_and_nothing_is_written(
    pods: PodNetworks, runtime_program: RuntimeProgram, tmp_path: Path
) -> None:
    client, backend = await pods.pod(), await pods.pod()
    server = await backend.echo(8080)
    async with network(tmp_path, runtime_program) as found:
        await found.make_service("web", "10.96.5.1", backend.address)

        assert await said_by(client, "10.96.5.1", 80) == f"{backend.address}\n".encode()
        assert writes(found.manager.metrics) == 0
    server.close()


async def test_a_load_balancer_has_an_address_on_the_loopback_of_the_machine(
    pods: PodNetworks, runtime_program: RuntimeProgram, tmp_path: Path
) -> None:
    backend = await pods.pod()
    server = await backend.echo(8080)
    number = free_port()
    async with network(tmp_path, runtime_program) as found:
        await found.make_service("web", "10.96.5.3", backend.address, number=number, type="LoadBalancer")

        async def ingress() -> Any:
            service = await found.client.get(PROXIED_SERVICES, "web", "default")
            return service.status.load_balancer.ingress

        (point,) = await until(ingress, within=WITHIN)
        assert (point.ip, point.ip_mode) == ("127.96.5.3", "Proxy")
        assert await said_on_machine(point.ip, number) == f"{backend.address}\n".encode()

        service = await found.client.get(PROXIED_SERVICES, "web", "default")
        node_port = service.spec.ports[0].node_port
        if not await events(found.client):  # where nobody else on this machine has that port
            assert await said_on_machine("127.0.0.1", node_port) == f"{backend.address}\n".encode()
            assert writes(found.manager.metrics) == 1
    server.close()


async def test_of_a_port_that_is_in_use_one_event_tells(
    pods: PodNetworks, runtime_program: RuntimeProgram, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shoal.cluster.node.process.network.proxy._AGAIN_AFTER", 0.02)
    backend = await pods.pod()
    server = await backend.echo(8080)
    taken = socket.create_server(("127.96.5.4", 0))
    number = taken.getsockname()[1]
    balancer: dict[str, Any] = {"type": "LoadBalancer", "allocateLoadBalancerNodePorts": False}
    async with network(tmp_path, runtime_program) as found:
        await found.make_service("web", "10.96.5.4", backend.address, number=number, **balancer)

        async def error() -> Any:
            service = await found.client.get(PROXIED_SERVICES, "web", "default")
            points = service.status.load_balancer.ingress or []
            return [port.error for point in points for port in point.ports or [] if port.error]

        assert await until(error, within=WITHIN) == ["PortUnavailable"]
        (event,) = await until(lambda: events(found.client), within=WITHIN)
        assert event["reason"] == "PortUnavailable"
        assert f"127.96.5.4:{number} (TCP): Address already in use" in event["message"]

        taken.close()
        assert await said_on_machine("127.96.5.4", number) == f"{backend.address}\n".encode()

        async def has_recovered() -> bool:
            return not await error()

        await until(has_recovered, within=WITHIN)
        (event,) = await events(found.client)
        assert event.get("count", 1) == 1
    server.close()


async def events(client: Client) -> list[dict[str, Any]]:
    found = await client.list(EVENTS.documents(), "default")
    return [event.content for event in found.items if event.content["involvedObject"]["name"] == "web"]


async def said_on_machine(address: str, port: int) -> bytes:
    """What somebody says to a program of the machine that comes, once somebody does."""

    async def listen() -> bytes:
        try:
            reader, writer = await asyncio.open_connection(address, port)
            async with asyncio.timeout(1):
                said = await reader.read(100)
            writer.close()
            return said
        except OSError:
            return b""

    said: bytes = await until(listen, within=WITHIN)
    return said


async def test_all_is_served_again_in_the_network_of_the_next_runtime(
    runtime_program: RuntimeProgram, tmp_path: Path
) -> None:
    program = runtime_program
    async with network(tmp_path, program) as found:
        for attempt in range(2):
            connected = await program.connect()
            pods = PodNetworks(connected, program.addresses)
            client, backend = await pods.pod(), await pods.pod()
            server = await backend.echo(8080)
            address = f"10.96.6.{attempt + 1}"
            await found.make_service(f"web-{attempt}", address, backend.address)

            assert await said_by(client, address, 80) == f"{backend.address}\n".encode()
            assert (await client.dial("10.88.0.1", 53)).fileno() >= 0

            server.close()
            await pods.close()
            await connected.aclose()
            program.kill()
            program.start()


async def test_where_pods_have_no_network_nothing_is_even_watched(tmp_path: Path) -> None:
    folder = Path(tempfile.mkdtemp(prefix="shoal-network-", dir=tmp_path))
    program = RuntimeProgram(folder)
    program.start("--pod-network", "host")
    asked: list[Runtime] = []

    async def connect() -> Runtime:
        asked.append(await program.connect())
        return asked[-1]

    try:
        async with (
            serving(ServerOptions(data_dir=tmp_path / "server", port=0, durable=False)) as api,
            transport_to(api.kubeconfig) as to,
        ):
            manager = Manager(to, name="network")
            add_network(manager, runtime=connect, api=api_address(api))
            async with running(manager):
                await until(lambda: _true(asked), within=WITHIN)
                assert manager.cache.informers == []
            await asked[0].aclose()
    finally:
        program.kill()


SCRIPT = """
for name in web web.default web.default.svc.cluster.local front.web worker-0 localhost; do
    echo "$name $(getent ahostsv4 $name | cut -d' ' -f1 | sort -u | tr '\\n' ' ')"
done
echo "reverse $(getent hosts 10.96.5.2 | tr -s ' ')"
getent ahostsv4 www.example.com; echo "outside $?"
"""


async def test_programs_in_a_pod_find_others_by_name(
    pods: PodNetworks, runtime_program: RuntimeProgram, tmp_path: Path
) -> None:
    pod = await pods.pod()
    folder = Path(tempfile.mkdtemp(dir=runtime_program.folder))
    resolv_conf = folder / "resolv.conf"
    search = "default.svc.cluster.local svc.cluster.local cluster.local"
    resolv_conf.write_text(f"nameserver 10.88.0.1\nsearch {search}\noptions ndots:5\n")
    (folder / "hosts").write_text("127.0.0.1 localhost\n")
    (folder / "scratch").mkdir()
    runtime_program.own(folder, *folder.iterdir())
    async with network(tmp_path, runtime_program) as found:
        await found.make_service("web", "10.96.5.2", "10.88.0.77", hostname="front")
        await found.make_pod("worker-0", "10.88.0.78")
        await said_by_dns(pod)

        ended = asyncio.Event()
        pods.runtime.on_end(lambda state: ended.set())
        await pods.runtime.start(
            ContainerSpec(
                id="a" * 64,
                sandbox=pod.uid,
                name="asks",
                argv=["/bin/sh", "-c", SCRIPT],
                env=["PATH=/usr/bin:/bin"],
                shown=list(SHOWN),
                scratch=str(folder / "scratch"),
                binds=[
                    Bind(source=str(resolv_conf), target="/etc/resolv.conf", is_read_only=True),
                    Bind(source=str(folder / "hosts"), target="/etc/hosts", is_read_only=True),
                ],
                log=str(folder / "0.log"),
            )
        )
        async with asyncio.timeout(WITHIN):
            await ended.wait()
        await pods.runtime.remove("a" * 64)

    lines = [line.split(" ", 3)[3].strip() for line in (folder / "0.log").read_text().splitlines()]
    assert lines == [
        "web 10.96.5.2",
        "web.default 10.96.5.2",
        "web.default.svc.cluster.local 10.96.5.2",
        "front.web 10.88.0.77",
        "worker-0 10.88.0.78",
        "localhost 127.0.0.1",
        "reverse 10.96.5.2 web.default.svc.cluster.local",
        "outside 2",
    ]


async def said_by_dns(pod: PodNetwork) -> None:
    """Waits until names are answered, and those that were made last are known."""

    async def knows() -> bool:
        loop = asyncio.get_running_loop()
        way = await pod.dial("10.88.0.1", 53, is_datagram=True)
        question = dns.message.make_query("worker-0.default.svc.cluster.local", "A").to_wire()
        try:
            async with asyncio.timeout(1):
                await loop.sock_sendall(way, question)
                return bool(dns.message.from_wire(await loop.sock_recv(way, 4096)).answer)
        except OSError:
            return False

    await until(knows, within=WITHIN)


async def _true(found: Any) -> bool:
    return bool(found)
