"""Where in an object a value stands, as a chain that costs next to nothing until somebody asks for its text."""

from __future__ import annotations

from typing import Any

Place = tuple[Any, str | int] | None
"""The place around it, and the field or index in that; None is the object itself."""


def dotted(place: Place) -> str:
    """As schema validation writes it: ``spec.labels.app``, ``spec.items[0]``."""
    parts: list[str] = []
    while place is not None:
        place, step = place
        parts.append(f"[{step}]" if isinstance(step, int) else f".{step}")
    return "".join(reversed(parts)).removeprefix(".")


class Key(str):
    """A key of a map, which paths of fields write in brackets."""

    __slots__ = ()


def field_path(place: Place) -> str:
    """As everything else writes it: ``spec.labels[app]``, ``spec.items[0]``; the object itself is ``<nil>``."""
    if place is None:
        return "<nil>"
    parts: list[str] = []
    while place is not None:
        place, step = place
        parts.append(f"[{step}]" if isinstance(step, int | Key) else f".{step}")
    return "".join(reversed(parts)).removeprefix(".")
