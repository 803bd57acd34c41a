"""Commands in containers (exec) and their main process (attach), over a WebSocket.

The wire is Kubernetes' remote command protocol: each message begins with the number of its channel. The server ends
with a Status on the error channel, which holds the exit code. Version 5 can close standard input (since 1.30 the API
server speaks it for every container runtime); version 4, which older servers pass on to the runtime, cannot.

There is one reader and no queue: whoever reads slowly slows the command down, as a pipe would.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Literal

import msgspec

from shoal.kube.errors import ConnectionFault, Status, error_from_status
from shoal.kube.transport import Request, Transport, WebSocket

PROTOCOLS = ("v5.channel.k8s.io", "v4.channel.k8s.io")
STDIN, STDOUT, STDERR, ERROR, RESIZE = range(5)
CLOSE = 255
PIECE = 32 * 1024
"""How much input goes into one message; runtimes copy in pieces of this size."""


class StdinStaysOpen(Exception):
    """The server speaks a version in which standard input cannot be closed."""


@dataclass(frozen=True, slots=True)
class Output:
    """A piece of what the command wrote; with a terminal everything is ``stdout``."""

    source: Literal["stdout", "stderr"]
    data: bytes


@dataclass(frozen=True, slots=True)
class Completed:
    """A command that has ended."""

    stdout: bytes
    stderr: bytes
    exit_code: int


class ExecSession:
    """A command that runs in a container."""

    def __init__(self, websocket: WebSocket, *, request: str) -> None:
        self._websocket = websocket
        self._messages = websocket.messages()
        self._request = request
        self._exit_code: int | None = None

    @property
    def exit_code(self) -> int | None:
        """The exit code, once it is known."""
        return self._exit_code

    async def write(self, data: bytes) -> None:
        """Writes to standard input; waits while the command reads none."""
        for start in range(0, len(data), PIECE):
            await self._websocket.send(bytes([STDIN]) + data[start : start + PIECE])

    async def close_stdin(self) -> None:
        """Lets the command see the end of its input; raises StdinStaysOpen."""
        self._check_closable()
        await self._websocket.send(bytes([CLOSE, STDIN]))

    async def resize(self, *, width: int, height: int) -> None:
        """Tells the command's terminal its size in characters."""
        await self._websocket.send(bytes([RESIZE]) + msgspec.json.encode({"Width": width, "Height": height}))

    async def read(self) -> Output | None:
        """The next piece of output; None when the command has ended, and then ``exit_code`` is known."""
        while self._exit_code is None:
            message = await anext(self._messages, None)
            if message is None:
                raise ConnectionFault(f"the command's connection closed before its exit code came ({self._request})")
            channel, data = message[:1], message[1:]
            if not data:
                continue
            if channel == bytes([STDOUT]):
                return Output("stdout", data)
            if channel == bytes([STDERR]):
                return Output("stderr", data)
            if channel == bytes([ERROR]):
                self._exit_code = exit_code(data, request=self._request)
        return None

    def __aiter__(self) -> ExecSession:
        return self

    async def __anext__(self) -> Output:
        output = await self.read()
        if output is None:
            raise StopAsyncIteration
        return output

    async def wait(self) -> int:
        """The exit code; what the command still writes until then is dropped."""
        while await self.read() is not None:
            pass
        assert self._exit_code is not None
        return self._exit_code

    async def run(self, stdin: bytes | None = None) -> Completed:
        """Feeds the command its input, whole, and collects all it writes; raises StdinStaysOpen."""
        if stdin is None:
            return await self._collect()
        self._check_closable()
        feeding = asyncio.create_task(self._feed(stdin))
        try:
            return await self._collect()
        finally:
            # A command may end without reading all of its input; a broken connection shows in what is read.
            feeding.cancel()
            await asyncio.wait({feeding})
            _ = feeding.cancelled() or feeding.exception()

    async def _feed(self, stdin: bytes) -> None:
        await self.write(stdin)
        await self.close_stdin()

    async def _collect(self) -> Completed:
        written: dict[str, list[bytes]] = {"stdout": [], "stderr": []}
        async for output in self:
            written[output.source].append(output.data)
        return Completed(b"".join(written["stdout"]), b"".join(written["stderr"]), await self.wait())

    def _check_closable(self) -> None:
        if self._websocket.protocol != PROTOCOLS[0]:
            raise StdinStaysOpen(
                f"standard input cannot be closed: the server speaks {self._websocket.protocol or 'no version'}, "
                f"not {PROTOCOLS[0]}, as Kubernetes does from 1.30 on ({self._request})"
            )


