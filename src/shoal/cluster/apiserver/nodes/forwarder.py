"""Passes an HTTP request on to another server, and its answer back as it comes: a body, or an upgraded connection.

Whoever signs in here does so to us alone: credentials are not passed on, as kube-apiserver does not.
"""

from __future__ import annotations

import ssl
from collections.abc import Awaitable, Callable, Mapping
from contextlib import AsyncExitStack
from dataclasses import dataclass
from urllib.parse import quote, urlencode

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from shoal.cluster.apiserver.calls import Answer, Call, Reply, Streaming, Tunnel
from shoal.cluster.apiserver.nodes.pod_connections import PodUnreachable
from shoal.cluster.apiserver.refusals import Refused, bad_request, unavailable
from shoal.cluster.apiserver.verbs.asked import Asked
from shoal.cluster.upgraded import ByteStream, Upgraded, carry_both_ways
from shoal.kube.errors import ConnectionFault
from shoal.kube.http.faults import FAULTS, describe

KEPT = "/:@!$&'()*+,;=~"
_CONNECTS_WITHIN = 10.0
_PIECE = 64 * 1024
# What is between two neighbours alone, and what was said to us alone.
_NOT_PASSED_ON = frozenset(
    {
        "authorization",
        "connection",
        "content-length",
        "expect",
        "host",
        "keep-alive",
        "proxy-authenticate",
        "proxy-authorization",
        "proxy-connection",
        "te",
        "trailer",
        "transfer-encoding",
        "upgrade",
    }
)
_OF_SUBPROTOCOLS = "sec-websocket-protocol"
_BEARER = "base64url.bearer.authorization.k8s.io."
_ADDED_BY_AIOHTTP = ("Accept", "Accept-Encoding", "Content-Type", "User-Agent")


@dataclass(frozen=True, kw_only=True, slots=True)
class Target:
    """Where a request goes."""

    url: URL
    """Without a path; its host is for the connector."""
    host: str
    """How the server is addressed in the request, and in errors."""
    server_name: str
    """The name by which it is asked for its certificate."""


class Forwarder:
    """Passes requests on over connections that are kept."""

    def __init__(self, connector: Callable[[], aiohttp.BaseConnector], tls: Callable[[], ssl.SSLContext]) -> None:
        """Both are made with the first request."""
        self._connector = connector
        self._new_tls = tls
        self._session: aiohttp.ClientSession | None = None
        self._tls: ssl.SSLContext | None = None

    async def forward(self, asked: Asked, target: Target) -> Reply:
        """The answer of the target; raises Refused where there is none."""
        call = asked.call
        path = rest_of_path(asked)
        if not path:
            return redirect(call)
        upgrade = wanted_upgrade(call)
        headers = _request_headers(call, target)
        if upgrade:
            headers.update({"Connection": "Upgrade", "Upgrade": upgrade})
        query = _query(call)
        url = URL(f"{target.url}{quote(path, safe=KEPT)}" + (f"?{query}" if query else ""), encoded=True)
        if self._tls is None:
            self._tls = self._new_tls()
        try:
            answer = await self._opened().request(
                call.method,
                url,
                headers=headers,
                data=call.body or None,
                allow_redirects=False,
                ssl=self._tls,
                server_hostname=target.server_name if url.scheme == "https" else None,
                skip_auto_headers=_ADDED_BY_AIOHTTP,
            )
        except FAULTS as error:
            raise _unreachable(error, target) from error
        stack = AsyncExitStack()
        if answer.status == 101:
            stack.callback(answer.close)
            return _tunnel(answer, stack)
        stack.callback(answer.release)

        async def read() -> bytes:
            try:
                piece = await answer.content.read(_PIECE)
            except FAULTS as error:
                raise ConnectionResetError(str(error)) from error
            if not piece:
                raise StopAsyncIteration
            return piece

        return streaming(answer.status, dict(answer.headers), Body(read, stack))

    async def close(self) -> None:
        """Closes all connections."""
        if self._session is not None:
            await self._session.close()

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=self._connector(),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECTS_WITHIN),
                auto_decompress=False,
            )
        return self._session


