"""The built-in kinds: what tables.json says of them, as Kinds and Schemas.

The tables hold facts alone: how Go writes each field, how lists merge, what discovery lists. They are made from the
published types and a real server by ``make kind-tables``. Rules beyond that come from the caller.

Types are named by group, version and Go name: ``core.v1.Pod``, ``meta.v1.DeleteOptions``. A struct's properties are
built once and shared by all its places, so that the whole of it costs a few milliseconds.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Mapping
from functools import cache, partial
from pathlib import Path
from typing import Any, Literal

import msgspec

from shoal.cluster.apiserver.kinds import autoscalers, conversions
from shoal.cluster.apiserver.kinds.kind import Kind, Rules, ScalePaths, Subresource
from shoal.cluster.apiserver.refusals import qualified
from shoal.cluster.apiserver.schema import ListType, Omit, Schema

_META_KINDS = frozenset({"CreateOptions", "DeleteOptions", "PatchOptions", "Status", "UpdateOptions"})
_SCALE = ScalePaths(
    spec_replicas=("spec", "replicas"), status_replicas=("status", "replicas"), selector=("spec", "selector")
)
_OMIT = {"empty": Omit.EMPTY, "never": Omit.NEVER, "zero": Omit.ZERO}
_PLAIN = {
    "string": ("string", ""),
    "bool": ("boolean", ""),
    "int": ("integer", "int64"),
    "int32": ("integer", "int32"),
    "int64": ("integer", "int64"),
    "uint32": ("integer", "uint32"),
    "float64": ("number", "double"),
    "[]uint8": ("string", "byte"),
}
# The types that write their JSON by themselves: type, format, and whether any fields are kept.
_SPECIAL = {
    "meta.v1.Time": ("string", "date-time", False),
    "meta.v1.MicroTime": ("string", "micro-time", False),
    "meta.v1.Duration": ("string", "duration", False),
    "api.resource.Quantity": ("string", "quantity", False),
    "util.intstr.IntOrString": ("", "int-or-string", False),
    "pkg.runtime.RawExtension": ("object", "", True),
    "meta.v1.FieldsV1": ("object", "", True),
    "apiextensions.v1.JSON": ("", "", True),
    "apiextensions.v1.JSONSchemaPropsOrArray": ("", "", True),
    "apiextensions.v1.JSONSchemaPropsOrBool": ("", "", True),
    "apiextensions.v1.JSONSchemaPropsOrStringArray": ("", "", True),
}
# What is stored in another shape: the storage, the type there, and the way there and back.
_SHARED_STORAGE = {
    ("events.k8s.io", "v1", "Event"): (
        "events",
        "core.v1.Event",
        conversions.event_to_core,
        conversions.event_from_core,
    ),
    ("autoscaling", "v1", "HorizontalPodAutoscaler"): (
        "horizontalpodautoscalers.autoscaling",
        "autoscaling.v2.HorizontalPodAutoscaler",
        autoscalers.autoscaler_to_v2,
        autoscalers.autoscaler_from_v2,
    ),
}


class _Field(msgspec.Struct, frozen=True):
    type: str
    number: int
    omit: Literal["empty", "never", "zero"] = "empty"
    list: ListType = ListType.ATOMIC
    keys: tuple[str, ...] = ()
    atomic: bool = False
    merge_key: str = ""
    strategies: frozenset[str] = frozenset()
    default: Any = msgspec.UNSET
    enum: tuple[str, ...] = ()


class _Inlined(msgspec.Struct, frozen=True):
    type: str
    number: int


class _Type(msgspec.Struct, frozen=True):
    fields: dict[str, _Field] = {}
    inlined: tuple[_Inlined, ...] = ()
    base: str = ""
    special: bool = False
    atomic: bool = False
    required: frozenset[str] = frozenset()


class _Part(msgspec.Struct, frozen=True):
    group: str
    version: str
    kind: str
    verbs: tuple[str, ...]
    type: str = ""


class _Resource(msgspec.Struct, frozen=True):
    group: str
    version: str
    kind: str
    resource: str
    singular: str
    type: str
    namespaced: bool
    verbs: tuple[str, ...]
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: dict[str, _Part] = {}


class _Tables(msgspec.Struct, frozen=True):
    resources: tuple[_Resource, ...]
    types: dict[str, _Type]


def builtin_kinds(rules: Mapping[tuple[str, str], Rules]) -> tuple[Kind, ...]:
    """Every built-in kind in every version that is served, with the rules for its group and kind."""
    return tuple(_kind(row, rules.get((row.group, row.kind), Rules())) for row in _tables().resources)


@cache
def type_schema(name: str) -> Schema:
    """The shape of a type by its name, such as ``meta.v1.DeleteOptions``; raises KeyError where there is none."""
    if name not in _tables().types:
        raise KeyError(name)
    return _place(name)


def body_schema(api_version: str, kind: str) -> Schema | None:
    """The shape of a body that says this of itself: an object, a subresource's body, or options of any group."""
    if name := _bodies().get((api_version, kind)):
        return type_schema(name)
    return type_schema(f"meta.v1.{kind}") if kind in _META_KINDS else None


