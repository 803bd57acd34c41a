"""Makes an object with every field of a schema set, so that a field that gets lost on the way is noticed."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

_BY_FORMAT = {"date-time": "2026-03-01T12:00:00Z", "date": "2026-03-01", "byte": "c2hvYWw="}
_BY_TYPE = {"string": "a", "integer": 7, "number": 0.5, "boolean": True}


def example_of(schema: Mapping[str, Any]) -> Any:
    """A value with everything in it that the schema allows, none of it zero or empty."""
    if "enum" in schema:
        return schema["enum"][0]
    if schema.get("x-kubernetes-int-or-string"):
        return "7"
    if "properties" in schema:
        return {name: example_of(field) for name, field in schema["properties"].items()}
    if "additionalProperties" in schema:
        return {"key": example_of(schema["additionalProperties"])}
    if "items" in schema:
        return [example_of(schema["items"])]
    if schema.get("x-kubernetes-preserve-unknown-fields"):
        return {"anything": {"goes": [1, "two"]}}
    return _BY_FORMAT.get(schema.get("format", ""), _BY_TYPE.get(schema.get("type", ""), {}))
