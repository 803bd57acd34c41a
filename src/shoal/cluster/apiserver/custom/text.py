"""How Go writes values in messages, where JSON would differ."""

from __future__ import annotations

import json
from typing import Any

import msgspec

from shoal.cluster.apiserver.cel.library.conversions import double_text


def quoted(text: str) -> str:
    """A string as %q writes it."""
    if text.isprintable():
        escaped = text.replace("\\", "\\\\").replace('"', '\\"')
        return f'"{escaped}"'
    return json.dumps(text, ensure_ascii=False)


def shown(value: Any) -> Any:
    """A value for a message: a number as %v writes it, anything else as JSON does."""
    return msgspec.Raw(double_text(value).encode()) if isinstance(value, float) else value


def go_number(value: float) -> str:
    """A number as %v writes it."""
    return str(value) if isinstance(value, int) else double_text(value)


def go_json(value: Any) -> msgspec.Raw:
    """JSON as Go writes it: safe to stand in HTML."""
    encoded = msgspec.json.encode(value).decode()
    return msgspec.Raw(encoded.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026").encode())
