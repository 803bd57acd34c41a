"""Points in time as the wire has them: RFC 3339 in UTC, to the second or, in Leases and Events, to the microsecond.

Fields that the wire counts in seconds are ``datetime`` in structs, filled with ``now()``. The microsecond ones must
always show six digits, which no default encoder does: those are ``str`` in structs, made by ``format_micro_time``.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone

_RFC3339 = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?"
    r"(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)


class InvalidTime(ValueError):
    """A text that is no point in time."""

    def __init__(self, text: str) -> None:
        self.text = text
        super().__init__(f"time {text!r} is not valid: write it as RFC 3339 does, such as 2026-01-31T09:30:00Z")


def now() -> datetime:
    """This second, in UTC: what is finer would be lost on the wire, and compare as a change."""
    return datetime.now(UTC).replace(microsecond=0)


def format_time(moment: datetime) -> str:
    """A point in time to the second, such as ``2026-01-31T09:30:00Z``."""
    return _in_utc(moment).isoformat(timespec="seconds") + "Z"


def format_micro_time(moment: datetime) -> str:
    """A point in time with exactly six decimals, such as ``2026-01-31T09:30:00.000000Z``."""
    return _in_utc(moment).isoformat(timespec="microseconds") + "Z"


def parse_time(text: str) -> datetime:
    """Reads either form, from any offset, into UTC; what is finer than a microsecond is dropped."""
    shape = _RFC3339.fullmatch(text)
    if shape is None:
        raise InvalidTime(text)
    *date_and_time, fraction, sign, hours, minutes = shape.groups(default="0")
    try:
        offset = timedelta(hours=int(hours), minutes=int(minutes))
        zone = timezone(-offset if sign == "-" else offset)
        year, month, day, hour, minute, second = map(int, date_and_time)
        moment = datetime(year, month, day, hour, minute, second, int(fraction[:6].ljust(6, "0")), zone)
        return moment.astimezone(UTC)
    except (ValueError, OverflowError) as error:
        raise InvalidTime(text) from error


def _in_utc(moment: datetime) -> datetime:
    if moment.tzinfo is None:
        raise ValueError(f"{moment.isoformat()} has no time zone: make it aware, as now() and parse_time() do")
    return moment.astimezone(UTC).replace(tzinfo=None)
