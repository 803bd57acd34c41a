"""Links, addresses and routes of a network namespace, asked of the kernel in its own language (rtnetlink).

A ``Netlink`` speaks for the network namespace that its maker was in, for as long as it lives.
"""

from __future__ import annotations

import os
import socket
import struct
from ipaddress import IPv4Address, IPv4Network

from shoal.cluster.node.process.runtime.netlink_messages import (
    ACKNOWLEDGE,
    CREATE,
    ERROR,
    EXCLUSIVE,
    NETLINK_CAP_ACK,
    NETLINK_EXT_ACK,
    SOL_NETLINK,
    attribute,
    attributes,
    error_of,
    message,
    messages,
)

LOOPBACK = 1
"""The index of ``lo``, in every namespace."""

# Requests
_NEW_LINK = 16
_DELETE_LINK = 17
_GET_LINK = 18
_NEW_ADDRESS = 20
_NEW_ROUTE = 24

# Attributes of links, addresses and routes
_LINK_ADDRESS = 1
_LINK_NAME = 3
_LINK_MASTER = 10
_LINK_STATE = 16
_LINK_KIND = (18, 1)
_LINK_DETAILS = (18, 2)
_LINK_NAMESPACE = 28
_PEER = 1
_ADDRESS = 1
_ADDRESS_LOCAL = 2
_ADDRESS_BROADCAST = 4
_ROUTE_TARGET = 1
_ROUTE_LINK = 4
_ROUTE_GATEWAY = 5
_ROUTE_SOURCE = 7

_IS_UP = 0x1
_STATE_UP = 6
_TABLE_MAIN = 254
_TABLE_LOCAL = 255
_BY_BOOT = 3
_SCOPE_UNIVERSE = 0
_SCOPE_LINK = 253
_SCOPE_HOST = 254
_UNICAST = 1
_LOCAL = 2

_LINK = struct.Struct("=BxHiII")


