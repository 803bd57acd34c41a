"""Durations in fields that the API server takes for mere text."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.meta import Duration, InvalidDuration, parse_duration
from shoal.kube.admission import FieldProblem, invalid


def duration_problems(path: str, text: str, *, may_be_negative: bool = False) -> Iterator[FieldProblem]:
    """What is wrong with a duration; nothing with one that is unset."""
    if not text:
        return
    length = parsed_duration(text)
    if length is None:
        yield invalid(path, text, "is no duration: write one such as 30s or 1h30m")
    elif length.nanoseconds < 0 and not may_be_negative:
        yield invalid(path, text, "must be at least 0")


def parsed_duration(text: str) -> Duration | None:
    """The duration that a text says, if it says one."""
    try:
        return parse_duration(text)
    except InvalidDuration:
        return None
