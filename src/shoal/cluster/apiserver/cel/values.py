"""The values of CEL that plain JSON has no type for, and the error that an evaluation ends in.

null, bool, int, double, string, bytes, list and map are Python's own None, bool, int, float, str, bytes, list and dict.
"""

from __future__ import annotations

import datetime
import re
from dataclasses import dataclass
from typing import Any

from shoal.cluster.apiserver.cel.types import Type

INT_MIN, INT_MAX = -(2**63), 2**63 - 1
UINT_MAX = 2**64 - 1
SECOND = 1_000_000_000
_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)
_TIMESTAMP_MIN, _TIMESTAMP_MAX = -62135596800, 253402300799  # years 1 to 9999


class CelError(Exception):
    """An expression has no value: a key is not there, a number is too big, an argument has the wrong type."""


class UInt(int):
    """An unsigned integer, which is a type of its own."""

    __slots__ = ()


@dataclass(frozen=True, order=True, slots=True)
class Duration:
    """A span of time."""

    nanos: int

    def __str__(self) -> str:
        # CEL writes a duration in seconds, however long.
        return f"{plain_decimal(self.nanos, 9)}s"


@dataclass(frozen=True, order=True, slots=True)
class Timestamp:
    """A moment."""

    nanos: int
    """Since 1970, in UTC."""

    @property
    def moment(self) -> datetime.datetime:
        """The moment, to the microsecond."""
        return _EPOCH + datetime.timedelta(microseconds=self.nanos // 1000)

    def __str__(self) -> str:
        fraction = self.nanos % SECOND
        told = f"{fraction:09d}".rstrip("0")
        return f"{self.moment.replace(microsecond=0, tzinfo=None).isoformat()}{'.' + told if told else ''}Z"


@dataclass(frozen=True, slots=True)
class Optional:
    """A value that is there."""

    value: Any


@dataclass(frozen=True, slots=True)
class Nothing:
    """A value that is not there."""


NOTHING = Nothing()


@dataclass(frozen=True, slots=True)
class TypeValue:
    """A type, where an expression speaks of it."""

    type: Type


def plain_decimal(units: int, places: int) -> str:
    """A fixed-point number without needless zeros."""
    whole, part = divmod(abs(units), 10**places)
    told = f"{part:0{places}d}".rstrip("0")
    return f"{'-' if units < 0 else ''}{whole}{'.' + told if told else ''}"


_UNITS = {"ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND}
_PART = re.compile(r"(\d*)(?:\.(\d*))?(ns|us|µs|μs|ms|s|m|h)")


def parse_duration(text: str) -> Duration:
    """A duration as Go writes it: ``1h30m``, ``-1.5s``."""
    rest = text[1:] if text[:1] in ("-", "+") else text
    if rest == "0":
        return Duration(0)
    total, at = 0, 0
    while at < len(rest):
        part = _PART.match(rest, at)
        if part is None or not (part[1] or part[2]):
            raise CelError(_duration_fault(text))
        unit = _UNITS[part[3]]
        total += int(part[1] or 0) * unit
        if part[2]:
            total += int(part[2]) * unit // 10 ** len(part[2])
        at = part.end()
    if not rest or total > INT_MAX:
        raise CelError(_duration_fault(text))
    return Duration(-total if text.startswith("-") else total)


def _duration_fault(text: str) -> str:
    return f'time: invalid duration "{text}"'


_TIMESTAMP = re.compile(r"(\d{4})-(\d\d)-(\d\d)[Tt](\d\d):(\d\d):(\d\d)(?:\.(\d+))?([Zz]|[+-]\d\d:\d\d)")


def parse_timestamp(text: str) -> Timestamp:
    """A moment as RFC 3339 writes it."""
    found = _TIMESTAMP.fullmatch(text)
    if found is None:
        raise CelError(f'parsing time "{text}" as "2006-01-02T15:04:05Z07:00": cannot parse "{text}" as "2006"')
    zone = found[8].upper()
    try:
        whole = datetime.datetime.fromisoformat(f"{text[:19].upper()}{'+00:00' if zone == 'Z' else zone}")
    except ValueError:
        raise CelError(f'parsing time "{text}": out of range') from None
    difference = whole - _EPOCH
    fraction = int((found[7] or "0")[:9].ljust(9, "0"))
    return timestamp_of((difference.days * 86400 + difference.seconds) * SECOND + fraction)


def timestamp_of(nanos: int) -> Timestamp:
    """A moment, if it lies in the years 1 to 9999."""
    if not _TIMESTAMP_MIN <= nanos // SECOND <= _TIMESTAMP_MAX:
        raise CelError("timestamp overflow")
    return Timestamp(nanos)


def duration_of(nanos: int) -> Duration:
    """A span, if it is not too long."""
    if not INT_MIN <= nanos <= INT_MAX:
        raise CelError("duration overflow")
    return Duration(nanos)


def checked_int(value: int) -> int:
    """An integer, if it fits 64 bits."""
    if INT_MIN <= value <= INT_MAX:
        return value
    raise CelError("integer overflow")


def checked_uint(value: int) -> UInt:
    """An unsigned integer, if it fits 64 bits."""
    if 0 <= value <= UINT_MAX:
        return UInt(value)
    raise CelError("unsigned integer overflow")


def equal(one: Any, other: Any) -> bool:
    """Whether two values of any type are equal: numbers by value, true never to 1, all else within a type."""
    if one != other:
        return False
    kind, other_kind = type(one), type(other)
    if kind is bool or other_kind is bool:
        return kind is other_kind
    if kind is list:
        return all(map(equal, one, other))
    if kind is dict:
        return all(equal(value, other[key]) for key, value in one.items())
    return True
