"""The paths by which a rule names the field that it is about: ``.spec.replicas``, ``.labels['app']``."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

_TOKEN = re.compile(r"'(?:[^'\\]|\\.)*'|[.\[\]]|[^.\[\]]+")
_ESCAPES = {"a": "\a", "b": "\b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v", "'": "'", "\\": "\\"}


@dataclass(frozen=True)
class FieldPath:
    """A path that was read: as messages write it, what it leads to, or why it leads nowhere."""

    path: str = ""
    schema: dict[str, Any] | None = None
    error: str = ""


def valid_field_path(text: str, schema: dict[str, Any], *, allows_brackets: bool = True) -> FieldPath:
    """Follows a path through a schema."""
    pieces = _TOKEN.findall(text)
    path, at = "", 0
    while at < len(pieces):
        piece = pieces[at]
        if piece == "[":
            if not allows_brackets:
                return FieldPath(error="array notation is not allowed")
            if at + 1 >= len(pieces):
                return FieldPath(error="unexpected end of JSON path")
            quoted = pieces[at + 1]
            if len(quoted) < 2 or quoted[0] != "'" or quoted[-1] != "'":
                return FieldPath(error=f"expected single quoted string but got {quoted}")
            name = re.sub(r"\\(.)", lambda found: _ESCAPES.get(found[1], ""), quoted[1:-1])
            if at + 2 >= len(pieces):
                return FieldPath(error="unexpected end of JSON path")
            if pieces[at + 2] != "]":
                return FieldPath(error=f"expected ] but got {pieces[at + 2]}")
            at += 3
        elif piece == ".":
            if at + 1 >= len(pieces):
                return FieldPath(error="unexpected end of JSON path")
            name = pieces[at + 1]
            at += 2
        else:
            return FieldPath(error=f"expected [ or . but got: {piece}")
        declared, additional = schema.get("properties"), schema.get("additionalProperties")
        if declared:
            if name not in declared:
                return FieldPath(error="does not refer to a valid field")
            schema, path = declared[name], f"{path}.{name}" if path else name
        elif isinstance(additional, dict):
            schema, path = additional, f"{path}[{name}]"
        else:
            return FieldPath(error="does not refer to a valid field")
    return FieldPath(path, schema)
