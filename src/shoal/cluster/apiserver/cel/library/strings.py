"""Strings: search, parts, case, patterns and format."""

from __future__ import annotations

import string

from shoal.cluster.apiserver.cel.functions import Library
from shoal.cluster.apiserver.cel.library.formatting import formatted
from shoal.cluster.apiserver.cel.matching import Matcher, longest_search, matcher
from shoal.cluster.apiserver.cel.patterns import InvalidPattern, compile_pattern
from shoal.cluster.apiserver.cel.values import CelError

STRINGS = Library()
_add = STRINGS.add

_add(str.startswith, "string::startsWith(string): bool")
_add(str.endswith, "string::endsWith(string): bool")
_add(lambda text, part: part in text, "string::contains(string): bool")


def _matcher(pattern: str, fault: str = "") -> Matcher:
    try:
        return matcher(pattern)
    except InvalidPattern as error:
        raise CelError(f"{fault}{error}") from None


@STRINGS.function("string::matches(string): bool", "matches(string, string): bool")
def _matches(text: str, pattern: str) -> bool:
    return _matcher(pattern)(text)


def _check_length(text: str, pattern: str) -> None:
    """Where a match lies is found by Python's engine, which may take long for a long text."""
    if len(text) > longest_search(pattern):
        raise CelError("operation cancelled: actual cost limit exceeded")


@STRINGS.function("string::find(string): string")
def _find(text: str, pattern: str) -> str:
    if not _matcher(pattern, "Illegal regex: ")(text):
        return ""
    _check_length(text, pattern)
    found = compile_pattern(pattern).search(text)
    return found[0] if found else ""


@STRINGS.function("string::findAll(string): list<string>", "string::findAll(string, int): list<string>")
def _find_all(text: str, pattern: str, limit: int = -1) -> list[str]:
    if not _matcher(pattern, "Illegal regex: ")(text):
        return []
    _check_length(text, pattern)
    found = [match[0] for match in compile_pattern(pattern).finditer(text)]
    return found if limit < 0 else found[:limit]


@STRINGS.function("string::charAt(int): string")
def _char_at(text: str, at: int) -> str:
    if not 0 <= at <= len(text):
        raise CelError(f"index out of range: {at}")
    return text[at : at + 1]


@STRINGS.function("string::indexOf(string): int", "string::indexOf(string, int): int")
def _index_of(text: str, part: str, start: int = 0) -> int:
    if not part:
        return start
    if start < 0 or start > len(text):
        raise CelError(f"index out of range: {start}")
    return text.find(part, start)


@STRINGS.function("string::lastIndexOf(string): int", "string::lastIndexOf(string, int): int")
def _last_index_of(text: str, part: str, start: int | None = None) -> int:
    if not part:
        return len(text) if start is None else start
    if start is None:
        return text.rfind(part)
    if start < 0 or start >= max(len(text), 1):
        raise CelError(f"index out of range: {start}")
    return text.rfind(part, 0, start + len(part))


_LOWER = str.maketrans(string.ascii_uppercase, string.ascii_lowercase)
_UPPER = str.maketrans(string.ascii_lowercase, string.ascii_uppercase)
_add(lambda text: text.translate(_LOWER), "string::lowerAscii(): string")
_add(lambda text: text.translate(_UPPER), "string::upperAscii(): string")
_add(str.replace, "string::replace(string, string): string", "string::replace(string, string, int): string")
_add(str.strip, "string::trim(): string")


@STRINGS.function("string::split(string): list<string>", "string::split(string, int): list<string>")
def _split(text: str, separator: str, limit: int = -1) -> list[str]:
    if limit == 0:
        return []
    if not separator:
        parts = list(text)
        return parts if limit < 0 or limit >= len(parts) else [*parts[: limit - 1], "".join(parts[limit - 1 :])]
    return text.split(separator, -1 if limit < 0 else limit - 1)


@STRINGS.function("string::substring(int): string", "string::substring(int, int): string")
def _substring(text: str, start: int, end: int | None = None) -> str:
    if end is None:
        if not 0 <= start <= len(text):
            raise CelError(f"index out of range: {start}")
        return text[start:]
    if start > end:
        raise CelError(f"invalid substring range. start: {start}, end: {end}")
    if not 0 <= start <= len(text):
        raise CelError(f"index out of range: {start}")
    if not 0 <= end <= len(text):
        raise CelError(f"index out of range: {end}")
    return text[start:end]


@STRINGS.function("list<string>::join(): string", "list<string>::join(string): string")
def _join(parts: list[str], separator: str = "") -> str:
    return separator.join(parts)


_ESCAPES = str.maketrans(
    {
        "\a": "\\a",
        "\b": "\\b",
        "\f": "\\f",
        "\n": "\\n",
        "\r": "\\r",
        "\t": "\\t",
        "\v": "\\v",
        "\\": "\\\\",
        '"': '\\"',
    }
)


@STRINGS.function("strings.quote(string): string")
def _quote(text: str) -> str:
    return f'"{text.translate(_ESCAPES)}"'


_add(formatted, "string::format(list<dyn>): string")
