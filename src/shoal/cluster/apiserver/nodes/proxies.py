"""nodes/proxy, pods/proxy and services/proxy: HTTP passed on to an agent, a pod, or a pod behind a service.

Requests go out whole and answers come back as they are made. Who signs in here does so to us alone: credentials are
not passed on. Upgrades are not either.
"""

from __future__ import annotations

import asyncio
import ipaddress
import random
import socket
import ssl
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from urllib.parse import quote, urlencode

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from shoal.cluster.apiserver.calls import Answer, Call, Streaming
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.nodes.agents import NODES, Agents, failed, preferred_address, unreachable
from shoal.cluster.apiserver.reader import Reader
from shoal.cluster.apiserver.refusals import Refused, bad_request, not_found, unavailable
from shoal.cluster.apiserver.verbs.asked import Asked
from shoal.kube.errors import ConnectionFault
from shoal.kube.http.faults import FAULTS, connection_fault
from shoal.kube.tls import Tls, client_context
from shoal.kube.transport import Request

_KEPT = "/:@!$&'()*+,;=~"
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


class Proxies:
    """Answers requests on the three subresources."""

    def __init__(self, state: Reader, agents: Agents) -> None:
        self._state = state
        self._agents = agents
        self._session: aiohttp.ClientSession | None = None
        self._tls: ssl.SSLContext | None = None

    async def node(self, asked: Asked) -> Answer | Streaming:
        """A request to a node's agent, or to another port of the node."""
        scheme, name, port = _parts(asked.name, "node")
        node = self._state.get(NODES, "", name)
        if node is None:
            raise not_found(NODES, "", name)
        agent = self._agents.agent(name)
        if port and not agent.server.endswith(f":{port}"):
            host = preferred_address((node.get("status") or {}).get("addresses") or ())
            return await self._passed_on(asked, _base(scheme, host, port))
        if not agent.is_local:
            await _check_address(URL(agent.server).host or "")
        path = _rest(asked)
        if not path:
            return _redirect(asked.call)
        _check_no_upgrade(asked.call)
        call = asked.call
        query = tuple((key, value) for key, values in call.query.items() for value in values)
        request = Request(
            method=call.method,
            path=quote(path, safe=_KEPT),
            # A socket may serve any number of nodes: it is told which one is meant.
            query=(*query, ("node", name)) if agent.is_local and "node" not in call.query else query,
            body=call.body or None,
            content_type=call.headers.get("content-type", ""),
            accept=call.headers.get("accept", "*/*"),
        )
        async with AsyncExitStack() as stack:
            try:
                stream = await stack.enter_async_context(agent.stream(request))
            except ConnectionFault as fault:
                raise unreachable(fault) from fault
            headers = dict(stream.headers)
            return _streaming(stream.status, headers, _Body(stream.chunks().__anext__, stack.pop_all()))

    async def pod(self, asked: Asked) -> Answer | Streaming:
        """A request to a port of a pod: the one named, or the first that it declares."""
        scheme, name, port = _parts(asked.name, "pod")
        pod = self._state.get("pods", asked.namespace, name)
        if pod is None:
            raise not_found("pods", "", name)
        if not port:
            declared = [one for container in pod["spec"]["containers"] for one in container.get("ports") or ()]
            port = str(declared[0]["containerPort"]) if declared else ""
        addresses = (pod.get("status") or {}).get("podIPs") or ()
        return await self._passed_on(asked, _base(scheme, addresses[0]["ip"] if addresses else "", port))

    async def service(self, asked: Asked) -> Answer | Streaming:
        """A request to one of a service's pods."""
        scheme, name, port = _parts(asked.name, "service")
        service = self._state.get("services", asked.namespace, name)
        if service is None:
            raise not_found("services", "", name)
        if port.isdecimal():
            port = _port_name(service, int(port))
        endpoints = self._state.get("endpoints", asked.namespace, name) or {}
        choices = [
            (address["ip"], str(one["port"]))
            for subset in endpoints.get("subsets") or ()
            for one in subset.get("ports") or ()
            for address in subset.get("addresses") or ()
            if one.get("name", "") == port and self._is_pod(address, asked.namespace)
        ]
        if not choices:
            raise unavailable(f'no endpoints available for service "{asked.name}"')
        host, number = random.choice(choices)  # noqa: S311 - any of them will do
        return await self._passed_on(asked, _base(scheme, host, number))

    async def close(self) -> None:
        """Closes all connections."""
        if self._session is not None:
            await self._session.close()

    def _is_pod(self, address: Object, namespace: str) -> bool:
        """Whether an address is that of a pod: whoever writes Endpoints must not lead us elsewhere."""
        target = address.get("targetRef") or {}
        pod = self._state.get("pods", namespace, target.get("name", ""))
        if pod is None or target.get("namespace") != namespace:
            return False
        return any(one.get("ip") == address["ip"] for one in (pod.get("status") or {}).get("podIPs") or ())

    async def _passed_on(self, asked: Asked, base: URL) -> Answer | Streaming:
        await _check_address(base.host or "")
        path = _rest(asked)
        call = asked.call
        if not path:
            return _redirect(call)
        _check_no_upgrade(call)
        query = urlencode([(name, value) for name, values in call.query.items() for value in values])
        url = URL(f"{base}{quote(path, safe=_KEPT)}" + (f"?{query}" if query else ""), encoded=True)
        try:
            answer = await self._opened().request(
                call.method,
                url,
                headers=_request_headers(call),
                data=call.body or None,
                allow_redirects=False,
                ssl=self._any_certificate(),
            )
        except FAULTS as error:
            raise _unreachable(error, url, call) from error
        stack = AsyncExitStack()
        stack.callback(answer.release)

        async def read() -> bytes:
            try:
                piece = await answer.content.read(_PIECE)
            except FAULTS as error:
                raise ConnectionResetError(str(error)) from error
            if not piece:
                raise StopAsyncIteration
            return piece

        return _streaming(answer.status, dict(answer.headers), _Body(read, stack))

    def _opened(self) -> aiohttp.ClientSession:
        if self._session is None:
            self._session = aiohttp.ClientSession(
                connector=aiohttp.TCPConnector(limit=0),
                cookie_jar=aiohttp.DummyCookieJar(),
                timeout=aiohttp.ClientTimeout(total=None, sock_connect=_CONNECTS_WITHIN),
                auto_decompress=False,
            )
        return self._session

    def _any_certificate(self) -> ssl.SSLContext:
        if self._tls is None:
            self._tls = client_context(Tls(insecure=True))
        return self._tls


