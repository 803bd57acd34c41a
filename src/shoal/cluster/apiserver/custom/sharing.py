"""What is made of a part of a schema is made once, however often the part stands somewhere.

A schema has no references: a container, a probe or a selector is written out at each of its places, and again in the
next kind that has pods. So one pod template has thousands of parts, of which few hundred differ. Whatever depends on
nothing but what a part says is kept by that, for all kinds together.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

import msgspec

Raw = dict[str, Any]
T = TypeVar("T")

_MOST = 8192
"""More than the kinds of any one cluster have; with more, all is made anew."""


def by_content(make: Callable[[Raw], T]) -> Callable[[Raw], T]:
    """The same function, which makes one thing of equal parts; parts that describe themselves are hardly ever equal."""
    made: dict[bytes, T] = {}

    @wraps(make)
    def shared(raw: Raw) -> T:
        if "description" in raw:
            return make(raw)
        said = msgspec.json.encode(raw)
        found = made.get(said, _NOTHING)
        if found is _NOTHING:
            if len(made) >= _MOST:
                made.clear()
            found = made[said] = make(raw)
        return found  # type: ignore[return-value] # nobody else has the mark

    _TABLES.append(made)
    return shared


def forget() -> None:
    """Lets go of everything that was made, which is made anew where it is needed."""
    for made in _TABLES:
        made.clear()


_NOTHING = object()
_TABLES: list[dict[bytes, Any]] = []
