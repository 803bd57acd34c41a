"""Arithmetic, comparison and membership; 64-bit integers that never wrap, and numbers of all types in one order."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

from shoal.cluster.apiserver.cel.functions import Library
from shoal.cluster.apiserver.cel.values import (
    CelError,
    UInt,
    checked_int,
    checked_uint,
    duration_of,
    equal,
    timestamp_of,
)

OPERATORS = Library()
_add = OPERATORS.add


def _unreachable(*_values: Any) -> Any:
    raise AssertionError("compiled in place")


# Those that are compiled in place, since they decide what else is evaluated, are declared for the checker alone.
_add(_unreachable, "_&&_(bool, bool): bool", "_||_(bool, bool): bool", "_?_:_(bool, A, A): A")
_add(_unreachable, "_==_(A, A): bool", "_!=_(A, A): bool")
_add(_unreachable, "_[_](list<A>, int): A", "_[_](map<A, B>, A): B")
_add(_unreachable, "_[_](optional<list<A>>, int): optional<A>", "_[_](optional<map<A, B>>, A): optional<B>")
_add(_unreachable, "_[?_](list<A>, int): optional<A>", "_[?_](map<A, B>, A): optional<B>")
_add(_unreachable, "_[?_](optional<list<A>>, int): optional<A>", "_[?_](optional<map<A, B>>, A): optional<B>")

_add(operator.not_, "!_(bool): bool")
_add(lambda one: checked_int(-one), "-_(int): int")
_add(operator.neg, "-_(double): double")

_add(lambda one, other: checked_int(one + other), "_+_(int, int): int")
_add(lambda one, other: checked_uint(int(one) + int(other)), "_+_(uint, uint): uint")
_add(operator.add, "_+_(double, double): double", "_+_(string, string): string", "_+_(bytes, bytes): bytes")
_add(operator.add, "_+_(list<A>, list<A>): list<A>")
_add(lambda one, other: duration_of(one.nanos + other.nanos), "_+_(duration, duration): duration")
_add(lambda one, other: timestamp_of(one.nanos + other.nanos), "_+_(timestamp, duration): timestamp")
_add(lambda one, other: timestamp_of(one.nanos + other.nanos), "_+_(duration, timestamp): timestamp")

_add(lambda one, other: checked_int(one - other), "_-_(int, int): int")
_add(lambda one, other: checked_uint(int(one) - int(other)), "_-_(uint, uint): uint")
_add(operator.sub, "_-_(double, double): double")
_add(lambda one, other: duration_of(one.nanos - other.nanos), "_-_(duration, duration): duration")
_add(lambda one, other: timestamp_of(one.nanos - other.nanos), "_-_(timestamp, duration): timestamp")
_add(lambda one, other: duration_of(one.nanos - other.nanos), "_-_(timestamp, timestamp): duration")

_add(lambda one, other: checked_int(one * other), "_*_(int, int): int")
_add(lambda one, other: checked_uint(int(one) * int(other)), "_*_(uint, uint): uint")
_add(operator.mul, "_*_(double, double): double")


@OPERATORS.function("_/_(int, int): int")
def _divide(one: int, other: int) -> int:
    if other == 0:
        raise CelError("division by zero")
    quotient = abs(one) // abs(other)
    return checked_int(quotient if (one < 0) == (other < 0) else -quotient)


@OPERATORS.function("_/_(uint, uint): uint")
def _divide_unsigned(one: int, other: int) -> UInt:
    if other == 0:
        raise CelError("division by zero")
    return UInt(int(one) // int(other))


@OPERATORS.function("_/_(double, double): double")
def _divide_double(one: float, other: float) -> float:
    if other == 0:
        return math.nan if one == 0 or math.isnan(one) else math.copysign(math.inf, one) * math.copysign(1, other)
    return one / other


@OPERATORS.function("_%_(int, int): int")
def _remainder(one: int, other: int) -> int:
    if other == 0:
        raise CelError("modulus by zero")
    return int(math.copysign(1, one)) * (abs(one) % abs(other)) if one else 0


@OPERATORS.function("_%_(uint, uint): uint")
def _remainder_unsigned(one: int, other: int) -> UInt:
    if other == 0:
        raise CelError("modulus by zero")
    return UInt(int(one) % int(other))


def _ordered(name: str, compare: Callable[[Any, Any], bool]) -> None:
    def numbers(one: float, other: float) -> bool:
        if math.isnan(one) or math.isnan(other):
            raise CelError("NaN values cannot be ordered")
        return compare(one, other)

    for kind in ("int", "uint", "string", "bytes", "bool", "timestamp", "duration"):
        _add(compare, f"{name}({kind}, {kind}): bool")
    for one in ("int", "uint", "double"):
        for other in ("int", "uint", "double"):
            if one != other or one == "double":
                _add(numbers, f"{name}({one}, {other}): bool")


_ordered("_<_", operator.lt)
_ordered("_<=_", operator.le)
_ordered("_>_", operator.gt)
_ordered("_>=_", operator.ge)


@OPERATORS.function("@in(A, list<A>): bool")
def _in_list(item: Any, items: list[Any]) -> bool:
    return any(equal(item, each) for each in items) if item in items else False


@OPERATORS.function("@in(A, map<A, B>): bool")
def _in_map(key: Any, entries: dict[Any, Any]) -> bool:
    return key in entries if type(key) is not list and type(key) is not dict else False


_add(len, "size(string): int", "size(bytes): int", "size(list<A>): int", "size(map<A, B>): int")
_add(len, "string::size(): int", "bytes::size(): int", "list<A>::size(): int", "map<A, B>::size(): int")
