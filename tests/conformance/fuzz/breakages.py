"""Small changes to a JSON value at a place chosen by number: what people mistype, and what patches may say.

A place is a number so that the test library can draw and shrink it; it counts through the places of whatever value it
meets, in an order that does not depend on how a server orders its keys.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

# Names and what nobody edits: breaking these would end a sequence or say nothing about the server.
_LEFT_ALONE = frozenset({"managedFields", "uid", "resourceVersion", "creationTimestamp", "namespace", "generateName"})
_VALUES: dict[str, Any] = {
    "null": None,
    "map": {},
    "list": [],
    "text": "x",
    "nothing": "",
    "upper": "No_Such.Value",
    "number": 7,
    "digits": "7",
    "zero": 0,
    "negative": -1,
    "fraction": 1.5,
    "huge": 1 << 40,
    "true": True,
    "long": "y" * 300,
    "texts": ["x", "y"],
    "maps": [{}],
    "percent": "25%",
    "quantity": "1500m",
}
_SHAPES = ("drop", "unknown", "duplicate", "reverse", "capital")
_DIRECTIVES = ("replace", "delete", "merge", "bogus", "item", "order", "retain", "primitive", "keep")

BREAKAGES = (*_VALUES, *_SHAPES)
DIRECTIVES = _DIRECTIVES


@dataclass(frozen=True)
class Breakage:
    """One change: ``how`` is a name of BREAKAGES or DIRECTIVES."""

    place: int
    how: str


def broken(value: Any, breakages: tuple[Breakage, ...]) -> Any:
    """The value with these changes; the one given stays as it is."""
    out = copy.deepcopy(value)
    for one in breakages:
        found = list(places(out))
        if found:
            _break(out, found[one.place % len(found)], one.how)
    return out


def places(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[str | int, ...]]:
    """Every place below a value, the deeper after the shallower."""
    inner: list[tuple[str | int, Any]] = []
    if isinstance(value, dict):
        inner = sorted((key, item) for key, item in value.items() if key not in _LEFT_ALONE) if value else []
    elif isinstance(value, list):
        inner = list(enumerate(value))
    for key, item in inner:
        yield (*path, key)
        yield from places(item, (*path, key))


def at(value: Any, path: tuple[str | int, ...]) -> Any:
    for key in path:
        value = value[key]
    return value


def pointer(path: tuple[str | int, ...]) -> str:
    """The place as a JSON pointer."""
    return "".join("/" + str(key).replace("~", "~0").replace("/", "~1") for key in path)


def _break(value: Any, path: tuple[str | int, ...], how: str) -> None:
    holder, key = at(value, path[:-1]), path[-1]
    found = holder[key]
    if how in _VALUES:
        holder[key] = copy.deepcopy(_VALUES[how])
    elif how == "drop":
        del holder[key]
    elif how == "unknown":
        target = next((one for one in (found, holder) if isinstance(one, dict)), value)
        target["bogus"] = {"x": 1}
    elif how == "capital" and isinstance(holder, dict) and isinstance(key, str):
        holder[key[:1].upper() + key[1:]] = holder.pop(key)
    elif how == "duplicate" and isinstance(found, list) and found:
        found.append(copy.deepcopy(found[0]))
    elif how == "reverse" and isinstance(found, list):
        found.reverse()
    elif how in _DIRECTIVES:
        _direct(found, holder, key, how)


def _direct(found: Any, holder: Any, key: str | int, how: str) -> None:
    """Puts one of the directives of a strategic merge patch where it has a meaning, or near it."""
    if how in ("replace", "delete", "merge", "bogus"):
        if isinstance(found, list):
            found.append({"$patch": how})
        else:
            target = found if isinstance(found, dict) else holder
            if isinstance(target, dict):
                target["$patch"] = how
    elif how == "item" and isinstance(found, list) and found and isinstance(found[0], dict):
        found[0] = {**{name: item for name, item in found[0].items() if not isinstance(item, dict | list)}}
        found[0]["$patch"] = "delete"
    elif how in ("order", "keep") and isinstance(found, list) and isinstance(holder, dict):
        rows = [
            {name: item for name, item in row.items() if name in _MERGE_KEYS} if isinstance(row, dict) else row
            for row in reversed(found)
        ]
        holder[f"$setElementOrder/{key}"] = rows if how == "order" else rows[:1]
    elif how == "retain":
        target = found if isinstance(found, dict) else holder
        if isinstance(target, dict):
            target["$retainKeys"] = [name for name in sorted(target) if not name.startswith("$")][:2]
    elif how == "primitive" and isinstance(found, list) and isinstance(holder, dict):
        # What a patch both adds and takes out is there or not as Go happens to walk through its map.
        holder[f"$deleteFromPrimitiveList/{key}"] = found[:1] or ["x"]
        del found[:1]


_MERGE_KEYS = frozenset({"name", "containerPort", "port", "type", "key", "mountPath", "ip", "topologyKey", "uid"})
