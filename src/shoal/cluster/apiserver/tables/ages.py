"""Lengths of time as tables show them: two or three digits that matter, such as ``5s``, ``2m30s``, ``3d4h``."""

from __future__ import annotations

from datetime import datetime

UNKNOWN = "<unknown>"
_MINUTE, _HOUR = 60, 3600
_LONGEST = 2**63 // 10**9
"""What a 64 bit number of nanoseconds can hold, in seconds: to Go nothing lies further back."""


def age(timestamp: str | None, now: datetime) -> str:
    """The time since a timestamp of an object; unknown where there is none."""
    if not timestamp:
        return UNKNOWN
    try:
        moment = datetime.fromisoformat(timestamp)
        passed = (now - moment).total_seconds()
    except (ValueError, TypeError):
        return UNKNOWN
    return UNKNOWN if is_zero(moment) else human_duration(passed)


def between(start: str, end: str) -> str:
    """The time from one timestamp to another."""
    try:
        return human_duration((datetime.fromisoformat(end) - datetime.fromisoformat(start)).total_seconds())
    except (ValueError, TypeError):
        return UNKNOWN


def is_zero(moment: datetime) -> bool:
    """Whether it is the moment that Go takes for no moment at all."""
    return moment.year == 1 and moment.replace(tzinfo=None) == datetime.min


def human_duration(seconds: float) -> str:
    """A length of time for people; just below zero, where clocks differ, it counts as none."""
    if seconds <= -2:
        return "<invalid>"
    whole = min(int(seconds), _LONGEST)
    if whole <= 0:
        return "0s"
    if whole < 2 * _MINUTE:
        return f"{whole}s"
    if whole < 10 * _MINUTE:
        return _two(whole // _MINUTE, "m", whole % _MINUTE, "s")
    if whole < 3 * _HOUR:
        return f"{whole // _MINUTE}m"
    hours = whole // _HOUR
    if hours < 8:
        return _two(hours, "h", whole // _MINUTE % 60, "m")
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if days < 8:
        return _two(days, "d", hours % 24, "h")
    if days < 2 * 365:
        return f"{days}d"
    if days < 8 * 365:
        return _two(days // 365, "y", days % 365, "d")
    return f"{days // 365}y"


def _two(large: int, unit: str, small: int, smaller_unit: str) -> str:
    return f"{large}{unit}{small}{smaller_unit}" if small else f"{large}{unit}"
