"""The connections to one server that are kept, and how new ones are made.

Plain requests share a pool with a limit. Streams and WebSockets hold their connections for minutes or hours and so
have a pool without one: a hundred watches never keep a request waiting.

A peer that vanishes without a word (a node that loses power, a gateway that forgets) is noticed by the kernel: idle
connections are probed, and data that stays unacknowledged breaks them, within a minute.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable, Iterable
from contextlib import suppress
from typing import Any
from weakref import WeakSet

import aiohttp

import shoal
from shoal.kube.errors import error_from_response
from shoal.kube.http.proxies import Proxy
from shoal.kube.http.socks import SocksConnector

USER_AGENT = f"shoal/{shoal.__version__}"
_CLOSES_WITHIN = 2.0


class Pools:
    """Sessions for plain requests, for streams and for upgrades; belongs to the event loop it is made in."""

    def __init__(
        self,
        *,
        socket_path: str | None,
        proxy: Proxy | None,
        limit: int,
        keepalive: float,
        timeout: aiohttp.ClientTimeout,
        may_connect: Callable[[str], bool],
    ) -> None:
        """``socket_path`` is the Unix socket to use in place of TCP; ``may_connect`` is told each address before."""
        self._sockets: WeakSet[socket.socket] = WeakSet()

        def opened(address: tuple[Any, ...]) -> socket.socket:
            host = str(address[4][0])
            if not may_connect(host):
                raise OSError(f"connections to {host} are not allowed")
            made = watched_socket(address)
            self._sockets.add(made)
            return made

        def connector(limit: int) -> aiohttp.BaseConnector:
            if socket_path is not None:
                return aiohttp.UnixConnector(socket_path, limit=limit, keepalive_timeout=keepalive)
            if proxy is not None and proxy.is_socks:
                return SocksConnector(proxy, limit=limit, keepalive_timeout=keepalive)
            return aiohttp.TCPConnector(limit=limit, keepalive_timeout=keepalive, socket_factory=opened)

        def session(connector: aiohttp.BaseConnector, **options: Any) -> aiohttp.ClientSession:
            # Nothing secret may be a session's default header: aiohttp sends those to a proxy as well.
            return aiohttp.ClientSession(
                connector=connector,
                headers={"User-Agent": USER_AGENT},
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=timeout,
                **options,
            )

        unlimited = connector(0)
        self.requests = session(connector(limit))
        self.streams = session(unlimited)
        self.upgrades = session(unlimited, connector_owner=False, middlewares=(raise_refusal,))

    async def close(self) -> None:
        """Closes every connection."""
        for session in (self.upgrades, self.streams, self.requests):
            await session.close()
        await hang_up(self._sockets)


async def hang_up(sockets: Iterable[socket.socket]) -> None:
    """Ends connections that were given up earlier and still wait for the peer's part of closing TLS."""
    for one in (remaining := [one for one in sockets if one.fileno() >= 0]):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
    with suppress(TimeoutError):
        async with asyncio.timeout(_CLOSES_WITHIN):
            while any(one.fileno() >= 0 for one in remaining):  # noqa: ASYNC110 - the loop closes them, silently
                await asyncio.sleep(0)


async def raise_refusal(request: aiohttp.ClientRequest, handler: aiohttp.ClientHandlerType) -> aiohttp.ClientResponse:
    """Turns an answer that is no upgrade into the error it means, while its body can still be read."""
    answer = await handler(request)
    if answer.status == 101:
        return answer
    try:
        body = await answer.read()
    finally:
        answer.close()
    raise error_from_response(answer.status, body, request=f"{request.method} {request.url.path}")


def watched_socket(address: tuple[Any, ...]) -> socket.socket:
    """A socket whose peer's silent death is noticed."""
    family, kind, protocol, _, _ = address
    opened = socket.socket(family, kind, protocol)
    opened.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for option, value in _WATCH:
        if hasattr(socket, option):
            opened.setsockopt(socket.IPPROTO_TCP, getattr(socket, option), value)
    return opened


_WATCH = (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3), ("TCP_USER_TIMEOUT", 30_000))
