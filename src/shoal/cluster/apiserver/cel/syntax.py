"""Reads an expression into a small tree.

The grammar, the macros and the words of syntax errors are those of CEL's own C++ parser, which hands its result over
in protobuf; decoding that takes a few lines, since only the parsed form is read. The parser spells every macro out as
a fold. Those folds are recognised again here, so that they run as the loops that their authors had in mind.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from cel_expr_python import cel  # type: ignore[import-untyped]
from cel_expr_python.ext import ext_optional  # type: ignore[import-untyped]

from shoal.cluster.apiserver.cel.types import DYN, Type
from shoal.cluster.apiserver.cel.values import UInt


class CompileError(Exception):
    """An expression cannot be read, or its types do not fit; the message points at the place."""


@dataclass(slots=True, kw_only=True)
class Node:
    """A part of an expression; the checker adds its type."""

    id: int = 0
    type: Type = DYN


@dataclass(slots=True)
class Literal(Node):
    """A constant."""

    value: Any


@dataclass(slots=True)
class Name(Node):
    """A variable, or the first word of a qualified function."""

    name: str
    slot: int = -1


@dataclass(slots=True)
class Select(Node):
    """``operand.field``; as a test, ``has(operand.field)``; if optional, ``operand.?field``."""

    operand: Node
    field: str
    is_test: bool = False
    is_optional: bool = False
    operand_is_optional: bool = False


@dataclass(slots=True)
class Call(Node):
    """An operator or a function, with a target where it is a method."""

    function: str
    target: Node | None
    arguments: list[Node]
    overloads: list[Any] = field(default_factory=list)


@dataclass(slots=True)
class ListLiteral(Node):
    """``[a, ?b]``."""

    items: list[Node]
    optional: frozenset[int] = frozenset()


@dataclass(slots=True)
class MapLiteral(Node):
    """``{a: b, ?c: d}``; or a message, which Kubernetes has none of."""

    entries: list[tuple[Node, Node, bool]]
    message: str = ""


@dataclass(slots=True)
class Loop(Node):
    """A macro over a list or a map: all, exists, existsOne, filter, map, transformList, transformMap and so on."""

    macro: str
    over: Node
    variables: list[str]
    condition: Node | None
    result: Node | None
    slots: list[int] = field(default_factory=list)


@dataclass(slots=True)
class Bind(Node):
    """A name for a value, within one expression."""

    name: str
    value: Node
    body: Node
    slot: int = -1


_TWO_VARIABLES = {
    "all": 3,
    "exists": 3,
    "existsOne": 3,
    "exists_one": 3,
    "transformList": 4,
    "transformMap": 4,
    "transformMapEntry": 4,
}
_parser = cel.NewEnv(extensions=[ext_optional.ExtOptional()])


@dataclass(frozen=True, slots=True)
class Source:
    """The text of an expression, and where in it each node stands."""

    text: str
    offsets: dict[int, int]

    def error(self, node: int, message: str) -> str:
        """A message that points at a node, as CEL's compilers write it."""
        offset = min(self.offsets.get(node, 0), len(self.text))
        line = self.text.count("\n", 0, offset)
        column = offset - (self.text.rfind("\n", 0, offset) + 1)
        shown = self.text.split("\n")[line]
        return f"ERROR: <input>:{line + 1}:{column + 1}: {message}\n | {shown}\n | {'.' * column}^"


def parse(text: str) -> tuple[Node, Source]:
    """Reads an expression."""
    try:
        encoded = _parser.compile(text, disable_check=True).serialize()
    except RuntimeError as error:
        raise CompileError(_told(str(error))) from None
    [parsed] = _bytes(encoded, 2)
    [expression] = _bytes(parsed, 2)
    positions: dict[int, int] = {}
    for information in _bytes(parsed, 3):
        for entry in _bytes(information, 4):
            positions[_number(entry, 1)] = _number(entry, 2)
    return _Reader().read(expression), Source(text, positions)


def _told(message: str) -> str:
    """The parser's message without the wrapping of its status, and in the words that Kubernetes' has for the same."""
    message = re.sub(r"^[A-Z_]+: ", "", re.sub(r" \[[A-Z_]+\]$", "", message))
    return message.replace("has() argument must be a field selection", "invalid argument to has() macro")


