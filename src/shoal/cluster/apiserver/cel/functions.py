"""The functions that expressions may call: each a signature and what it does.

A signature reads ``string::find(string): string`` for a method and ``quantity(string): kubernetes.Quantity`` for a
function; a capital letter stands for any type.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from shoal.cluster.apiserver.cel.types import NAMED, Type
from shoal.cluster.apiserver.cel.values import Duration, Nothing, Optional, Timestamp, TypeValue, UInt

Implementation = Callable[..., Any]


@dataclass(frozen=True, slots=True)
class Overload:
    """One way to call a function."""

    parameters: tuple[Type, ...]
    result: Type
    is_member: bool
    call: Implementation
    matchers: tuple[Callable[[Any], bool] | None, ...]
    """For each argument, whether a value may stand there; None where any may."""


class Library:
    """A table of functions, by name."""

    def __init__(self, *parts: Library) -> None:
        self.functions: dict[str, list[Overload]] = {}
        for part in parts:
            for name, overloads in part.functions.items():
                self.functions.setdefault(name, []).extend(overloads)

    def add(self, call: Implementation, *signatures: str) -> None:
        """Adds a function under each of the signatures."""
        for signature in signatures:
            name, overload = _overload(signature, call)
            self.functions.setdefault(name, []).append(overload)

    def function(self, *signatures: str) -> Callable[[Implementation], Implementation]:
        """The same, as a decorator."""

        def keep(call: Implementation) -> Implementation:
            self.add(call, *signatures)
            return call

        return keep


_SIGNATURE = re.compile(r"(?:(?P<target>\S+)::)?(?P<name>[^(]+)\((?P<parameters>.*)\): (?P<result>.+)")


def _overload(signature: str, call: Implementation) -> tuple[str, Overload]:
    found = _SIGNATURE.fullmatch(signature)
    assert found is not None, signature
    texts = ([found["target"]] if found["target"] else []) + _split(found["parameters"])
    parameters = tuple(map(_type, texts))
    matchers = tuple(MATCHERS.get(each.name) for each in parameters)
    return found["name"], Overload(parameters, _type(found["result"]), bool(found["target"]), call, matchers)


def _type(text: str) -> Type:
    name, _, rest = text.partition("<")
    if rest:
        return Type("optional_type" if name == "optional" else name, tuple(map(_type, _split(rest[:-1]))))
    return NAMED.get(name) or Type(name)


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for at, letter in enumerate(text):
        depth += (letter == "<") - (letter == ">")
        if letter == "," and depth == 0:
            parts.append(text[start:at].strip())
            start = at + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def _is(kind: type[Any]) -> Callable[[Any], bool]:
    return lambda value: type(value) is kind


MATCHERS: dict[str, Callable[[Any], bool]] = {
    "bool": _is(bool),
    "int": _is(int),
    "uint": _is(UInt),
    "double": _is(float),
    "string": _is(str),
    "bytes": _is(bytes),
    "null": lambda value: value is None,
    "list": _is(list),
    "map": _is(dict),
    "google.protobuf.Timestamp": _is(Timestamp),
    "google.protobuf.Duration": _is(Duration),
    "optional_type": lambda value: type(value) in (Optional, Nothing),
    "type": _is(TypeValue),
}
"""How a value shows its type where the checker could not know it; libraries add those of their own."""
