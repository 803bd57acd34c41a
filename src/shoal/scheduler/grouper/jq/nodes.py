"""The pieces of an expression, and what can be wrong with one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

COMPARISONS: Final = ("==", "!=", "<", "<=", ">", ">=")


class InvalidQuery(Exception):
    """An expression that is not understood; says what of it."""


class QueryFailed(Exception):
    """A value that an expression does not suit; says why."""


@dataclass(frozen=True)
class Node:
    """A piece of an expression: what is done, to what, and with which word or value."""

    does: str
    of: tuple[Node, ...] = ()
    value: Any = None
