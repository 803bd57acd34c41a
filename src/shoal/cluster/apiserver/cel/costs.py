"""What functions cost, so that an expression ends where Kubernetes' limits would end it.

Kubernetes gives each expression a million units and counts a tenth of one for each letter that a function visits, one
for each item of a list, and about five for each turn of a cheap loop. One step here is such a turn: fifty letters, or
five comparisons of items. The cost is known before a function runs, since many of them are one call of C code that
nothing could interrupt.

On the event loop an expression has a small allowance. One that uses it up is begun again in a worker thread.
"""

from __future__ import annotations

from collections.abc import Callable
from contextvars import ContextVar
from typing import Any

from shoal.cluster.apiserver.cel.values import CelError

STEP_LIMIT = 200_000
"""How many steps one evaluation may take: about where Kubernetes' cost limit ends a cheap loop."""

_LETTERS = 50
_COMPARISONS = 5

Frame = list[Any]
Cost = Callable[..., int]


class ExceedsAllowance(Exception):
    """Expressions take longer than they may on the event loop: they are to be evaluated again in a worker thread."""


class Allowance:
    """The steps that all expressions of one request may take together on the event loop."""

    def __init__(self, steps: int) -> None:
        self.steps = steps


allowance: ContextVar[Allowance | None] = ContextVar("cel_allowance", default=None)
"""None where an expression may take its time."""


def spend(frame: Frame, steps: int) -> None:
    """Takes steps off those that are left; raises CelError where they do not suffice."""
    frame[0] -= steps
    if frame[0] < 0:
        raise CelError("operation cancelled: actual cost limit exceeded")


def charged(call: Callable[..., Any], cost: Cost, parts: list[Callable[[Frame], Any]]) -> Callable[[Frame], Any]:
    """A function that is paid for before it is called."""

    def run(frame: Frame) -> Any:
        values = [each(frame) for each in parts]
        steps = cost(*values)
        if steps:
            spend(frame, steps)
        return call(*values)

    return run


def _size(value: Any) -> int:
    return len(value) if type(value) in _SIZED else 1


_SIZED = (str, bytes, list, dict)


def _letters(*values: Any) -> int:
    """Visits each letter or item once."""
    return sum(map(_size, values)) // _LETTERS


def _added(one: Any, other: Any) -> int:
    return (_size(one) + _size(other)) // _LETTERS


def _replaced(text: str, old: str, new: str, limit: int = -1) -> int:
    if type(text) is not str or type(old) is not str or type(new) is not str:
        return 0
    found = text.count(old) if limit < 0 else min(limit, text.count(old))
    return (len(text) + found * len(new)) // _LETTERS


def _joined(parts: list[Any], separator: str = "") -> int:
    return (sum(map(_size, parts)) + len(parts) * _size(separator)) // _LETTERS


def _matched(text: str, pattern: str, _limit: int = 0) -> int:
    """The engine's work grows with both; forty microseconds are spent on each call alone."""
    return 10 + (_size(text) * (1 + _size(pattern) // 25)) // _LETTERS


def _crossed(one: list[Any], other: list[Any]) -> int:
    """Compares each item with each of the other list."""
    return _size(one) * _size(other) // _COMPARISONS


def _visited(items: Any, *_rest: Any) -> int:
    return _size(items) // _COMPARISONS


def _member(_item: Any, items: Any) -> int:
    return _size(items) // _LETTERS if type(items) is list else 0


def _counted(count: Any) -> int:
    return max(0, count) // _COMPARISONS if type(count) is int else 0


def _formatted(text: str, values: list[Any]) -> int:
    return (_size(text) + sum(map(_shown_size, values))) // _LETTERS


def _shown_size(value: Any, depth: int = 0) -> int:
    if type(value) is list and depth < _DEEPEST:
        return sum(_shown_size(each, depth + 1) for each in value) + len(value)
    if type(value) is dict and depth < _DEEPEST:
        return sum(_shown_size(each, depth + 1) + len(str(key)) for key, each in value.items()) + len(value)
    return _size(value)


_DEEPEST = 64

COSTS: dict[str, Cost] = {
    "_+_": _added,
    "@in": _member,
    "replace": _replaced,
    "split": _visited,
    "join": _joined,
    "format": _formatted,
    "matches": _matched,
    "find": _matched,
    "findAll": _matched,
    "sets.contains": _crossed,
    "sets.equivalent": _crossed,
    "sets.intersects": _crossed,
    "distinct": _visited,
    "lists.range": _counted,
    "sort": _visited,
    "flatten": _visited,
    "reverse": _visited,
    "slice": _visited,
    "indexOf": _letters,
    "lastIndexOf": _letters,
    "sum": _visited,
    "min": _visited,
    "max": _visited,
    "isSorted": _visited,
    "contains": _letters,
    "startsWith": _letters,
    "endsWith": _letters,
    "lowerAscii": _letters,
    "upperAscii": _letters,
    "trim": _letters,
    "substring": _letters,
    "charAt": _letters,
    "strings.quote": _letters,
    "string": _letters,
    "bytes": _letters,
    "base64.encode": _letters,
    "base64.decode": _letters,
    "_==_": _letters,
    "_!=_": _letters,
}
"""The functions whose time grows with what they are given; all others are counted by the loops around them."""
