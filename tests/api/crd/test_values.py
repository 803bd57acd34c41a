"""Which JSON values fit a schema, for the defaults and enums that a schema holds."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.crd.values import misfit

PORT = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "number": {"type": "integer", "default": 80}},
    "required": ["name", "number"],
}
EITHER = {"x-kubernetes-int-or-string": True, "pattern": "^[0-9]+%?$"}


@pytest.mark.parametrize(
    ("value", "schema"),
    [
        pytest.param("a", {"type": "string"}, id="string"),
        pytest.param(1, {"type": "number"}, id="integer as number"),
        pytest.param(3, EITHER, id="int-or-string with an integer, which has no pattern"),
        pytest.param("3%", EITHER, id="int-or-string with a string"),
        pytest.param(None, {"type": "string", "nullable": True}, id="null"),
        pytest.param(None, {"x-kubernetes-preserve-unknown-fields": True}, id="null anywhere"),
        pytest.param({"a": [1]}, {"x-kubernetes-preserve-unknown-fields": True}, id="anything"),
        pytest.param({"name": "a"}, PORT, id="object whose other field is defaulted"),
        pytest.param({"a": 1}, {"type": "object", "additionalProperties": {"type": "integer"}}, id="map"),
        pytest.param({"a": 1}, {"type": "object", "x-kubernetes-preserve-unknown-fields": True}, id="open object"),
        pytest.param(1, {"type": "integer", "minimum": 1, "maximum": 1}, id="at both bounds"),
        pytest.param(6, {"type": "integer", "multipleOf": 3}, id="multiple"),
        pytest.param(["a"], {"type": "array", "items": {"type": "string"}, "minItems": 1, "maxItems": 1}, id="list"),
    ],
)
def test_a_value_fits(value: Any, schema: dict[str, Any]) -> None:
    assert misfit(value, schema) is None


@pytest.mark.parametrize(
    ("value", "schema", "problem"),
    [
        pytest.param(1, {"type": "string"}, "is no string", id="integer for string"),
        pytest.param(True, {"type": "integer"}, "is no integer", id="boolean for integer"),
        pytest.param(1.5, {"type": "integer"}, "is no integer", id="fraction for integer"),
        pytest.param(True, {"type": "number"}, "is no number", id="boolean for number"),
        pytest.param(1.5, EITHER, "is no int-or-string", id="fraction for int-or-string"),
        pytest.param("x", EITHER, "does not match", id="pattern of int-or-string"),
        pytest.param(None, {"type": "string"}, "is null", id="null"),
        pytest.param("c", {"type": "string", "enum": ["a", "b"]}, "is none of 'a', 'b'", id="enum"),
        pytest.param("", {"type": "string", "minLength": 1}, "below minLength 1", id="too short"),
        pytest.param("abc", {"type": "string", "maxLength": 2}, "above maxLength 2", id="too long"),
        pytest.param(0, {"type": "integer", "minimum": 0, "exclusiveMinimum": True}, "below the minimum", id="minimum"),
        pytest.param(9, {"type": "integer", "maximum": 9, "exclusiveMaximum": True}, "above the maximum", id="maximum"),
        pytest.param(10, {"type": "integer", "maximum": 9}, "above the maximum 9", id="above"),
        pytest.param(7, {"type": "integer", "multipleOf": 3}, "no multiple of 3", id="multiple"),
        pytest.param([], {"type": "array", "items": {}, "minItems": 1}, "below minItems", id="too few"),
        pytest.param([1], {"type": "array", "items": {"type": "string"}}, "holds 1, which is no string", id="item"),
        pytest.param({}, PORT, "lacks name", id="lacking"),
        pytest.param({"name": "a", "x": 1}, PORT, "has x, which the schema does not know", id="unknown"),
        pytest.param({"name": 1}, PORT, "holds 1, which is no string", id="field"),
        pytest.param(
            {"a": "b"}, {"type": "object", "additionalProperties": {"type": "integer"}}, "is no integer", id="map value"
        ),
        pytest.param({}, {"type": "object", "minProperties": 1}, "below minProperties", id="empty map"),
    ],
)
def test_a_value_does_not_fit_and_says_why(value: Any, schema: dict[str, Any], problem: str) -> None:
    assert problem in (misfit(value, schema) or "fits")