class Body:
    """The pieces of an answer. It is an iterator and no generator, so that closing it works before it was begun."""

    def __init__(self, read: Callable[[], Awaitable[bytes]], stack: AsyncExitStack) -> None:
        self._read = read
        self._stack = stack

    def __aiter__(self) -> Body:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await self._read()
        except ConnectionFault as fault:
            raise ConnectionResetError(str(fault)) from fault

    async def aclose(self) -> None:
        """Gives the connection back, or up."""
        await self._stack.aclose()


def wanted_upgrade(call: Call) -> str:
    """The protocol that a client wants to change to; empty where it wants none."""
    is_upgrade = "upgrade" in call.headers.get("connection", "").lower()
    return call.headers.get("upgrade", "") if is_upgrade else ""


def check_no_upgrade(call: Call) -> None:
    """Refuses what an agent serves under subresources of its own."""
    if wanted_upgrade(call):
        raise bad_request("upgrades are not passed on to agents: use exec, attach or portforward of the pod")


def rest_of_path(asked: Asked) -> str:
    """What follows the subresource in the path, its last slash included."""
    return asked.call.path.partition(f"/{asked.kind.resource}/{asked.name}/{asked.subresource}")[2]


def redirect(call: Call) -> Answer:
    """Leads a client to the path with a slash at its end, under which relative links work."""
    query = _query(call)
    location = f"{quote(call.path, safe=KEPT)}/" + (f"?{query}" if query else "")
    return Answer(status=301, headers={"Location": location}, content_type="text/plain")


def streaming(status: int, headers: Mapping[str, str], body: Body) -> Streaming:
    """An answer that is passed on as it comes."""
    passed = {name: value for name, value in headers.items() if name.lower() not in _NOT_PASSED_ON | {"content-type"}}
    content_type = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    return Streaming(
        chunks=body,
        status=status,
        headers=passed,
        content_type=content_type or "application/octet-stream",
        patience=None,
    )


def _tunnel(answer: aiohttp.ClientResponse, stack: AsyncExitStack) -> Tunnel:
    connection = answer.connection
    assert connection is not None
    assert connection.protocol is not None
    protocol, transport = connection.protocol, connection.transport

    async def send(data: bytes) -> None:
        if transport is None or transport.is_closing():
            raise ConnectionResetError("the server has closed the connection")
        transport.write(data)
        await protocol._drain_helper()  # aiohttp's own writers of WebSockets use it, and there is no other

    upgraded = Upgraded(lambda reader: protocol.set_parser(reader, None), transport, send)

    async def serve(client: ByteStream) -> None:
        async with stack:
            await carry_both_ways(client, upgraded)

    passed = {name: value for name, value in answer.headers.items() if name.lower() not in _NOT_PASSED_ON}
    return Tunnel(
        headers={**passed, "Connection": "Upgrade", "Upgrade": answer.headers.get("Upgrade", "")}, serve=serve
    )


def _request_headers(call: Call, target: Target) -> CIMultiDict[str]:
    headers = CIMultiDict(
        (name, value)
        for name, value in call.headers.items()
        if name not in _NOT_PASSED_ON and not name.startswith("impersonate-")
    )
    if _OF_SUBPROTOCOLS in headers:
        # A browser can sign in by no header but this one.
        offered = [name.strip() for name in headers.pop(_OF_SUBPROTOCOLS).split(",")]
        if kept := [name for name in offered if not name.startswith(_BEARER)]:
            headers[_OF_SUBPROTOCOLS] = ", ".join(kept)
    headers["Host"] = target.host
    headers["X-Forwarded-Uri"] = call.path
    if "host" in call.headers:
        headers["X-Forwarded-Host"] = call.headers["host"]
    return headers


def _query(call: Call) -> str:
    return urlencode([(name, value) for name, values in call.query.items() for value in values])


def _unreachable(error: Exception, target: Target) -> Refused:
    why = str(error) if isinstance(error, PodUnreachable) else f"{target.host} {describe(error)}"
    return unavailable(f"error trying to reach service: {why}")
