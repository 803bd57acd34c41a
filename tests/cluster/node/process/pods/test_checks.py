"""Questions of probes to real servers: requests, connections and gRPC calls."""

from __future__ import annotations

import asyncio
import socket
import ssl
import subprocess
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import msgspec
import pytest
from aiohttp import web

from shoal.api.core.pod_details import ContainerDetails, Probe
from shoal.cluster.kubernetes import flags
from shoal.cluster.kubernetes.binaries import Binaries
from shoal.cluster.node.process.pods.checks import Target, Unaskable, Verdict, ask
from shoal.cluster.node.process.pods.grpc_health import Unhealthy, check_health
from shoal.cluster.node.process.pods.hpack import decoded
from shoal.cluster.node.process.pods.reach import Dial, dialing, machine_socket
from tests.support.clusters.client import until
from tests.support.network.http_servers import serving
from tests.support.network.tls import Authority
from tests.support.waiting import wait_until

DIAL: Dial = dialing(machine_socket)


def a_target(**container: Any) -> Target:
    details = msgspec.convert({"name": "main", **container}, ContainerDetails)
    nothing: Any = None  # only commands need a runtime
    return Target(container=details, spec=None, address="127.0.0.1", runtime=nothing, dial=DIAL)


async def answered(port: int | str, *, target: Target | None = None, **action: Any) -> Verdict:
    probe = {"httpGet": {"port": port, **action}, "timeoutSeconds": 1}
    return await ask(msgspec.convert(probe, Probe), target or a_target())


@asynccontextmanager
async def a_server(handler: Any) -> AsyncIterator[int]:
    async with serving(handler) as url:
        yield int(url.rpartition(":")[2])


