"""Times as Go reads them: what it takes, what it writes instead, and its words where it refuses."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone
from functools import lru_cache

from shoal.api.meta import format_micro_time, format_time

SECONDS_LAYOUT = "2006-01-02T15:04:05Z07:00"
MICRO_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"

# What stands in a layout, in its order, and what a text must have there.
_PARTS = (
    ("2006", re.compile(r"[0-9]{4}")),
    ("-", re.compile("-")),
    ("01", re.compile(r"[0-9]{2}")),
    ("-", re.compile("-")),
    ("02", re.compile(r"[0-9]{2}")),
    ("T", re.compile("T")),
    ("15", re.compile(r"[0-9]{1,2}")),
    (":", re.compile(":")),
    ("04", re.compile(r"[0-9]{2}")),
    (":", re.compile(":")),
    ("05", re.compile(r"[0-9]{2}")),
)
_FRACTION = re.compile(r"(?:[.,]([0-9]+))?")
_MICROSECONDS = re.compile(r"[.,]([0-9]{6})")
_ZONE = re.compile(r"Z|([+-])([0-9]{2}):([0-9]{2})")
_ZERO = datetime(1, 1, 1, tzinfo=UTC)
_RANGES = (("month", 1, 12), ("day", 1, 31), ("hour", 0, 23), ("minute", 0, 59), ("second", 0, 59))


class BadTime(ValueError):
    """A text that Go does not read as a time; the message is Go's."""


@lru_cache(maxsize=4096)
def normal_time(text: str) -> str | None:
    """The time as it is written: in UTC, to the second; None for the zero time, which Go writes as null."""
    moment = _parsed(text, SECONDS_LAYOUT)
    return None if moment == _ZERO else format_time(moment)


@lru_cache(maxsize=4096)
def normal_micro_time(text: str) -> str | None:
    """The same with six decimals, which the text must have as well."""
    moment = _parsed(text, MICRO_LAYOUT)
    return None if moment == _ZERO else format_micro_time(moment)


def _parsed(text: str, layout: str) -> datetime:
    position = 0
    numbers: list[int] = []
    for part, shape in _PARTS:
        found = shape.match(text, position)
        if found is None:
            raise _unparsed(text, layout, position, part)
        position = found.end()
        if part[0] in "012":
            numbers.append(int(found[0]))
    fraction = (_MICROSECONDS if layout == MICRO_LAYOUT else _FRACTION).match(text, position)
    if fraction is None:
        raise _unparsed(text, layout, position, ".000000")
    zone = _ZONE.match(text, fraction.end())
    if zone is None:
        raise _unparsed(text, layout, fraction.end(), "Z07:00")
    if zone.end() != len(text):
        raise BadTime(f"parsing time {_quoted(text)}: extra text: {_quoted(text[zone.end() :])}")
    for (name, lowest, highest), number in zip(_RANGES, numbers[1:], strict=True):
        if not lowest <= number <= highest:
            raise BadTime(f"parsing time {_quoted(text)}: {name} out of range")
    hours, minutes = int(zone[2] or 0), int(zone[3] or 0)
    for name, number, highest in (("hour", hours, 24), ("minute", minutes, 60)):
        if number > highest:
            raise BadTime(f"parsing time {_quoted(text)}: time zone offset {name} out of range")
    offset = timedelta(hours=hours, minutes=minutes) * (-1 if zone[1] == "-" else 1)
    microseconds = int((fraction[1] or "0")[:6].ljust(6, "0"))
    try:
        year, month, day, hour, minute, second = numbers
        moment = datetime(year, month, day, hour, minute, second, microseconds, timezone(offset))
        return moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise BadTime(f"parsing time {_quoted(text)}: day out of range") from error


def _unparsed(text: str, layout: str, position: int, part: str) -> BadTime:
    rest = _quoted(text[position:])
    return BadTime(f'parsing time {_quoted(text)} as "{layout}": cannot parse {rest} as "{part}"')


def _quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
