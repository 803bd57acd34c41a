"""Connections through a SOCKS5 proxy (RFC 1928, passwords by RFC 1929), such as ``ssh -D`` opens.

aiohttp speaks to HTTP proxies only, so this is a connector for it. The proxy resolves the server's name, for names of
a private network often mean something on its side alone.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from typing import TYPE_CHECKING

import aiohttp
from aiohttp.client_proto import ResponseHandler

from shoal.kube.http.proxies import Proxy

if TYPE_CHECKING:
    from aiohttp.client_reqrep import ClientRequest
    from aiohttp.tracing import Trace

_NO_SIGN_IN, _PASSWORD = 0, 2
_IPV4, _NAME, _IPV6 = 1, 3, 4
_REFUSALS = {
    2: "its rules forbid it",
    3: "the network is unreachable",
    4: "the host is unreachable",
    5: "the connection was refused",
    6: "the time to live expired",
}


class SocksError(OSError):
    """The proxy was reached, and did not connect us."""


class SocksConnector(aiohttp.BaseConnector):
    """Opens aiohttp's connections through one SOCKS5 proxy."""

    def __init__(self, proxy: Proxy, *, limit: int, keepalive_timeout: float) -> None:
        super().__init__(limit=limit, keepalive_timeout=keepalive_timeout)
        self._proxy = proxy

    async def _create_connection(
        self,
        req: ClientRequest,
        traces: list[Trace],
        timeout: aiohttp.ClientTimeout,  # noqa: ASYNC109 - aiohttp's signature
    ) -> ResponseHandler:
        host, port = req.url.raw_host or "", req.url.port or 0
        context = req.ssl if req.is_ssl() and isinstance(req.ssl, ssl.SSLContext) else None
        try:
            async with asyncio.timeout(timeout.sock_connect):
                opened = await open_through(self._proxy, host, port)
                _, protocol = await self._loop.create_connection(
                    self._factory,
                    sock=opened,
                    ssl=context,
                    server_hostname=(req.server_hostname or host) if context else None,
                )
        except TimeoutError:
            raise
        except ssl.SSLCertVerificationError as error:
            raise aiohttp.ClientConnectorCertificateError(req.connection_key, error) from error
        except ssl.SSLError as error:
            raise aiohttp.ClientConnectorSSLError(req.connection_key, error) from error
        except OSError as error:
            raise aiohttp.ClientProxyConnectionError(req.connection_key, error) from error
        return protocol


async def open_through(proxy: Proxy, host: str, port: int) -> socket.socket:
    """A socket that leads to ``host:port``; raises OSError."""
    opened = await _open(proxy.host, proxy.port)
    try:
        await _sign_in(opened, proxy)
        await _ask_for(opened, host, port)
    except BaseException:
        opened.close()
        raise
    return opened


async def _open(host: str, port: int) -> socket.socket:
    loop = asyncio.get_running_loop()
    failure: OSError | None = None
    for family, kind, protocol, _, address in await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM):
        opened = socket.socket(family, kind, protocol)
        opened.setblocking(False)
        try:
            await loop.sock_connect(opened, address)
        except OSError as error:
            opened.close()
            failure = error
        except BaseException:
            opened.close()
            raise
        else:
            return opened
    raise failure or OSError(f"{host} has no address")


async def _sign_in(opened: socket.socket, proxy: Proxy) -> None:
    loop = asyncio.get_running_loop()
    methods = bytes([_NO_SIGN_IN, _PASSWORD]) if proxy.username else bytes([_NO_SIGN_IN])
    await loop.sock_sendall(opened, bytes([5, len(methods)]) + methods)
    version, method = await _receive(opened, 2)
    if version != 5:
        raise SocksError("the proxy does not speak SOCKS5")
    if method == _PASSWORD:
        user, password = proxy.username.encode(), proxy.password.encode()
        await loop.sock_sendall(opened, bytes([1, len(user)]) + user + bytes([len(password)]) + password)
        _, status = await _receive(opened, 2)
        if status != 0:
            raise SocksError("the proxy refused the user name or the password")
    elif method != _NO_SIGN_IN:
        raise SocksError("the proxy wants a user name and a password: put them into its URL")


async def _ask_for(opened: socket.socket, host: str, port: int) -> None:
    await asyncio.get_running_loop().sock_sendall(opened, bytes([5, 1, 0]) + _address(host) + port.to_bytes(2, "big"))
    _, reply, _, kind = await _receive(opened, 4)
    if reply != 0:
        raise SocksError(f"the proxy did not connect to {host}:{port}: {_REFUSALS.get(reply, f'reply {reply}')}")
    # The address it connected from says nothing to us, but it is there to be read.
    length = {_IPV4: 4, _IPV6: 16}.get(kind) or (await _receive(opened, 1))[0]
    await _receive(opened, length + 2)


def _address(host: str) -> bytes:
    try:
        address = ipaddress.ip_address(host)
    except ValueError:
        name = host.encode("ascii")
        return bytes([_NAME, len(name)]) + name
    return bytes([_IPV4 if address.version == 4 else _IPV6]) + address.packed


async def _receive(opened: socket.socket, count: int) -> bytes:
    received = b""
    while len(received) < count:
        part = await asyncio.get_running_loop().sock_recv(opened, count - len(received))
        if not part:
            raise SocksError("the proxy closed the connection")
        received += part
    return received
