"""Schedules of CronJobs: the five fields of cron, or a word for a usual one."""

from __future__ import annotations

import re
import zoneinfo
from typing import NamedTuple

from shoal.api.meta import InvalidDuration, parse_duration

_WORDS = frozenset({"@yearly", "@annually", "@monthly", "@weekly", "@daily", "@midnight", "@hourly"})
_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII).fullmatch


class _Field(NamedTuple):
    low: int
    high: int
    names: dict[str, int] = {}


_FIELDS = (
    _Field(0, 59),
    _Field(0, 23),
    _Field(1, 31),
    _Field(1, 12, {name: index + 1 for index, name in enumerate(_MONTHS)}),
    _Field(0, 6, {name: index for index, name in enumerate(_DAYS)}),
)


class _Wrong(ValueError):
    """Why a schedule cannot be read."""


def schedule_problem(schedule: str) -> str:
    """Why a schedule cannot be read; empty where it can."""
    try:
        _read(schedule)
    except _Wrong as error:
        return str(error)
    return ""


def _read(schedule: str) -> None:
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        schedule = _without_zone(schedule)
    if schedule.startswith("@"):
        _read_word(schedule)
        return
    fields = schedule.split()
    if len(fields) != len(_FIELDS):
        raise _Wrong(f"expected exactly 5 fields, found {len(fields)}: [{' '.join(fields)}]")
    for text, field in zip(fields, _FIELDS, strict=True):
        for part in text.split(","):
            if part:
                _read_range(part, field)


def _without_zone(schedule: str) -> str:
    zone, space, rest = schedule.partition("=")[2].partition(" ")
    if not space:
        raise _Wrong("invalid schedule format: runtime error: slice bounds out of range [:-1]")
    try:
        if zone not in ("", "UTC", "Local"):
            zoneinfo.ZoneInfo(zone)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise _Wrong(f"provided bad location {zone}: unknown time zone {zone}") from None
    return rest.strip()


def _read_word(schedule: str) -> None:
    if schedule in _WORDS:
        return
    if not schedule.startswith("@every "):
        raise _Wrong(f"unrecognized descriptor: {schedule}")
    text = schedule.removeprefix("@every ")
    try:
        parse_duration(text)
    except InvalidDuration:
        raise _Wrong(f'failed to parse duration {schedule}: time: invalid duration "{text}"') from None


def _read_range(part: str, field: _Field) -> None:
    bounds, *steps = part.split("/")
    low_and_high = bounds.split("-")
    if low_and_high[0] in ("*", "?"):
        start, end = field.low, field.high
    else:
        start = end = _number(low_and_high[0], field.names)
        if len(low_and_high) == 2:
            end = _number(low_and_high[1], field.names)
        elif len(low_and_high) > 2:
            raise _Wrong(f"too many hyphens: {part}")
    step = 1
    if len(steps) == 1:
        step = _number(steps[0], {})
        if len(low_and_high) == 1:
            end = field.high
    elif steps:
        raise _Wrong(f"too many slashes: {part}")
    if start < field.low:
        raise _Wrong(f"beginning of range ({start}) below minimum ({field.low}): {part}")
    if end > field.high:
        raise _Wrong(f"end of range ({end}) above maximum ({field.high}): {part}")
    if start > end:
        raise _Wrong(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise _Wrong(f"step of range should be a positive number: {part}")


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not _INTEGER(text):
        raise _Wrong(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise _Wrong(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": value out of range')
    number = int(text)
    if number < 0:
        raise _Wrong(f"negative number ({number}) not allowed: {text}")
    return number
