"""IP addresses, networks and URLs."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from typing import Any

from shoal.cluster.apiserver.cel.functions import MATCHERS, Library
from shoal.cluster.apiserver.cel.urls import InvalidUrl, Url, parse_request_uri, parse_url
from shoal.cluster.apiserver.cel.values import CelError

ADDRESSES = Library()
_add = ADDRESSES.add
Plain = ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Address:
    """An IP address."""

    ip: Plain

    def __str__(self) -> str:
        return str(self.ip)


@dataclass(frozen=True, slots=True)
class Network:
    """A network, with the address that it was written with."""

    interface: ipaddress.IPv4Interface | ipaddress.IPv6Interface

    def __str__(self) -> str:
        return f"{self.interface.ip}/{self.bits}"

    @property
    def bits(self) -> int:
        """The length of the prefix."""
        return self.interface.network.prefixlen


MATCHERS["net.IP"] = lambda value: type(value) is Address
MATCHERS["net.CIDR"] = lambda value: type(value) is Network
MATCHERS["kubernetes.URL"] = lambda value: type(value) is Url


@ADDRESSES.function("ip(string): net.IP")
def _address(text: str) -> Address:
    try:
        ip = ipaddress.ip_address(text)
    except ValueError:
        raise CelError(
            f'IP Address "{text}" parse error during conversion from string: {_address_fault(text)}'
        ) from None
    if "%" in text:
        raise CelError(f'IP address "{text}" with zone value is not allowed')
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        raise CelError(f'IPv4-mapped IPv6 address "{text}" is not allowed')
    return Address(ip)


def _address_fault(text: str) -> str:
    """Why Go cannot read an address, for the usual reasons."""
    start = f'ParseAddr("{text}"): '
    if ":" in text:
        colons = text.find(":::")
        if colons >= 0:
            return f'{start}each colon-separated field must have at least one digit (at "{text[colons + 2 :]}")'
        return f"{start}unable to parse IP"
    parts = text.split(".")
    if any(part.isdigit() and int(part) > 255 for part in parts[:4]):
        return f"{start}IPv4 field has value >255"
    if len(parts) > 4:
        return f"{start}IPv4 address too long"
    return f"{start}IPv4 address too short" if len(parts) > 1 else f"{start}unable to parse IP"


def _is_address(text: str) -> bool:
    try:
        _address(text)
    except CelError:
        return False
    return True


@ADDRESSES.function("cidr(string): net.CIDR")
def _network(text: str) -> Network:
    address, slash, bits = text.partition("/")
    fault = "network address parse error during conversion from string: "
    why = f'network address parse error during conversion from string: netip.ParsePrefix("{text}"): '
    if not slash:
        raise CelError(fault + why + "no '/'")
    try:
        interface = ipaddress.ip_interface(text)
    except ValueError:
        raise CelError(fault + why + "bad bits after slash: " + f'"{bits}"') from None
    if "%" in address or re.fullmatch(r"0|[1-9][0-9]*", bits) is None:
        raise CelError(fault + why + f'bad bits after slash: "{bits}"')
    if isinstance(interface, ipaddress.IPv6Interface) and interface.ip.ipv4_mapped is not None:
        raise CelError(f'{fault}IPv4-mapped IPv6 address "{text}" is not allowed')
    return Network(interface)


def _is_network(text: str) -> bool:
    try:
        _network(text)
    except CelError:
        return False
    return True


def _contains_address(network: Network, address: Address) -> bool:
    return network.interface.version == address.ip.version and address.ip in network.interface.network


def _contains_network(network: Network, other: Network) -> bool:
    if network.interface.version != other.interface.version or network.bits > other.bits:
        return False
    return other.interface.network.network_address in network.interface.network


def _is_global(address: Address) -> bool:
    ip = address.ip
    is_broadcast = ip.version == 4 and int(ip) == 0xFFFFFFFF
    return not (is_broadcast or ip.is_unspecified or ip.is_loopback or ip.is_multicast or _is_link_local(address))


def _is_link_local(address: Address) -> bool:
    return not address.ip.is_multicast and address.ip.is_link_local


def _is_link_local_multicast(address: Address) -> bool:
    ip = address.ip
    return ip.is_multicast and (int(ip) >> 8 == 0xE00000 if ip.version == 4 else (int(ip) >> 112) & 0xFF0F == 0xFF02)


_add(_is_address, "isIP(string): bool")
_add(lambda text: str(_address(text)) == text, "ip.isCanonical(string): bool")
_add(lambda address: address.ip.version, "net.IP::family(): int")
_add(lambda address: address.ip.is_unspecified, "net.IP::isUnspecified(): bool")
_add(lambda address: address.ip.is_loopback, "net.IP::isLoopback(): bool")
_add(_is_link_local_multicast, "net.IP::isLinkLocalMulticast(): bool")
_add(_is_link_local, "net.IP::isLinkLocalUnicast(): bool")
_add(_is_global, "net.IP::isGlobalUnicast(): bool")
_add(str, "string(net.IP): string", "string(net.CIDR): string")

_add(_is_network, "isCIDR(string): bool")
_add(_contains_address, "net.CIDR::containsIP(net.IP): bool")
_add(lambda network, text: _contains_address(network, _address(text)), "net.CIDR::containsIP(string): bool")
_add(_contains_network, "net.CIDR::containsCIDR(net.CIDR): bool")
_add(lambda network, text: _contains_network(network, _network(text)), "net.CIDR::containsCIDR(string): bool")
_add(lambda network: Address(network.interface.ip), "net.CIDR::ip(): net.IP")
_add(lambda network: network.bits, "net.CIDR::prefixLength(): int")
_add(lambda network: Network(ipaddress.ip_interface(str(network.interface.network))), "net.CIDR::masked(): net.CIDR")


@ADDRESSES.function("url(string): kubernetes.URL")
def _url(text: str) -> Url:
    try:
        return parse_url(text)
    except InvalidUrl as error:
        raise CelError(f"URL parse error during conversion from string: {error}") from None


def _is_url(text: str) -> bool:
    try:
        parse_request_uri(text)
    except InvalidUrl:
        return False
    return True


def _query(url: Url) -> dict[str, Any]:
    return dict(url.values)


_add(_is_url, "isURL(string): bool")
_add(lambda url: url.scheme, "kubernetes.URL::getScheme(): string")
_add(lambda url: url.host, "kubernetes.URL::getHost(): string")
_add(lambda url: url.hostname, "kubernetes.URL::getHostname(): string")
_add(lambda url: url.port, "kubernetes.URL::getPort(): string")
_add(lambda url: url.escaped_path, "kubernetes.URL::getEscapedPath(): string")
_add(_query, "kubernetes.URL::getQuery(): map<string, list<string>>")
