"""Fields that take a number or a text, and the commonest meaning of the text: a share in percent.

``maxUnavailable: 2`` and ``maxUnavailable: 25%`` are both written; which count the second means depends on a total, and
on which side the author of the rule wants to err.
"""

from __future__ import annotations

import re
from typing import TypeAlias

IntOrString: TypeAlias = int | str
"""A number or a text, as the wire has it."""

_PERCENTAGE = re.compile(r"([+-]?[0-9]{1,18})%")
_INTEGER = re.compile(r"[+-]?[0-9]{1,18}")


class InvalidPercentage(ValueError):
    """A text where a number or a percentage belongs."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(f"{text!r} is neither a number nor a percentage: write a bare number such as 2, or '25%'")


def scaled_value(value: IntOrString, total: int, *, round_up: bool) -> int:
    """The count that a field means: a number as it is, a percentage as its share of the total.

    A quoted number, ``"2"``, is refused: it may mean either.
    """
    if isinstance(value, int):
        return value
    percentage = _PERCENTAGE.fullmatch(value)
    if percentage is None:
        raise InvalidPercentage(value)
    hundredths = int(percentage[1]) * total
    return -(-hundredths // 100) if round_up else hundredths // 100


def parse_int_or_string(text: str) -> IntOrString:
    """What a text from a command line means: a number where it is one of 32 bits, else itself."""
    if _INTEGER.fullmatch(text) and -(2**31) <= int(text) < 2**31:
        return int(text)
    return text
