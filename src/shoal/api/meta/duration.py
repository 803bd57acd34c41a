"""Lengths of time as Go programs write them: ``1h30m``, ``1.5s``, ``-2m``, ``300ms``.

A duration is a whole number of nanoseconds that fits 64 bits with a sign, and is written in one way: hours, minutes and
seconds from a second up (``1h30m0s``), else one smaller unit (``300ms``, ``1.5µs``). ``parse`` and ``str`` agree with
Go's ``time.ParseDuration`` and ``Duration.String`` to the nanosecond.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import timedelta

_UNITS = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,  # the micro sign
    "μs": 10**3,  # the Greek letter mu
    "ms": 10**6,
    "s": 10**9,
    "m": 60 * 10**9,
    "h": 3600 * 10**9,
}
_LIMIT = 2**63
_LONGEST = 1000
_PART = re.compile(r"([0-9]*)(?:\.([0-9]*))?([^0-9.]*)")


class InvalidDuration(ValueError):
    """A text that is no duration."""

    def __init__(self, text: str, problem: str) -> None:
        self.text = text
        shown = text if len(text) <= 80 else f"{text[:77]}..."
        super().__init__(f"duration {shown!r} is not valid: {problem}")


@dataclass(frozen=True, slots=True, order=True)
class Duration:
    """A length of time, exact to the nanosecond."""

    nanoseconds: int

    @staticmethod
    def parse(text: str) -> Duration:
        """Reads numbers with units, one after the other, and perhaps a sign before them; raises InvalidDuration."""
        return Duration(_nanoseconds(text))

    @staticmethod
    def of(length: timedelta) -> Duration:
        """The same length, from Python's own type."""
        return Duration(length // timedelta(microseconds=1) * 1000)

    @property
    def seconds(self) -> float:
        """The length in seconds, as near as a float comes to it."""
        return self.nanoseconds / 10**9

    def to_timedelta(self) -> timedelta:
        """The same length in Python's own type; what is finer than a microsecond is dropped."""
        microseconds = abs(self.nanoseconds) // 1000
        return timedelta(microseconds=microseconds if self.nanoseconds >= 0 else -microseconds)

    def __str__(self) -> str:
        sign = "-" if self.nanoseconds < 0 else ""
        return sign + _written(abs(self.nanoseconds))


def parse_duration(text: str) -> Duration:
    """Reads a duration as the wire has it; raises InvalidDuration."""
    return Duration.parse(text)


def _nanoseconds(text: str) -> int:
    unsigned = text[1:] if text[:1] in ("+", "-") else text
    if unsigned == "0":
        return 0
    if not unsigned or len(text) > _LONGEST:
        raise InvalidDuration(text, "write numbers with units, such as 1h30m, 1.5s or 300ms")
    total = 0
    position = 0
    while position < len(unsigned):
        part = _PART.match(unsigned, position)
        assert part is not None  # every group may be empty
        total += _part_nanoseconds(text, *part.groups(default=""))
        position = part.end()
    negative = text[0] == "-"
    if total > _LIMIT - (not negative):
        raise InvalidDuration(text, "it is longer than a duration can be, about 292 years")
    return -total if negative else total


def _part_nanoseconds(text: str, whole: str, fraction: str, unit: str) -> int:
    if not whole and not fraction:
        raise InvalidDuration(text, f"there is no number before {unit!r}; write, for example, 1h30m or 300ms")
    if unit not in _UNITS:
        problem = f"{unit!r} is no unit" if unit else f"the number {whole or '.' + fraction} has no unit"
        raise InvalidDuration(text, f"{problem}; the units are h, m, s, ms, us and ns")
    return int(whole or "0") * _UNITS[unit] + _fraction_nanoseconds(fraction, _UNITS[unit])


def _fraction_nanoseconds(fraction: str, unit: int) -> int:
    """The nanoseconds of what stands after the point.

    Down to a nanosecond this is exact. What is finer Go drops after a multiplication of floats, which a third of an
    hour, ``0.3333333333333333333h``, shows: it is 20 minutes and not a nanosecond less. So floats it is, in its order.
    """
    number, scale = 0, 1.0
    for digit in fraction:
        longer = number * 10 + int(digit)
        if longer > _LIMIT:
            break
        number, scale = longer, scale * 10
    return int(float(number) * (float(unit) / scale))


def _written(nanoseconds: int) -> str:
    if nanoseconds == 0:
        return "0s"
    for unit, size, places in (("ns", 1, 0), ("µs", 10**3, 3), ("ms", 10**6, 6)):
        if nanoseconds < size * 1000:
            return _decimal(nanoseconds, places) + unit
    minutes, rest = divmod(nanoseconds, 60 * 10**9)
    hours, minutes = divmod(minutes, 60)
    shown = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{shown}{_decimal(rest, 9)}s"


def _decimal(number: int, places: int) -> str:
    whole, fraction = divmod(number, 10**places)
    return f"{whole}.{fraction:0{places}d}".rstrip("0") if fraction else str(whole)
