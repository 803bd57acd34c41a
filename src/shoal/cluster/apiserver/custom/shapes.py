"""The shape of a custom kind's objects, for patches, apply and discovery."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.cluster.apiserver.custom.sharing import by_content
from shoal.cluster.apiserver.kinds.tables import type_schema
from shoal.cluster.apiserver.schema import ListType, Schema

_TEXT = Schema(type="string")


def object_schema(raw: dict[str, Any]) -> Schema:
    """The shape of an object; its metadata is every object's, whatever its schema says of it."""
    shape = _schema_of(raw)
    shape.properties = {
        **shape.properties,
        "apiVersion": _TEXT,
        "kind": _TEXT,
        "metadata": type_schema("meta.v1.ObjectMeta"),
    }
    return shape


@by_content
def schema_of(raw: dict[str, Any]) -> Schema:
    """The shape of a place, which is not to be changed: equal places share it."""
    return _schema_of(raw)


def _schema_of(raw: dict[str, Any]) -> Schema:
    items, additional = raw.get("items"), raw.get("additionalProperties")
    is_either = bool(raw.get("x-kubernetes-int-or-string"))
    default = raw.get("default")
    return Schema(
        type="" if is_either else raw.get("type") or "",
        format="int-or-string" if is_either else raw.get("format") or "",
        properties={name: schema_of(child) for name, child in (raw.get("properties") or {}).items()},
        additional=schema_of(additional) if isinstance(additional, dict) else Schema() if additional is True else None,
        items=schema_of(items) if isinstance(items, dict) else None,
        list_type=ListType(raw.get("x-kubernetes-list-type") or "atomic"),
        list_keys=tuple(raw.get("x-kubernetes-list-map-keys") or ()),
        is_atomic=raw.get("x-kubernetes-map-type") == "atomic",
        default=msgspec.UNSET if default is None else default,
        nullable=bool(raw.get("nullable")),
        preserves_unknown=bool(raw.get("x-kubernetes-preserve-unknown-fields")),
        is_embedded=bool(raw.get("x-kubernetes-embedded-resource")),
        required=frozenset(raw.get("required") or ()),
        enum=tuple(raw.get("enum") or ()),
        raw=raw,
    )