class _Body:
    """The pieces of an answer. It is an iterator and no generator, so that closing it works before it was begun."""

    def __init__(self, read: Callable[[], Awaitable[bytes]], stack: AsyncExitStack) -> None:
        self._read = read
        self._stack = stack

    def __aiter__(self) -> _Body:
        return self

    async def __anext__(self) -> bytes:
        try:
            return await self._read()
        except ConnectionFault as fault:
            raise ConnectionResetError(str(fault)) from fault

    async def aclose(self) -> None:
        """Gives the connection back, or up."""
        await self._stack.aclose()


def _parts(name: str, what: str) -> tuple[str, str, str]:
    """Scheme, name and port of ``name``, ``name:port`` or ``scheme:name:port``."""
    match name.split(":"):
        case [only] if only:
            return "", only, ""
        case [only, port] if only:
            return "", only, port
        case [("" | "http" | "https") as scheme, only, port] if only:
            return scheme, only, port
    raise bad_request(f'invalid {what} request "{name}"')


def _base(scheme: str, host: str, port: str) -> URL:
    shown = f"[{host}]" if ":" in host else host
    return URL(f"{scheme or 'http'}://{shown}" + (f":{port}" if port else ""))


async def _check_address(host: str) -> None:
    """Refuses what leads back to this machine or no further than its wire, by whatever name."""
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None, type=socket.SOCK_STREAM) if host else []
    except OSError as error:
        raise bad_request(f"lookup {host}: {error.strerror}") from None
    addresses = [ipaddress.ip_address(str(entry[4][0]).partition("%")[0]) for entry in found]
    if not addresses or any(
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address == ipaddress.IPv4Address("255.255.255.255")
        for address in addresses
    ):
        raise bad_request("address not allowed")


def _check_no_upgrade(call: Call) -> None:
    if call.headers.get("upgrade") and "upgrade" in call.headers.get("connection", "").lower():
        raise bad_request("upgrades are not passed on by proxies here: use portforward")


def _port_name(service: Object, number: int) -> str:
    for port in service["spec"].get("ports") or ():
        if port["port"] == number:
            return str(port.get("name", ""))
    raise unavailable(f'no service port {number} found for service "{service["metadata"]["name"]}"')


def _rest(asked: Asked) -> str:
    """What follows the subresource in the path, its last slash included."""
    return asked.call.path.partition(f"/{asked.kind.resource}/{asked.name}/{asked.subresource}")[2]


def _redirect(call: Call) -> Answer:
    query = urlencode([(name, value) for name, values in call.query.items() for value in values])
    location = f"{quote(call.path, safe=_KEPT)}/" + (f"?{query}" if query else "")
    return Answer(status=301, headers={"Location": location}, content_type="text/plain")


def _request_headers(call: Call) -> CIMultiDict[str]:
    headers = CIMultiDict(
        (name, value)
        for name, value in call.headers.items()
        if name not in _NOT_PASSED_ON and not name.startswith("impersonate-")
    )
    headers["X-Forwarded-Uri"] = call.path
    if "host" in call.headers:
        headers["X-Forwarded-Host"] = call.headers["host"]
    return headers


def _streaming(status: int, headers: dict[str, str], body: _Body) -> Streaming:
    passed = {name: value for name, value in headers.items() if name.lower() not in _NOT_PASSED_ON | {"content-type"}}
    content_type = next((value for name, value in headers.items() if name.lower() == "content-type"), "")
    return Streaming(
        chunks=body,
        status=status,
        headers=passed,
        content_type=content_type or "application/octet-stream",
        patience=None,
    )


def _unreachable(error: Exception, url: URL, call: Call) -> Refused:
    fault = connection_fault(error, server=str(url.origin()), request=f"{call.method} {url.raw_path}")
    return failed(f"error trying to reach service: {fault}")