class Netlink:
    """A conversation with the kernel about one network namespace. Faults are ``OSError`` with the kernel's words."""

    def __init__(self) -> None:
        self._socket = socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, socket.NETLINK_ROUTE)
        self._socket.bind((0, 0))
        self._socket.setsockopt(SOL_NETLINK, NETLINK_CAP_ACK, 1)
        self._socket.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        self._number = 0

    def close(self) -> None:
        """Ends the conversation."""
        self._socket.close()

    def add_bridge(self, name: str, hardware: bytes) -> None:
        """Makes a bridge and brings it up. Its own hardware address keeps it from taking over one of a port."""
        self._ask(
            _NEW_LINK,
            _link(is_up=True)
            + attribute(_LINK_NAME, name.encode() + b"\0")
            + attribute(_LINK_ADDRESS, hardware)
            + attribute(_LINK_KIND[0], attribute(_LINK_KIND[1], b"bridge")),
            flags=CREATE | EXCLUSIVE,
        )

    def add_pair(self, name: str, *, bridge: int, peer: str, hardware: bytes, namespace: int) -> None:
        """Makes a cable: one end a port of a bridge here, up; the other, not yet, in the namespace of a descriptor."""
        other = (
            _link()
            + attribute(_LINK_NAME, peer.encode() + b"\0")
            + attribute(_LINK_ADDRESS, hardware)
            + attribute(_LINK_NAMESPACE, struct.pack("=I", namespace))
        )
        kind = attribute(_LINK_KIND[1], b"veth") + attribute(_LINK_DETAILS[1], attribute(_PEER, other))
        self._ask(
            _NEW_LINK,
            _link(is_up=True)
            + attribute(_LINK_NAME, name.encode() + b"\0")
            + attribute(_LINK_MASTER, struct.pack("=I", bridge))
            + attribute(_LINK_KIND[0], kind),
            flags=CREATE | EXCLUSIVE,
        )

    def index_of(self, name: str) -> int:
        """The number of a link."""
        answer = self._ask(_GET_LINK, _link() + attribute(_LINK_NAME, name.encode() + b"\0"))
        return int(_LINK.unpack_from(answer)[2])

    def is_connected(self, name: str) -> bool:
        """Whether a link and the one at its other end are up; asking makes the kernel act on what has changed."""
        answer = self._ask(_GET_LINK, _link() + attribute(_LINK_NAME, name.encode() + b"\0"))
        states = [content[0] for kind, content in attributes(answer[_LINK.size :]) if kind == _LINK_STATE]
        return states == [_STATE_UP]

    def bring_up(self, index: int) -> None:
        """Lets packets through a link."""
        self._ask(_NEW_LINK, _link(index=index, is_up=True))

    def bring_down(self, name: str) -> None:
        """Lets nothing through a link any more; a bridge forgets whom it found behind it."""
        self._ask(_NEW_LINK, _link(is_down=True) + attribute(_LINK_NAME, name.encode() + b"\0"))

    def delete(self, name: str) -> None:
        """Takes a link away, and with one end of a cable the other."""
        self._ask(_DELETE_LINK, _link() + attribute(_LINK_NAME, name.encode() + b"\0"))

    def add_address(self, index: int, address: IPv4Address, network: IPv4Network) -> None:
        """Gives a link an address, and with it a way to its network."""
        self._ask(
            _NEW_ADDRESS,
            struct.pack("=BBBBI", socket.AF_INET, network.prefixlen, 0, _SCOPE_UNIVERSE, index)
            + attribute(_ADDRESS_LOCAL, address.packed)
            + attribute(_ADDRESS, address.packed)
            + attribute(_ADDRESS_BROADCAST, network.broadcast_address.packed),
            flags=CREATE | EXCLUSIVE,
        )

    def add_default_route(self, gateway: IPv4Address) -> None:
        """Sends what goes nowhere else to a neighbour."""
        self._ask(
            _NEW_ROUTE,
            _route(0, table=_TABLE_MAIN, scope=_SCOPE_UNIVERSE, kind=_UNICAST)
            + attribute(_ROUTE_GATEWAY, gateway.packed),
            flags=CREATE | EXCLUSIVE,
        )

    def add_link_route(self, index: int, target: IPv4Address) -> None:
        """Makes one address a neighbour behind a link."""
        self._ask(
            _NEW_ROUTE,
            _route(target.max_prefixlen, table=_TABLE_MAIN, scope=_SCOPE_LINK, kind=_UNICAST)
            + attribute(_ROUTE_TARGET, target.packed)
            + attribute(_ROUTE_LINK, struct.pack("=I", index)),
            flags=CREATE | EXCLUSIVE,
        )

    def add_local_route(self, network: IPv4Network, *, source: IPv4Address | None = None) -> None:
        """Makes every address of a network one of this machine's own, so that it can be listened on.

        ``source`` is the address that local clients of the network have; by default it is the one they connect to.
        """
        self._ask(
            _NEW_ROUTE,
            _route(network.prefixlen, table=_TABLE_LOCAL, scope=_SCOPE_HOST, kind=_LOCAL)
            + attribute(_ROUTE_TARGET, network.network_address.packed)
            + attribute(_ROUTE_LINK, struct.pack("=I", LOOPBACK))
            + (attribute(_ROUTE_SOURCE, source.packed) if source is not None else b""),
            flags=CREATE | EXCLUSIVE,
        )

    def _ask(self, kind: int, body: bytes, *, flags: int = 0) -> bytes:
        """Sends a request, and gives the body of what comes before its acknowledgement."""
        self._number += 1
        self._socket.send(message(kind, body, number=self._number, flags=ACKNOWLEDGE | flags))
        answer = b""
        while True:
            for answered, marks, number, content in messages(self._socket.recv(65536)):
                if number != self._number:
                    continue
                if answered != ERROR:
                    answer = content
                    continue
                code, words = error_of(content, marks)
                if code:
                    raise OSError(code, words or os.strerror(code))
                return answer


def _link(*, index: int = 0, is_up: bool = False, is_down: bool = False) -> bytes:
    return _LINK.pack(socket.AF_UNSPEC, 0, index, _IS_UP if is_up else 0, _IS_UP if is_up or is_down else 0)


def _route(prefix_length: int, *, table: int, scope: int, kind: int) -> bytes:
    return struct.pack("=BBBBBBBBI", socket.AF_INET, prefix_length, 0, 0, table, _BY_BOOT, scope, kind, 0)
