"""The wire format that all netlink families share: messages with a header, and attributes in them."""

from __future__ import annotations

import struct
from collections.abc import Iterator

HEADER = struct.Struct("=IHHII")
"""Length, type, flags, sequence number and port of a message."""

REQUEST = 0x1
ACKNOWLEDGE = 0x4
DUMP = 0x300
EXCLUSIVE = 0x200
CREATE = 0x400

ERROR = 2
DONE = 3

SOL_NETLINK = 270
NETLINK_CAP_ACK = 10
NETLINK_EXT_ACK = 11

_NESTED = 0x8000
_TYPE_ONLY = 0x3FFF
_ERROR_MESSAGE = 1
_IS_CAPPED = 0x100
_HAS_ATTRIBUTES = 0x200


def message(kind: int, body: bytes, *, number: int, flags: int = 0) -> bytes:
    """A request."""
    size = HEADER.size + len(body)
    return HEADER.pack(size, kind, REQUEST | flags, number, 0) + body + bytes(-size % 4)


def attribute(kind: int, content: bytes) -> bytes:
    """One attribute, padded so that another can follow."""
    size = 4 + len(content)
    return struct.pack("=HH", size, kind) + content + bytes(-size % 4)


def nested(kind: int, *attributes: bytes) -> bytes:
    """An attribute that holds others."""
    return attribute(kind | _NESTED, b"".join(attributes))


def messages(datagram: bytes) -> Iterator[tuple[int, int, int, bytes]]:
    """Type, flags, sequence number and body of each message that was received."""
    while len(datagram) >= HEADER.size:
        size, kind, flags, number, _ = HEADER.unpack_from(datagram)
        yield kind, flags, number, datagram[HEADER.size : size]
        datagram = datagram[size + -size % 4 :]


def attributes(rest: bytes) -> Iterator[tuple[int, bytes]]:
    """Type and content of each attribute."""
    while len(rest) >= 4:
        size, kind = struct.unpack_from("=HH", rest)
        yield kind & _TYPE_ONLY, rest[4:size]
        rest = rest[size + -size % 4 :]


def error_of(content: bytes, flags: int) -> tuple[int, str]:
    """The error number of an acknowledgement, 0 for success, and the kernel's explanation where it gives one."""
    (code,) = struct.unpack_from("=i", content)
    if not flags & _HAS_ATTRIBUTES or not flags & _IS_CAPPED:
        return -code, ""
    words = [one for kind, one in attributes(content[4 + HEADER.size :]) if kind == _ERROR_MESSAGE]
    return -code, "".join(one.rstrip(b"\0").decode(errors="replace") for one in words)