def _kind(row: _Resource, rules: Rules) -> Kind:
    schema = type_schema(row.type)
    storage, to_storage, from_storage = qualified(row.resource, row.group), None, None
    if shared := _SHARED_STORAGE.get((row.group, row.version, row.kind)):
        storage, stored_type, convert, convert_back = shared
        to_storage = partial(convert, type_schema(stored_type))
        from_storage = partial(convert_back, schema)
    return Kind(
        group=row.group,
        version=row.version,
        kind=row.kind,
        resource=row.resource,
        singular=row.singular,
        list_kind=f"{row.kind}List",
        namespaced=row.namespaced,
        short_names=row.short_names,
        categories=row.categories,
        verbs=row.verbs,
        schema=schema,
        storage=storage,
        subresources={name: _subresource(part) for name, part in row.subresources.items()},
        scale=_SCALE if "scale" in row.subresources else None,
        rules=rules,
        to_storage=to_storage,
        from_storage=from_storage,
    )


def _subresource(part: _Part) -> Subresource:
    schema = type_schema(part.type) if part.type else None
    return Subresource(group=part.group, version=part.version, kind=part.kind, verbs=part.verbs, schema=schema)


@cache
def _tables() -> _Tables:
    return msgspec.json.decode((Path(__file__).parent / "tables.json").read_bytes(), type=_Tables)


@cache
def _bodies() -> dict[tuple[str, str], str]:
    found = {}
    for row in _tables().resources:
        found[_api_version(row.group, row.version), row.kind] = row.type
        for part in row.subresources.values():
            if part.type:
                found[_api_version(part.group, part.version), part.kind] = part.type
    return found


def _api_version(group: str, version: str) -> str:
    return f"{group}/{version}" if group else version


class _Struct(msgspec.Struct):
    """What all places of one struct share."""

    properties: dict[str, Schema]
    inlined: tuple[Schema, ...]
    required: frozenset[str]


_NO_FACTS = _Field("", 0)


def _place(type_: str, facts: _Field = _NO_FACTS) -> Schema:
    """The node of one place: the type says what is there, the field how it merges and is written."""
    is_pointer = type_.startswith("*")
    name = type_.removeprefix("*")
    row = _tables().types.get(name)
    base = row.base if row is not None and row.base else name
    schema = Schema(
        go_type=_go_type(name),
        is_pointer=is_pointer,
        number=facts.number,
        omit=_OMIT[facts.omit],
        default=facts.default,
        merge_key=facts.merge_key,
        merge_strategies=facts.strategies,
        is_atomic=facts.atomic or (row is not None and row.atomic),
    )
    if name in _SPECIAL or (row is not None and not row.base):
        schema.type_name = name
    if name in _SPECIAL:
        schema.type, schema.format, schema.preserves_unknown = _SPECIAL[name]
        if "PropsOr" in name:
            schema.items = _place("*apiextensions.v1.JSONSchemaProps")
    elif base in _PLAIN:
        schema.type, schema.format = _PLAIN[base]
        schema.enum = facts.enum
    elif base.startswith("[]"):
        schema.type, schema.items = "array", _place(base[2:])
        schema.items.enum = facts.enum
        schema.list_type, schema.list_keys = facts.list, facts.keys
    elif base.startswith("map["):
        schema.type, schema.additional = "object", _place(base.partition("]")[2])
    else:
        shared = _struct(name)
        schema.type = "object"
        schema.properties, schema.inlined, schema.required = shared.properties, shared.inlined, shared.required
    return schema


_structs: dict[str, _Struct] = {}


def _struct(name: str) -> _Struct:
    """A struct's properties; known by its name before they are filled in, since JSONSchemaProps holds itself."""
    with _filling:
        return _structs[name] if name in _structs else _filled(name)


_filling = threading.RLock()
"""Types are looked up in threads, and none may see a struct that another is still filling in."""


def _filled(name: str) -> _Struct:
    row = _tables().types[name]
    made = _structs[name] = _Struct({}, (), row.required)
    parts = []
    for part in row.inlined:
        inner = _place(part.type, _Field(part.type, part.number))
        parts.append(inner)
        made.properties |= inner.properties
        made.required |= inner.required
    made.inlined = tuple(parts)
    for field, facts in row.fields.items():
        made.properties[field] = _place(facts.type, facts)
    return made


def _go_type(name: str) -> str:
    """A type as Go's messages name it: ``[]v1.Container`` for ``[]core.v1.Container``."""
    return re.sub(r"\w+\.(\w+\.\w+)", r"\1", name)
