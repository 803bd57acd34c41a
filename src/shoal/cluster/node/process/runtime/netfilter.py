"""A conversation with the kernel's packet filter (NETLINK_NETFILTER): transactions of rules, and tracked connections.

It concerns the network namespace in which its socket was made, wherever that is used.
"""

from __future__ import annotations

import os
import socket
import struct
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

from shoal.cluster.node.process.runtime import nftables
from shoal.cluster.node.process.runtime.netlink_messages import (
    ACKNOWLEDGE,
    DONE,
    DUMP,
    ERROR,
    NETLINK_CAP_ACK,
    NETLINK_EXT_ACK,
    SOL_NETLINK,
    attributes,
    error_of,
    message,
    messages,
    nested,
)

NETLINK_NETFILTER = 12
_CONNTRACK = 1
_GET_CONNECTION = 1
_DELETE_CONNECTION = 2
_TUPLE_ORIGINAL = 1
_TUPLE_REPLY = 2
_TUPLE_ADDRESSES = 1
_TUPLE_PROTOCOL = 2
_SEND_BUFFER_FORCED = 32
_SEND_BUFFER = 8 << 20
_SPARE = 256
_PATIENCE = 10.0


class Connection(NamedTuple):
    """A connection that the kernel tracks: what its client asked for, and what answers."""

    protocol: int
    client: tuple[str, int]
    destination: tuple[str, int]
    answering: tuple[str, int]
    original: bytes
    """What it is named by."""


def netfilter_socket() -> socket.socket:
    """A socket for this conversation, in the network namespace that this process is in."""
    return socket.socket(socket.AF_NETLINK, socket.SOCK_RAW | socket.SOCK_CLOEXEC, NETLINK_NETFILTER)


class Netfilter:
    """Speaks over one socket, which it owns. Faults are ``OSError`` with the kernel's words."""

    def __init__(self, own: socket.socket) -> None:
        self._socket = own
        own.settimeout(_PATIENCE)
        own.setsockopt(SOL_NETLINK, NETLINK_CAP_ACK, 1)
        own.setsockopt(SOL_NETLINK, NETLINK_EXT_ACK, 1)
        own.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER)
        with suppress(OSError):  # beyond the limit for everybody, where we are root
            own.setsockopt(socket.SOL_SOCKET, _SEND_BUFFER_FORCED, _SEND_BUFFER)
        self.limit = own.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) - _SPARE
        """The most bytes of a transaction."""
        self._number = 0

    def close(self) -> None:
        """Ends the conversation."""
        self._socket.close()

    def apply(self, requests: Sequence[nftables.Request]) -> None:
        """Does all of it, or nothing."""
        if not requests:
            return
        batch, last = nftables.transaction(requests)
        self._socket.send(batch)
        fault: OSError | None = None
        while True:
            for kind, flags, number, content in messages(self._socket.recv(1 << 17)):
                if kind != ERROR:
                    continue
                code, words = error_of(content, flags)
                if code and fault is None:
                    fault = OSError(code, words or os.strerror(code))
                if number in (0, last):  # one of the transaction as a whole is about its beginning
                    self._drain()
                    if fault is not None:
                        raise fault
                    return

    def connections(self) -> Iterator[Connection]:
        """All tracked connections of IPv4."""
        self._number += 1
        request = _CONNTRACK << 8 | _GET_CONNECTION
        body = struct.pack(">BBH", nftables.IPV4, 0, 0)
        self._socket.send(message(request, body, number=self._number, flags=DUMP))
        while True:
            for kind, flags, number, content in messages(self._socket.recv(1 << 17)):
                if number != self._number:
                    continue
                if kind == DONE:
                    return
                if kind == ERROR:
                    code, words = error_of(content, flags)
                    raise OSError(code, words or os.strerror(code))
                if (found := _connection(content[4:])) is not None:
                    yield found

    def forget(self, connection: Connection) -> None:
        """Lets the kernel take the next packet of a connection for the first one; one that is gone already is none."""
        self._number += 1
        body = struct.pack(">BBH", nftables.IPV4, 0, 0) + nested(_TUPLE_ORIGINAL, connection.original)
        request = _CONNTRACK << 8 | _DELETE_CONNECTION
        self._socket.send(message(request, body, number=self._number, flags=ACKNOWLEDGE))
        while True:
            for kind, flags, number, content in messages(self._socket.recv(1 << 17)):
                if kind != ERROR or number != self._number:
                    continue
                code, words = error_of(content, flags)
                if code:
                    with suppress(FileNotFoundError):
                        raise OSError(code, words or os.strerror(code))
                return

    def _drain(self) -> None:
        """Leaves nothing of one transaction to be read as the answer to another."""
        self._socket.setblocking(False)
        with suppress(BlockingIOError):
            while True:
                self._socket.recv(1 << 17)
        self._socket.settimeout(_PATIENCE)


def _connection(content: bytes) -> Connection | None:
    found = dict(attributes(content))
    original, reply = _endpoints(found.get(_TUPLE_ORIGINAL, b"")), _endpoints(found.get(_TUPLE_REPLY, b""))
    if original is None or reply is None:
        return None
    return Connection(
        protocol=original[0],
        client=original[1],
        destination=original[2],
        answering=reply[1],
        original=found[_TUPLE_ORIGINAL],
    )


def _endpoints(content: bytes) -> tuple[int, tuple[str, int], tuple[str, int]] | None:
    """The protocol, the source and the destination of one direction; None where it has no ports."""
    parts = dict(attributes(content))
    addresses = dict(attributes(parts.get(_TUPLE_ADDRESSES, b"")))
    protocol = dict(attributes(parts.get(_TUPLE_PROTOCOL, b"")))
    if not {1, 2} <= addresses.keys() or not {1, 2, 3} <= protocol.keys():
        return None
    ends = [(socket.inet_ntoa(addresses[n]), int.from_bytes(protocol[n + 1], "big")) for n in (1, 2)]
    return protocol[1][0], ends[0], ends[1]
