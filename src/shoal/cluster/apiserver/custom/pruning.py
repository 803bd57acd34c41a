"""Drops the fields that a schema does not know, and notes them where somebody wants to know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.cluster.apiserver.custom.places import Place, dotted
from shoal.cluster.apiserver.custom.sharing import by_content

Prune = Callable[[Any, Place, list[str] | None], None]
Raw = dict[str, Any]

META = frozenset({"apiVersion", "kind", "metadata"})


def compile_prune(raw: Raw, *, is_root: bool = False) -> Prune | None:
    """How an object or a list is pruned; None where nothing in it is unknown.

    apiVersion, kind and metadata of an object, be it embedded, have rules of their own and stay. A value of the wrong
    type is refused later, but pruned all the same.
    """
    fields, items = _compile_root(raw) if is_root else _compile(raw)
    if fields is None and items is None:
        return None

    def prune(value: Any, place: Place, unknown: list[str] | None) -> None:
        chosen = fields if type(value) is dict else items
        if chosen is not None and type(value) in (dict, list):
            chosen(value, place, unknown)

    return prune


Pair = tuple[Prune | None, Prune | None]
"""How an object and how a list is pruned at a place; the one around it chooses, which saves a call."""
_NOTHING: Pair = (None, None)


@by_content
def _compile(raw: Raw) -> Pair:
    keeps = bool(raw.get("x-kubernetes-preserve-unknown-fields"))
    is_resource = bool(raw.get("x-kubernetes-embedded-resource"))
    return _of_fields(raw, keeps=keeps, is_resource=is_resource), _of_items(raw, keeps=keeps)


def _compile_root(raw: Raw) -> Pair:
    keeps = bool(raw.get("x-kubernetes-preserve-unknown-fields"))
    return _of_fields(raw, keeps=keeps, is_resource=True), _of_items(raw, keeps=keeps)


def _of_fields(raw: Raw, *, keeps: bool, is_resource: bool) -> Prune | None:
    declared = raw.get("properties") or {}
    additional = raw.get("additionalProperties")
    skipped = META if is_resource else frozenset[str]()
    children = {name: _compile(child) for name, child in declared.items() if name not in skipped}
    rest = _NOTHING
    if additional is not None:
        rest = _compile(additional) if isinstance(additional, dict) else (_prune_all, _prune_all)
    is_quiet = rest == _NOTHING and all(each == _NOTHING for each in children.values())
    if is_quiet and (keeps or additional is not None):
        return None
    is_open = keeps or additional is not None
    known = frozenset(declared) | skipped

    def prune(value: Any, place: Place, unknown: list[str] | None) -> None:
        if not is_open and not value.keys() <= known:
            for name in [name for name in value if name not in known]:
                del value[name]
                if unknown is not None and (place is not None or name not in META):
                    unknown.append(f'unknown field "{dotted((place, name))}"')
        for name, item in value.items():
            kind = type(item)
            if kind is not dict and kind is not list:
                continue
            of_fields, of_items = children.get(name, _NOTHING) if name in known else rest
            child = of_fields if kind is dict else of_items
            if child is not None:
                child(item, None if unknown is None else (place, name), unknown)

    return prune


def _of_items(raw: Raw, *, keeps: bool) -> Prune | None:
    items = raw.get("items")
    if not isinstance(items, dict):
        return None if keeps else _prune_all
    # Items below a place that keeps everything keep it as well.
    inner = {**items, "x-kubernetes-preserve-unknown-fields": True} if keeps else items
    of_fields, of_items = _compile(inner)
    if of_fields is None and of_items is None:
        return None

    def prune(value: Any, place: Place, unknown: list[str] | None) -> None:
        for at, item in enumerate(value):
            kind = type(item)
            child = of_fields if kind is dict else of_items if kind is list else None
            if child is not None:
                child(item, None if unknown is None else (place, at), unknown)

    return prune


def _prune_all(value: Any, place: Place, unknown: list[str] | None) -> None:
    if type(value) is dict:
        if unknown is not None:
            unknown.extend(f'unknown field "{dotted((place, name))}"' for name in value)
        value.clear()
    elif type(value) is list:
        for at, item in enumerate(value):
            _prune_all(item, None if unknown is None else (place, at), unknown)
