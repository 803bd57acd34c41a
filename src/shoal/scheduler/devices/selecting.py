"""Selectors of devices, as far as they are understood here: comparisons of the driver and of attributes, all to hold.

Kubernetes writes selectors in CEL. Those of device classes say which driver and which type of device, and that is what
this module reads; it says of any other that it does not understand it, and never guesses.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import lru_cache
from typing import Any, Final

Read = Callable[[str, Mapping[str, Any]], Any]
"""A part of a device, by its driver and its attributes; None where it has no such part."""

_STRING: Final = r"""(?:"[^"\\]*"|'[^'\\]*')"""
_PATH: Final = re.compile(
    rf"device\.(?:(?P<driver>driver)|attributes\[(?P<domain>{_STRING})\]"
    rf"(?:\.(?P<name>[A-Za-z_]\w*)|\[(?P<quoted>{_STRING})\]))"
)
_COMPARISON: Final = re.compile(rf"(?P<path>.+?)\s*(?P<operator>==|!=)\s*(?P<value>{_STRING}|true|false|-?\d+)")


class NotUnderstood(Exception):
    """Something of a claim or a class that this scheduler cannot follow; says what."""


def selects(expression: str, driver: str, attributes: Mapping[str, Any]) -> bool:
    """Whether an expression is true of a device; raises NotUnderstood."""
    return all(test(driver, attributes) for test in _tests(expression))


@lru_cache(maxsize=1024)
def _tests(expression: str) -> tuple[Read, ...]:
    return tuple(_test(part.strip(), expression) for part in _stripped(expression).split("&&"))


def _test(part: str, expression: str) -> Read:
    part = _stripped(part)
    comparison = _COMPARISON.fullmatch(part)
    if comparison is None:
        if path := _PATH.fullmatch(part):
            read = _reader(path)
            return lambda driver, attributes: read(driver, attributes) is True
        if part.startswith("!") and (path := _PATH.fullmatch(part[1:].strip())):
            read = _reader(path)
            return lambda driver, attributes: read(driver, attributes) is False
        raise NotUnderstood(f"the selector {expression!r}")
    path = _PATH.fullmatch(comparison["path"].strip())
    if path is None:
        raise NotUnderstood(f"the selector {expression!r}")
    read, wanted, is_equal = _reader(path), _value(comparison["value"]), comparison["operator"] == "=="

    def holds(driver: str, attributes: Mapping[str, Any]) -> bool:
        found = read(driver, attributes)
        return found is not None and (type(found) is type(wanted) and found == wanted) is is_equal

    return holds


def _reader(path: re.Match[str]) -> Read:
    if path["driver"]:
        return lambda driver, _: driver
    domain, name = _unquoted(path["domain"]), path["name"] or _unquoted(path["quoted"])

    def read(driver: str, attributes: Mapping[str, Any]) -> Any:
        found = attributes.get(f"{domain}/{name}")
        if found is None and domain == driver:
            found = attributes.get(name)
        return None if found is None else next(iter(found.values()), None)

    return read


def _stripped(text: str) -> str:
    """Without brackets around the whole."""
    text = text.strip()
    while text.startswith("(") and text.endswith(")") and "(" not in text[1:-1] and ")" not in text[1:-1]:
        text = text[1:-1].strip()
    return text


def _value(text: str) -> Any:
    if text[0] in "\"'":
        return _unquoted(text)
    return text == "true" if text in ("true", "false") else int(text)


def _unquoted(text: str) -> str:
    return text[1:-1]
