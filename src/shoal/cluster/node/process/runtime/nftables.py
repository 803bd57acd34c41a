"""Requests of nf_tables as bytes: tables, chains, rules, sets, and the expressions that rules consist of.

Pure: nothing here talks to the kernel. Numbers in attributes are big-endian, as nf_tables wants them; keys and data of
elements are the plain bytes of registers. Registers are the 32-bit ones, each of which holds one field of a key.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from enum import IntEnum, IntFlag
from itertools import islice
from typing import NamedTuple, TypeAlias

from shoal.cluster.node.process.runtime.netlink_messages import CREATE, attribute, message, nested

SUBSYSTEM = 10
IPV4 = 2

_BATCH_BEGIN = 0x10
_BATCH_END = 0x11

_NEW_TABLE = 0
_DELETE_TABLE = 2
_NEW_CHAIN = 3
_DELETE_CHAIN = 5
_NEW_RULE = 6
_NEW_SET = 9
_NEW_ELEMENT = 12
_DELETE_ELEMENT = 14

_APPEND = 0x800
_LIST_ELEMENT = 1
_DATA_VALUE = 1
_DATA_VERDICT = 2
_VERDICT_TYPE = 0xFFFFFF00
_JUMP = -3
_GOTO = -4
_FIRST_REGISTER = 8
_ELEMENTS_PER_MESSAGE = 500
"""An attribute is no longer than 64 KiB."""


class Request(NamedTuple):
    """One message of a transaction."""

    kind: int
    body: bytes
    flags: int = 0

    @property
    def size(self) -> int:
        """How many bytes it takes on the wire."""
        return 20 + len(self.body) + 3  # a header, the family, and what pads it


class Hook(NamedTuple):
    """Where the kernel evaluates a base chain of address translation."""

    number: int
    priority: int


PREROUTING = Hook(0, -100)
OUTPUT = Hook(3, -100)
POSTROUTING = Hook(4, 100)


class SetFlag(IntFlag):
    """What a set is."""

    PLAIN = 0
    MAP = 0x8
    TIMEOUT = 0x10
    DYNAMIC = 0x20


class Goto(NamedTuple):
    """The verdict to go on in another chain."""

    chain: str


class Element(NamedTuple):
    """An element of a set, or of a map where it has data."""

    key: bytes
    data: bytes | Goto | None = None


Expression: TypeAlias = bytes


# Transactions


def transaction(requests: Sequence[Request]) -> tuple[bytes, int]:
    """All requests as one transaction, and the number of the message that is acknowledged: the last of them."""
    begin = _family(0, SUBSYSTEM)
    found = [message(_BATCH_BEGIN, begin, number=0)]
    for number, one in enumerate(requests, 1):
        flags = one.flags | (0x4 if number == len(requests) else 0)
        found.append(message(SUBSYSTEM << 8 | one.kind, _family(IPV4) + one.body, number=number, flags=flags))
    found.append(message(_BATCH_END, begin, number=len(requests) + 1))
    return b"".join(found), len(requests)


def add_table(name: str) -> Request:
    """Adds a table; one that is there stays."""
    return Request(_NEW_TABLE, _text(1, name), CREATE)


def delete_table(name: str) -> Request:
    """Deletes a table with all that is in it."""
    return Request(_DELETE_TABLE, _text(1, name))


def add_chain(table: str, name: str, hook: Hook | None = None) -> Request:
    """Adds a chain; with a hook it is a base chain of address translation."""
    body = _text(1, table) + _text(3, name)
    if hook is not None:
        body += nested(4, _number(1, hook.number), attribute(2, struct.pack(">i", hook.priority))) + _text(7, "nat")
    return Request(_NEW_CHAIN, body, CREATE)


def delete_chain(table: str, name: str) -> Request:
    """Deletes a chain with its rules; nothing may lead to it any more."""
    return Request(_DELETE_CHAIN, _text(1, table) + _text(3, name))


def add_rule(table: str, chain: str, *expressions: Expression) -> Request:
    """Appends a rule to a chain."""
    listed = nested(4, *(attribute(_LIST_ELEMENT | 0x8000, one) for one in expressions))
    return Request(_NEW_RULE, _text(1, table) + _text(2, chain) + listed, CREATE | _APPEND)


def add_set(
    table: str, name: str, *, number: int, key: int, data: int | None = None, verdicts: bool = False, size: int = 0
) -> Request:
    """Adds a set with keys of ``key`` bytes; with ``data`` bytes or verdicts it is a map.

    ``size`` bounds a set that rules themselves add to, whose elements time out. ``number`` is unique in a transaction.
    """
    flags = SetFlag.MAP if data is not None or verdicts else SetFlag.PLAIN
    if size:
        flags |= SetFlag.TIMEOUT | SetFlag.DYNAMIC
    body = _text(1, table) + _text(2, name) + _number(3, flags) + _number(4, 0) + _number(5, key)
    if verdicts:
        body += _number(6, _VERDICT_TYPE) + _number(7, 16)
    elif data is not None:
        body += _number(6, 0) + _number(7, data)
    if size:
        body += nested(9, _number(1, size))
    return Request(_NEW_SET, body + _number(10, number), CREATE)


def add_elements(table: str, name: str, elements: Iterable[Element]) -> list[Request]:
    """Adds elements to a set; one that is there with other data is an error."""
    return _elements(_NEW_ELEMENT, table, name, elements, CREATE)


def delete_elements(table: str, name: str, elements: Iterable[Element]) -> list[Request]:
    """Deletes elements of a set; one that is not there is an error."""
    return _elements(_DELETE_ELEMENT, table, name, (Element(one.key) for one in elements), 0)


# Expressions


class Base(IntEnum):
    """From where an offset in a packet counts."""

    NETWORK = 1
    TRANSPORT = 2


def load_payload(register: int, base: Base, offset: int, size: int) -> Expression:
    """Loads bytes of the packet."""
    return _expression("payload", _register(1, register), _number(2, base), _number(3, offset), _number(4, size))


def load_protocol(register: int) -> Expression:
    """Loads the number of the transport protocol."""
    return _expression("meta", _register(1, register), _number(2, 16))


def load_random(register: int, *, below: int) -> Expression:
    """Loads a random number, in the machine's byte order."""
    return _expression("numgen", _register(1, register), _number(2, below), _number(3, 1), _number(4, 0))


