"""How Kubernetes writes values into its messages, which clients and people compare word for word."""

from __future__ import annotations

from collections.abc import Iterable

_ESCAPES = {
    '"': '\\"',
    "\\": "\\\\",
    "\a": "\\a",
    "\b": "\\b",
    "\f": "\\f",
    "\n": "\\n",
    "\r": "\\r",
    "\t": "\\t",
    "\v": "\\v",
}


def quoted(text: str) -> str:
    """A text as Go's %q shows it: in double quotes, with what cannot be printed escaped."""
    if text.isprintable() and '"' not in text and "\\" not in text:
        return f'"{text}"'
    return '"' + "".join(_shown(character) for character in text) + '"'


def quoted_list(texts: Iterable[str]) -> str:
    """A list of texts as Go's %q shows it: ``["a" "b"]``."""
    return f"[{' '.join(map(quoted, texts))}]"


def aggregate(problems: Iterable[str]) -> str:
    """Several errors in one: each once, in brackets where there are more than one."""
    distinct = list(dict.fromkeys(problems))
    return distinct[0] if len(distinct) == 1 else f"[{', '.join(distinct)}]"


def _shown(character: str) -> str:
    if character in _ESCAPES:
        return _ESCAPES[character]
    if character.isprintable():
        return character
    number = ord(character)
    if number < 0x80:
        return f"\\x{number:02x}"
    return f"\\u{number:04x}" if number < 0x10000 else f"\\U{number:08x}"