@asynccontextmanager
async def exec_in_pod(
    transport: Transport,
    *,
    namespace: str,
    pod: str,
    command: Sequence[str],
    container: str = "",
    stdin: bool = False,
    stdout: bool = True,
    stderr: bool = True,
    tty: bool = False,
    timeout: float | None = 30.0,  # noqa: ASYNC109 - until the command starts; it may run for ever
) -> AsyncIterator[ExecSession]:
    """Runs a command in a container (the only one, if none is named); leaving the context cuts the connection.

    With ``tty`` the command has a terminal: its output is one stream, and ``resize`` works.
    """
    options = [("command", word) for word in command]
    options += _streams(container=container, stdin=stdin, stdout=stdout, stderr=stderr and not tty, tty=tty)
    async with _session(transport, f"{_pod_path(namespace, pod)}/exec", options, timeout) as session:
        yield session


@asynccontextmanager
async def attach(
    transport: Transport,
    *,
    namespace: str,
    pod: str,
    container: str = "",
    stdin: bool = False,
    stdout: bool = True,
    stderr: bool = True,
    tty: bool = False,
    timeout: float | None = 30.0,  # noqa: ASYNC109 - until the connection stands; it may last for ever
) -> AsyncIterator[ExecSession]:
    """Joins a container's main process; ``stdin`` and ``tty`` only where its spec has them."""
    options = _streams(container=container, stdin=stdin, stdout=stdout, stderr=stderr and not tty, tty=tty)
    async with _session(transport, f"{_pod_path(namespace, pod)}/attach", options, timeout) as session:
        yield session


async def run_in_pod(
    transport: Transport,
    *,
    namespace: str,
    pod: str,
    command: Sequence[str],
    container: str = "",
    stdin: bytes | None = None,
) -> Completed:
    """Runs a command to its end: its input goes in, its output and exit code come back."""
    async with exec_in_pod(
        transport, namespace=namespace, pod=pod, command=command, container=container, stdin=stdin is not None
    ) as session:
        return await session.run(stdin)


def exit_code(message: bytes, *, request: str) -> int:
    """The exit code that the error channel's Status holds; a failure to run at all is raised as the ApiError it is."""
    try:
        status = msgspec.json.decode(message, type=Status)
    except msgspec.MsgspecError:
        status = Status(message=message.decode(errors="replace"), code=500, reason="InternalError")
    if status.status == "Success":
        return 0
    if status.reason == "NonZeroExitCode":
        for cause in status.details.causes:
            if cause.reason == "ExitCode" and cause.message.isdecimal():
                return int(cause.message)
    raise error_from_status(status, request=request)


@asynccontextmanager
async def _session(
    transport: Transport, path: str, options: Sequence[tuple[str, str]], within: float | None
) -> AsyncIterator[ExecSession]:
    request = Request(method="GET", path=path, query=tuple(options), accept="*/*", timeout=within)
    async with transport.websocket(request, PROTOCOLS) as websocket:
        yield ExecSession(websocket, request=str(request))


def _streams(*, container: str, **wanted: bool) -> list[tuple[str, str]]:
    named = [("container", container)] if container else []
    return named + [(name, "true" if is_wanted else "false") for name, is_wanted in wanted.items()]


def _pod_path(namespace: str, pod: str) -> str:
    return f"/api/v1/namespaces/{namespace}/pods/{pod}"
