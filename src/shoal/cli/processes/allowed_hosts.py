"""Which requests a port answers that asks for no credentials: those that no page of another site can have made.

A page in a browser of this machine can reach its loopback ports. It cannot read what they answer, unless its site has
its own name resolve to 127.0.0.1 (DNS rebinding): the browser then takes both for one site, and sends the site's name
as ``Host``. So a name is answered only where it is ours. A request that says by ``Origin`` which site made it is
answered only for sites of ours, and nobody else is told by CORS headers that they may read.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from urllib.parse import urlsplit

from aiohttp import hdrs, web

_Handler = Callable[[web.Request], Awaitable[web.StreamResponse]]
_LONGEST_SHOWN = 100


@dataclass(frozen=True, slots=True)
class AllowedHosts:
    """The names and addresses under which a port is ours."""

    names: frozenset[str]
    takes_addresses: bool
    """Whether any IP address is one of ours, as where every address of the machine is listened on."""

    @classmethod
    def of(cls, bind: str, names: Iterable[str]) -> AllowedHosts:
        """What a port answers for that listens on an address, and on names that were configured."""
        own = {"localhost", "127.0.0.1", "::1", bind, *(name.rstrip(".").lower() for name in names)}
        return cls(frozenset(own), takes_addresses=_is_unspecified(bind))

    def has_host(self, header: str) -> bool:
        """Whether the value of a ``Host`` header is ours."""
        try:
            host = urlsplit(f"//{header}").hostname
        except ValueError:
            return False
        return host is not None and self._has(host)

    def has_origin(self, header: str) -> bool:
        """Whether the value of an ``Origin`` header is a site of ours, on whichever port."""
        try:
            origin = urlsplit(header)
            return origin.scheme in ("http", "https") and origin.hostname is not None and self._has(origin.hostname)
        except ValueError:
            return False

    def _has(self, host: str) -> bool:
        return host.rstrip(".") in self.names or (self.takes_addresses and _is_address(host))


def refuse_other_hosts(app: web.Application, hosts: AllowedHosts) -> None:
    """Has an application answer for these hosts alone, and pages of theirs alone read its answers."""

    @web.middleware
    async def check(request: web.Request, handler: _Handler) -> web.StreamResponse:
        host, origin = request.headers.get(hdrs.HOST, ""), request.headers.get(hdrs.ORIGIN)
        if host and not hosts.has_host(host):  # every browser names one
            return _refused(f"this port does not answer for the host {_shown(host)}: use an address of this machine")
        if origin is not None and not hosts.has_origin(origin):
            return _refused(f"this port does not answer pages of {_shown(origin)}: open it by itself")
        return await handler(request)

    async def answer_own_pages(request: web.Request, response: web.StreamResponse) -> None:
        origin = request.headers.get(hdrs.ORIGIN)
        if response.headers.popall(hdrs.ACCESS_CONTROL_ALLOW_ORIGIN, None) and origin and hosts.has_origin(origin):
            response.headers[hdrs.ACCESS_CONTROL_ALLOW_ORIGIN] = origin
            response.headers.add(hdrs.VARY, hdrs.ORIGIN)

    app.middlewares.append(check)
    app.on_response_prepare.append(answer_own_pages)


def is_loopback(bind: str) -> bool:
    """Whether only this machine can connect to what listens on a host or an address."""
    try:
        return ipaddress.ip_address(bind.strip("[]")).is_loopback
    except ValueError:
        return bind.lower() == "localhost"


def _refused(sentence: str) -> web.Response:
    return web.Response(status=403, text=f"{sentence}, or allow it with --allowed-host\n")


def _shown(value: str) -> str:
    return ascii(value[:_LONGEST_SHOWN])


def _is_address(host: str) -> bool:
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _is_unspecified(bind: str) -> bool:
    return not bind or (_is_address(bind) and ipaddress.ip_address(bind).is_unspecified)
