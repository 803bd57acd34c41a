"""HTTP sessions of tests over TLS, which leave no connection behind."""

from __future__ import annotations

import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import aiohttp

from shoal.kube.http.pools import hang_up, watched_socket


@asynccontextmanager
async def https_session(trusting: ssl.SSLContext | bool, **options: Any) -> AsyncIterator[aiohttp.ClientSession]:
    """A session whose connections have all ended when its block has.

    Closing a session does not wait for connections that it has given up already (WebSockets, answers that were not
    read): these wait for the server's part of closing TLS, outlive the test's loop, and fail whichever test runs next.
    """
    opened: list[socket.socket] = []

    def factory(address: tuple[Any, ...]) -> socket.socket:
        opened.append(made := watched_socket(address))
        return made

    connector = aiohttp.TCPConnector(ssl=trusting, limit=0, socket_factory=factory)
    async with aiohttp.ClientSession(connector=connector, **options) as session:
        yield session
    await hang_up(opened)
