"""Lists of indexes of an Indexed Job, as texts such as ``0,2-4``."""

from __future__ import annotations

import re

_INTEGER = re.compile(r"[+-]?[0-9]{1,18}").fullmatch
_Interval = tuple[int, int]


class InvalidIndexes(ValueError):
    """A text that is no list of indexes."""


def count_indexes(text: str, completions: int) -> int:
    """How many indexes a text lists; raises InvalidIndexes."""
    total, last = 0, None
    for part in text.split(",") if text else ():
        first, end = _interval(part, completions)
        if last is not None and last >= first:
            raise InvalidIndexes(f"non-increasing order, previous: {last}, current: {first}")
        total += end - first + 1
        last = end
    return total


def first_overlap(one: str, other: str, completions: int) -> int | None:
    """The first index that two texts both list; parts that cannot be read are passed over."""
    left, right = _readable(one, completions), _readable(other, completions)
    while left and right:
        if left[0][0] <= right[0][1] and right[0][0] <= left[0][1]:
            return max(left[0][0], right[0][0])
        (left if left[0][0] <= right[0][0] else right).pop(0)
    return None


def _readable(text: str, completions: int) -> list[_Interval]:
    found = []
    for part in text.split(",") if text else ():
        try:
            found.append(_interval(part, completions))
        except InvalidIndexes:
            continue
    return found


def _interval(part: str, completions: int) -> _Interval:
    limits = part.split("-")
    if len(limits) > 2:
        words = "violates the requirement that an index interval can have at most two parts separated by '-'"
        raise InvalidIndexes(f'the fragment "{part}" {words}')
    first = _index(limits[0], completions)
    if len(limits) == 1:
        return first, first
    end = _index(limits[1], completions)
    if first >= end:
        raise InvalidIndexes(f"non-increasing order, previous: {first}, current: {end}")
    return first, end


def _index(text: str, completions: int) -> int:
    if not _INTEGER(text):
        raise InvalidIndexes(f'cannot convert string to integer for index: "{text}"')
    number = int(text)
    if number >= completions:
        raise InvalidIndexes(f'too large index: "{text}"')
    return number
