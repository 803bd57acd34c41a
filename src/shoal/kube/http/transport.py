"""The ``Transport`` that talks to real servers, on aiohttp.

What is the same for all requests (headers, TLS, the way through a proxy) is made once for each signature that the
credentials give. The SSL context is part of what a kept connection is found by, so after a client certificate was
replaced nothing goes out under the old one.
"""

from __future__ import annotations

import asyncio
import io
import os
import re
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from functools import lru_cache, partial
from typing import Any
from urllib.parse import quote, urlencode

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from shoal.kube.connection import Connection
from shoal.kube.credentials import CredentialsError, Signature
from shoal.kube.errors import ConnectionFault, Unauthorized
from shoal.kube.http.answers import HttpStream, HttpWebSocket
from shoal.kube.http.faults import FAULTS, connection_fault, harmless
from shoal.kube.http.pools import Pools
from shoal.kube.http.proxies import Proxy, environment_proxy, parse_proxy
from shoal.kube.tls import ClientCertificate, TlsError, client_context
from shoal.kube.transport import Request, Response, Stream, WebSocket

_LARGE_BODY = 1 << 20
_LARGEST_MESSAGE = 16 << 20
_PLAIN_PATH = re.compile(r"[A-Za-z0-9/._~:@!$&'()*+,;=%-]*")


class HttpTransport:
    """Moves requests to one API server, signed; belongs to the event loop that first uses it."""

    def __init__(
        self,
        connection: Connection,
        *,
        limit: int = 100,
        connect_timeout: float = 30.0,
        keepalive: float = 60.0,
        environ: Mapping[str, str] = os.environ,
        may_connect: Callable[[str], bool] = lambda _address: True,
    ) -> None:
        """``limit`` bounds the plain requests under way at once; ``keepalive`` is how long an idle connection is kept.

        ``may_connect`` decides on each IP address to which a TCP connection without a proxy would be made.

        A server should keep idle connections longer than we do (kube-apiserver: 90 s), or requests race its closing.
        """
        self.connection = connection
        self._credentials = connection.credentials
        self._limit = limit
        self._keepalive = keepalive
        self._connect_timeout = connect_timeout
        self._may_connect = may_connect
        self._patience = aiohttp.ClientTimeout(total=None, sock_connect=connect_timeout)
        self._socket_path = _socket_path(connection.server)
        self._base = connection.server.rstrip("/") if self._socket_path is None else "http://localhost"
        self._proxy = None if self._socket_path else _proxy(connection, environ)
        self._pools: Pools | None = None
        self._prepared: _Prepared | None = None
        self._is_closed = False

    @property
    def host(self) -> str:
        """The server's host and port, or the path of its socket."""
        return self.connection.server.rpartition("://")[2].rstrip("/")

    def __repr__(self) -> str:
        return f"<HttpTransport to {self.connection.server}>"

    async def send(self, request: Request) -> Response:
        """One request, one answer; a 401 is answered with fresh credentials, once."""
        signature = await self._credentials.sign()
        response = await self._send(request, signature)
        if response.status == 401 and await self._credentials.refresh(signature):
            response = await self._send(request, await self._credentials.sign())
        return response

    @asynccontextmanager
    async def stream(self, request: Request) -> AsyncIterator[Stream]:
        """One request whose answer is read as it comes."""
        signature = await self._credentials.sign()
        answer = await self._open(request, signature)
        try:
            if answer.status == 401 and await self._credentials.refresh(signature):
                answer.release()
                answer = await self._open(request, await self._credentials.sign())
            yield HttpStream(answer, partial(self._fault, request))
        finally:
            # A connection whose answer was not read to the end is closed by this, not kept.
            answer.release()

    @asynccontextmanager
    async def websocket(self, request: Request, protocols: tuple[str, ...]) -> AsyncIterator[WebSocket]:
        """A WebSocket with one of ``protocols``, closed on the way out."""
        signature = await self._credentials.sign()
        try:
            opened = await self._upgrade(request, protocols, signature)
        except Unauthorized:
            if not await self._credentials.refresh(signature):
                raise
            opened = await self._upgrade(request, protocols, await self._credentials.sign())
        described = f"the WebSocket of {self.connection.server} ({request})"
        websocket = HttpWebSocket(opened, partial(self._fault, request), described=described)
        pings = asyncio.create_task(websocket.keep_pinging())
        try:
            yield websocket
        finally:
            pings.cancel()
            await websocket.close()

    async def close(self) -> None:
        """Closes every connection; whatever is asked from now on is a ConnectionFault."""
        self._is_closed = True
        if self._pools is not None:
            await self._pools.close()
            self._pools = None

    async def _send(self, request: Request, signature: Signature) -> Response:
        prepared = self._prepare(signature)
        limit = self._patience
        if request.timeout is not None:
            limit = _limit(request.timeout, self._connect_timeout)
        try:
            answer = await self._opened_pools().requests.request(
                request.method,
                request_url(self._base, request),
                headers=prepared.headers_for(request),
                data=_body(request),
                timeout=limit,
                allow_redirects=False,
                **prepared.route,
            )
            # Reading to the end gives the connection back, and a fault on the way closes it: no context is needed.
            return Response(answer.status, answer.headers, await answer.read())
        except FAULTS as error:
            raise self._fault(request, error) from harmless(error)

    async def _open(self, request: Request, signature: Signature) -> aiohttp.ClientResponse:
        prepared = self._prepare(signature)
        try:
            async with asyncio.timeout(request.timeout):
                return await self._opened_pools().streams.request(
                    request.method,
                    request_url(self._base, request),
                    headers=prepared.headers_for(request),
                    data=_body(request),
                    allow_redirects=False,
                    **prepared.route,
                )
        except FAULTS as error:
            raise self._fault(request, error) from harmless(error)

    async def _upgrade(
        self, request: Request, protocols: tuple[str, ...], signature: Signature
    ) -> aiohttp.ClientWebSocketResponse[bool]:
        prepared = self._prepare(signature)
        try:
            async with asyncio.timeout(request.timeout):
                opened: aiohttp.ClientWebSocketResponse[bool] = await self._opened_pools().upgrades.ws_connect(
                    request_url(self._base, request),
                    method=request.method,
                    protocols=protocols,
                    headers=prepared.headers_for(request),
                    max_msg_size=_LARGEST_MESSAGE,
                    timeout=aiohttp.ClientWSTimeout(ws_close=2.0),
                    **prepared.route,
                )
        except FAULTS as error:
            raise self._fault(request, error) from harmless(error)
        return opened

    def _opened_pools(self) -> Pools:
        if self._pools is None:
            if self._is_closed:
                raise ConnectionFault(f"the transport to {self.connection.server} is closed", sent=False)
            self._pools = Pools(
                socket_path=self._socket_path,
                proxy=self._proxy,
                limit=self._limit,
                keepalive=self._keepalive,
                timeout=self._patience,
                may_connect=self._may_connect,
            )
        return self._pools

    def _prepare(self, signature: Signature) -> _Prepared:
        last = self._prepared
        if last is not None and last.signature is signature:
            return last
        if last is not None and last.signature.certificate == signature.certificate:
            route = last.route
        else:
            route = self._route(signature.certificate)
        headers = CIMultiDict(signature.headers)
        if self._proxy is not None and not self._proxy.is_socks and not self._is_encrypted:
            headers.extend(self._proxy.headers())
        if self.connection.impersonation is not None:
            headers.extend(self.connection.impersonation.headers())
        compressed = self.connection.compression and self._socket_path is None
        headers["Accept-Encoding"] = "gzip" if compressed else "identity"
        self._prepared = _Prepared(signature, route, headers)
        return self._prepared

    def _route(self, certificate: ClientCertificate | None) -> dict[str, Any]:
        """How aiohttp gets to the server: TLS and an HTTP proxy."""
        route: dict[str, Any] = {}
        if self._is_encrypted:
            try:
                route["ssl"] = client_context(self.connection.tls, certificate)
            except TlsError as error:
                raise CredentialsError(f"cannot sign in to {self.connection.server}: {error}") from error
            route["server_hostname"] = self.connection.tls.server_name
        if self._proxy is not None and not self._proxy.is_socks:
            route["proxy"] = URL(self._proxy.url)
            if self._is_encrypted:
                route["proxy_headers"] = self._proxy.headers()
        return route

    @property
    def _is_encrypted(self) -> bool:
        return self._base.startswith("https:")

    def _fault(self, request: Request, error: Exception) -> ConnectionFault:
        server = self.connection.server
        if self._proxy is not None:
            server = f"{server} (through {self._proxy.url})"
        return connection_fault(error, server=server, request=str(request), timeout=request.timeout)


