"""DNS messages as far as a server of a cluster's names needs them (RFC 1035, 2782, 6891).

Names are text without the dot at the end, in lower case; the root is empty.
"""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterable
from enum import IntEnum
from typing import NamedTuple


class Type(IntEnum):
    """The types of record that there are here."""

    A = 1
    NS = 2
    CNAME = 5
    SOA = 6
    PTR = 12
    TXT = 16
    AAAA = 28
    SRV = 33
    OPT = 41
    ANY = 255


class Code(IntEnum):
    """How a question was answered."""

    NO_ERROR = 0
    MALFORMED = 1
    SERVER_FAILURE = 2
    NO_SUCH_NAME = 3
    NOT_IMPLEMENTED = 4
    REFUSED = 5
    BAD_VERSION = 16


class Srv(NamedTuple):
    """Where a port of a service is."""

    weight: int
    port: int
    target: str
    priority: int = 0


class Soa(NamedTuple):
    """Who answers for a zone; ``minimum`` is how long it may be believed that a name does not exist."""

    server: str
    mailbox: str
    serial: int
    minimum: int


class Record(NamedTuple):
    """One record; what it holds is an address, a name, a text, or one of the above, as its type says."""

    name: str
    type: Type
    value: str | Srv | Soa
    ttl: int


class Reply(NamedTuple):
    """What is said to a question."""

    code: Code = Code.NO_ERROR
    answers: tuple[Record, ...] = ()
    authority: tuple[Record, ...] = ()
    additional: tuple[Record, ...] = ()


class Query(NamedTuple):
    """A question. Where it cannot be answered, ``problem`` says so and the name means nothing."""

    id: int
    flags: int
    question: bytes
    """As it was asked, to be repeated."""
    name: str = ""
    type: int = 0
    udp_limit: int = 512
    has_extension: bool = False
    problem: Code = Code.NO_ERROR


UDP_LIMIT = 1232
"""More is not sent in one datagram, whatever a client says: it might be cut up on the way."""
TCP_LIMIT = 65535

_HEADER = struct.Struct("!6H")
_ENDING = struct.Struct("!2H")
_RECORD = struct.Struct("!2HIH")
_RESPONSE, _AUTHORITATIVE, _TRUNCATED, _RECURSION_DESIRED, _OPCODE = 0x8000, 0x0400, 0x0200, 0x0100, 0x7800
_INTERNET, _ANY_CLASS = 1, 255
_REFRESH, _RETRY, _EXPIRE = 7200, 1800, 86400


class _Malformed(Exception):
    pass


def parsed(message: bytes) -> Query | None:
    """The question of a message; None for what is none and must not be answered."""
    if len(message) < _HEADER.size:
        return None
    number, flags, questions, answers, authorities, additional = _HEADER.unpack_from(message)
    if flags & _RESPONSE:
        return None
    if flags & _OPCODE:
        return Query(number, flags, b"", problem=Code.NOT_IMPLEMENTED)
    try:
        if questions != 1 or answers or authorities:
            raise _Malformed
        name, end = _name(message, _HEADER.size)
        type_, class_ = _ENDING.unpack_from(message, end)
        end += _ENDING.size
        size, version = _extension(message, end, additional)
    except (_Malformed, struct.error, IndexError):
        return Query(number, flags, b"", problem=Code.MALFORMED)
    problem = Code.NO_ERROR
    if version:
        problem = Code.BAD_VERSION
    elif class_ not in (_INTERNET, _ANY_CLASS):
        problem = Code.REFUSED
    limit = 512 if size is None else min(max(size, 512), UDP_LIMIT)
    return Query(number, flags, message[_HEADER.size : end], name, type_, limit, size is not None, problem)


