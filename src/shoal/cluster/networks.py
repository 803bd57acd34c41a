"""The networks of the cluster, and which addresses no request may be led to.

Pods and Services of this machine's node have addresses that mean nothing outside of the node's own network namespace,
and those of simulated pods mean nothing anywhere. A connection to one of them from the machine's network would go to
the machine's default gateway, with everything that is sent on it.
"""

from __future__ import annotations

from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address
from typing import TypeAlias

POD_NETWORK = "10.88.0.0/16"
SERVICE_NETWORK = "10.96.0.0/12"
"""Holds the addresses of Services, whichever server assigns them."""

SIMULATED_POD_NETWORK = "10.244.0.0/14"

Address: TypeAlias = IPv4Address | IPv6Address

_SIMULATED = IPv4Network(SIMULATED_POD_NETWORK)
_OF_CLUSTER = (IPv4Network(POD_NETWORK), IPv4Network(SERVICE_NETWORK), _SIMULATED)
_NAT64 = IPv6Network("64:ff9b::/96")
_COMPATIBLE = IPv6Network("::/96")
_BROADCAST = IPv4Address("255.255.255.255")


def meant_address(text: str) -> Address:
    """An address as routing understands it: an IPv4 address in the guise of an IPv6 one is an IPv4 address."""
    address = ip_address(text.partition("%")[0])
    if isinstance(address, IPv6Address):
        embedded = address.ipv4_mapped or address.sixtofour
        if embedded is None and (address in _NAT64 or (address in _COMPATIBLE and int(address) > 0xFFFF)):
            embedded = IPv4Address(int(address) & 0xFFFFFFFF)
        return embedded or address
    return address


def is_of_cluster(text: str) -> bool:
    """Whether an address belongs to a pod or a Service of this machine's nodes."""
    address = meant_address(text)
    return isinstance(address, IPv4Address) and any(address in network for network in _OF_CLUSTER)


def is_simulated(text: str) -> bool:
    """Whether an address belongs to a pod of a simulated node, so that nothing answers there."""
    address = meant_address(text)
    return isinstance(address, IPv4Address) and address in _SIMULATED


def is_special(text: str) -> bool:
    """Whether an address leads back to this machine, no further than its link, or to nobody in particular."""
    address = meant_address(text)
    return (
        address.is_loopback
        or address.is_link_local
        or address.is_multicast
        or address.is_unspecified
        or address == _BROADCAST
    )
