"""Drops the fields that a schema does not know, and notes them where somebody wants to know."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.cluster.apiserver.custom.places import Place, dotted

Prune = Callable[[Any, Place, list[str] | None], None]
Raw = dict[str, Any]

META = frozenset({"apiVersion", "kind", "metadata"})


def compile_prune(raw: Raw, *, is_root: bool = False) -> Prune | None:
    """How a value is pruned; None where nothing can be unknown: a scalar, or a place that keeps everything.

    apiVersion, kind and metadata of an object, be it embedded, have rules of their own and stay.
    """
    return _compile(raw, is_root=is_root)


def _compile(raw: Raw | None, *, is_root: bool = False) -> Prune | None:
    if raw is None:
        return _prune_all
    keeps = bool(raw.get("x-kubernetes-preserve-unknown-fields"))
    of_fields = _of_fields(raw, keeps=keeps, is_resource=is_root or bool(raw.get("x-kubernetes-embedded-resource")))
    of_items = _of_items(raw, keeps=keeps)
    if of_fields is None:
        return of_items
    if of_items is None:
        return of_fields
    fields, items = of_fields, of_items

    def either(value: Any, place: Place, unknown: list[str] | None) -> None:
        (fields if type(value) is dict else items)(value, place, unknown)

    return either


def _of_fields(raw: Raw, *, keeps: bool, is_resource: bool) -> Prune | None:
    if raw.get("type") not in (None, "object"):
        # A value of the wrong type is refused later, whatever is left of it.
        return None
    declared = raw.get("properties") or {}
    skipped = META if is_resource else frozenset[str]()
    children = {name: _compile(child) for name, child in declared.items() if name not in skipped}
    additional = raw.get("additionalProperties")
    has_additional = additional is not None
    rest = _compile(additional if isinstance(additional, dict) else None) if has_additional else None
    busy = {name: child for name, child in children.items() if child is not None}
    if keeps and not busy and rest is None:
        return None
    if has_additional and not declared:
        return _of_map(rest, skipped)
    known = frozenset(declared) | skipped
    is_leaf = not busy and rest is None

    def prune(value: Any, place: Place, unknown: list[str] | None) -> None:
        if type(value) is not dict:
            return
        if not (keeps or has_additional) and not value.keys() <= known:
            for name in [name for name in value if name not in known]:
                del value[name]
                if unknown is not None and (place is not None or name not in META):
                    unknown.append(f'unknown field "{dotted((place, name))}"')
        if is_leaf:
            return
        for name, item in value.items():
            child = busy.get(name)
            if child is not None:
                child(item, None if unknown is None else (place, name), unknown)
            elif rest is not None and name not in known:
                rest(item, None if unknown is None else (place, name), unknown)

    return prune


def _of_map(rest: Prune | None, skipped: frozenset[str]) -> Prune | None:
    if rest is None:
        return None
    child = rest

    def prune(value: Any, place: Place, unknown: list[str] | None) -> None:
        if type(value) is dict:
            for name, item in value.items():
                if name not in skipped:
                    child(item, None if unknown is None else (place, name), unknown)

    return prune


def _of_items(raw: Raw, *, keeps: bool) -> Prune | None:
    if raw.get("type") not in (None, "array"):
        return None
    items = raw.get("items")
    if items is None and keeps:
        return None
    # Items below a place that keeps everything keep it as well.
    inner = {**items, "x-kubernetes-preserve-unknown-fields": True} if keeps and items is not None else items
    if raw.get("type") is None and items is None:
        return _prune_all
    child = _compile(inner)
    if child is None:
        return None
    each = child

    def prune(value: Any, place: Place, unknown: list[str] | None) -> None:
        if type(value) is list:
            for at, item in enumerate(value):
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
