"""The small values that Go reads and writes in a way of its own: quantities, bytes, numbers, durations, times.

Each function takes a JSON value that is not null and gives what Go would write of it, or raises WrongType.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Callable
from functools import lru_cache
from typing import Any

from shoal.api.meta import Duration, InvalidDuration, InvalidQuantity, parse_quantity
from shoal.cluster.apiserver.kinds.go_time import BadTime, normal_micro_time, normal_time

Scalar = Callable[[Any], Any]

_QUANTITY_SHAPE = re.compile(r"([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)")
_WRONG_QUANTITY = f"quantities must match the regular expression '^{_QUANTITY_SHAPE.pattern}$'"
_WRONG_SUFFIX = "unable to parse quantity's suffix"
_BASE64 = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/")
_WHOLE_GROUPS = re.compile(rb"(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?")
_NAMES = {str: "string", bool: "bool", dict: "object", list: "array", int: "number", float: "number"}
_RANGES = {"int32": (-(2**31), 2**31), "int64": (-(2**63), 2**63), "uint32": (0, 2**32)}


class WrongType(ValueError):
    """A value that does not fit the type of its place; the message is Go's.

    Each struct on the way out adds the field that it was reading. A problem that a type words by itself has no place.
    """

    def __init__(self, found: str, go_type: str, *, problem: str = "") -> None:
        self.found = found
        self.go_type = go_type
        self.problem = problem
        self.struct = ""
        self.path: list[str] = []
        super().__init__(found, go_type, problem)

    def inside(self, struct: str, *fields: str) -> None:
        """Adds a field, and the struct that it belongs to, before those that are known."""
        self.struct = self.struct or struct
        self.path[:0] = fields

    def __str__(self) -> str:
        if self.problem:
            return self.problem
        place = f"struct field {self.struct}.{'.'.join(self.path)}" if self.path else "value"
        return f"json: cannot unmarshal {self.found} into Go {place} of type {self.go_type}"


def kind_of(value: Any) -> str:
    """What Go's messages call a JSON value."""
    return _NAMES[value.__class__]


def number_reader(go_type: str, format_: str) -> Scalar:
    """Reads whole numbers of so many bits."""
    lowest, limit = _RANGES[format_]

    def whole(value: Any) -> int:
        if value.__class__ is int and lowest <= value < limit:
            return value
        shown = f" {_written(value)}" if value.__class__ in (int, float) else ""
        raise WrongType(kind_of(value) + shown, go_type)

    return whole


def text_reader(go_type: str) -> Scalar:
    """Reads texts."""

    def text(value: Any) -> str:
        if value.__class__ is str:
            return value
        raise WrongType(kind_of(value), go_type)

    return text


def flag_reader(go_type: str) -> Scalar:
    """Reads true and false."""

    def flag(value: Any) -> bool:
        if value.__class__ is bool:
            return value
        raise WrongType(kind_of(value), go_type)

    return flag


def read_float(value: Any) -> int | float:
    """Reads a float; a whole one is written without a point."""
    if value.__class__ not in (int, float):
        raise WrongType(kind_of(value), "float64")
    try:
        number = float(value)
    except OverflowError:
        raise WrongType(f"number {value}", "float64") from None
    return int(number) if number.is_integer() and abs(number) < 1e21 else number


def read_int_or_string(value: Any) -> int | str:
    """Reads a number of 32 bits, or a text."""
    return value if value.__class__ is str else _read_int32(value)


def read_quantity(value: Any) -> str:
    """Reads an amount and writes it the canonical way."""
    if value.__class__ in (str, int, float):
        return _canonical_quantity(value)
    raise WrongType("", "", problem=_WRONG_QUANTITY)


def read_time(value: Any) -> str | None:
    """Reads a time, which is written in UTC to the second; the zero time is null."""
    return _read_moment(value, normal_time)


def read_micro_time(value: Any) -> str | None:
    """Reads a time, which is read and written with six decimals."""
    return _read_moment(value, normal_micro_time)


def read_duration(value: Any) -> str:
    """Reads a duration and writes it as Go does: ``90s`` is ``1m30s``."""
    if value.__class__ is not str:
        raise WrongType(kind_of(value), "string")
    try:
        return str(Duration.parse(value))
    except InvalidDuration as error:
        raise WrongType("", "", problem=f'time: invalid duration "{value}"') from error


def read_bytes(value: Any) -> str:
    """Reads bytes, in base64 or as a list of numbers, and writes them in base64."""
    if value.__class__ is str:
        return _canonical_bytes(value)
    if value.__class__ is not list:
        raise WrongType(kind_of(value), "[]uint8")
    for item in value:
        if item is not None and (item.__class__ is not int or not 0 <= item < 256):
            shown = f" {_written(item)}" if item.__class__ in (int, float) else ""
            raise WrongType(kind_of(item) + shown, "uint8")
    return base64.b64encode(bytes(item or 0 for item in value)).decode()


_read_int32 = number_reader("int32", "int32")


def _read_moment(value: Any, normal: Callable[[str], str | None]) -> str | None:
    if value.__class__ is not str:
        raise WrongType(kind_of(value), "string")
    try:
        return normal(value)
    except BadTime as error:
        raise WrongType("", "", problem=str(error)) from error


@lru_cache(maxsize=8192, typed=True)
def _canonical_quantity(value: str | int | float) -> str:
    try:
        return str(parse_quantity(value))
    except InvalidQuantity as error:
        fits = isinstance(value, str) and value.count(".") < 2 and _QUANTITY_SHAPE.fullmatch(value.strip())
        raise WrongType("", "", problem=_WRONG_SUFFIX if fits else _WRONG_QUANTITY) from error


def _canonical_bytes(text: str) -> str:
    raw = text.encode("utf-8", "surrogatepass")
    if not _WHOLE_GROUPS.fullmatch(raw) and (wrong := _illegal_byte(raw)) is not None:
        raise WrongType("", "", problem=f"illegal base64 data at input byte {wrong}")
    return binascii.b2a_base64(binascii.a2b_base64(raw), newline=False).decode()


def _illegal_byte(raw: bytes) -> int | None:
    """Where Go stops reading base64: line breaks are skipped, groups of four must be whole, nothing follows padding."""
    group = 0
    padded_at = None
    for position, byte in enumerate(raw):
        if byte in b"\r\n":
            continue
        if padded_at is not None:
            if group == 3 and byte == 61:
                group = 4
                continue
            return position if group == 4 else padded_at
        if byte == 61:
            if group < 2:
                return position
            padded_at = position
            group = group + 1 if group == 2 else 4
        elif byte not in _BASE64:
            return position
        else:
            group = (group + 1) % 4
    if padded_at is not None:
        return None if group == 4 else len(raw)
    return None if group == 0 else len(raw) - group


def _written(number: int | float) -> str:
    return repr(number)