def request_url(base: str, request: Request) -> URL:
    """The URL of a request, encoded once and for all; a path that is encoded already stays as it is."""
    path = request.path
    if not _PLAIN_PATH.fullmatch(path):
        path = quote(path, safe="/:@!$&'()*+,;=%")
    if request.query:
        query = request.query if isinstance(request.query, tuple) else tuple(request.query.items())
        return URL(f"{base}{path}?{_encoded(query)}", encoded=True)
    return URL(base + path, encoded=True)


@lru_cache
def _encoded(query: tuple[tuple[str, str], ...]) -> str:
    return urlencode(query)


@lru_cache
def _limit(total: float, connect: float) -> aiohttp.ClientTimeout:
    return aiohttp.ClientTimeout(total=total, sock_connect=connect)


class _Prepared:
    """What is the same for every request under one signature."""

    def __init__(self, signature: Signature, route: dict[str, Any], headers: CIMultiDict[str]) -> None:
        self.signature = signature
        self.route = route
        self._common = headers
        self._headers: dict[tuple[str, str], CIMultiDict[str]] = {}

    def headers_for(self, request: Request) -> CIMultiDict[str]:
        """The headers of a request, shared with all that want and send the same types; aiohttp copies them."""
        key = (request.accept, request.content_type if request.body is not None else "")
        headers = self._headers.get(key)
        if headers is None:
            headers = self._headers[key] = CIMultiDict(self._common)
            headers["Accept"] = request.accept
            if request.body is not None:
                headers["Content-Type"] = request.content_type
        return headers


def _proxy(connection: Connection, environ: Mapping[str, str]) -> Proxy | None:
    return parse_proxy(connection.proxy) if connection.proxy else environment_proxy(connection.server, environ)


def _socket_path(server: str) -> str | None:
    return server.removeprefix("unix://") if server.startswith("unix:") else None


def _body(request: Request) -> bytes | io.BytesIO | None:
    # aiohttp writes bytes in one go and warns of large ones; a file it writes piece by piece.
    body = request.body
    return io.BytesIO(body) if body is not None and len(body) > _LARGE_BODY else body
