"""What a connection may hold before anybody knows whose it is, and how long it may keep the server waiting.

A client without credentials can open connections and send bytes. So headers have a limit and a deadline, connections
on which nobody has been authenticated yet are only so many, and a client that does not read its answers is cut off.
"""

from __future__ import annotations

import asyncio
from typing import Any

from aiohttp import web
from aiohttp.web_protocol import RequestHandler

HEADER_SECONDS = 32.0
"""From a request's first byte, or from the connection's beginning, to the end of its headers; as kube-apiserver."""
HEADER_BYTES = 1024 * 1024
"""All headers of one request together; Go's servers have the same limit."""
MOST_UNKNOWN = 1000
"""Connections on which nobody has been authenticated; the oldest one makes room for a new one."""
READING_SECONDS = 30.0
"""For how long a client may read nothing of an answer that is ready."""

_TOO_MANY_HEADERS = b"HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Length: 0\r\n\r\n"


class Connection(RequestHandler):
    """One client's connection."""

    def __init__(self, manager: Server, **options: Any) -> None:
        super().__init__(manager, **options)
        self.patience: float | None = READING_SECONDS
        """For how many seconds the client may read nothing before it is cut off; None: as long as it likes."""
        self._manager_of_all = manager
        self._header_bytes = 0
        self._header_timer: asyncio.TimerHandle | None = None
        self._reading_timer: asyncio.TimerHandle | None = None

    def begin(self) -> None:
        """The headers of a request are there."""
        self._header_bytes = 0
        if self._header_timer is not None:
            self._header_timer.cancel()
            self._header_timer = None

    def authenticated(self) -> None:
        """It is known whose connection this is."""
        self._manager_of_all.unknown.pop(self, None)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Counts it among those of unknown users."""
        super().connection_made(transport)
        unknown = self._manager_of_all.unknown
        unknown[self] = None
        if len(unknown) > MOST_UNKNOWN:
            oldest = next(iter(unknown))
            del unknown[oldest]
            oldest.cut_off()
        self._await_headers()

    def connection_lost(self, exc: BaseException | None) -> None:
        """Forgets it."""
        self._manager_of_all.unknown.pop(self, None)
        for timer in (self._header_timer, self._reading_timer):
            if timer is not None:
                timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Takes bytes in; those before the end of a request's headers are counted."""
        super().data_received(data)
        next_request = self._waiter
        if (next_request is None and self._request_count) or (next_request is not None and next_request.done()):
            return  # all headers are there, and this may be a part of the body
        self._header_bytes += len(data)
        if self._header_bytes > HEADER_BYTES:
            if self.transport is not None:
                self.transport.write(_TOO_MANY_HEADERS)
            self.force_close()
        elif self._header_timer is None:
            self._await_headers()

    def pause_writing(self) -> None:
        """The client reads too slowly for what is sent."""
        super().pause_writing()
        if self.patience is not None and self._reading_timer is None:
            self._reading_timer = asyncio.get_running_loop().call_later(self.patience, self.cut_off)

    def resume_writing(self) -> None:
        """The client has caught up."""
        super().resume_writing()
        if self._reading_timer is not None:
            self._reading_timer.cancel()
            self._reading_timer = None

    def cut_off(self) -> None:
        """Ends the connection without waiting for the client."""
        if self.transport is not None:
            self.transport.abort()

    def _await_headers(self) -> None:
        self._header_timer = asyncio.get_running_loop().call_later(HEADER_SECONDS, self.cut_off)


class Server(web.Server):
    """aiohttp's server with such connections."""

    def __init__(self, *arguments: Any, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self.unknown: dict[Connection, None] = {}
        """The connections on which nobody has been authenticated yet, the oldest first."""

    def __call__(self) -> RequestHandler:
        """The connection of a client that has just come."""
        return Connection(self, loop=self._loop, **self._kwargs)
