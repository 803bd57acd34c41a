"""Which proxy leads to a server, by Go's rules, since clusters' documentation assumes them.

A kubeconfig's ``proxy-url`` is used whatever the environment says. Without one HTTPS_PROXY (HTTP_PROXY for a plain
server) is, unless NO_PROXY names the server; what is on this machine is always reached directly.
"""

from __future__ import annotations

import ipaddress
from base64 import b64encode
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from urllib.parse import unquote, urlsplit

SCHEMES = ("http", "https", "socks5", "socks5h")
_PORTS = {"http": 80, "https": 443, "socks5": 1080, "socks5h": 1080}


class ProxyError(Exception):
    """A proxy's URL cannot be used."""


@dataclass(frozen=True, kw_only=True)
class Proxy:
    """One proxy, with what it wants to know of us kept apart from its address."""

    scheme: str
    host: str
    port: int
    username: str = ""
    password: str = field(default="", repr=False)

    @property
    def url(self) -> str:
        """Its URL, without a password."""
        return (
            f"{self.scheme}://[{self.host}]:{self.port}"
            if ":" in self.host
            else f"{self.scheme}://{self.host}:{self.port}"
        )

    @property
    def is_socks(self) -> bool:
        """Whether it speaks SOCKS rather than HTTP."""
        return self.scheme.startswith("socks5")

    def headers(self) -> dict[str, str]:
        """What an HTTP proxy is told to let us through."""
        if not self.username and not self.password:
            return {}
        return {
            "Proxy-Authorization": "Basic " + b64encode(f"{self.username}:{self.password}".encode()).decode("ascii")
        }


def parse_proxy(url: str) -> Proxy:
    """A proxy of its URL, or of ``host:port``, which means HTTP; raises ProxyError, which quotes no password."""
    try:
        parts = urlsplit(url if "://" in url else f"http://{url}")
        port = parts.port
    except ValueError as error:
        raise ProxyError(f"is not a URL: {error}") from None
    if parts.scheme not in SCHEMES:
        raise ProxyError(f'its scheme is "{parts.scheme}", must be one of {", ".join(SCHEMES)}')
    if not parts.hostname:
        raise ProxyError("names no host: write it as http://host:port")
    return Proxy(
        scheme=parts.scheme,
        host=parts.hostname,
        port=port or _PORTS[parts.scheme],
        username=unquote(parts.username or ""),
        password=unquote(parts.password or ""),
    )


def environment_proxy(server: str, environ: Mapping[str, str]) -> Proxy | None:
    """The proxy that the environment names for a server; one that is no URL counts as none, as in Go."""
    parts = urlsplit(server)
    if parts.scheme != "https" and environ.get("REQUEST_METHOD"):
        # In a CGI program HTTP_PROXY is what a visitor sent as the header "Proxy".
        return None
    url = _variable(environ, "HTTPS_PROXY" if parts.scheme == "https" else "HTTP_PROXY")
    port = parts.port or _PORTS.get(parts.scheme, 0)
    if parts.scheme == "unix" or not url or not parts.hostname:
        return None
    if is_direct(parts.hostname, port, _variable(environ, "NO_PROXY")):
        return None
    with suppress(ProxyError):
        return parse_proxy(url)
    return None


def is_direct(host: str, port: int, no_proxy: str) -> bool:
    """Whether a host is reached without a proxy: it is this machine, or NO_PROXY covers it.

    NO_PROXY lists, between commas: ``*``; an address; a network (10.0.0.0/8); ``example.com``, with all below it;
    ``.example.com`` or ``*.example.com``, only what is below it. All but a network may end in ``:port``.
    """
    host = host.lower()
    address = _address(host)
    if host == "localhost" or (address is not None and address.is_loopback):
        return True
    return any(_covers(entry.strip().lower(), host, address, port) for entry in no_proxy.split(","))


_Address = ipaddress.IPv4Address | ipaddress.IPv6Address


def _covers(entry: str, host: str, address: _Address | None, port: int) -> bool:
    if entry in ("", "*"):
        return entry == "*"
    if "/" in entry:
        with suppress(ValueError):
            return address is not None and address in ipaddress.ip_network(entry, strict=False)
    name, entry_port = _split_port(entry)
    if not name or (entry_port and entry_port != str(port)):
        return False
    if (listed := _address(name)) is not None:
        return address == listed
    if address is not None:
        return False
    name = name.removeprefix("*")
    if name.startswith("."):
        return host.endswith(name)
    return host == name or host.endswith(f".{name}")


def _split_port(entry: str) -> tuple[str, str]:
    if entry.startswith("["):
        name, _, rest = entry[1:].partition("]")
        return name, rest.removeprefix(":")
    if entry.count(":") == 1:
        name, _, port = entry.partition(":")
        return name, port
    return entry, ""


def _address(host: str) -> _Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _variable(environ: Mapping[str, str], name: str) -> str:
    return environ.get(name) or environ.get(name.lower()) or ""
