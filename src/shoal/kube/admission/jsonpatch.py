"""JSON Patch (RFC 6902): the difference of two JSON values as operations, and operations applied to a value.

``difference`` is small rather than smallest: maps are compared key by key; a list keeps its common beginning and end,
and what is between is compared place by place, so one item put in or taken out is one operation wherever it stands.
What both values share is not looked into: a small change of something large is found at the cost of the small one.
Values are never changed in place, and nothing given is shared with what is returned in a way that could be changed.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

Operation = dict[str, Any]


class PatchError(Exception):
    """An operation cannot be carried out; says which and why."""

    def __init__(self, operation: Mapping[str, Any], problem: str) -> None:
        self.operation = operation
        self.problem = problem
        super().__init__(f"JSON patch {operation.get('op')} {operation.get('path')!r}: {problem}")


class PatchTestFailed(PatchError):
    """A ``test`` operation found another value."""


def difference(before: Any, after: Any) -> list[Operation]:
    """The operations that turn one value into the other."""
    return list(_difference(before, after, ""))


def apply(operations: Iterable[Mapping[str, Any]], to: Any) -> Any:
    """The value after all operations; raises PatchError, and changes nothing, where one cannot be carried out."""
    value = copy.deepcopy(to)
    for operation in operations:
        value = _applied(operation, value)
    return value


def is_same(left: Any, right: Any) -> bool:
    """Whether two values are the same JSON: unlike Python's ``==``, true is not 1."""
    if left is right:
        return True
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(is_same(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(is_same, left, right))
    return type(left) is type(right) and bool(left == right)


def pointer(*parts: str | int) -> str:
    """The JSON pointer to a place: ``pointer("metadata", "labels", "a/b")`` is ``/metadata/labels/a~1b``."""
    return "".join([_step(part) for part in parts])


def _step(part: str | int) -> str:
    return "/" + str(part).replace("~", "~0").replace("/", "~1")


def _difference(before: Any, after: Any, path: str) -> Iterator[Operation]:
    if isinstance(before, dict) and isinstance(after, dict):
        yield from _map_difference(before, after, path)
    elif isinstance(before, list) and isinstance(after, list):
        yield from _list_difference(before, after, path)
    elif not is_same(before, after):
        yield {"op": "replace", "path": path, "value": copy.deepcopy(after)}


def _map_difference(before: dict[str, Any], after: dict[str, Any], path: str) -> Iterator[Operation]:
    for key in before:
        if key not in after:
            yield {"op": "remove", "path": path + _step(key)}
    for key, value in after.items():
        if key in before:
            if before[key] is not value:
                yield from _difference(before[key], value, path + _step(key))
        else:
            yield {"op": "add", "path": path + _step(key), "value": copy.deepcopy(value)}


def _list_difference(before: list[Any], after: list[Any], path: str) -> Iterator[Operation]:
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and is_same(before[start], after[start]):
        start += 1
    end = 0
    while end < shorter - start and is_same(before[-1 - end], after[-1 - end]):
        end += 1
    old, new = before[start : len(before) - end], after[start : len(after) - end]
    paired = min(len(old), len(new))
    for place in range(paired):
        yield from _difference(old[place], new[place], path + _step(start + place))
    # From the back, so that each removal leaves the places of the others as they are.
    for place in range(len(old) - 1, paired - 1, -1):
        yield {"op": "remove", "path": path + _step(start + place)}
    for place in range(paired, len(new)):
        yield {"op": "add", "path": path + _step(start + place), "value": copy.deepcopy(new[place])}


def _applied(operation: Mapping[str, Any], value: Any) -> Any:
    path = _parts(operation, "path")
    match operation.get("op"):
        case "add":
            return _added(operation, value, path, copy.deepcopy(_value(operation)))
        case "remove":
            return _removed(operation, value, path)
        case "replace":
            _found(operation, value, path)
            return _set(operation, value, path, copy.deepcopy(_value(operation)))
        case "move":
            source = _parts(operation, "from")
            if source == path:
                _found(operation, value, source)
                return value
            if path[: len(source)] == source:
                raise PatchError(operation, "a value cannot be moved into itself")
            moved = _found(operation, value, source)
            return _added(operation, _removed(operation, value, source), path, moved)
        case "copy":
            return _added(operation, value, path, copy.deepcopy(_found(operation, value, _parts(operation, "from"))))
        case "test":
            if not is_same(_found(operation, value, path), _value(operation)):
                raise PatchTestFailed(operation, "the value there is another")
            return value
        case unknown:
            raise PatchError(operation, f"there is no operation {unknown!r}")


def _added(operation: Mapping[str, Any], value: Any, path: list[str], new: Any) -> Any:
    if not path:
        return new
    parent = _found(operation, value, path[:-1])
    if isinstance(parent, list):
        parent.insert(_place(operation, path[-1], len(parent), end_allowed=True), new)
    elif isinstance(parent, dict):
        parent[path[-1]] = new
    else:
        raise PatchError(operation, "the parent is neither a map nor a list")
    return value


def _removed(operation: Mapping[str, Any], value: Any, path: list[str]) -> Any:
    if not path:
        raise PatchError(operation, "the whole value cannot be removed")
    _found(operation, value, path)
    parent = _found(operation, value, path[:-1])
    del parent[int(path[-1]) if isinstance(parent, list) else path[-1]]
    return value


def _set(operation: Mapping[str, Any], value: Any, path: list[str], new: Any) -> Any:
    if not path:
        return new
    parent = _found(operation, value, path[:-1])
    parent[int(path[-1]) if isinstance(parent, list) else path[-1]] = new
    return value


def _found(operation: Mapping[str, Any], value: Any, path: list[str]) -> Any:
    for part in path:
        if isinstance(value, list):
            value = value[_place(operation, part, len(value))]
        elif isinstance(value, dict) and part in value:
            value = value[part]
        else:
            raise PatchError(operation, f"nothing is at {part!r}")
    return value


def _place(operation: Mapping[str, Any], part: str, length: int, *, end_allowed: bool = False) -> int:
    if part == "-" and end_allowed:
        return length
    if not (part.isascii() and part.isdigit()) or (len(part) > 1 and part[0] == "0"):
        raise PatchError(operation, f"{part!r} is no place in a list")
    place = int(part)
    if place > length or (place == length and not end_allowed):
        raise PatchError(operation, f"place {place} is past the end of a list of {length}")
    return place


def _parts(operation: Mapping[str, Any], field: str) -> list[str]:
    text = operation.get(field)
    if not isinstance(text, str) or (text and not text.startswith("/")):
        raise PatchError(operation, f"{field} must be a JSON pointer, not {text!r}")
    return [part.replace("~1", "/").replace("~0", "~") for part in text.split("/")[1:]]


def _value(operation: Mapping[str, Any]) -> Any:
    if "value" not in operation:
        raise PatchError(operation, "a value is missing")
    return operation["value"]
