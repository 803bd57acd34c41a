"""The types that rules see: those of the schema, with the fields by the names that expressions call them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import Any

from shoal.cluster.apiserver.cel.escapes import escaped
from shoal.cluster.apiserver.cel.types import (
    BOOL,
    BYTES,
    DOUBLE,
    DURATION,
    DYN,
    INT,
    STRING,
    TIMESTAMP,
    Type,
    list_of,
    map_of,
    object_of,
)

_FORMATS = {"byte": BYTES, "duration": DURATION, "date": TIMESTAMP, "date-time": TIMESTAMP}
_SCALARS = {"boolean": BOOL, "number": DOUBLE, "integer": INT}
_METADATA = object_of("metadata", {"name": STRING, "generateName": STRING})
_RESOURCE = {"apiVersion": STRING, "kind": STRING, "metadata": _METADATA}


def rule_type(raw: dict[str, Any], *, is_resource: bool = False, name: str = "selfType") -> Type | None:
    """The type of a place; None where the schema does not say enough for rules to see it."""
    if raw.get("x-kubernetes-int-or-string"):
        return DYN
    match raw.get("type"):
        case "array":
            return _list_type(raw, name)
        case "object":
            additional = raw.get("additionalProperties")
            if isinstance(additional, dict) and not is_resource:
                value = rule_type(additional, is_resource=_is_embedded(additional), name=f"{name}.@elem")
                return None if value is None else map_of(STRING, value)
            return _object_type(raw, name, is_resource=is_resource)
        case "string":
            return _FORMATS.get(raw.get("format") or "", STRING)
        case named:
            return _SCALARS.get(named or "")


def _list_type(raw: dict[str, Any], name: str) -> Type | None:
    items = raw.get("items")
    if not isinstance(items, dict):
        return None
    item = rule_type(items, is_resource=_is_embedded(items), name=f"{name}.@idx")
    if item is None:
        return None
    keys = tuple(raw.get("x-kubernetes-list-map-keys") or ())
    return list_of(item, list_type=raw.get("x-kubernetes-list-type") or "", keys=keys)


def _object_type(raw: dict[str, Any], name: str, *, is_resource: bool) -> Type:
    return object_of(name, _Fields(raw.get("properties") or {}, name, _RESOURCE if is_resource else {}))


class _Fields(Mapping[str, Type]):
    """The fields of an object, looked at when somebody asks for one: rules see few of the objects there may be."""

    def __init__(self, declared: dict[str, dict[str, Any]], name: str, given: Mapping[str, Type]) -> None:
        self._declared = declared
        self._name = name
        self._given = given

    def __getitem__(self, spelled: str) -> Type:
        return self._known[spelled]

    def __iter__(self) -> Iterator[str]:
        return iter(self._known)

    def __len__(self) -> int:
        return len(self._known)

    @cached_property
    def _known(self) -> dict[str, Type]:
        fields: dict[str, Type] = {}
        for field, child in self._declared.items():
            spelled = escaped(field)
            if spelled is None:
                continue
            found = rule_type(child, is_resource=_is_embedded(child), name=f"{self._name}.{field}")
            if found is not None:
                fields[spelled] = found
        return {**fields, **self._given}


def _is_embedded(raw: dict[str, Any]) -> bool:
    return bool(raw.get("x-kubernetes-embedded-resource"))
