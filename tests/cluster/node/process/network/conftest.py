"""The real runtime with its network, and pods in it whose sockets are in the test's own hands."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import pytest

from shoal.cluster.node.process.client import Runtime
from shoal.cluster.node.process.contents.removal import remove_tree
from shoal.cluster.node.process.runtime.protocol import SandboxSpec, SocketSpec
from tests.support.node.runtime_program import a_runtime
from tests.support.programs.ordinary_user import USER, is_root

WITHIN = 10.0


class RuntimeProgram:
    """The runtime as a process, which a test may end and start again."""

    def __init__(self, folder: Path, *, is_ordinary: bool = False) -> None:
        self.folder = folder
        self._is_ordinary = is_ordinary
        self._running = contextlib.ExitStack()
        self.socket = folder / "runtime.sock"
        self.addresses = (f"10.88.{n // 250 + 1}.{n % 250 + 2}" for n in range(10_000))
        """Given once each, as the agent does: who knew the last pod of an address would look for the next one there."""
        self.own(folder)

    def own(self, *paths: Path) -> None:
        """Makes files and folders those of whoever the runtime runs as."""
        for path in paths:
            if self._is_ordinary:
                os.chown(path, USER, USER)

    def start(self, *options: str) -> None:
        self._running.enter_context(a_runtime(self.folder, *options, is_ordinary=self._is_ordinary))

    def kill(self) -> None:
        self._running.close()

    async def connect(self) -> Runtime:
        async with asyncio.timeout(WITHIN):
            return await Runtime.connect(self.socket)


class PodNetwork:
    """The network of one pod."""

    def __init__(self, runtime: Runtime, address: str) -> None:
        self.address = address
        self.uid = f"uid-of-{address}"
        self._runtime = runtime
        self._held: list[socket.socket] = []

    async def listen(self, port: int, *, is_datagram: bool = False) -> socket.socket:
        """A socket on which somebody in the pod listens."""
        return await self._held_one(
            SocketSpec(sandbox=self.uid, address=self.address, port=port, is_datagram=is_datagram)
        )

    async def dial(self, address: str, port: int, *, is_datagram: bool = False) -> socket.socket:
        """A connection that somebody in the pod has made."""
        made = await self._held_one(SocketSpec(sandbox=self.uid, is_datagram=is_datagram))
        async with asyncio.timeout(WITHIN):
            await asyncio.get_running_loop().sock_connect(made, (address, port))
        return made

    async def echo(self, port: int) -> asyncio.Server:
        """Somebody in the pod who says his address to all who come, and then says what they say."""

        async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            with contextlib.suppress(OSError):
                writer.write(self.address.encode() + b"\n")
                while said := await reader.read(65536):
                    writer.write(said)
                    await writer.drain()
                writer.close()

        return await asyncio.start_server(answer, sock=await self.listen(port))

    async def _held_one(self, spec: SocketSpec) -> socket.socket:
        made = await self._runtime.socket(spec)
        self._held.append(made)
        return made

    def close(self) -> None:
        for one in self._held:
            one.close()


class PodNetworks:
    """Makes pods, and takes them away when the test is over."""

    def __init__(self, runtime: Runtime, addresses: Iterator[str]) -> None:
        self.runtime = runtime
        self._addresses = addresses
        self._made: list[PodNetwork] = []

    async def pod(self) -> PodNetwork:
        """A pod with an address that nobody had before."""
        made = PodNetwork(self.runtime, next(self._addresses))
        spec = SandboxSpec(uid=made.uid, name=f"default/{made.address}", hostname="pod", address=made.address)
        await self.runtime.open(spec)
        self._made.append(made)
        return made

    async def close(self) -> None:
        for one in self._made:
            one.close()
            if not self.runtime.closed.is_set():
                await self.runtime.close_sandbox(one.uid)


@pytest.fixture(scope="module", params=[False, True], ids=["started as we are", "started by an ordinary user"])
def runtime_program(request: pytest.FixtureRequest) -> Iterator[RuntimeProgram]:
    if request.param and not is_root():
        pytest.skip("we are one ourselves")
    folder = Path(tempfile.mkdtemp(prefix="shoal-network-", dir="/tmp"))
    program = RuntimeProgram(folder, is_ordinary=request.param)
    program.start()
    try:
        yield program
    finally:
        program.kill()
        remove_tree(folder)


@pytest.fixture
async def runtime(runtime_program: RuntimeProgram) -> AsyncIterator[Runtime]:
    connected = await runtime_program.connect()
    if not connected.facts.has_network:
        pytest.skip(f"this machine allows no network for pods: {'; '.join(connected.facts.shortfalls)}")
    try:
        yield connected
    finally:
        await connected.aclose()


@pytest.fixture
async def pods(runtime: Runtime, runtime_program: RuntimeProgram) -> AsyncIterator[PodNetworks]:
    made = PodNetworks(runtime, runtime_program.addresses)
    try:
        yield made
    finally:
        await made.close()


@contextlib.asynccontextmanager
async def in_background(work: object) -> AsyncIterator[None]:
    """Runs something for the length of a block; what it fails with, the block does."""
    task: asyncio.Task[None] = asyncio.ensure_future(work)  # type: ignore[call-overload]
    try:
        yield
        if task.done():
            task.result()
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def free_port() -> int:
    """A port of the machine's loopback that nobody listens on, neither for connections nor for datagrams."""
    while True:
        with socket.socket() as one, socket.socket(type=socket.SOCK_DGRAM) as other:
            one.bind(("127.0.0.1", 0))
            with contextlib.suppress(OSError):
                other.bind(one.getsockname())
                return int(one.getsockname()[1])
