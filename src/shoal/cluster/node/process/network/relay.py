"""Carries bytes between two connections until both directions have ended.

One call moves what one read gives, so connections take turns. What the other side does not take yet is kept, and
nothing more is read until it has gone; a connection at rest holds no buffer at all. Reading into a shared buffer and
sending from it is as quick as moving bytes within the kernel, and needs no pipes, of which an ordinary user may have
few.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable

_RESET = struct.pack("ii", 1, 0)
BUFFER = 256 * 1024

_OPTIONS = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 60),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 15),
    (socket.IPPROTO_TCP, socket.TCP_KEEPCNT, 4),
    (socket.IPPROTO_TCP, socket.TCP_NODELAY, 1),
)
"""What waited on one side has waited enough; and a side whose network went away without a word is noticed."""


class Relay:
    """Two connections that are one."""

    def __init__(
        self, one: socket.socket, other: socket.socket, buffer: memoryview, *, on_end: Callable[[Relay], None]
    ) -> None:
        self._ends = (one, other)
        self._on_end = on_end
        self._halves = (_Half(one, other, buffer, self), _Half(other, one, buffer, self))
        self._is_over = False

    def start(self) -> None:
        """Begins; what one of them has said already is carried too."""
        try:
            for end in self._ends:
                for level, option, value in _OPTIONS:
                    end.setsockopt(level, option, value)
        except OSError:
            self.abort()
            return
        for half in self._halves:
            half.read_on()

    def half_ended(self) -> None:
        """One side has said all; when both have, it is over."""
        if all(half.is_done for half in self._halves):
            self._finish(socket.socket.close)

    def abort(self) -> None:
        """Something broke: both sides shall notice, and not take it for a good end."""
        if not self._is_over:
            self._finish(close_with_reset)

    def _finish(self, close: Callable[[socket.socket], None]) -> None:
        self._is_over = True
        for half in self._halves:
            half.stop()
        for end in self._ends:
            close(end)
        self._on_end(self)


class _Half:
    """One direction."""

    def __init__(self, source: socket.socket, sink: socket.socket, buffer: memoryview, relay: Relay) -> None:
        self._loop = asyncio.get_running_loop()
        self._source = source
        self._sink = sink
        self._buffer = buffer
        self._relay = relay
        self._rest = memoryview(b"")
        self.is_done = False

    def read_on(self) -> None:
        self._loop.add_reader(self._source, self._readable)

    def stop(self) -> None:
        self._loop.remove_reader(self._source)
        self._loop.remove_writer(self._sink)

    def _readable(self) -> None:
        try:
            count = self._source.recv_into(self._buffer)
            if not count:
                self._end()
                return
            sent = self._sent(self._buffer[:count])
        except BlockingIOError:
            return
        except OSError:
            self._relay.abort()
            return
        if sent < count:
            self._rest = memoryview(bytes(self._buffer[sent:count]))
            self._loop.remove_reader(self._source)
            self._loop.add_writer(self._sink, self._writable)

    def _writable(self) -> None:
        try:
            self._rest = self._rest[self._sent(self._rest) :]
        except OSError:
            self._relay.abort()
            return
        if not self._rest:
            self._loop.remove_writer(self._sink)
            self.read_on()

    def _sent(self, view: memoryview) -> int:
        try:
            return self._sink.send(view)
        except BlockingIOError:
            return 0

    def _end(self) -> None:
        self.is_done = True
        self._loop.remove_reader(self._source)
        self._sink.shutdown(socket.SHUT_WR)
        self._relay.half_ended()


def close_with_reset(connection: socket.socket) -> None:
    """Closes a connection so that it looks like the failure that it is; again does nothing."""
    if connection.fileno() >= 0:
        connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
        connection.close()
