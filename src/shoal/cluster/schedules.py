"""Schedules: the five fields of cron, or a word for a usual one, and the moments that they mean.

A field is a set of numbers; a moment is due when each field has its number, and either day (of the month or of the
week) is enough where both are restricted. Times of day are those of the schedule's zone. Where clocks are set back a
moment may be due twice, and where they are set forward it may be left out.
"""

from __future__ import annotations

import re
import zoneinfo
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from typing import NamedTuple, Protocol

from shoal.api.meta import InvalidDuration, parse_duration

_MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
_DAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
_INTEGER = re.compile(r"[+-]?[0-9]+", re.ASCII).fullmatch
_WORDS = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_YEARS = 5
"""So far ahead a moment is looked for: the 31st of February never comes."""


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


class InvalidSchedule(ValueError):
    """Why a schedule cannot be read."""


class Schedule(Protocol):
    """Moments that come again and again."""

    def next_after(self, moment: datetime) -> datetime | None:
        """The first moment that is due after this one, in UTC; None where none comes."""
        ...


def schedule_problem(schedule: str) -> str:
    """Why a schedule cannot be read; empty where it can."""
    try:
        parse_schedule(schedule)
    except InvalidSchedule as error:
        return str(error)
    return ""


def parse_schedule(schedule: str) -> Schedule:
    """Reads a schedule, which may begin with ``TZ=`` and a zone; without one it means UTC. Raises InvalidSchedule."""
    zone: tzinfo = UTC
    if schedule.startswith(("TZ=", "CRON_TZ=")):
        name, space, schedule = schedule.partition("=")[2].partition(" ")
        if not space:
            raise InvalidSchedule("invalid schedule format: runtime error: slice bounds out of range [:-1]")
        zone = _named_zone(name)
        schedule = schedule.strip()
    if schedule.startswith("@"):
        if schedule not in _WORDS:
            return _interval(schedule)
        schedule = _WORDS[schedule]
    texts = schedule.split()
    if len(texts) != len(_FIELDS):
        raise InvalidSchedule(f"expected exactly 5 fields, found {len(texts)}: [{' '.join(texts)}]")
    minutes, hours, days, months, weekdays = map(_numbers, texts, _FIELDS)
    return Cron(minutes.numbers, hours.numbers, days, months.numbers, weekdays, zone)


def find_zone(name: str) -> tzinfo | None:
    """The time zone of that name, as the zone database has it; the empty name means UTC."""
    if name in ("", "UTC", "Local"):
        return UTC
    try:
        return zoneinfo.ZoneInfo(name)
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        return None


class _Numbers(NamedTuple):
    numbers: frozenset[int]
    is_any: bool
    """Whether the field was left open with a star."""


@dataclass(frozen=True)
class Cron:
    """A schedule of five fields."""

    minutes: frozenset[int]
    hours: frozenset[int]
    days: _Numbers
    months: frozenset[int]
    weekdays: _Numbers
    zone: tzinfo

    def next_after(self, moment: datetime) -> datetime | None:
        """The first moment that is due after this one."""
        if not (self.minutes and self.hours and self.months):
            return None  # a field may hold commas and nothing else: five years of minutes need not be tried
        found = moment.astimezone(UTC).replace(microsecond=0) + timedelta(seconds=1)
        if found.second:
            found = found.replace(second=0) + timedelta(minutes=1)
        last_year = found.astimezone(self.zone).year + _YEARS
        while (local := found.astimezone(self.zone)).year <= last_year:
            if local.month not in self.months:
                found = self._at(local.year + local.month // 12, local.month % 12 + 1, 1)
            elif not self._is_day(local):
                found = self._next_midnight(local)
            elif local.hour not in self.hours:
                # An hour further on the clock's face may be none in time, or two.
                found += timedelta(hours=1) - timedelta(minutes=local.minute)
            elif local.minute not in self.minutes:
                found += timedelta(minutes=1)
            else:
                return found
        return None

    def _is_day(self, local: datetime) -> bool:
        by_day = local.day in self.days.numbers
        by_weekday = local.isoweekday() % 7 in self.weekdays.numbers
        if self.days.is_any or self.weekdays.is_any:
            return by_day and by_weekday
        return by_day or by_weekday

    def _next_midnight(self, local: datetime) -> datetime:
        day = datetime(local.year, local.month, local.day) + timedelta(days=1)
        return self._at(day.year, day.month, day.day)

    def _at(self, year: int, month: int, day: int) -> datetime:
        """The beginning of a day: its first moment, where clocks skip midnight."""
        return datetime(year, month, day, tzinfo=self.zone).astimezone(UTC)


@dataclass(frozen=True)
class Interval:
    """Every so many seconds, counted from the last time."""

    length: timedelta

    def next_after(self, moment: datetime) -> datetime | None:
        """The moment one interval later."""
        return moment.astimezone(UTC).replace(microsecond=0) + self.length


def _named_zone(name: str) -> tzinfo:
    zone = find_zone(name)
    if zone is None:
        raise InvalidSchedule(f"provided bad location {name}: unknown time zone {name}")
    return zone


def _interval(schedule: str) -> Interval:
    if not schedule.startswith("@every "):
        raise InvalidSchedule(f"unrecognized descriptor: {schedule}")
    text = schedule.removeprefix("@every ")
    try:
        length = parse_duration(text)
    except InvalidDuration:
        raise InvalidSchedule(f'failed to parse duration {schedule}: time: invalid duration "{text}"') from None
    return Interval(timedelta(seconds=max(1, length.nanoseconds // 10**9)))


def _numbers(text: str, field: _Field) -> _Numbers:
    ranges = [_range(part, field) for part in text.split(",") if part]
    return _Numbers(frozenset().union(*(each.numbers for each in ranges)), any(each.is_any for each in ranges))


def _range(part: str, field: _Field) -> _Numbers:
    bounds, *steps = part.split("/")
    low_and_high = bounds.split("-")
    is_any = low_and_high[0] in ("*", "?")
    if is_any:
        start, end = field.low, field.high
    else:
        start = end = _number(low_and_high[0], field.names)
        if len(low_and_high) == 2:
            end = _number(low_and_high[1], field.names)
        elif len(low_and_high) > 2:
            raise InvalidSchedule(f"too many hyphens: {part}")
    step = 1
    if len(steps) == 1:
        step = _number(steps[0], {})
        if len(low_and_high) == 1:
            end = field.high
        is_any = is_any and step <= 1
    elif steps:
        raise InvalidSchedule(f"too many slashes: {part}")
    if start < field.low:
        raise InvalidSchedule(f"beginning of range ({start}) below minimum ({field.low}): {part}")
    if end > field.high:
        raise InvalidSchedule(f"end of range ({end}) above maximum ({field.high}): {part}")
    if start > end:
        raise InvalidSchedule(f"beginning of range ({start}) beyond end of range ({end}): {part}")
    if step == 0:
        raise InvalidSchedule(f"step of range should be a positive number: {part}")
    return _Numbers(frozenset(range(start, end + 1, step)), is_any)


def _number(text: str, names: dict[str, int]) -> int:
    if text.lower() in names:
        return names[text.lower()]
    if not _INTEGER(text):
        raise InvalidSchedule(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": invalid syntax')
    if len(text) > 20 or not -(2**63) <= int(text) < 2**63:
        raise InvalidSchedule(f'failed to parse int from {text}: strconv.Atoi: parsing "{text}": value out of range')
    number = int(text)
    if number < 0:
        raise InvalidSchedule(f"negative number ({number}) not allowed: {text}")
    return number
