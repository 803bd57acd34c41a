"""Connections to backends: in the network of the pods by sockets of the runtime, on this machine by our own."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence

from shoal.cluster.node.process.client import RuntimeFault
from shoal.cluster.node.process.network.balance import Backend
from shoal.cluster.node.process.network.opening import OpensSockets, Reserve

PATIENCE = 2.0
"""Seconds for a backend where there is another one: on one machine, whoever listens answers at once."""
LAST_PATIENCE = 10.0
ATTEMPTS = 5


class NoBackend(Exception):
    """None of a service's backends could be connected to; says what the last one's fault was."""


class Dialer:
    """Connects to backends."""

    def __init__(self, sockets: OpensSockets) -> None:
        self._streams = Reserve(sockets, is_datagram=False)
        self._datagrams = Reserve(sockets, is_datagram=True)

    async def connected(self, candidates: Sequence[Backend]) -> tuple[socket.socket, Backend]:
        """A connection to the first candidate that takes one. Raises NoBackend."""
        tried = candidates[:ATTEMPTS]
        fault: Exception | None = None
        for attempt, backend in enumerate(tried, 1):
            try:
                patience = PATIENCE if attempt < len(tried) else LAST_PATIENCE
                return await self._stream(backend, patience), backend
            except (OSError, RuntimeFault) as error:
                fault = error
        raise NoBackend(f"{tried[-1].address}:{tried[-1].port}: {fault or 'not reached in time'}") from fault

    async def datagrams(self, backend: Backend) -> socket.socket:
        """A socket whose datagrams go to and come from one backend."""
        made = _own(backend, socket.SOCK_DGRAM) if backend.is_on_machine else await self._datagrams.take()
        try:
            made.connect((backend.address, backend.port))
        except OSError:
            made.close()
            raise
        return made

    def close(self) -> None:
        """Closes what is held in reserve."""
        self._streams.close()
        self._datagrams.close()

    async def _stream(self, backend: Backend, patience: float) -> socket.socket:
        made = _own(backend, socket.SOCK_STREAM) if backend.is_on_machine else await self._streams.take()
        try:
            async with asyncio.timeout(patience):
                await asyncio.get_running_loop().sock_connect(made, (backend.address, backend.port))
        except BaseException:
            made.close()
            raise
        return made


def _own(backend: Backend, kind: socket.SocketKind) -> socket.socket:
    made = socket.socket(socket.AF_INET6 if ":" in backend.address else socket.AF_INET, kind)
    made.setblocking(False)
    return made
