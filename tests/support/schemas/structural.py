"""Kubernetes' rules for structural schemas, written down a second time, for tests to hold generated schemas against.

Deliberately shares nothing with the generator: it knows the rules of the API server, not how ours builds a schema.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

TYPES = {"object", "array", "string", "integer", "number", "boolean"}
FORBIDDEN = {
    "$ref",
    "definitions",
    "dependencies",
    "additionalItems",
    "patternProperties",
    "uniqueItems",
    "deprecated",
    "discriminator",
    "id",
    "readOnly",
    "writeOnly",
    "xml",
    "const",
    "$schema",
}


def structural_problems(schema: Mapping[str, Any], path: str = "") -> Iterator[str]:
    """Everything about a schema that an API server would refuse, with where it was found."""
    is_open = schema.get("x-kubernetes-preserve-unknown-fields") is True
    is_either = schema.get("x-kubernetes-int-or-string") is True
    kind = schema.get("type")
    if kind is None and not is_open and not is_either:
        yield f"{path}: type is missing"
    if kind is not None and (kind not in TYPES or is_either):
        yield f"{path}: type {kind} is not allowed"
    for keyword in FORBIDDEN & schema.keys():
        yield f"{path}: {keyword} is forbidden"
    if "properties" in schema and "additionalProperties" in schema:
        yield f"{path}: properties and additionalProperties exclude each other"
    if ("properties" in schema or "additionalProperties" in schema) and kind != "object":
        yield f"{path}: properties of no object"
    if ("items" in schema) != (kind == "array"):
        yield f"{path}: items and array go together"
    for name in schema.get("required", ()):
        if name not in schema.get("properties", {}):
            yield f"{path}: required {name} is no property"
    if len(schema.get("required", ())) != len(set(schema.get("required", ()))):
        yield f"{path}: required names a field twice"
    if is_either and schema.get("anyOf") != [{"type": "integer"}, {"type": "string"}]:
        yield f"{path}: int-or-string without its anyOf"
    for junctor in ("allOf", "oneOf", "not"):
        if junctor in schema:
            yield f"{path}: {junctor} is not ours to use"
    if "anyOf" in schema and not is_either:
        yield f"{path}: anyOf of other than int-or-string"
    yield from _problems_of_children(schema, path)


def _problems_of_children(schema: Mapping[str, Any], path: str) -> Iterator[str]:
    for name, child in schema.get("properties", {}).items():
        if name == "metadata" and path == "":
            if child != {"type": "object"}:
                yield "metadata: only type object may be said of it"
        else:
            yield from structural_problems(child, f"{path}.{name}")
    if "items" in schema:
        yield from structural_problems(schema["items"], f"{path}[]")
    if "additionalProperties" in schema:
        yield from structural_problems(schema["additionalProperties"], f"{path}{{}}")
