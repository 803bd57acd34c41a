"""Ports of pods, over a WebSocket.

A 1.36 server offers two forms. kubectl tunnels SPDY frames through a WebSocket (``SPDY/3.1+portforward.k8s.io``, since
1.31). This is the other, ``v4.channel.k8s.io``, which the API server and the kubelet pass on to the container runtime:
plain messages that begin with the number of a channel, 0 for data and 1 for an error, each channel opening with the
port's number in two bytes, little end first. Every API server and runtime of the last years speaks it.

Its price is that neither side can say "I have no more to send" without closing everything. One WebSocket carries one
connection to the port, which the runtime opens at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

import msgspec
import structlog

from shoal.kube.errors import ApiError, ConnectionFault, error_from_response
from shoal.kube.transport import Request, Transport, WebSocket

logger = structlog.get_logger(__name__)

PROTOCOL = "v4.channel.k8s.io"
DATA, ERROR = 0, 1
PIECE = 32 * 1024
LINGER_SECONDS = 5.0
"""How long a pod's silence is borne after the local side has ended: it may still be answering."""


class PortConnection:
    """One connection to a port of a pod."""

    def __init__(self, websocket: WebSocket, *, described: str) -> None:
        self._websocket = websocket
        self._messages = websocket.messages()
        self._described = described
        self._port_bytes_due = {DATA: 2, ERROR: 2}

    async def read(self) -> bytes:
        """What the pod sent; nothing where it has closed. Raises ConnectionFault, with the runtime's words."""
        async for message in self._messages:
            if not message:
                continue
            channel, data = message[0], message[1:]
            if (due := self._port_bytes_due.get(channel, 0)) > 0:
                self._port_bytes_due[channel] = max(0, due - len(data))
                data = data[due:]
            if not data:
                continue
            if channel == DATA:
                return data
            if channel == ERROR:
                raise ConnectionFault(f"{self._described}: {data.decode(errors='replace').strip()}")
        return b""

    async def write(self, data: bytes) -> None:
        """Sends to the pod; waits while it takes nothing."""
        for start in range(0, len(data), PIECE):
            await self._websocket.send(bytes([DATA]) + data[start : start + PIECE])

    async def close(self) -> None:
        """Closes the connection, both ways."""
        await self._websocket.close()


@asynccontextmanager
async def port_forward(
    transport: Transport,
    *,
    namespace: str,
    pod: str,
    port: int,
    timeout: float | None = 30.0,  # noqa: ASYNC109 - until the connection stands; it may last for ever
) -> AsyncIterator[PortConnection]:
    """One connection to a port of a pod, closed on the way out."""
    request = Request(
        method="GET",
        path=f"/api/v1/namespaces/{namespace}/pods/{pod}/portforward",
        query={"ports": str(port)},
        accept="*/*",
        timeout=timeout,
    )
    async with transport.websocket(request, (PROTOCOL,)) as websocket:
        yield PortConnection(websocket, described=f"port {port} of pod {namespace}/{pod}")


@asynccontextmanager
async def forward_port(
    transport: Transport,
    *,
    namespace: str,
    pod: str,
    port: int,
    local_port: int = 0,
    host: str = "127.0.0.1",
    timeout: float | None = 30.0,  # noqa: ASYNC109 - for each connection to stand
) -> AsyncIterator[int]:
    """Listens on a local port (0: any free one) and carries every connection to the pod's; gives the local port.

    A connection that fails is closed and logged; the others, and the listening, go on.
    """
    await _check_running(transport, namespace, pod, timeout)
    carrying: set[asyncio.Task[None]] = set()

    async def carry(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with port_forward(transport, namespace=namespace, pod=pod, port=port, timeout=timeout) as remote:
                await exchange(reader, writer, remote)
        except (ConnectionFault, ApiError, ConnectionError) as error:
            logger.warning("a forwarded connection failed", pod=pod, namespace=namespace, port=port, problem=str(error))
        except asyncio.CancelledError:
            # Nobody waits for a local end that reads no more.
            writer.transport.abort()
            raise
        finally:
            writer.close()

    def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.create_task(carry(reader, writer))
        carrying.add(task)
        task.add_done_callback(carrying.discard)

    server = await asyncio.start_server(accept, host, local_port)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        for task in carrying:
            task.cancel()
        if carrying:
            await asyncio.wait(carrying)


async def exchange(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, remote: PortConnection) -> None:
    """Carries bytes both ways until the pod closes, or the local side has ended and the pod is silent.

    The local end may be a half-close (it waits for an answer) or the end of all: only silence tells.
    """
    loop = asyncio.get_running_loop()
    uploading = asyncio.create_task(_upload(reader, remote))

    def watch_silence(_: object = None) -> None:
        silence.reschedule(loop.time() + LINGER_SECONDS)

    try:
        with suppress(TimeoutError):
            async with asyncio.timeout(None) as silence:
                uploading.add_done_callback(watch_silence)
                try:
                    while data := await remote.read():
                        writer.write(data)
                        await writer.drain()
                        if uploading.done():
                            watch_silence()
                finally:
                    uploading.remove_done_callback(watch_silence)
    finally:
        uploading.cancel()
        await asyncio.wait({uploading})


async def _upload(reader: asyncio.StreamReader, remote: PortConnection) -> None:
    # A connection to the pod that is broken shows in what is read from it.
    with suppress(ConnectionError, ConnectionFault):
        while data := await reader.read(PIECE):
            await remote.write(data)


class _Status(msgspec.Struct, frozen=True):
    phase: str = ""


class _Pod(msgspec.Struct, frozen=True):
    status: _Status = _Status()


async def _check_running(transport: Transport, namespace: str, pod: str, within: float | None) -> None:
    """Better one clear error now than one for every connection; who may not read pods learns it then."""
    request = Request(method="GET", path=f"/api/v1/namespaces/{namespace}/pods/{pod}", timeout=within)
    response = await transport.send(request)
    if response.status == 403:
        return
    if response.status >= 400:
        raise error_from_response(response.status, response.body, request=str(request))
    phase = msgspec.json.decode(response.body, type=_Pod).status.phase
    if phase != "Running":
        raise ConnectionFault(
            f"pod {namespace}/{pod} is {phase or 'in no phase'}: only a running pod has ports to forward", sent=False
        )
