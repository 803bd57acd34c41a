"""Drops the fields that a schema does not know, and notes them where somebody wants to know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.cluster.apiserver.custom.places import Place, dotted

Prune = Callable[[Any, Place, list[str] | None], None]
Raw = dict[str, Any]

META = frozenset({"apiVersion", "kind", "metadata"})


def compile_prune(raw: Raw, *, is_root: bool = False) -> Prune | None:
    """How an object or a list is pruned; None where nothing in it is unknown.

    apiVersion, kind and metadata of an object, be it embedded, have rules of their own and stay. A value of the wrong
    type is refused later, but pruned all the same.
    """
    keeps = bool(raw.get("x-kubernetes-preserve-unknown-fields"))
    fields = _of_fields(raw, keeps=keeps, is_resource=is_root or bool(raw.get("x-kubernetes-embedded-resource")))
    items = _of_items(raw, keeps=keeps)
    if fields is None and items is None:
        return None

    def prune(value: Any, place: Place, unknown: list[str] | None) -> None:
        if type(value) is dict:
            if fields is not None:
                fields(value, place, unknown)
        elif items is not None:
            items(value, place, unknown)

    return prune


def _of_fields(raw: Raw, *, keeps: bool, is_resource: bool) -> Prune | None:
    declared = raw.get("properties") or {}
    additional = raw.get("additionalProperties")
    skipped = META if is_resource else frozenset[str]()
    children = {name: compile_prune(child) for name, child in declared.items() if name not in skipped}
    rest: Prune | None = None
    if additional is not None:
        rest = compile_prune(additional) if isinstance(additional, dict) else _prune_all
    if rest is None and not any(children.values()) and (keeps or additional is not None):
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
            child = children.get(name) if name in known else rest
            if child is not None:
                child(item, None if unknown is None else (place, name), unknown)

    return prune


def _of_items(raw: Raw, *, keeps: bool) -> Prune | None:
    items = raw.get("items")
    if not isinstance(items, dict):
        return None if keeps else _prune_all
    # Items below a place that keeps everything keep it as well.
    inner = {**items, "x-kubernetes-preserve-unknown-fields": True} if keeps else items
    child = compile_prune(inner)
    if child is None:
        return None
    each = child

    def prune(value: Any, place: Place, unknown: list[str] | None) -> None:
        for at, item in enumerate(value):
            kind = type(item)
            if kind is dict or kind is list:
                each(item, None if unknown is None else (place, at), unknown)

    return prune


def _prune_all(value: Any, place: Place, unknown: list[str] | None) -> None:
    if type(value) is dict:
        if unknown is not None:
            unknown.extend(f'unknown field "{dotted((place, name))}"' for name in value)
        value.clear()
    elif type(value) is list:
        for at, item in enumerate(value):
            _prune_all(item, None if unknown is None else (place, at), unknown)
