"""The parts of moments and spans."""

from __future__ import annotations

import datetime
import re
import zoneinfo
from collections.abc import Callable

from shoal.cluster.apiserver.cel.functions import Library
from shoal.cluster.apiserver.cel.values import SECOND, CelError, Duration, Timestamp

TIMES = Library()
_OFFSET = re.compile(r"([+-]?)(\d\d):(\d\d)")


def _in_zone(moment: Timestamp, zone: str) -> datetime.datetime:
    offset = _OFFSET.fullmatch(zone)
    try:
        if offset:
            minutes = int(offset[2]) * 60 + int(offset[3])
            shift = datetime.timedelta(minutes=-minutes if offset[1] == "-" else minutes)
            return moment.moment.astimezone(datetime.timezone(shift))
        return moment.moment.astimezone(zoneinfo.ZoneInfo(zone))
    except (zoneinfo.ZoneInfoNotFoundError, ValueError, OSError):
        raise CelError(f"unknown time zone {zone}") from None


def _part(name: str, read: Callable[[datetime.datetime], int]) -> None:
    TIMES.add(lambda moment: read(moment.moment), f"timestamp::{name}(): int")
    TIMES.add(lambda moment, zone: read(_in_zone(moment, zone)), f"timestamp::{name}(string): int")


_part("getFullYear", lambda moment: moment.year)
_part("getMonth", lambda moment: moment.month - 1)
_part("getDayOfYear", lambda moment: moment.timetuple().tm_yday - 1)
_part("getDayOfMonth", lambda moment: moment.day - 1)
_part("getDate", lambda moment: moment.day)
_part("getDayOfWeek", lambda moment: moment.isoweekday() % 7)
_part("getHours", lambda moment: moment.hour)
_part("getMinutes", lambda moment: moment.minute)
_part("getSeconds", lambda moment: moment.second)
_part("getMilliseconds", lambda moment: moment.microsecond // 1000)


def _whole(unit: int) -> Callable[[Duration], int]:
    return lambda span: abs(span.nanos) // unit * (1 if span.nanos >= 0 else -1)


TIMES.add(_whole(3600 * SECOND), "duration::getHours(): int")
TIMES.add(_whole(60 * SECOND), "duration::getMinutes(): int")
TIMES.add(_whole(SECOND), "duration::getSeconds(): int")
TIMES.add(lambda span: _whole(1_000_000)(span) % 1000, "duration::getMilliseconds(): int")
