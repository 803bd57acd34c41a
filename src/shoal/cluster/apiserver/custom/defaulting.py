"""Fills in what a schema says a field is when nobody says otherwise, and drops nulls that may not be."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from shoal.cluster.apiserver.custom.sharing import by_content

Default = Callable[[Any], None]
Raw = dict[str, Any]


@by_content
def compile_default(raw: Raw) -> Default | None:
    """How a value gets its defaults; None for a scalar."""
    of_fields, of_items = _of_fields(raw), _of_items(raw)
    if of_fields is None or of_items is None:
        return of_fields or of_items
    fields, items = of_fields, of_items

    def either(value: Any) -> None:
        (fields if type(value) is dict else items)(value)

    return either


def _of_fields(raw: Raw) -> Default | None:
    declared: dict[str, Raw] = raw.get("properties") or {}
    additional = raw.get("additionalProperties")
    if raw.get("type") not in (None, "object") or not (declared or isinstance(additional, dict)):
        return None
    if not declared and isinstance(additional, dict):
        return _of_map(additional)
    makers = [
        (name, value_maker(child["default"])) for name, child in declared.items() if child.get("default") is not None
    ]
    busy = {name: compile_default(child) for name, child in declared.items()}
    children = {name: child for name, child in busy.items() if child is not None}
    strict = frozenset(name for name, child in declared.items() if not child.get("nullable"))

    def default(value: Any) -> None:
        if type(value) is not dict:
            return
        if None in value.values():
            for name in [name for name, item in value.items() if item is None and name in strict]:
                del value[name]
        for name, make in makers:
            if name not in value:
                value[name] = make()
        for name, item in value.items():
            child = children.get(name)
            if child is not None:
                child(item)

    def drop_nulls(value: Any) -> None:
        if type(value) is dict and None in value.values():
            for name in [name for name, item in value.items() if item is None and name in strict]:
                del value[name]

    return default if makers or children else drop_nulls


def _of_map(additional: Raw) -> Default | None:
    child = compile_default(additional)
    is_strict = not additional.get("nullable")
    make = value_maker(additional["default"]) if additional.get("default") is not None else None

    def default(value: Any) -> None:
        if type(value) is not dict:
            return
        if is_strict and None in value.values():
            for name in [name for name, item in value.items() if item is None]:
                if make is None:
                    del value[name]
                else:
                    value[name] = make()
        if child is not None:
            for item in value.values():
                child(item)

    return default


def _of_items(raw: Raw) -> Default | None:
    items = raw.get("items")
    if raw.get("type") not in (None, "array") or not isinstance(items, dict):
        return None
    child = compile_default(items)
    make = value_maker(items["default"]) if items.get("default") is not None and not items.get("nullable") else None
    if child is None and make is None:
        return None

    def default(value: Any) -> None:
        if type(value) is not list:
            return
        if make is not None and None in value:
            value[:] = [make() if item is None else item for item in value]
        if child is not None:
            for item in value:
                child(item)

    return default


def value_maker(value: Any) -> Callable[[], Any]:
    """Makes the value anew each time, since whoever gets it may change it."""
    if type(value) in (dict, list):
        encoded = msgspec.json.encode(value)
        return lambda: msgspec.json.decode(encoded)
    return lambda: value
