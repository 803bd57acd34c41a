"""Calls a webhook over HTTPS, at a URL or behind a Service of the cluster; what goes wrong is in Kubernetes' words.

A Service leads to a pod, by a connection that the agent of its node makes. A URL is dialled from this machine, but
never where it means an address of a pod or a Service.
"""

from __future__ import annotations

import asyncio
import base64
import errno
import socket
import ssl
from collections.abc import Mapping
from typing import Any, Protocol
from urllib.parse import urlsplit

import aiohttp
import msgspec

from shoal.cluster.apiserver.outbound import outbound_socket
from shoal.kube.errors import Status


class Backends(Protocol):
    """Leads to what is behind the Services of the cluster."""

    def connector(self) -> aiohttp.BaseConnector:
        """Opens connections to backends."""
        ...

    def backend(self, namespace: str, name: str, port: int) -> str:
        """A backend as ``host:port`` for the connector, of a Service's namespace, name and port; raises LookupError."""
        ...


ANSWER_LIMIT = 8 * 1024 * 1024
_REMEMBERED = 64
_UNKNOWN_AUTHORITY = frozenset({2, 18, 19, 20, 21})
_HOSTNAME_MISMATCH = frozenset({62, 64})
_EXPIRED = frozenset({9, 10})

_SAID_OF = {
    400: "the server rejected our request for an unknown reason",
    401: "the server has asked for the client to provide credentials",
    403: "the server does not allow access to the requested resource",
    404: "the server could not find the requested resource",
    405: "the server does not allow this method on the requested resource",
    406: "the server was unable to respond with a content type that the client supports",
    409: "the server reported a conflict",
    415: "the body of the request was in an unknown format",
    422: "the server rejected our request due to an error in our request",
    429: "the server has received too many requests and has asked us to try again later",
    503: "the server is currently unable to handle the request",
    504: "the server was unable to return a response in the time allotted, but may still be processing the request",
}


class CallFailed(Exception):
    """A webhook gave no answer; says why."""


class Caller:
    """Asks webhooks over connections that are kept, one pool for all; a proxy of the environment is never used."""

    def __init__(self, backends: Backends | None = None) -> None:
        self._backends = backends
        self._sessions: dict[bool, aiohttp.ClientSession] = {}
        self._contexts: dict[str, ssl.SSLContext] = {}

    async def post(self, client: Mapping[str, Any], body: bytes, *, timeout: int) -> bytes:  # noqa: ASYNC109
        """The body of the webhook's answer; raises CallFailed."""
        shown, address, server_name = self._address(client, timeout)
        try:
            context = self._context(client.get("caBundle") or "")
        except (ssl.SSLError, ValueError) as error:
            raise CallFailed(f"could not get REST client: unable to load root certificates: {error}") from error
        try:
            async with asyncio.timeout(timeout):
                code, answered = await self._exchange(
                    address,
                    body,
                    context,
                    server_name,
                    urlsplit(shown).netloc,
                    is_service=client.get("service") is not None,
                )
        except TimeoutError:
            raise CallFailed(f'failed to call webhook: Post "{shown}": context deadline exceeded') from None
        except (aiohttp.ClientError, OSError, ssl.SSLError) as error:
            raise CallFailed(f'failed to call webhook: Post "{shown}": {_reason(error, server_name)}') from error
        if not 200 <= code < 300:
            raise CallFailed(f"failed to call webhook: {_said(code, answered)}")
        return answered

    async def close(self) -> None:
        """Closes all connections."""
        for session in self._sessions.values():
            await session.close()
        self._sessions.clear()

    def _address(self, client: Mapping[str, Any], timeout: int) -> tuple[str, str, str]:
        """How the address is shown, where to connect to, and whose certificate is expected there."""
        query = f"?timeout={timeout}s"
        service = client.get("service")
        if service is None:
            url = urlsplit(client.get("url") or "")
            if not url.hostname:
                raise CallFailed("could not get REST client: webhook configuration must have either service or URL")
            shown = f"{url.scheme}://{url.netloc}{url.path or '/'}{query}"
            return shown, shown, url.hostname
        name, namespace, port = service.get("name", ""), service.get("namespace", ""), service.get("port") or 443
        server_name = f"{name}.{namespace}.svc"
        path = "/" + (service.get("path") or "").lstrip("/")
        shown = f"https://{server_name}:{port}{path}{query}"
        try:
            if self._backends is None:
                raise LookupError(f'service "{name}" not found')
            place = self._backends.backend(namespace, name, port)
        except LookupError as error:
            told = error.args[0] if error.args else f'service "{name}" not found'
            raise CallFailed(f'failed to call webhook: Post "{shown}": {told}') from error
        return shown, f"https://{place}{path}{query}", server_name

    async def _exchange(
        self, address: str, body: bytes, context: ssl.SSLContext, server_name: str, host: str, *, is_service: bool
    ) -> tuple[int, bytes]:
        headers = {"Content-Type": "application/json", "Accept": "application/json, */*", "Host": host}

        async def ask(session: aiohttp.ClientSession) -> tuple[int, bytes]:
            async with session.post(
                address, data=body, headers=headers, ssl=context, server_hostname=server_name, allow_redirects=False
            ) as response:
                return response.status, await _bounded(response)

        if is_service not in self._sessions:
            self._sessions[is_service] = self._new_session(is_service=is_service)
        try:
            return await ask(self._sessions[is_service])
        except (aiohttp.ServerDisconnectedError, aiohttp.ClientOSError) as error:
            if not _is_cut(error):
                raise
        # The connection had been closed over there while it waited here, or was cut off by the end of a process that is
        # started again, and then all that are kept were; a new one tells for sure.
        async with self._new_session(is_service=is_service) as session:
            return await ask(session)

    def _new_session(self, *, is_service: bool) -> aiohttp.ClientSession:
        if is_service and self._backends is not None:
            connector = self._backends.connector()
        else:
            connector = aiohttp.TCPConnector(limit=0, socket_factory=outbound_socket)
        return aiohttp.ClientSession(
            trust_env=False,
            connector=connector,
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
        )

    def _context(self, bundle: str) -> ssl.SSLContext:
        context = self._contexts.get(bundle)
        if context is None:
            if len(self._contexts) >= _REMEMBERED:
                self._contexts.clear()
            authorities = base64.b64decode(bundle).decode("ascii") if bundle else None
            context = ssl.create_default_context(cadata=authorities)
            # Go, and so Kubernetes, takes authorities that lack what the strictest reading of the standard asks for.
            context.verify_flags &= ~ssl.VERIFY_X509_STRICT
            self._contexts[bundle] = context
        return context


