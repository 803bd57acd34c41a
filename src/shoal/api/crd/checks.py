"""What the API server demands of a schema beyond its types, looked at one finished node at a time.

The server would refuse the same when a CRD is installed; here the mistake is found where it was made, in terms of the
struct and the field. CEL expressions are left to the server: only their frame is looked at.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from shoal.api.crd.values import kind_of, misfit

_TEXT = frozenset({"string", "int-or-string"})
_NUMBER = frozenset({"integer", "number", "int-or-string"})
_SCALAR = frozenset({"string", "integer", "number", "boolean", "int-or-string"})
_LIST = frozenset({"array"})
_OBJECT = frozenset({"object"})
_ANYTHING = _SCALAR | _LIST | _OBJECT | {"any"}

KEYWORDS: Mapping[str, frozenset[str]] = {
    "description": _ANYTHING,
    "type": _ANYTHING,
    "anyOf": frozenset({"int-or-string"}),
    "format": frozenset({"string", "integer", "number"}),
    "nullable": _ANYTHING,
    "default": _ANYTHING,
    "enum": _SCALAR,
    "pattern": _TEXT,
    "minLength": _TEXT,
    "maxLength": _TEXT,
    "minimum": _NUMBER,
    "exclusiveMinimum": _NUMBER,
    "maximum": _NUMBER,
    "exclusiveMaximum": _NUMBER,
    "multipleOf": _NUMBER,
    "items": _LIST,
    "minItems": _LIST,
    "maxItems": _LIST,
    "properties": _OBJECT,
    "required": _OBJECT,
    "additionalProperties": _OBJECT,
    "minProperties": _OBJECT,
    "maxProperties": _OBJECT,
    "x-kubernetes-int-or-string": frozenset({"int-or-string"}),
    "x-kubernetes-preserve-unknown-fields": _OBJECT | {"any"},
    "x-kubernetes-embedded-resource": _OBJECT,
    "x-kubernetes-list-type": _LIST,
    "x-kubernetes-list-map-keys": _LIST,
    "x-kubernetes-map-type": _OBJECT,
    "x-kubernetes-validations": _ANYTHING,
}
"""Every keyword that a schema may use, in the order in which it is written, and the types that it fits."""

_BOUNDS = (
    ("minLength", "maxLength"),
    ("minimum", "maximum"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
)
_SIZED_FORMATS = {"int32": "integer", "int64": "integer", "float": "number", "double": "number"}
_RULE_REASONS = ("FieldValueInvalid", "FieldValueForbidden", "FieldValueRequired", "FieldValueDuplicate")


def problem_in(schema: Mapping[str, Any]) -> str | None:
    """What is wrong with one node whose children are already right, as a predicate on the field; None if nothing is."""
    return next((problem for check in _CHECKS for problem in check(schema)), None)


def _misplaced_keywords(schema: Mapping[str, Any]) -> Iterator[str]:
    kind = kind_of(schema)
    for keyword in schema:
        if keyword not in KEYWORDS:
            yield f"states {keyword}, which CRD schemas do not know"
        elif kind not in KEYWORDS[keyword]:
            yield f"states {keyword}, which does not fit type {kind}"
    if "format" in schema:
        fitting = _SIZED_FORMATS.get(schema["format"], "string")
        if kind != fitting:
            yield f"states format {schema['format']}, which is for type {fitting} and not {kind}"


def _wrong_bounds(schema: Mapping[str, Any]) -> Iterator[str]:
    for least, most in _BOUNDS:
        if least in schema and most in schema and schema[least] > schema[most]:
            yield f"states {least} {schema[least]} above {most} {schema[most]}"
    for exclusive, bound in (("exclusiveMinimum", "minimum"), ("exclusiveMaximum", "maximum")):
        if exclusive in schema and bound not in schema:
            yield f"states {exclusive} without {bound}"


def _wrong_pattern(schema: Mapping[str, Any]) -> Iterator[str]:
    try:
        re.compile(schema.get("pattern", ""))
    except re.error as error:
        yield f"states pattern {schema['pattern']!r}, which is no regular expression: {error}"


def _wrong_list(schema: Mapping[str, Any]) -> Iterator[str]:
    list_type, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys", [])
    if list_type == "map" and not keys:
        yield "is a list of type map without list_map_keys"
    if list_type != "map" and keys:
        yield "states list_map_keys without list_type map"
    if list_type == "set" and not _is_whole(schema["items"]):
        yield "is a list of type set, whose items must be scalars or atomic"
    for key in keys:
        yield from _wrong_list_key(key, schema["items"])


def _wrong_list_key(key: str, items: Mapping[str, Any]) -> Iterator[str]:
    known = items.get("properties", {}).get(key)
    if known is None:
        yield f"has list_map_keys {key}, which its items do not have: use the wire's spelling"
    elif kind_of(known) not in _SCALAR:
        yield f"has list_map_keys {key}, which is no scalar"
    elif key not in items.get("required", ()) and "default" not in known:
        yield f"has list_map_keys {key}, which its items must require or default"


def _is_whole(items: Mapping[str, Any]) -> bool:
    atomic = "atomic" in (items.get("x-kubernetes-list-type"), items.get("x-kubernetes-map-type"))
    return atomic or kind_of(items) in _SCALAR


def _wrong_embedded_resource(schema: Mapping[str, Any]) -> Iterator[str]:
    has_fields = schema.get("x-kubernetes-preserve-unknown-fields") or schema.get("properties")
    if schema.get("x-kubernetes-embedded-resource") and not has_fields:
        yield "is an embedded resource without fields: preserve unknown fields, or type it"


def _wrong_values(schema: Mapping[str, Any]) -> Iterator[str]:
    plain = {key: value for key, value in schema.items() if key != "enum"}
    for value in schema.get("enum", ()):
        if problem := misfit(value, plain):
            yield f"has {value!r} in its enum, which {problem}"
    if "default" in schema and (problem := misfit(schema["default"], schema)):
        yield f"has default {schema['default']!r}, which {problem}"


def _wrong_rules(schema: Mapping[str, Any]) -> Iterator[str]:
    for rule in schema.get("x-kubernetes-validations", ()):
        text = rule.get("rule", "").strip()
        if not text:
            yield "has an empty rule"
        if "\n" in text and "message" not in rule:
            yield f"has a rule of several lines without a message: {text.splitlines()[0]} …"
        if "\n" in rule.get("message", ""):
            yield f"has a rule whose message breaks its line: {text}"
        if rule.get("reason", _RULE_REASONS[0]) not in _RULE_REASONS:
            yield f"has a rule with reason {rule['reason']}: it must be one of {', '.join(_RULE_REASONS)}"
        if not rule.get("fieldPath", ".").startswith((".", "[")):
            yield f"has a rule with fieldPath {rule['fieldPath']}: it must begin with a dot"


_CHECKS = (
    _misplaced_keywords,
    _wrong_bounds,
    _wrong_pattern,
    _wrong_list,
    _wrong_embedded_resource,
    _wrong_values,
    _wrong_rules,
)
