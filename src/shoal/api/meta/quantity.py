"""Amounts of a resource as Kubernetes writes them: ``100m`` of a CPU, ``4Gi`` of memory, ``1e3`` of anything.

A quantity is an exact whole number of billionths, so every sum and comparison is exact and no float is involved. What
is finer than a billionth is rounded up, away from zero: who asks for a little gets a little.

Beside its amount a quantity remembers which family of suffixes it was written in, because it is written again in the
same: the largest suffix that needs no fraction (``1024Mi`` is ``1Gi``, ``1.5Gi`` is ``1536Mi``, ``1000m`` is ``1``).
Two quantities are equal where their amounts are, however they are written.

On the wire a quantity is text or a plain number. Structs declare it as ``QuantityString`` and keep what was written;
``parse_quantity`` reads it where the amount matters.
"""

from __future__ import annotations

import enum
import math
import re
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TypeAlias

QuantityString: TypeAlias = str | int | float
"""A quantity on the wire, as it was written."""

ResourceList: TypeAlias = dict[str, QuantityString]
"""Amounts by the name of the resource, such as a container's requests."""


class QuantityFormat(enum.Enum):
    """The three families of suffixes."""

    DECIMAL_SI = "DecimalSI"
    BINARY_SI = "BinarySI"
    DECIMAL_EXPONENT = "DecimalExponent"


class InvalidQuantity(ValueError):
    """A text that is no quantity."""

    def __init__(self, text: object) -> None:
        self.text = text
        shown = f"{text[:77]}..." if isinstance(text, str) and len(text) > 80 else text
        super().__init__(
            f"quantity {shown!r} is not valid: write a number, and after it nothing, one of n u m k M G T P E, "
            "one of Ki Mi Gi Ti Pi Ei, or an exponent such as e3"
        )


_NANO = 10**9
_LARGEST_BINARY = (2**63 - 1) * _NANO
_LONGEST = 1000
"""The longest text and the largest exponent that are read, so that ``1e999999999`` costs a refusal and no memory."""

_DECIMAL_EXPONENTS = {"n": -9, "u": -6, "m": -3, "": 0, "k": 3, "M": 6, "G": 9, "T": 12, "P": 15, "E": 18}
_DECIMAL_SUFFIXES = {exponent: suffix for suffix, exponent in _DECIMAL_EXPONENTS.items()}
_BINARY_SUFFIXES = ["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"]
_BINARY_EXPONENTS = {suffix: 10 * power for power, suffix in enumerate(_BINARY_SUFFIXES) if suffix}

# The suffix E and the exponent E3 share a letter: only a whole match tells them apart.
_SHAPE = re.compile(r"([+-]?)([0-9]*)(?:\.([0-9]*))?(?:([numkMGTPE]?|[KMGTPE]i)|[eE]([+-]?[0-9]+))")


@dataclass(frozen=True, slots=True, order=True)
class Quantity:
    """An exact amount, and the family of suffixes it is written in."""

    nano: int
    """The amount in billionths."""

    format: QuantityFormat = field(default=QuantityFormat.DECIMAL_SI, compare=False)
    written: str | None = field(default=None, compare=False, repr=False)
    """The text to write instead of the canonical one, where an API server would keep it."""

    @staticmethod
    def parse(text: str) -> Quantity:
        """Reads a text; raises InvalidQuantity."""
        return _parse(text)

    @staticmethod
    def of(value: int, format: QuantityFormat = QuantityFormat.DECIMAL_SI) -> Quantity:  # noqa: A002 - the field's name
        """A whole amount."""
        return Quantity(value * _NANO, format)

    @staticmethod
    def of_milli(value: int, format: QuantityFormat = QuantityFormat.DECIMAL_SI) -> Quantity:  # noqa: A002
        """An amount of thousandths."""
        return Quantity(value * 10**6, format)

    @property
    def is_zero(self) -> bool:
        """Whether the amount is nothing."""
        return self.nano == 0

    def value(self) -> int:
        """The amount as a whole number, rounded away from zero."""
        return _divided_up(self.nano, _NANO)

    def milli_value(self) -> int:
        """The amount in thousandths, rounded away from zero."""
        return _divided_up(self.nano, 10**6)

    def __add__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        return Quantity(self.nano + other.nano, self.format if self.nano else other.format)

    def __sub__(self, other: Quantity) -> Quantity:
        if not isinstance(other, Quantity):
            return NotImplemented
        return Quantity(self.nano - other.nano, self.format if self.nano else other.format)

    def __mul__(self, factor: int) -> Quantity:
        if not isinstance(factor, int):
            return NotImplemented
        return Quantity(self.nano * factor, self.format)

    __rmul__ = __mul__

    def __neg__(self) -> Quantity:
        return Quantity(-self.nano, self.format)

    def __float__(self) -> float:
        return self.nano / _NANO

    def __str__(self) -> str:
        return self.written or _canonical(self.nano, self.format)


