r"""JSONPath, as far as printer columns, the scale subresource and selectable fields use it.

``.spec.replicas``, ``.status.conditions[?(@.type=="Ready")].status``, ``.items[*].name``, ``.items[0]``, ``[-1]``,
``[1:3]``, ``['a','b']``, ``.metadata.labels.app\.kubernetes\.io/name``, ``..name``. A path that leads nowhere gives no
values; it never fails.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from typing import Any

Find = Callable[[Any], list[Any]]
Step = Callable[[Iterable[Any]], Iterator[Any]]

_FILTER = re.compile(r"\s*(?P<left>.+?)\s*(?P<operator>==|!=|<=|>=|<|>)\s*(?P<right>.+?)\s*$", re.DOTALL)
_SLICE = re.compile(r"(-?\d*)(?::(-?\d*))?(?::(-?\d*))?$")


class InvalidPath(ValueError):
    """A text that is no path, or one of a form that is not known here."""


@lru_cache(maxsize=4096)
def compile_path(text: str) -> Find:
    """A path as a function that gives every value it leads to."""
    steps = _steps(text)

    def find(value: Any) -> list[Any]:
        found: Iterable[Any] = [value]
        for step in steps:
            found = step(found)
        return list(found)

    return find


def _steps(text: str) -> list[Step]:
    steps: list[Step] = []
    at = 0
    if text.startswith("$") or text.startswith("@"):
        at = 1
    while at < len(text):
        if text.startswith("..", at):
            name, at = _name(text, at + 2)
            steps.append(_descend(name))
        elif text[at] == ".":
            if at + 1 < len(text) and text[at + 1] == "[":
                at += 1
                continue
            name, at = _name(text, at + 1)
            if name == "*":
                steps.append(_all)
            elif name:
                steps.append(_field(name))
        elif text[at] == "[":
            inside, at = _brackets(text, at)
            steps.append(_subscript(inside))
        else:
            raise InvalidPath(f"unrecognized character in action: {text[at:]!r}")
    return steps


def _name(text: str, at: int) -> tuple[str, int]:
    letters = []
    while at < len(text) and text[at] not in ".[":
        if text[at] == "\\" and at + 1 < len(text):
            at += 1
        letters.append(text[at])
        at += 1
    return "".join(letters), at


def _brackets(text: str, at: int) -> tuple[str, int]:
    depth, quote, start = 0, "", at + 1
    while at < len(text):
        letter = text[at]
        if quote:
            if letter == "\\":
                at += 1
            elif letter == quote:
                quote = ""
        elif letter in "'\"":
            quote = letter
        elif letter == "[":
            depth += 1
        elif letter == "]":
            depth -= 1
            if depth == 0:
                return text[start:at], at + 1
        at += 1
    raise InvalidPath(f"unterminated array: {text!r}")


def _subscript(inside: str) -> Step:
    inside = inside.strip()
    if inside == "*":
        return _all
    if inside.startswith("?(") and inside.endswith(")"):
        return _filter(inside[2:-1])
    if inside[:1] in ("'", '"'):
        names = [_unquoted(each) for each in re.findall(r"'(?:[^'\\]|\\.)*'|\"(?:[^\"\\]|\\.)*\"", inside)]
        return _fields(names)
    if "," in inside:
        return _union([_subscript(each) for each in inside.split(",")])
    found = _SLICE.match(inside)
    if found is None or not inside:
        raise InvalidPath(f"invalid array index {inside}")
    if ":" not in inside:
        return _index(int(found[1]))
    start, end, step = (int(each) if each else None for each in found.groups(default=""))
    return _slice(slice(start, end, step))


def _unquoted(text: str) -> str:
    return re.sub(r"\\(.)", r"\1", text[1:-1])


def _field(name: str) -> Step:
    def step(found: Iterable[Any]) -> Iterator[Any]:
        for value in found:
            if type(value) is dict and name in value:
                yield value[name]

    return step


def _fields(names: list[str]) -> Step:
    def step(found: Iterable[Any]) -> Iterator[Any]:
        for value in found:
            for name in names:
                if type(value) is dict and name in value:
                    yield value[name]

    return step


def _all(found: Iterable[Any]) -> Iterator[Any]:
    for value in found:
        if type(value) is list:
            yield from value
        elif type(value) is dict:
            yield from value.values()


def _index(at: int) -> Step:
    def step(found: Iterable[Any]) -> Iterator[Any]:
        for value in found:
            if type(value) is list and -len(value) <= at < len(value):
                yield value[at]

    return step


def _slice(part: slice) -> Step:
    def step(found: Iterable[Any]) -> Iterator[Any]:
        for value in found:
            if type(value) is list:
                yield from value[part]

    return step


def _union(steps: list[Step]) -> Step:
    def step(found: Iterable[Any]) -> Iterator[Any]:
        for value in found:
            for each in steps:
                yield from each([value])

    return step


def _descend(name: str) -> Step:
    def below(value: Any) -> Iterator[Any]:
        if type(value) is dict:
            if not name:
                yield value
            elif name in value:
                yield value[name]
            for item in value.values():
                yield from below(item)
        elif type(value) is list:
            for item in value:
                yield from below(item)

    def step(found: Iterable[Any]) -> Iterator[Any]:
        for value in found:
            yield from below(value)

    return step


def _filter(condition: str) -> Step:
    parts = _FILTER.match(condition)
    if parts is None:
        wanted = _operand(condition)
        return _each_item(lambda item: bool(wanted(item)))
    left, right, compare = _operand(parts["left"]), _operand(parts["right"]), _COMPARE[parts["operator"]]

    def holds(item: Any) -> bool:
        one, other = left(item), right(item)
        if not one or not other:
            return False
        try:
            return compare(one[0], other[0])
        except TypeError:
            return False

    return _each_item(holds)


def _each_item(holds: Callable[[Any], bool]) -> Step:
    def step(found: Iterable[Any]) -> Iterator[Any]:
        for value in found:
            items = value if type(value) is list else value.values() if type(value) is dict else ()
            for item in items:
                if holds(item):
                    yield item

    return step


def _operand(text: str) -> Find:
    text = text.strip()
    if text.startswith("@"):
        return compile_path(text)
    if text[:1] in ("'", '"'):
        literal: Any = _unquoted(text)
    else:
        try:
            literal = json.loads(text)
        except ValueError:
            raise InvalidPath(f"unrecognized literal {text}") from None
    return lambda _item: [literal]


_COMPARE: dict[str, Callable[[Any, Any], bool]] = {
    "==": lambda one, other: type(one) is type(other) and one == other,
    "!=": lambda one, other: type(one) is not type(other) or one != other,
    "<": lambda one, other: bool(one < other),
    "<=": lambda one, other: bool(one <= other),
    ">": lambda one, other: bool(one > other),
    ">=": lambda one, other: bool(one >= other),
}
