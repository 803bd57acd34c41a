"""From one type to another."""

from __future__ import annotations

import math
import re
from decimal import Decimal
from typing import Any

from shoal.cluster.apiserver.cel.functions import Library
from shoal.cluster.apiserver.cel.types import (
    BOOL,
    BYTES,
    CIDR,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    IP,
    NAMED_FORMAT,
    NULL,
    QUANTITY,
    SEMVER,
    STRING,
    TIMESTAMP,
    UINT,
    URL,
    Type,
    list_of,
    map_of,
    optional_of,
    type_of,
)
from shoal.cluster.apiserver.cel.values import (
    INT_MAX,
    INT_MIN,
    SECOND,
    UINT_MAX,
    CelError,
    Duration,
    TypeValue,
    UInt,
    checked_int,
    checked_uint,
    parse_duration,
    parse_timestamp,
    timestamp_of,
)

CONVERSIONS = Library()
_add = CONVERSIONS.add


def _same(value: Any) -> Any:
    return value


_add(_same, "dyn(A): dyn")
for _kind in ("int", "uint", "double", "string", "bytes", "bool", "timestamp", "duration"):
    _add(_same, f"{_kind}({_kind}): {_kind}")


@CONVERSIONS.function("int(double): int")
def _int_of_double(value: float) -> int:
    if math.isnan(value) or not INT_MIN < value < INT_MAX:
        raise CelError("integer overflow")
    return int(value)


@CONVERSIONS.function("int(string): int")
def _int_of_string(value: str) -> int:
    if re.fullmatch(r"[+-]?[0-9]+", value) is None or not INT_MIN <= int(value) <= INT_MAX:
        raise CelError(f'strconv.ParseInt: parsing "{value}": invalid syntax')
    return int(value)


_add(lambda value: checked_int(int(value)), "int(uint): int")
_add(lambda value: value.nanos // SECOND, "int(timestamp): int")
_add(lambda value: value.nanos, "int(duration): int")


@CONVERSIONS.function("uint(double): uint")
def _uint_of_double(value: float) -> UInt:
    if math.isnan(value) or not 0 <= value < UINT_MAX:
        raise CelError("unsigned integer overflow")
    return UInt(value)


@CONVERSIONS.function("uint(string): uint")
def _uint_of_string(value: str) -> UInt:
    if re.fullmatch(r"[0-9]+", value) is None or int(value) > UINT_MAX:
        raise CelError(f'strconv.ParseUint: parsing "{value}": invalid syntax')
    return UInt(value)


_add(checked_uint, "uint(int): uint")
_add(float, "double(int): double", "double(uint): double")


@CONVERSIONS.function("double(string): double")
def _double_of_string(value: str) -> float:
    try:
        if "_" in value or value != value.strip():
            raise ValueError
        return float(value)
    except ValueError:
        raise CelError(f'strconv.ParseFloat: parsing "{value}": invalid syntax') from None


@CONVERSIONS.function("bool(string): bool")
def _bool_of_string(value: str) -> bool:
    if value in ("1", "t", "T", "TRUE", "true", "True"):
        return True
    if value in ("0", "f", "F", "FALSE", "false", "False"):
        return False
    raise CelError(f'strconv.ParseBool: parsing "{value}": invalid syntax')


def double_text(value: float) -> str:
    """A double as Go writes it in the fewest digits."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    sign, digits, power = Decimal(repr(value)).normalize().as_tuple()
    exponent = int(power) + len(digits) - 1
    if value != 0 and not -4 <= exponent < 6:
        fraction = "".join(map(str, digits[1:]))
        mantissa = f"{'-' if sign else ''}{digits[0]}{'.' + fraction if fraction else ''}"
        return f"{mantissa}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return f"{Decimal(repr(value)).normalize():f}" if value else "0"


_add(str, "string(int): string", "string(timestamp): string", "string(duration): string")
_add(lambda value: str(int(value)), "string(uint): string")
_add(double_text, "string(double): string")
_add(lambda value: "true" if value else "false", "string(bool): string")


@CONVERSIONS.function("string(bytes): string")
def _string_of_bytes(value: bytes) -> str:
    try:
        return value.decode()
    except UnicodeDecodeError:
        raise CelError("invalid UTF-8 in bytes, cannot convert to string") from None


_add(str.encode, "bytes(string): bytes")
_add(parse_duration, "duration(string): duration")
_add(Duration, "duration(int): duration")
_add(parse_timestamp, "timestamp(string): timestamp")
_add(lambda value: timestamp_of(value * SECOND), "timestamp(int): timestamp")

_TYPES: dict[str, Type] = {
    "NoneType": NULL,
    "bool": BOOL,
    "int": INT,
    "UInt": UINT,
    "float": DOUBLE,
    "str": STRING,
    "bytes": BYTES,
    "list": list_of(DYN),
    "dict": map_of(DYN, DYN),
    "Timestamp": TIMESTAMP,
    "Duration": DURATION,
    "Quantity": QUANTITY,
    "Url": URL,
    "Version": SEMVER,
    "Address": IP,
    "Network": CIDR,
    "NamedFormat": NAMED_FORMAT,
    "Optional": optional_of(DYN),
    "Nothing": optional_of(DYN),
    "TypeValue": type_of(DYN),
}

_add(lambda value: TypeValue(_TYPES[type(value).__name__]), "type(A): type<A>")
