"""The proxy by which a real kube-apiserver connects to the cluster."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import NoReturn

import pytest

from shoal.cluster.node.process.egress import Egress, is_own_address
from shoal.cluster.node.process.runtime.protocol import ExecSpec, SocketSpec
from tests.support.network.connects import watched_connects
from tests.support.network.http_servers import raw_server


class Runtime:
    """A network of pods in which one server answers at every address: it hands out sockets that are connected."""

    def __init__(self) -> None:
        self.asked: list[SocketSpec] = []

    async def socket(self, spec: SocketSpec) -> socket.socket:
        self.asked.append(spec)
        return _Refusing(socket.AF_INET, socket.SOCK_STREAM)

    async def execute(self, spec: ExecSpec, descriptors: Sequence[int] = ()) -> NoReturn:
        raise AssertionError

    async def stdin(self, container: str) -> int:
        raise AssertionError


class _Refusing(socket.socket):
    """A socket by which nobody is reached, so that no packet of a test goes anywhere."""

    def __init__(self, family: int, kind: int) -> None:
        super().__init__(family, kind)
        self.setblocking(False)

    def connect(self, address: object) -> NoReturn:
        raise ConnectionRefusedError(111, f"nobody is at {address}")


@asynccontextmanager
async def an_egress(folder: Path, *, agents: Sequence[int] = (), has_network: bool = True) -> AsyncIterator[Path]:
    path = folder / "egress.sock"
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as listener:
        listener.bind(str(path))
        listener.listen()
        listener.setblocking(False)
        task = asyncio.create_task(Egress(Runtime() if has_network else None, agents=agents).run(listener))
        try:
            yield path
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)


async def asked(path: Path, request: str) -> tuple[str, asyncio.StreamReader, asyncio.StreamWriter]:
    """The first line of the answer, and the connection."""
    reader, writer = await asyncio.open_unix_connection(path)
    writer.write(f"{request} HTTP/1.1\r\nHost: 127.0.0.1\r\n\r\n".encode())
    head = (await reader.readuntil(b"\r\n\r\n")).decode()
    return head.partition("\r\n")[0].removeprefix("HTTP/1.1 "), reader, writer


async def refusal(path: Path, request: str) -> str:
    line, reader, writer = await asked(path, request)
    assert await reader.read() == b""
    writer.close()
    return line


async def test_an_agent_on_this_machine_is_connected_to(tmp_path: Path) -> None:
    async def shout(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write((await reader.read()).upper())
        await writer.drain()

    async with raw_server(shout) as port, an_egress(tmp_path, agents=[port]) as path:
        line, reader, writer = await asked(path, f"CONNECT 127.0.0.1:{port}")
        assert line == "200 Connection established"
        writer.write(b"hello")
        writer.write_eof()
        assert await reader.read() == b"HELLO"
        writer.close()


@pytest.mark.parametrize(
    "host", ["127.0.0.1", "localhost", "[::1]", "[::ffff:127.0.0.1]", "0.0.0.0", "169.254.169.254", "2130706433"]
)
async def test_nothing_else_of_this_machine_is_connected_to(tmp_path: Path, host: str) -> None:
    async with an_egress(tmp_path, agents=[1]) as path:
        with watched_connects() as connects:
            line = await refusal(path, f"CONNECT {host}:2")
    assert line.startswith("403 ")
    assert line.endswith("is on this machine, and is not connected to for the cluster")
    assert connects == []


@pytest.mark.parametrize("host", ["10.88.0.7", "10.96.0.1", "[::ffff:10.88.0.7]"])
async def test_pods_and_services_are_dialled_in_their_network_alone(tmp_path: Path, host: str) -> None:
    async with an_egress(tmp_path) as path:
        with watched_connects() as connects:
            line = await refusal(path, f"CONNECT {host}:80")
    assert line.startswith("503 dial tcp 10.")
    assert line.endswith("connect: connection refused")
    assert connects == []


async def test_without_a_network_of_their_own_pods_are_not_dialled(tmp_path: Path) -> None:
    async with an_egress(tmp_path, has_network=False) as path:
        line = await refusal(path, "CONNECT 10.88.0.7:80")
    assert line == "503 10.88.0.7 cannot be reached: pods have no network of their own on this machine"


async def test_a_simulated_pod_is_not_dialled(tmp_path: Path) -> None:
    async with an_egress(tmp_path) as path:
        with watched_connects() as connects:
            line = await refusal(path, "CONNECT 10.245.0.7:80")
    assert line == "503 10.245.0.7 is the address of a simulated pod: nothing listens on its ports"
    assert connects == []


@pytest.mark.parametrize("request_line", ["GET /", "CONNECT nowhere", "CONNECT :80", "CONNECT 10.88.0.7:99999"])
async def test_what_is_no_connect_is_refused(tmp_path: Path, request_line: str) -> None:
    async with an_egress(tmp_path) as path:
        assert await refusal(path, request_line) == "400 connect to a host and a port by CONNECT"


def test_an_address_of_this_machine_is_known() -> None:
    assert is_own_address("127.0.0.1")
    assert not is_own_address("192.0.2.1")
