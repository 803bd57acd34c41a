"""What texts may be IP addresses and networks, and what Kubernetes says of those that are not.

Old fields take what an old parser took, zeros in front included, as far as an object had it already.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Collection

from shoal.kube.admission.fields import FieldProblem, invalid

Address = ipaddress.IPv4Address | ipaddress.IPv6Address
Network = ipaddress.IPv4Network | ipaddress.IPv6Network

_NO_ADDRESS = "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
_NO_NETWORK = "must be a valid CIDR value, (e.g. 10.9.8.0/24 or 2001:db8::/64)"


def parse_address(text: str) -> Address | None:
    """The address, with zeros in front of its parts or not; None where it is none."""
    if strict := _strict_address(text):
        return strict
    parts = text.split(".")
    if len(parts) == 4 and all(each.isdigit() and each.isascii() for each in parts):
        return _strict_address(".".join(each.lstrip("0") or "0" for each in parts))
    return None


def parse_network(text: str) -> tuple[Address, Network] | None:
    """The address and the network that a CIDR names; None where it is none."""
    head, slash, length = text.partition("/")
    address = parse_address(head)
    if address is None or not slash or not (length.isdigit() and length.isascii()):
        return None
    if int(length) > address.max_prefixlen:
        return None
    network = ipaddress.ip_network((int(address) if address.version == 4 else str(address), int(length)), strict=False)
    return address, network


def legacy_address_problems(path: str, value: str, known: Collection[str] = ()) -> list[FieldProblem]:
    """An address in a field that once took more; those that were there before stay."""
    if value in known:
        return []
    address = parse_address(value)
    if address is None:
        return [invalid(path, value, _NO_ADDRESS)]
    if _strict_address(value) is None:
        return [invalid(path, value, "must not have leading 0s")]
    if _is_mapped(address):
        return [invalid(path, value, "must not be an IPv4-mapped IPv6 address")]
    return []


def address_problems(path: str, value: str) -> list[FieldProblem]:
    """An address in its one canonical form."""
    if problems := legacy_address_problems(path, value):
        return problems
    address = str(parse_address(value))
    return [] if value == address else [invalid(path, value, f'must be in canonical form ("{address}")')]


def legacy_network_problems(path: str, value: str, known: Collection[str] = ()) -> list[FieldProblem]:
    """A network in a field that once took more."""
    if value in known:
        return []
    found = parse_network(value)
    if found is None:
        return [invalid(path, value, _NO_NETWORK)]
    address, network = found
    head, _, length = value.partition("/")
    if _strict_address(head) is None or length != str(int(length)):
        return [invalid(path, value, "must not have leading 0s in IP or prefix length")]
    if _is_mapped(address):
        return [invalid(path, value, "must not have an IPv4-mapped IPv6 address")]
    if address != network.network_address:
        return [invalid(path, value, "must not have bits set beyond the prefix length")]
    return []


def network_problems(path: str, value: str) -> list[FieldProblem]:
    """A network in its one canonical form."""
    if problems := legacy_network_problems(path, value):
        return problems
    found = parse_network(value)
    shown = str(found[1]) if found else ""
    return [] if value == shown else [invalid(path, value, f'must be in canonical form ("{shown}")')]


def endpoint_address_problems(path: str, value: str) -> list[FieldProblem]:
    """An address that traffic may be sent to."""
    address = parse_address(value)
    if address is None:
        return [invalid(path, value, "must be a valid IP address")]
    # As Go has it, an IPv4 address in the guise of an IPv6 one is in the ranges of the former.
    address = (address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None) or address
    problems: list[FieldProblem] = []
    if address.is_unspecified:
        problems.append(invalid(path, value, f"may not be unspecified ({value})"))
    if address.is_loopback:
        problems.append(invalid(path, value, "may not be in the loopback range (127.0.0.0/8, ::1/128)"))
    if address.is_link_local:
        problems.append(invalid(path, value, "may not be in the link-local range (169.254.0.0/16, fe80::/10)"))
    if _is_link_local_multicast(address):
        words = "may not be in the link-local multicast range (224.0.0.0/24, ff02::/10)"
        problems.append(invalid(path, value, words))
    return problems


def address_warnings(path: str, value: str) -> list[str]:
    """What a client is told of an address that is taken but not well written."""
    address, strict = parse_address(value), _strict_address(value)
    if address is None:
        return []
    if strict is None or _is_mapped(address):
        return [f'{path}: non-standard IP address "{value}" is invalid: use "{_unmapped(address)}"']
    if address.version == 6 and str(address) != value:
        return [f'{path}: IPv6 address "{value}" should be in RFC 5952 canonical format ("{address}")']
    return []


def network_warnings(path: str, value: str) -> list[str]:
    """The same for a network."""
    found = parse_network(value)
    if found is None:
        return []
    address, network = found
    warnings = []
    if address != network.network_address:
        single = f"{address}/{address.max_prefixlen}"
        warnings.append(
            f'{path}: CIDR value "{value}" is ambiguous in this context (should be "{network}" or "{single}"?)'
        )
    head, _, length = value.partition("/")
    if _strict_address(head) is None or length != str(int(length)) or _is_mapped(address):
        warnings.append(f'{path}: non-standard CIDR value "{value}" is invalid: use "{network}"')
    shown = f"{address}/{network.prefixlen}"
    if not warnings and address.version == 6 and shown != value:
        warnings.append(f'{path}: IPv6 CIDR value "{value}" should be in RFC 5952 canonical format ("{shown}")')
    return warnings


def is_ipv6(text: str) -> bool:
    """Whether a text is an address of the newer family."""
    address = parse_address(text)
    return address is not None and address.version == 6 and not _is_mapped(address)


def _strict_address(text: str) -> Address | None:
    if "%" in text or not text.isascii():
        return None
    try:
        return ipaddress.ip_address(text)
    except ValueError:
        return None


def _is_mapped(address: Address) -> bool:
    return isinstance(address, ipaddress.IPv6Address) and address.ipv4_mapped is not None


def _unmapped(address: Address) -> str:
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


def _is_link_local_multicast(address: Address) -> bool:
    packed = address.packed
    if address.version == 4:
        return packed[:3] == b"\xe0\x00\x00"
    return packed[0] == 0xFF and packed[1] & 0x0F == 0x02
