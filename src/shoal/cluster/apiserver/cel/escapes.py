"""Names of fields in expressions: what is no identifier, or is a word of the language, is written with underscores."""

from __future__ import annotations

import re

_RESERVED = frozenset(
    (
        *("true", "false", "null", "in", "as", "break", "const", "continue", "else", "for", "function", "if"),
        *("import", "let", "loop", "package", "namespace", "return", "var", "void", "while"),
    )
)
_WORDS = {"__underscores__": "__", "__dot__": ".", "__dash__": "-", "__slash__": "/"}
_ESCAPED = re.compile("|".join(_WORDS))
_SPECIAL = re.compile(r"__|[./-]")
_SPELLED = {meant: word for word, meant in _WORDS.items()}
_ALLOWED = re.compile(r"[A-Za-z_./-][A-Za-z0-9_./-]*")


def escaped(field: str) -> str | None:
    """The name by which an expression calls a field, or None where it cannot."""
    if field in _RESERVED:
        return f"__{field}__"
    if _ALLOWED.fullmatch(field) is None:
        return None
    return _SPECIAL.sub(lambda found: _SPELLED[found[0]], field)


def unescaped(field: str) -> str:
    """The name of a field as the object has it, of the name by which an expression calls it."""
    if "__" not in field:
        return field
    if field.startswith("__") and field.endswith("__") and field[2:-2] in _RESERVED:
        return field[2:-2]
    return _ESCAPED.sub(lambda found: _WORDS[found[0]], field)
