"""Adding up amounts of resources exactly, and writing them down in one way only.

Amounts are whole billionths, so that what is added and taken away again leaves nothing behind. How a sum is written
depends on the sum alone, not on the order in which its parts came: a status is rewritten only when an amount changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final, TypeAlias

from shoal.api.meta import (
    InvalidQuantity,
    Quantity,
    QuantityFormat,
    QuantityString,
    ResourceList,
    parse_quantity,
)

Amounts: TypeAlias = dict[str, int]
"""Billionths by the name of the resource; what is nothing is not there."""

ONE: Final = 10**9

_IN_BYTES: Final = ("memory", "ephemeral-storage", "hugepages-")
_MEBI: Final = 2**20 * ONE


def amounts_of(resources: Mapping[str, QuantityString]) -> Amounts:
    """A resource list as amounts; what is no quantity counts as nothing, and spoils nothing else."""
    found = {}
    for name, text in resources.items():
        try:
            nano = parse_quantity(text).nano
        except InvalidQuantity:
            continue
        if nano:
            found[name] = nano
    return found


def add_to(total: Amounts, more: Mapping[str, int], times: int = 1) -> None:
    """Adds amounts to a total; ``times=-1`` takes them away."""
    for name, nano in more.items():
        left = total.get(name, 0) + nano * times
        if left:
            total[name] = left
        else:
            total.pop(name, None)


def raise_to(total: Amounts, other: Mapping[str, int]) -> None:
    """Raises a total to other amounts where those are more."""
    for name, nano in other.items():
        if nano > total.get(name, 0):
            total[name] = nano


def written(amounts: Mapping[str, int]) -> ResourceList:
    """Amounts as a resource list, by name: bytes in powers of 1024 where they are whole mebibytes."""
    return {name: str(Quantity(nano, _form(name, nano))) for name, nano in sorted(amounts.items())}


def rewritten(before: ResourceList, amounts: Mapping[str, int]) -> ResourceList:
    """A resource list that says these amounts: the one that is there if it does, however it is written."""
    says_them = len(before) == len(amounts) and amounts_of(before) == amounts
    return before if says_them else written(amounts)


def _form(name: str, nano: int) -> QuantityFormat:
    is_binary = name.startswith(_IN_BYTES) and nano % _MEBI == 0
    return QuantityFormat.BINARY_SI if is_binary else QuantityFormat.DECIMAL_SI
