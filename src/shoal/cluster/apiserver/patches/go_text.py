"""Values as Go prints them: the messages about a patch that cannot be carried out show values and types in Go's way."""

from __future__ import annotations

import math
from typing import Any

_TYPES = {
    dict: "map[string]interface {}",
    list: "[]interface {}",
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
}
_JSON_KINDS = {dict: "object", list: "array", str: "string", bool: "bool", int: "number", float: "number"}


def shown(value: Any) -> str:
    """A value as ``%v`` prints it: ``map[a:1 b:[x <nil>]]``."""
    match value:
        case None:
            return "<nil>"
        case bool():
            return "true" if value else "false"
        case float():
            return _shown_float(value)
        case dict():
            return f"map[{' '.join(f'{key}:{shown(value[key])}' for key in sorted(value))}]"
        case list():
            return f"[{' '.join(map(shown, value))}]"
        case _:
            return str(value)


def shown_as_text(value: Any) -> str:
    """A value as ``%s`` prints it where a text was expected: ``%!s(int64=5)`` for what is none."""
    if isinstance(value, str):
        return value
    return "%!s(<nil>)" if value is None else f"%!s({type_name(value)}={shown(value)})"


def type_name(value: Any) -> str:
    """The Go type that a JSON value is decoded into."""
    return _TYPES.get(type(value), "%!s(<nil>)")


def json_kind(value: Any) -> str:
    """What Go's JSON decoder calls a value that it cannot put where it belongs."""
    return _JSON_KINDS.get(type(value), "null")


def _shown_float(value: float) -> str:
    if not math.isfinite(value):
        return {math.inf: "+Inf", -math.inf: "-Inf"}.get(value, "NaN")
    mantissa, _, exponent = f"{value!r}e".partition("e")
    exponent = exponent.rstrip("e")
    if not exponent:
        return mantissa.removesuffix(".0") if abs(value) < 1e21 else mantissa
    power = int(exponent)
    if -5 < power < 21:
        return f"{value:.0f}" if power > 0 else f"{value:f}".rstrip("0")
    return f"{mantissa.removesuffix('.0')}e{'-' if power < 0 else '+'}{abs(power):02d}"
