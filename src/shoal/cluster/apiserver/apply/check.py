"""Whether an applied configuration has the shape of its kind; the messages are structured merge's own."""

from __future__ import annotations

import json
from typing import Any

from shoal.cluster.apiserver.apply.elements import Untypeable, shown
from shoal.cluster.apiserver.apply.shape import (
    BOOLEAN,
    LIST,
    MAP,
    NUMERIC,
    SCALAR,
    STRING,
    UNTYPED,
    ListShape,
    MapShape,
    Shape,
)

Problem = tuple[str, str]
"""A path and what is wrong there."""


def problems(shape: Shape, value: Any, *, path: str = "") -> list[Problem]:
    """Everything in the value that its schema does not allow, duplicates in lists included."""
    form = shape.form_of(value)
    if form is SCALAR:
        return _scalar_problems(shape.scalar, value, path)
    if form is MAP and shape.map is not None:
        return _map_problems(shape.map, value, path)
    if form is LIST and shape.list is not None:
        return _list_problems(shape.list, value, path)
    return []


def fits(shape: Shape, value: Any) -> bool:
    """Whether there are no problems; much faster, since no paths are made."""
    form = shape.form_of(value)
    if value is None:
        return True
    if form is SCALAR:
        return value.__class__ in _FITTING[shape.scalar or UNTYPED]
    if form is MAP and shape.map is not None:
        return value.__class__ is dict and _map_fits(shape.map, value)
    return value.__class__ is list and shape.list is not None and _list_fits(shape.list, value)


def message(found: list[Problem]) -> str:
    """The problems as one text."""
    lines = [f"{path}: {what}" if path else what for path, what in found]
    if len(lines) == 1:
        return lines[0]
    return "\n".join(["errors:", *(f"  {line}" for line in lines)])


def _map_fits(shape: MapShape, value: dict[str, Any]) -> bool:
    fields, element = shape.fields, shape.element
    declared = fields.declared
    for key, item in value.items():
        child = fields[key][1] if key in declared else element
        if child is None or not fits(child, item):
            return False
    return True


def _list_fits(shape: ListShape, value: list[Any]) -> bool:
    if not shape.is_atomic:
        try:
            labels = {shape.label(item) for item in value}
        except Untypeable:
            return False
        if len(labels) < len(value):
            return False
    item_shape = shape.item
    return all(fits(item_shape, item) for item in value)


def _scalar_problems(scalar: str | None, value: Any, path: str) -> list[Problem]:
    kind = value.__class__
    if value is None:
        return []
    if scalar == NUMERIC:
        if kind is not int and kind is not float:
            return [(path, f"expected numeric (int or float), got {_GO_TYPES[kind]}")]
    elif scalar == STRING:
        if kind is not str:
            return [(path, f"expected string, got &value.valueUnstructured{{Value:{_go_syntax(value)}}}")]
    elif scalar == BOOLEAN:
        if kind is not bool:
            return [(path, f"expected boolean, got &{{{_go_plain(value)}}}")]
    elif kind is dict or kind is list:
        return [(path, f"expected any scalar, got &{{{_go_plain(value)}}}")]
    return []


def _map_problems(shape: MapShape, value: Any, path: str) -> list[Problem]:
    if value is None:
        return []
    if value.__class__ is not dict:
        return [(path, f"expected map, got &{{{_go_plain(value)}}}")]
    found: list[Problem] = []
    for key, item in value.items():
        child = shape.child(key)
        if child is None:
            found.append((f"{path}.{key}", "field not declared in schema"))
            break
        found += problems(child, item, path=f"{path}.{key}")
    return found


def _list_problems(shape: ListShape, value: Any, path: str) -> list[Problem]:
    if value is None:
        return []
    if value.__class__ is not list:
        return [(path, f"expected list, got &{{{_go_plain(value)}}}")]
    found: list[Problem] = []
    seen: set[str] = set()
    for place, item in enumerate(value):
        if shape.is_atomic:
            element = f"[{place}]"
        else:
            try:
                label = shape.label(item)
            except Untypeable as problem:
                found.append((path, f"element {place}: {problem}"))
                break
            element = shown(label)
            if label in seen:
                found.append((path, f"duplicate entries for key {element}"))
            seen.add(label)
        found += problems(shape.item, item, path=path + element)
    return found


_FITTING: dict[str, frozenset[type]] = {
    NUMERIC: frozenset({int, float}),
    STRING: frozenset({str}),
    BOOLEAN: frozenset({bool}),
    UNTYPED: frozenset({int, float, str, bool}),
}
_GO_TYPES: dict[type, str] = {
    str: "string",
    bool: "bool",
    dict: "map[string]interface {}",
    list: "[]interface {}",
}


def _go_syntax(value: Any) -> str:
    """A value as Go's %#v writes it."""
    if isinstance(value, dict):
        return (
            "map[string]interface {}{"
            + ", ".join(f"{_go_syntax(k)}:{_go_syntax(value[k])}" for k in sorted(value))
            + "}"
        )
    if isinstance(value, list):
        return "[]interface {}{" + ", ".join(map(_go_syntax, value)) + "}"
    if value is None:
        return "interface {}(nil)"
    return json.dumps(value, ensure_ascii=False)


def _go_plain(value: Any) -> str:
    """A value as Go's %v writes it."""
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_go_plain(value[key])}" for key in sorted(value)) + "]"
    if isinstance(value, list):
        return "[" + " ".join(map(_go_plain, value)) + "]"
    if value is None:
        return "<nil>"
    return value if isinstance(value, str) else json.dumps(value)
