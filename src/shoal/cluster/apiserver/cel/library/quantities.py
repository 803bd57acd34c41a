"""Quantities, such as ``1.5Gi``."""

from __future__ import annotations

import re
from typing import Any

from shoal.api.meta import InvalidQuantity, Quantity
from shoal.cluster.apiserver.cel.functions import MATCHERS, Library
from shoal.cluster.apiserver.cel.values import INT_MAX, INT_MIN, CelError

QUANTITIES = Library()
_add = QUANTITIES.add
_NANO = 10**9
_PATTERN = "([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)"
_Q = "kubernetes.Quantity"
MATCHERS[_Q] = lambda value: type(value) is Quantity


def _is_quantity(text: str) -> bool:
    try:
        Quantity.parse(text)
    except InvalidQuantity:
        return False
    return True


@QUANTITIES.function(f"quantity(string): {_Q}")
def _quantity(text: str) -> Quantity:
    try:
        return Quantity.parse(text)
    except InvalidQuantity:
        if re.fullmatch(_PATTERN, text):
            raise CelError("unable to parse quantity's suffix") from None
        raise CelError(f"quantities must match the regular expression '^{_PATTERN}$'") from None


def _compared(one: Quantity, other: Quantity) -> int:
    return (one.nano > other.nano) - (one.nano < other.nano)


def _is_integer(value: Quantity) -> bool:
    return value.nano % _NANO == 0 and INT_MIN <= value.nano // _NANO <= INT_MAX


def _as_integer(value: Quantity) -> int:
    if _is_integer(value):
        return value.nano // _NANO
    raise CelError("cannot convert value to integer")


def _sign(value: Quantity) -> int:
    return (value.nano > 0) - (value.nano < 0)


def _added(one: Quantity, other: Any) -> Quantity:
    return one + (Quantity.of(other) if isinstance(other, int) else other)


def _taken(one: Quantity, other: Any) -> Quantity:
    return one - (Quantity.of(other) if isinstance(other, int) else other)


_add(_is_quantity, "isQuantity(string): bool")
_add(_sign, f"{_Q}::sign(): int", f"sign({_Q}): int")
_add(lambda one, other: one.nano > other.nano, f"{_Q}::isGreaterThan({_Q}): bool")
_add(lambda one, other: one.nano < other.nano, f"{_Q}::isLessThan({_Q}): bool")
_add(_compared, f"{_Q}::compareTo({_Q}): int")
_add(lambda value: value.nano / _NANO, f"{_Q}::asApproximateFloat(): double")
_add(_as_integer, f"{_Q}::asInteger(): int")
_add(_is_integer, f"{_Q}::isInteger(): bool")
_add(_added, f"{_Q}::add({_Q}): {_Q}", f"{_Q}::add(int): {_Q}")
_add(_taken, f"{_Q}::sub({_Q}): {_Q}", f"{_Q}::sub(int): {_Q}")
