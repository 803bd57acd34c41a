"""Whether a JSON value fits a schema: for defaults and enums, which the server refuses where they do not."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any


def misfit(value: Any, schema: Mapping[str, Any]) -> str | None:
    """How a JSON value breaks a schema, as a predicate on the value; None where it fits."""
    return next(_misfits(value, schema), None)


def kind_of(schema: Mapping[str, Any]) -> str:
    """A schema's type, or what stands for one: ``int-or-string``, or ``any``."""
    if schema.get("x-kubernetes-int-or-string"):
        return "int-or-string"
    return str(schema.get("type", "any"))


def _misfits(value: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    kind = kind_of(schema)
    if value is None:
        if kind != "any" and not schema.get("nullable"):
            yield "is null, and the field is not nullable"
    elif not _IS_OF_KIND[kind](value):
        yield f"is no {kind}"
    elif "enum" in schema and value not in schema["enum"]:
        yield f"is none of {', '.join(map(repr, schema['enum']))}"
    elif isinstance(value, str):
        if "pattern" in schema and not re.search(schema["pattern"], value):
            yield f"does not match {schema['pattern']}"
        yield from _wrong_size(len(value), schema, "minLength", "maxLength")
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield from _out_of_bounds(value, schema)
    elif kind == "array":
        yield from _wrong_size(len(value), schema, "minItems", "maxItems")
        for item in value:
            yield from _misfits_inside(item, schema["items"])
    elif kind == "object":
        yield from _object_misfits(value, schema)


def _wrong_size(size: int, schema: Mapping[str, Any], least: str, most: str) -> Iterator[str]:
    if size < schema.get(least, 0):
        yield f"has size {size}, below {least} {schema[least]}"
    if most in schema and size > schema[most]:
        yield f"has size {size}, above {most} {schema[most]}"


def _out_of_bounds(value: float, schema: Mapping[str, Any]) -> Iterator[str]:
    least, most = schema.get("minimum"), schema.get("maximum")
    if least is not None and (value <= least if schema.get("exclusiveMinimum") else value < least):
        yield f"is below the minimum {least}"
    if most is not None and (value >= most if schema.get("exclusiveMaximum") else value > most):
        yield f"is above the maximum {most}"
    if schema.get("multipleOf") and value % schema["multipleOf"]:
        yield f"is no multiple of {schema['multipleOf']}"


def _object_misfits(value: Mapping[str, Any], schema: Mapping[str, Any]) -> Iterator[str]:
    properties, others = schema.get("properties", {}), schema.get("additionalProperties")
    yield from _wrong_size(len(value), schema, "minProperties", "maxProperties")
    for key in schema.get("required", ()):
        if key not in value and "default" not in properties.get(key, {}):
            yield f"lacks {key}"
    for key, item in value.items():
        inner = properties.get(key, others)
        if inner is not None:
            yield from _misfits_inside(item, inner)
        elif not schema.get("x-kubernetes-preserve-unknown-fields"):
            yield f"has {key}, which the schema does not know"


def _misfits_inside(item: Any, schema: Mapping[str, Any]) -> Iterator[str]:
    for problem in _misfits(item, schema):
        yield f"holds {item!r}, which {problem}"


def _is_integer(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


_IS_OF_KIND: Mapping[str, Callable[[Any], bool]] = {
    "boolean": lambda value: isinstance(value, bool),
    "integer": _is_integer,
    "number": lambda value: isinstance(value, float) or _is_integer(value),
    "string": lambda value: isinstance(value, str),
    "int-or-string": lambda value: isinstance(value, str) or _is_integer(value),
    "array": lambda value: isinstance(value, list),
    "object": lambda value: isinstance(value, dict),
    "any": lambda _: True,
}
