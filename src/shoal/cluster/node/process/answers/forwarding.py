"""Ports of pods: connections that are made inside a pod's network, for clients outside of it."""

from __future__ import annotations

import asyncio
import os
import socket
from contextlib import suppress

from aiohttp import web

from shoal.cluster.node.kubelet.ports import PIECE, PortConnection, serve_ports
from shoal.cluster.node.process.answers.residents import Runtime
from shoal.cluster.node.process.client import RuntimeFault
from shoal.cluster.node.process.runtime.protocol import SocketSpec

_CONNECTS_WITHIN = 10.0


class Forwarding:
    """Carries connections to the ports of one pod."""

    def __init__(self, runtime: Runtime, *, uid: str, name: str) -> None:
        """``name`` is ``namespace/name`` of the pod, for people."""
        self._runtime = runtime
        self._uid = uid
        self._name = name

    async def serve(self, request: web.Request) -> web.StreamResponse:
        """Serves one client, whatever it connects to, until it leaves."""
        return await serve_ports(request, self._carry)

    async def _carry(self, client: PortConnection) -> None:
        try:
            connection = await self._connected(client.port)
        except (OSError, RuntimeFault) as problem:
            words = f"error forwarding port {client.port} to pod {self._name}, uid {self._uid}: {problem}"
            await client.fail(words)
            return
        with connection:
            await exchange(client, connection)

    async def _connected(self, port: int) -> socket.socket:
        """A connection to a port of the pod's own loopback, by the older protocol or else by the newer."""
        problems = []
        for version, host in ((4, "127.0.0.1"), (6, "::1")):
            try:
                return await self._dial(host, port, is_version_6=version == 6)
            except OSError as problem:
                shown = f"[{host}]" if version == 6 else host
                why = os.strerror(problem.errno) if problem.errno and problem.errno > 0 else problem.strerror
                problems.append(
                    f"IPv{version}: dial tcp{version} {shown}:{port}: connect: {(why or 'timed out').lower()}"
                )
        raise OSError(f"failed to connect to localhost:{port} inside the pod's network, {' '.join(problems)}")

    async def _dial(self, host: str, port: int, *, is_version_6: bool) -> socket.socket:
        connection = await self._runtime.socket(SocketSpec(sandbox=self._uid, is_version_6=is_version_6))
        try:
            async with asyncio.timeout(_CONNECTS_WITHIN):
                await asyncio.get_running_loop().sock_connect(connection, (host, port))
        except BaseException:
            connection.close()
            raise
        return connection


async def exchange(client: PortConnection, connection: socket.socket) -> None:
    """Carries bytes both ways until both ends have said all, or either breaks."""
    uploading = asyncio.create_task(_upload(client, connection))
    downloading = asyncio.create_task(_download(client, connection))
    try:
        await asyncio.wait({uploading, downloading}, return_when=asyncio.FIRST_COMPLETED)
        if not downloading.done() and uploading.exception() is None:
            await asyncio.wait({downloading})
        if client.can_half_close and downloading.done() and downloading.exception() is None and downloading.result():
            await asyncio.wait({uploading})
    finally:
        uploading.cancel()
        downloading.cancel()
        await asyncio.gather(uploading, downloading, return_exceptions=True)


async def _upload(client: PortConnection, connection: socket.socket) -> None:
    """From the client to the pod; where the pod takes no more, it goes nowhere. Raises ConnectionError."""
    loop = asyncio.get_running_loop()
    is_taken = True
    while data := await client.read():
        if is_taken:
            try:
                await loop.sock_sendall(connection, data)
            except OSError:
                is_taken = False
    with suppress(OSError):
        connection.shutdown(socket.SHUT_WR)


async def _download(client: PortConnection, connection: socket.socket) -> bool:
    """From the pod to the client; whether the pod said all that it had to say. Raises ConnectionError."""
    loop = asyncio.get_running_loop()
    while True:
        try:
            data = await loop.sock_recv(connection, PIECE)
        except OSError:
            await client.fail("")
            return False
        if not data:
            await client.close()
            return True
        await client.write(data)
