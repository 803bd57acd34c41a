"""How two values of one type compare: where a schema says so, without the order of items, and moments by the moment."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

from shoal.cluster.apiserver.cel.escapes import unescaped
from shoal.cluster.apiserver.cel.reading import reader
from shoal.cluster.apiserver.cel.types import BYTES, DURATION, TIMESTAMP, Type
from shoal.cluster.apiserver.cel.values import equal


def equality(given: Type) -> Callable[[Any, Any], bool]:
    """How two values of a type compare: sets and maps of items without their order, moments by the moment."""
    if given.name in ("string", "int", "uint", "bool", "double", "null"):
        return operator.eq
    if not _is_special(given):
        return equal
    if given.name == "list":
        return _list_equality(given)
    if given.name == "map":
        value = equality(given.parameters[1])
        return lambda one, other: (
            one.keys() == other.keys() and all(value(each, other[key]) for key, each in one.items())
        )
    if given.fields is not None:
        fields = {unescaped(name): equality(each) for name, each in given.fields.items() if _is_special(each)}
        return lambda one, other: (
            one is other
            or (
                type(one) is type(other) is dict
                and one.keys() == other.keys()
                and all(fields.get(key, equal)(each, other[key]) for key, each in one.items())
            )
        )
    read = reader(given) or (lambda value: value)
    return lambda one, other: read(one) == read(other)


def _list_equality(given: Type) -> Callable[[Any, Any], bool]:
    item = equality(given.parameters[0])
    keys = given.list_keys
    if given.list_type == "map":

        def as_maps(one: list[Any], other: list[Any]) -> bool:
            if len(one) != len(other):
                return False
            known = {tuple(each.get(key) for key in keys): each for each in one}
            for each in other:
                same = known.get(tuple(each.get(key) for key in keys))
                if same is None or not item(same, each):
                    return False
            return True

        return as_maps
    if given.list_type == "set":
        return lambda one, other: len(one) == len(other) and all(each in one for each in other)
    return lambda one, other: len(one) == len(other) and all(map(item, one, other))


def _is_special(given: Type) -> bool:
    if given.list_type in ("set", "map") or given in (TIMESTAMP, DURATION, BYTES):
        return True
    return any(map(_is_special, given.parameters)) or any(map(_is_special, (given.fields or {}).values()))