def encoded(query: Query, reply: Reply, limit: int) -> bytes:
    """A reply as a message. Answers beyond the limit are left out and that is said; what is additional just is not."""
    out = bytearray(_HEADER.size)
    out += query.question
    offsets = {query.name: _HEADER.size} if query.name and query.question else {}
    room = limit - (11 if query.has_extension else 0)
    answers = _written(out, reply.answers, offsets, room)
    is_truncated = answers < len(reply.answers)
    authorities = additional = 0
    if not is_truncated:
        authorities = _written(out, reply.authority, offsets, room)
        additional = _written(out, reply.additional, offsets, room)
    if query.has_extension:
        out += b"\0" + _RECORD.pack(Type.OPT, UDP_LIMIT, (reply.code >> 4) << 24, 0)
        additional += 1
    flags = _RESPONSE | (query.flags & (_OPCODE | _RECURSION_DESIRED)) | (reply.code & 15)
    if reply.code in (Code.NO_ERROR, Code.NO_SUCH_NAME):
        flags |= _AUTHORITATIVE
    if is_truncated:
        flags |= _TRUNCATED
    _HEADER.pack_into(out, 0, query.id, flags, 1 if query.question else 0, answers, authorities, additional)
    return bytes(out)


def _name(message: bytes, start: int) -> tuple[str, int]:
    """A name that is written out, as a question's is, and where it ends."""
    labels = []
    at = start
    while length := message[at]:
        if length > 63 or at + length - start > 253:
            raise _Malformed
        label = message[at + 1 : at + 1 + length]
        if len(label) < length:
            raise _Malformed
        # A dot inside of a label is no boundary; no name of ours has one.
        labels.append(label.replace(b".", b"\\."))
        at += 1 + length
    return b".".join(labels).lower().decode("latin-1"), at + 1


def _extension(message: bytes, at: int, records: int) -> tuple[int | None, int]:
    """The size of datagrams that the client takes, if it says so, and the version of what it speaks beyond DNS."""
    for _ in range(records):
        while length := message[at]:
            if length >= 0xC0:
                at += 1
                break
            at += 1 + length
        type_, class_, ttl, length = _RECORD.unpack_from(message, at + 1)
        if type_ == Type.OPT:
            return class_, (ttl >> 16) & 0xFF
        at += 1 + _RECORD.size + length
    return None, 0


def _written(out: bytearray, records: Iterable[Record], offsets: dict[str, int], limit: int) -> int:
    """Adds as many records as there is room for, and says how many."""
    count = 0
    for record in records:
        start = len(out)
        _write_name(out, record.name, offsets)
        held = _held(record)
        out += _RECORD.pack(record.type, _INTERNET, record.ttl, len(held))
        out += held
        if len(out) > limit:
            del out[start:]
            for name in [name for name, offset in offsets.items() if offset >= start]:
                del offsets[name]
            break
        count += 1
    return count


def _write_name(out: bytearray, name: str, offsets: dict[str, int]) -> None:
    """Adds a name, the end of which may be one that was written before."""
    while name:
        known = offsets.get(name)
        if known is not None:
            out += (0xC000 | known).to_bytes(2, "big")
            return
        if len(out) < 0x4000:
            offsets[name] = len(out)
        label, _, name = name.partition(".")
        out.append(len(label))
        out += label.encode("latin-1")
    out.append(0)


def _held(record: Record) -> bytes:
    value = record.value
    if isinstance(value, Srv):
        return struct.pack("!3H", value.priority, value.weight, value.port) + _whole(value.target)
    if isinstance(value, Soa):
        numbers = struct.pack("!5I", value.serial, _REFRESH, _RETRY, _EXPIRE, value.minimum)
        return _whole(value.server) + _whole(value.mailbox) + numbers
    if record.type is Type.A:
        return socket.inet_aton(value)
    if record.type is Type.AAAA:
        return socket.inet_pton(socket.AF_INET6, value)
    if record.type is Type.TXT:
        return bytes([len(value)]) + value.encode()
    return _whole(value)


def _whole(name: str) -> bytes:
    out = bytearray()
    _write_name(out, name, {})
    return bytes(out)
