"""Path elements: how one step into an object is written in fieldsV1, ordered, and shown to people.

``f:name`` is a field or a map's key, ``k:{…}`` an item of a list by its keys, ``v:…`` an item of a set by its value,
``i:3`` an item by its place.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

_ESCAPED = re.compile(r'[\x00-\x1f"\\<>&\u2028\u2029]')
_NAMED_ESCAPES = {'"': '\\"', "\\": "\\\\", "\n": "\\n", "\r": "\\r", "\t": "\\t"}


class Untypeable(ValueError):
    """Something does not have the form that is declared for it, so that nobody can be said to own its fields.

    A field without a schema, an item of a list that cannot be told from others, a key that is no path element.
    """


def key_label(keys: Sequence[str], defaults: Mapping[str, Any], item: Any) -> str:
    """The element of an item in a list of maps: its keys, sorted, with defaults for those that it leaves out."""
    if item.__class__ is not dict:
        if item is None:
            raise Untypeable("associative list with keys may not have a null element")
        raise Untypeable("associative list with keys may not have non-map elements")
    parts = [
        f'"{key}":{encoded(item[key] if key in item else defaults[key])}'
        for key in sorted(keys)
        if key in item or key in defaults
    ]
    if not parts:
        names = " ".join(f'"{key}"' for key in keys)
        raise Untypeable(
            f"associative list with keys has an element that omits all key fields [{names}]"
            " (and doesn't have default values for any key fields)"
        )
    return "k:{" + ",".join(parts) + "}"


def value_label(item: Any) -> str:
    """The element of an item in a set."""
    kind = item.__class__
    if kind is str or kind is int or kind is bool or kind is float:
        return "v:" + encoded(item)
    if kind is dict:
        raise Untypeable("associative list without keys has an element that's a map type")
    if kind is list:
        raise Untypeable("not supported: associative list with lists as elements")
    raise Untypeable("associative list without keys has an element that's an explicit null")


def encoded(value: Any) -> str:
    """A value as JSON, byte for byte as Kubernetes writes it inside a path element."""
    kind = value.__class__
    if kind is str:
        if _ESCAPED.search(value):
            value = _ESCAPED.sub(_escape, value)
        return f'"{value}"'
    if kind is bool:
        return "true" if value else "false"
    if kind is int:
        return str(value)
    if value is None:
        return "null"
    if kind is float:
        return _float_text(value, largest=21)
    if kind is list:
        return "[" + ",".join(map(encoded, value)) + "]"
    return "{" + ",".join(f"{encoded(key)}:{encoded(value[key])}" for key in sorted(value)) + "}"


def normal(label: str) -> str | None:
    """The one way to write an element that a client may have written otherwise; None for a kind from the future."""
    if len(label) < 2:
        raise Untypeable("key must be 2 characters long:")
    if label[1] != ":":
        raise Untypeable(f"missing colon: {label}")
    kind, text = label[0], label[2:]
    if kind == "f":
        return label
    try:
        if kind == "v":
            return "v:" + encoded(msgspec.json.decode(text))
        if kind == "k":
            return "k:" + encoded(msgspec.json.decode(text, type=dict[str, Any]))
        if kind == "i":
            return f"i:{int(text)}"
    except ValueError as problem:
        raise Untypeable(str(problem)) from problem
    return None


def shown(label: str) -> str:
    """An element as messages show it: ``.spec``, ``[name="web"]``, ``[="finalizer"]``, ``[3]``."""
    kind, text = label[0], label[2:]
    if kind == "f":
        return "." + text
    if kind == "i":
        return f"[{text}]"
    value = msgspec.json.decode(text)
    if kind == "v":
        return f"[={_shown_value(value)}]"
    return "[" + ",".join(f"{name}={_shown_value(item)}" for name, item in value.items()) + "]"


def order(label: str) -> tuple[Any, ...]:
    """Sorts elements as Kubernetes does: fields, then keys, then values, numbers by size."""
    kind, text = label[0], label[2:]
    if kind == "f":
        return (1, text)
    if kind == ".":
        return (0,)
    if kind == "i":
        return (4, int(text))
    value = msgspec.json.decode(text)
    if kind == "v":
        return (3, _value_order(value))
    return (2, [(name, _value_order(value[name])) for name in sorted(value)])


def quoted(text: str) -> str:
    """A string as Go's %q writes it."""
    plain = json.dumps(text, ensure_ascii=False)
    return re.sub(r"\\u00([01][0-9a-f])|\x7f", lambda hit: f"\\x{hit[1]}" if hit[1] else "\\x7f", plain)


def _escape(hit: re.Match[str]) -> str:
    return _NAMED_ESCAPES.get(hit[0]) or f"\\u{ord(hit[0]):04x}"


def _shown_value(value: Any) -> str:
    kind = value.__class__
    if kind is str:
        return quoted(value)
    if kind is float:
        return _float_text(value, largest=21, smallest=-4, zeros=2)
    if kind is list:
        return "[" + ",".join(map(_shown_value, value)) + "]"
    if kind is dict:
        return "".join(f"{name}={_shown_value(item)}" for name, item in value.items())
    return encoded(value)


def _value_order(value: Any) -> tuple[Any, ...]:
    kind = value.__class__
    if kind is int or kind is float:
        return (0, value)
    if kind is str:
        return (1, value)
    if kind is bool:
        return (2, value)
    if kind is list:
        return (3, [_value_order(item) for item in value])
    if kind is dict:
        return (4, [(name, _value_order(value[name])) for name in sorted(value)])
    return (5,)


def _float_text(value: float, *, largest: int, smallest: int = -6, zeros: int = 1) -> str:
    """The shortest digits of a float; with an exponent only where it is very large or small, as Go has it."""
    digits, _, exponent = repr(value).partition("e")
    mantissa = digits.removesuffix(".0")
    negative = mantissa.startswith("-")
    whole, _, fraction = mantissa.lstrip("-").partition(".")
    point = len(whole) + int(exponent or 0)
    figures = (whole + fraction).lstrip("0")
    point -= len(whole + fraction) - len(figures)
    figures = figures.rstrip("0")
    sign = "-" if negative else ""
    if not figures:
        return sign + "0"
    power = point - 1
    if smallest <= power < largest:
        if point <= 0:
            return f"{sign}0.{'0' * -point}{figures}"
        if point >= len(figures):
            return sign + figures + "0" * (point - len(figures))
        return f"{sign}{figures[:point]}.{figures[point:]}"
    tail = f".{figures[1:]}" if len(figures) > 1 else ""
    return f"{sign}{figures[0]}{tail}e{'-' if power < 0 else '+'}{abs(power):0{zeros}d}"