def _is_cut(error: aiohttp.ClientError) -> bool:
    """Whether a connection ended that had been made: no answer of the webhook's, and no sign that it is not there."""
    if isinstance(error, aiohttp.ClientConnectorError):
        return error.os_error.errno == errno.ECONNRESET  # in the middle of the handshake
    return True


async def _bounded(response: aiohttp.ClientResponse) -> bytes:
    pieces, size = [], 0
    async for piece in response.content.iter_any():
        size += len(piece)
        if size > ANSWER_LIMIT:
            raise aiohttp.ClientPayloadError("the answer is too large")
        pieces.append(piece)
    return b"".join(pieces)


def _reason(error: BaseException, server_name: str) -> str:
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return _certificate_problem(error.certificate_error, server_name)
    if isinstance(error, ssl.SSLCertVerificationError):
        return _certificate_problem(error, server_name)
    if isinstance(error, aiohttp.ClientConnectorError):
        held = error.os_error
        if isinstance(held, ssl.SSLCertVerificationError):
            return _certificate_problem(held, server_name)
        if isinstance(held, socket.gaierror):
            return f"dial tcp: lookup {error.host}: no such host"
        if held.errno == errno.ECONNREFUSED:
            return f"dial tcp {error.host}:{error.port}: connect: connection refused"
        return f"dial tcp {error.host}:{error.port}: {held.strerror or held}"
    if isinstance(error, aiohttp.ServerDisconnectedError):
        return "EOF"
    return str(error) or type(error).__name__


def _certificate_problem(error: Exception, server_name: str) -> str:
    code = getattr(error, "verify_code", 0)
    if code in _HOSTNAME_MISMATCH:
        problem = f"certificate is not valid for any names, but wanted to match {server_name}"
    elif code in _EXPIRED:
        problem = "certificate has expired or is not yet valid"
    elif code in _UNKNOWN_AUTHORITY:
        problem = "certificate signed by unknown authority"
    else:
        problem = str(getattr(error, "verify_message", "") or error)
    return f"tls: failed to verify certificate: x509: {problem}"


def _said(code: int, body: bytes) -> str:
    try:
        stated = msgspec.json.decode(body, type=Status)
    except (msgspec.MsgspecError, RecursionError):
        stated = Status()
    if stated.status == "Failure" and stated.message:
        return stated.message
    if code in _SAID_OF:
        return _SAID_OF[code]
    text = body[:2048].decode(errors="replace").strip() or "unknown"
    quoted = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    if code >= 500:
        return f'an error on the server ("{quoted}") has prevented the request from succeeding'
    return f"the server responded with the status code {code} but did not return more information"