def look_up(name: str, register: int, into: int | None = None) -> Expression:
    """Ends the rule where a set has no such key; ``into`` is the register that gets a map's data."""
    target = () if into is None else (_register(3, into),)
    return _expression("lookup", _text(1, name), _register(2, register), *target)


def look_up_verdict(name: str, register: int) -> Expression:
    """Follows the verdict that a map has for a key, if any."""
    return _expression("lookup", _text(1, name), _register(2, register), _number(3, 0))


def jump(chain: str) -> Expression:
    """Goes on in a chain, and comes back."""
    return _expression("immediate", _number(1, 0), nested(2, _verdict(_JUMP, chain)))


def remember(name: str, key: int, data: int, *, seconds: int) -> Expression:
    """Adds an element to a map, or lets the one that is there live as long again."""
    timeout = attribute(6, struct.pack(">Q", seconds * 1000))
    return _expression("dynset", _text(1, name), _number(3, 1), _register(4, key), _register(5, data), timeout)


def forget(name: str, key: int) -> Expression:
    """Deletes an element of a map, if it is there."""
    # A map's element has data, which the kernel wants to be named here too; it does not look at it.
    return _expression("dynset", _text(1, name), _number(3, 2), _register(4, key), _register(5, key))


def translate_destination(address: int, port: int) -> Expression:
    """Sends a new connection to the address and port in two registers."""
    return _expression("nat", _number(1, 1), _number(2, IPV4), _register(3, address), _register(5, port))


def masquerade() -> Expression:
    """Gives a new connection the address of the link it leaves by."""
    return _expression("masq")


def _expression(name: str, *attributes: bytes) -> Expression:
    return _text(1, name) + nested(2, *attributes)


def _elements(kind: int, table: str, name: str, elements: Iterable[Element], flags: int) -> list[Request]:
    head = _text(1, table) + _text(2, name)
    rest = iter(elements)
    found: list[Request] = []
    while several := list(islice(rest, _ELEMENTS_PER_MESSAGE)):
        found.append(Request(kind, head + nested(3, *(_element(one) for one in several)), flags))
    return found


def _element(element: Element) -> bytes:
    content = nested(1, attribute(_DATA_VALUE, element.key))
    if isinstance(element.data, Goto):
        content += nested(2, _verdict(_GOTO, element.data.chain))
    elif element.data is not None:
        content += nested(2, attribute(_DATA_VALUE, element.data))
    return nested(_LIST_ELEMENT, content)


def _verdict(code: int, chain: str) -> bytes:
    return nested(_DATA_VERDICT, attribute(1, struct.pack(">i", code)), _text(2, chain))


def _family(family: int, resource: int = 0) -> bytes:
    return struct.pack(">BBH", family, 0, resource)


def _text(kind: int, text: str) -> bytes:
    return attribute(kind, text.encode() + b"\0")


def _number(kind: int, number: int) -> bytes:
    return attribute(kind, struct.pack(">I", number))


def _register(kind: int, register: int) -> bytes:
    return _number(kind, _FIRST_REGISTER + register)
