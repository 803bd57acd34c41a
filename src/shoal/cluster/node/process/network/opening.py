"""Sockets in the network of the pods, which only the runtime can make."""

from __future__ import annotations

import asyncio
import socket
from collections import deque
from typing import Protocol

from shoal.cluster.node.process.runtime.protocol import Facts, SocketSpec


class OpensSockets(Protocol):
    """Makes sockets in networks that this process is not in; they are non-blocking."""

    async def socket(self, spec: SocketSpec) -> socket.socket:
        """A socket that listens, is bound or is to be connected, as is asked for."""


class NetworkRuntime(OpensSockets, Protocol):
    """What is asked of the runtime here."""

    @property
    def facts(self) -> Facts:
        """What this machine lets it do."""

    @property
    def closed(self) -> asyncio.Event:
        """Set when the connection to it is lost, and with it, perhaps, the network."""


class Reserve:
    """Sockets made before they are needed, so that a new connection does not wait for the runtime."""

    def __init__(self, sockets: OpensSockets, *, is_datagram: bool, size: int = 16) -> None:
        self._sockets = sockets
        self._spec = SocketSpec(is_datagram=is_datagram)
        self._size = size
        self._ready: deque[socket.socket] = deque()
        self._filling: asyncio.Task[None] | None = None
        self._is_closed = False

    async def take(self) -> socket.socket:
        """A socket that is not connected yet."""
        found = self._ready.popleft() if self._ready else None
        if len(self._ready) <= self._size // 2 and (self._filling is None or self._filling.done()):
            self._filling = asyncio.create_task(self._fill(), name="socket reserve")
        return found or await self._sockets.socket(self._spec)

    async def _fill(self) -> None:
        try:
            while len(self._ready) < self._size and not self._is_closed:
                self._ready.append(await self._sockets.socket(self._spec))
        except Exception:  # noqa: S110 - whoever finds the reserve empty asks again, and is told
            pass
        if self._is_closed:
            self._empty()

    def close(self) -> None:
        """Closes what nobody took, and what is still being made once it is."""
        self._is_closed = True
        self._empty()

    def _empty(self) -> None:
        while self._ready:
            self._ready.popleft().close()