Talk = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def a_talker(talk: Talk, context: ssl.SSLContext | None = None) -> AsyncIterator[int]:
    """A server that is nothing but what it says; it has hung up everywhere when this is left."""
    talks: list[asyncio.Task[None]] = []

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(ConnectionError):
                await talk(reader, writer)
        finally:
            writer.transport.abort()

    def begin(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        talks.append(asyncio.create_task(answer(reader, writer)))

    server = await asyncio.start_server(begin, "127.0.0.1", 0, ssl=context)
    async with server:
        yield server.sockets[0].getsockname()[1]
        await asyncio.gather(*talks)
        await asyncio.sleep(0)  # a transport that was aborted is closed in the next turn of the loop


@pytest.mark.parametrize(
    ("status", "verdict"),
    [
        (200, Verdict(True)),
        (204, Verdict(True)),
        (399, Verdict(True, "Probe terminated redirects, Response body: said")),
        (400, Verdict(False, "HTTP probe failed with statuscode: 400")),
        (503, Verdict(False, "HTTP probe failed with statuscode: 503")),
    ],
)
async def test_a_status_tells(status: int, verdict: Verdict) -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response(status=status, text="said" if status != 204 else None)

    async with a_server(answer) as port:
        assert await answered(port) == verdict


async def test_a_request_says_what_the_probe_says() -> None:
    seen: list[web.Request] = []

    async def answer(request: web.Request) -> web.Response:
        seen.append(request)
        return web.Response()

    async with a_server(answer) as port:
        await answered(port, path="/healthz?full=1")
        headers = [{"name": "Host", "value": "web.example"}, {"name": "user-agent", "value": "mine"}]
        await answered(port, httpHeaders=[*headers, {"name": "Accept", "value": ""}])
        named = a_target(ports=[{"name": "web", "containerPort": port}])
        await answered("web", target=named)
    plain, own, by_name = seen
    assert plain.path_qs == "/healthz?full=1"
    assert plain.headers["User-Agent"] == "kube-probe/1.36"
    assert (plain.headers["Accept"], plain.headers["Host"]) == ("*/*", f"127.0.0.1:{port}")
    assert (own.headers["Host"], own.headers.getall("User-Agent")) == ("web.example", ["mine"])
    assert "Accept" not in own.headers
    assert by_name.path == "/"


async def test_redirects_are_followed_on_the_same_host_alone() -> None:
    async def answer(request: web.Request) -> web.Response:
        places = {"/": "/next", "/away": "http://example.invalid/", "/round": "/round"}
        if request.path in places:
            return web.Response(status=302, headers={"Location": places[request.path]})
        return web.Response(status=500 if request.path == "/next" else 200)

    async with a_server(answer) as port:
        assert await answered(port) == Verdict(False, "HTTP probe failed with statuscode: 500")
        assert (await answered(port, path="/away")).is_good
        url = f"http://127.0.0.1:{port}/round"
        assert await answered(port, path="/round") == Verdict(False, f'Get "{url}": stopped after 10 redirects')


async def test_a_certificate_is_not_looked_at(tmp_path: Path) -> None:
    context = Authority().server_context(tmp_path, hosts=("elsewhere.example",))
    async with a_talker(_greet, context) as port:
        assert await answered(port, scheme="HTTPS") == Verdict(True)


async def _greet(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.readuntil(b"\r\n\r\n")
    writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    await reader.read()


@pytest.mark.parametrize(
    ("said", "problem"),
    [
        (b"", "EOF"),
        (b"SSH-2.0-x\r\n\r\n", "malformed HTTP response"),
        (None, "context deadline exceeded"),
    ],
    ids=["nothing", "something else", "silence"],
)
async def test_what_is_no_answer_is_bad(said: bytes | None, problem: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        if said is not None:
            writer.write(said)
            writer.write_eof()
        await reader.read()

    async with a_talker(answer) as port:
        verdict = await answered(port)
    assert not verdict.is_good
    assert problem in verdict.message


@pytest.fixture
def closed_port() -> Iterator[int]:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        yield held.getsockname()[1]


async def test_a_port_that_is_closed_is_told_in_known_words(closed_port: int) -> None:
    refused = f"dial tcp 127.0.0.1:{closed_port}: connect: connection refused"
    url = f"http://127.0.0.1:{closed_port}/"
    assert await answered(closed_port) == Verdict(False, f'Get "{url}": {refused}')
    connects = msgspec.convert({"tcpSocket": {"port": closed_port}}, Probe)
    assert await ask(connects, a_target()) == Verdict(False, refused)
    calls = msgspec.convert({"grpc": {"port": closed_port}}, Probe)
    message = f'error: failed to connect service at "127.0.0.1:{closed_port}": {refused}'
    assert await ask(calls, a_target()) == Verdict(False, message)


async def test_a_port_that_has_no_number_cannot_be_asked() -> None:
    with pytest.raises(Unaskable, match="couldn't find port: web in container main"):
        await answered("web")


def test_header_fields_are_read_as_the_protocol_has_them() -> None:
    # The examples of RFC 7541, C.4 and C.6: texts in Huffman code, names by number and spelled out.
    assert list(decoded(bytes.fromhex("418cf1e3c2e5f23a6ba0ab90f4ff"))) == [("#1", "www.example.com")]
    assert list(decoded(bytes.fromhex("828684be5886a8eb10649cbf"))) == [("#24", "no-cache")]
    fields = bytes.fromhex("408825a849e95ba97d7f8925a849e95bb8e8b4bf")
    assert list(decoded(fields)) == [("custom-key", "custom-value")]


async def test_a_server_that_is_not_grpc_is_not_healthy() -> None:
    async def answer(request: web.Request) -> web.Response:
        return web.Response()

    async with a_server(answer) as port:
        with pytest.raises(Unhealthy, match="failed to connect service"):
            await check_health(DIAL, "127.0.0.1", port, "", agent="test", within=2)


async def test_a_server_that_says_nothing_is_waited_for_no_longer_than_it_may_take() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.read()

    async with a_talker(answer) as port:
        with pytest.raises(Unhealthy, match=r"timeout: failed to connect service .* within 0.1s"):
            await check_health(DIAL, "127.0.0.1", port, "", agent="test", within=0.1)


def _frame(kind: int, flags: int, stream: int, payload: bytes = b"") -> bytes:
    return len(payload).to_bytes(3, "big") + bytes([kind, flags]) + stream.to_bytes(4, "big") + payload


def _field(name: bytes, value: bytes) -> bytes:
    return b"\0" + bytes([len(name)]) + name + bytes([len(value)]) + value


@pytest.mark.parametrize(
    ("message", "trailers", "problem"),
    [
        (b"\x08\x01", {b"grpc-status": b"0"}, ""),
        (b"\x08\x02", {b"grpc-status": b"0"}, 'service unhealthy (responded with "NOT_SERVING")'),
        (b"", {b"grpc-status": b"0"}, 'service unhealthy (responded with "UNKNOWN")'),
        (
            None,
            {b"grpc-status": b"12", b"grpc-message": b"unknown%20service"},
            "error: this server does not implement the grpc health protocol (grpc.health.v1.Health): unknown service",
        ),
        (
            None,
            {b"grpc-status": b"5", b"grpc-message": b"who"},
            "error: health rpc probe failed: rpc error: code = NotFound desc = who",
        ),
    ],
    ids=["serving", "not serving", "nothing said", "no health service", "no such service"],
)
async def test_what_a_grpc_server_says(message: bytes | None, trailers: dict[bytes, bytes], problem: str) -> None:
    """A server that speaks its part by heart, with a ping, a window and padding in between."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert (await reader.readexactly(24)).startswith(b"PRI * HTTP/2.0")
        writer.write(_frame(4, 0, 0) + _frame(6, 0, 0, b"12345678") + _frame(8, 0, 0, b"\0\0\1\0"))
        asked = b""
        while b"grpc.health.v1.Health/Check" not in asked:
            asked += await reader.read(1024)
        if message is not None:
            writer.write(_frame(1, 4, 1, b"\x88" + _field(b"content-type", b"application/grpc")))
            body = b"\0" + len(message).to_bytes(4, "big") + message
            writer.write(_frame(0, 8, 1, b"\x02" + body + b"\0\0"))
        fields = b"".join(_field(name, value) for name, value in trailers.items())
        writer.write(_frame(1, 1, 1, fields[:5]) + _frame(9, 4, 1, fields[5:]))
        await reader.read()

    async with a_talker(answer) as port:
        try:
            await check_health(DIAL, "127.0.0.1", port, "", agent="test", within=5)
            found = ""
        except Unhealthy as error:
            found = str(error)
    assert found == problem


@pytest.fixture
def etcd(binaries: Binaries, tmp_path: Path) -> Iterator[Dial]:
    """A real gRPC server with a health service."""
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen([binaries.etcd, *flags.etcd(durable=False)], cwd=tmp_path, stderr=log)

    async def dial(host: str, port: int) -> socket.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.setblocking(False)
        await asyncio.get_running_loop().sock_connect(connection, str(tmp_path / "etcd.sock:0"))
        return connection

    try:
        wait_until((tmp_path / "etcd.sock:0").exists, "etcd")
        yield dial
    finally:
        process.kill()
        process.wait()


@pytest.mark.kube
async def test_a_real_grpc_server_is_understood(etcd: Dial) -> None:
    async def is_healthy() -> bool:
        with suppress(Unhealthy):
            await check_health(etcd, "etcd", 0, "", agent="test", within=5)
            return True
        return False

    await until(is_healthy, within=30)  # it tells that it is not, before it is
    with pytest.raises(Unhealthy, match="code = NotFound desc = unknown service"):
        await check_health(etcd, "etcd", 0, "no.such.service", agent="test", within=5)
