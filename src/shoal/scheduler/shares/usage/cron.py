"""Moments that return, as cron writes them: minute, hour, day of the month, month, day of the week; in UTC.

Where both the day of the month and the day of the week are restricted, either suffices.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Final

_NICKNAMES: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_MONTHS: Final = dict(zip(("jan", "feb", "mar", "apr", "may", "jun"), range(1, 7), strict=True)) | dict(
    zip(("jul", "aug", "sep", "oct", "nov", "dec"), range(7, 13), strict=True)
)
_DAYS: Final = dict(zip(("sun", "mon", "tue", "wed", "thu", "fri", "sat"), range(7), strict=True))
_FIELDS: Final[tuple[tuple[str, int, int, dict[str, int]], ...]] = (
    ("minute", 0, 59, {}),
    ("hour", 0, 23, {}),
    ("day of the month", 1, 31, {}),
    ("month", 1, 12, _MONTHS),
    ("day of the week", 0, 7, _DAYS),
)
_PART: Final = re.compile(r"(?P<from>\*|\?|[a-z0-9]+)(?:-(?P<to>[a-z0-9]+))?(?:/(?P<step>[0-9]{1,3}))?")
_LONGEST: Final = 366 * 8 + 2
"""Days within which every date returns: a 29th of February may be eight years away."""


class InvalidCron(ValueError):
    """A text that names no moments."""


@dataclass(frozen=True, slots=True)
class Cron:
    """Moments that return."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    is_any_day: bool
    is_any_weekday: bool

    @staticmethod
    def parse(text: str) -> Cron:
        """Reads five fields, or a name such as ``@weekly``; raises InvalidCron."""
        words = _NICKNAMES.get(text.strip().lower(), text).lower().split()
        if len(words) != len(_FIELDS):
            raise InvalidCron(
                f"{text!r} has {len(words)} fields instead of five: minute, hour, day of month, month, day of week"
            )
        minutes, hours, days, months, weekdays = (
            _values(*field, word) for field, word in zip(_FIELDS, words, strict=True)
        )
        made = Cron(
            text=text,
            minutes=tuple(sorted(minutes, reverse=True)),
            hours=tuple(sorted(hours, reverse=True)),
            days=frozenset(days),
            months=frozenset(months),
            weekdays=frozenset(day % 7 for day in weekdays),
            is_any_day=words[2][0] in "*?",
            is_any_weekday=words[4][0] in "*?",
        )
        if made.last_before(0.0) == float("-inf"):
            raise InvalidCron(f"{text!r} names a date that never comes")
        return made

    def last_before(self, now: float) -> float:
        """The last such moment before a time."""
        today = datetime.fromtimestamp(now, UTC).date()
        for back in range(_LONGEST):
            day = today - timedelta(days=back)
            if not self._has(day):
                continue
            for hour in self.hours:
                for minute in self.minutes:
                    moment = datetime(day.year, day.month, day.day, hour, minute, tzinfo=UTC).timestamp()
                    if moment < now:
                        return moment
        return float("-inf")

    def _has(self, day: date) -> bool:
        if day.month not in self.months:
            return False
        is_day, is_weekday = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        if self.is_any_day or self.is_any_weekday:
            return is_day and is_weekday
        return is_day or is_weekday


def _values(field: str, low: int, high: int, names: dict[str, int], text: str) -> set[int]:
    made: set[int] = set()
    for word in text.split(","):
        part = _PART.fullmatch(word)
        if part is None:
            raise InvalidCron(f"{word!r} is no {field}")
        step = int(part["step"] or 1)
        if step == 0:
            raise InvalidCron(f"{word!r} goes in steps of 0, as a {field}")
        if part["from"] in "*?":
            first, last = low, high if names is not _DAYS else 6
        else:
            first = _number(part["from"], field, low, high, names)
            last = high if part["step"] else first
            if part["to"]:
                last = _number(part["to"], field, low, high, names)
            if names is _DAYS and last == 0 < first:
                last = 7  # a week may end on Sunday as well
        if last < first:
            raise InvalidCron(f"{word!r} ends before it begins, as a {field}")
        made.update(range(first, last + 1, step))
    return made


def _number(text: str, field: str, low: int, high: int, names: dict[str, int]) -> int:
    number = names.get(text, int(text) if text.isdecimal() and len(text) < 4 else -1)
    if not low <= number <= high:
        raise InvalidCron(f"{text!r} is no {field}: it must be from {low} to {high}")
    return number