class _Reader:
    def read(self, encoded: bytes) -> Node:
        node = self._read(encoded)
        node.id = _number(encoded, 2)
        return node

    def _read(self, encoded: bytes) -> Node:
        for tag, value in _fields(encoded):
            if tag == 2:
                continue
            match tag:
                case 3:
                    return Literal(_constant(value))
                case 4:
                    return Name(_text(value, 1))
                case 5:
                    return Select(self.read(_only(value, 1)), _text(value, 2), bool(_number(value, 3)))
                case 6:
                    return self._call(value)
                case 7:
                    optional = frozenset(_packed(value, 2))
                    return ListLiteral([self.read(each) for each in _bytes(value, 1)], optional)
                case 8:
                    return self._struct(value)
                case 9:
                    return self._loop(value)
        return Literal(None)

    def _call(self, value: bytes) -> Node:
        targets = _bytes(value, 1)
        function = _text(value, 2)
        arguments = [self.read(each) for each in _bytes(value, 3)]
        target = self.read(targets[0]) if targets else None
        if function == "_?._" and isinstance(arguments[1], Literal):
            return Select(arguments[0], arguments[1].value, is_optional=True)
        if target is not None:
            loop = _two_variable_loop(function, target, arguments)
            if loop is not None:
                return loop
        return Call(function, target, arguments)

    def _struct(self, value: bytes) -> Node:
        entries = []
        for entry in _bytes(value, 2):
            keys = _bytes(entry, 3)
            key = self.read(keys[0]) if keys else Literal(_text(entry, 2))
            entries.append((key, self.read(_only(entry, 4)), bool(_number(entry, 5))))
        return MapLiteral(entries, _text(value, 1))

    def _loop(self, value: bytes) -> Node:
        variable, over = _text(value, 1), self.read(_only(value, 2))
        accumulator, start = _text(value, 3), self.read(_only(value, 4))
        goes_on, step = self.read(_only(value, 5)), self.read(_only(value, 6))
        end = self.read(_only(value, 7))
        match goes_on, start, step:
            case Literal(value=False), _, _:
                return Bind(accumulator, start, end)
            case _, Literal(value=True), Call(function="_&&_", arguments=[_, condition]):
                return Loop("all", over, [variable], condition, None)
            case _, Literal(value=False), Call(function="_||_", arguments=[_, condition]):
                return Loop("exists", over, [variable], condition, None)
            case _, Literal(), Call(function="_?_:_", arguments=[condition, _, _]):
                return Loop("existsOne", over, [variable], condition, None)
            case _, ListLiteral(), Call(function="_+_", arguments=[_, ListLiteral(items=[result])]):
                return Loop("transformList", over, [variable], None, result)
            case (
                _,
                ListLiteral(),
                Call(function="_?_:_", arguments=[condition, Call(arguments=[_, ListLiteral(items=[result])]), _]),
            ):
                return Loop("transformList", over, [variable], condition, result)
        raise CompileError("unsupported comprehension")


def _two_variable_loop(function: str, target: Node, arguments: list[Node]) -> Node | None:
    if function == "sortBy" and len(arguments) == 2 and isinstance(arguments[0], Name):
        return Loop("sortBy", target, [arguments[0].name], None, arguments[1])
    if function not in _TWO_VARIABLES or not 3 <= len(arguments) <= _TWO_VARIABLES[function]:
        return None
    first, second, *rest = arguments
    if not (isinstance(first, Name) and isinstance(second, Name)):
        return None
    names = [first.name, second.name]
    if _TWO_VARIABLES[function] == 3:
        return Loop("existsOne" if function == "exists_one" else function, target, names, rest[0], None)
    return Loop(function, target, names, rest[0] if len(rest) == 2 else None, rest[-1])


def _constant(encoded: bytes) -> Any:
    for tag, value in _fields(encoded):
        match tag:
            case 1:
                return None
            case 2:
                return bool(value)
            case 3:
                return value - 2**64 if value >= 2**63 else value
            case 4:
                return UInt(value)
            case 5:
                return struct.unpack("<d", value)[0]
            case 6:
                return value.decode()
            case 7:
                return value
    return None


def _fields(encoded: bytes) -> Iterator[tuple[int, Any]]:
    at, end = 0, len(encoded)
    while at < end:
        key, at = _varint(encoded, at)
        if key & 7 == 0:
            value, at = _varint(encoded, at)
            yield key >> 3, value
        elif key & 7 == 1:
            yield key >> 3, encoded[at : at + 8]
            at += 8
        else:
            size, at = _varint(encoded, at)
            yield key >> 3, encoded[at : at + size]
            at += size


def _varint(encoded: bytes, at: int) -> tuple[int, int]:
    value = shift = 0
    while True:
        byte = encoded[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value, at
        shift += 7


def _bytes(encoded: bytes, wanted: int) -> list[bytes]:
    return [value for tag, value in _fields(encoded) if tag == wanted]


def _only(encoded: bytes, wanted: int) -> bytes:
    return _bytes(encoded, wanted)[0]


def _text(encoded: bytes, wanted: int) -> str:
    return "".join(value.decode() for tag, value in _fields(encoded) if tag == wanted)


def _number(encoded: bytes, wanted: int) -> int:
    return next((value for tag, value in _fields(encoded) if tag == wanted), 0)


def _packed(encoded: bytes, wanted: int) -> Sequence[int]:
    numbers = []
    for tag, value in _fields(encoded):
        if tag == wanted:
            if isinstance(value, int):
                numbers.append(value)
                continue
            at = 0
            while at < len(value):
                number, at = _varint(value, at)
                numbers.append(number)
    return numbers