ZERO_QUANTITY = Quantity(0)


def parse_quantity(value: QuantityString) -> Quantity:
    """Reads a quantity as the wire has it: text, with or without blanks around it, or a number."""
    if isinstance(value, str):
        return _parse(value.strip())
    if isinstance(value, bool) or (isinstance(value, float) and not math.isfinite(value)):
        raise InvalidQuantity(value)
    return Quantity.of(value) if isinstance(value, int) else _parse(repr(value))


@lru_cache(maxsize=8192)
def _parse(text: str) -> Quantity:
    shape = _SHAPE.fullmatch(text) if len(text) <= _LONGEST else None
    if shape is None:
        raise InvalidQuantity(text)
    sign, whole, fraction, suffix, power = shape.groups(default="")
    if not whole and not fraction:
        raise InvalidQuantity(text)
    number = int(whole + fraction)
    if suffix in _BINARY_EXPONENTS:
        exponent = _BINARY_EXPONENTS[suffix]
        nano = min(_shifted_up(number << exponent, 9 - len(fraction)), _LARGEST_BINARY)
        # Below one, a binary suffix could only lie about the amount.
        form = QuantityFormat.DECIMAL_SI if 0 < nano < _NANO else QuantityFormat.BINARY_SI
    else:
        exponent = int(power) if power else _DECIMAL_EXPONENTS[suffix]
        if exponent > _LONGEST:
            raise InvalidQuantity(text)
        nano = _shifted_up(number, exponent - len(fraction) + 9)
        form = QuantityFormat.DECIMAL_EXPONENT if power else QuantityFormat.DECIMAL_SI
    kept = text if _stays_as_written(whole, fraction, exponent, form) else None
    return Quantity(-nano if sign == "-" else nano, form, kept)


def _stays_as_written(whole: str, fraction: str, exponent: int, form: QuantityFormat) -> bool:
    """Whether an API server takes the text for canonical at a glance and writes it unchanged.

    Its glance is wider than the canonical form: ``1.500``, ``+2`` and ``1E3`` stay what they are.
    """
    whole = whole.lstrip("0") or "0"
    if form is QuantityFormat.BINARY_SI:
        return not fraction and len(whole) + exponent * 3 // 10 <= 14 and int(whole) % 8 != 0
    digits = whole + fraction
    scale = exponent - len(fraction)
    return len(digits) <= 18 and scale >= -9 and scale % 3 == 0 and digits[0] != "0" and not digits.endswith("000")


def _canonical(nano: int, form: QuantityFormat) -> str:
    if nano == 0:
        return "0"
    if form is QuantityFormat.BINARY_SI and abs(nano) >= 1024 * _NANO and nano % _NANO == 0:
        mantissa, steps = _without_factors(nano // _NANO, 1024, at_most=len(_BINARY_SUFFIXES) - 1)
        return f"{mantissa}{_BINARY_SUFFIXES[steps]}"
    if form is QuantityFormat.DECIMAL_EXPONENT:
        mantissa, steps = _without_factors(nano, 1000, at_most=None)
        return f"{mantissa}e{3 * steps - 9}" if steps != 3 else str(mantissa)
    mantissa, steps = _without_factors(nano, 1000, at_most=len(_DECIMAL_SUFFIXES) - 1)
    return f"{mantissa}{_DECIMAL_SUFFIXES[3 * steps - 9]}"


def _without_factors(number: int, factor: int, *, at_most: int | None) -> tuple[int, int]:
    steps = 0
    while steps != at_most and number % factor == 0:
        number //= factor
        steps += 1
    return number, steps


def _shifted_up(number: int, power: int) -> int:
    """A number times a power of ten, rounded up; the number has far fewer digits than the smallest power shifts."""
    return number * 10**power if power >= 0 else _divided_up(number, 10 ** min(-power, 3 * _LONGEST))


def _divided_up(number: int, divisor: int) -> int:
    return -(-number // divisor) if number >= 0 else number // divisor
