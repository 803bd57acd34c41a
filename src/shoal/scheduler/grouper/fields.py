"""Reading the fields of owners whose kinds nobody here defines: plain JSON, in which anything may be missing or odd.

What is odd is said in one sentence that names the object and the field, and is told to the user as an event.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

Json = Mapping[str, Any]


class Ungroupable(Exception):
    """Why no group can be made for a pod, in one sentence for the user."""


def described(found: Json) -> str:
    """An object as people name it."""
    return f"{found.get('kind', 'object')} {namespace_of(found)}/{name_of(found)}"


def name_of(found: Json) -> str:
    """The name of an object."""
    return str(found["metadata"].get("name", ""))


def namespace_of(found: Json) -> str:
    """The namespace of an object; empty where it has none."""
    return str(found["metadata"].get("namespace", ""))


def uid_of(found: Json) -> str:
    """The uid of an object."""
    return str(found["metadata"].get("uid", ""))


def labels_of(found: Json) -> dict[str, str]:
    """The labels of an object."""
    return dict(found["metadata"].get("labels") or {})


def annotations_of(found: Json) -> dict[str, str]:
    """The annotations of an object."""
    return dict(found["metadata"].get("annotations") or {})


def group_kind(found: Json) -> tuple[str, str]:
    """The API group and the kind of an object, in whatever version it was read."""
    group, _, version = str(found.get("apiVersion", "")).rpartition("/")
    return (group if version else "", str(found.get("kind", "")))


def at(found: Json, *path: str | int) -> Any:
    """What lies at a path; None where the way there ends early."""
    value: Any = found
    for step in path:
        if isinstance(value, Mapping):
            value = value.get(step)
        elif isinstance(value, list) and isinstance(step, int) and step < len(value):
            value = value[step]
        else:
            return None
    return value


def number(found: Json, *path: str | int) -> int | None:
    """A whole number; None where there is none."""
    value = at(found, *path)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise Ungroupable(f"{described(found)} has {value!r} in {dotted(path)}: put a whole number there")
    return value


def text(found: Json, *path: str | int) -> str:
    """A text; empty where there is none."""
    value = at(found, *path)
    if value is None:
        return ""
    if not isinstance(value, str):
        raise Ungroupable(f"{described(found)} has {value!r} in {dotted(path)}: put a text there")
    return value


def mapping(found: Json, *path: str | int) -> Json:
    """A group of fields; empty where there is none."""
    value = at(found, *path)
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise Ungroupable(f"{described(found)} has {value!r} in {dotted(path)}: put fields there")
    return value


def count(found: Json, *path: str | int) -> int:
    """How many objects a list holds; 0 where there is none."""
    value = at(found, *path)
    if value is None:
        return 0
    if not isinstance(value, list) or not all(isinstance(item, Mapping) for item in value):
        raise Ungroupable(f"{described(found)} has {value!r} in {dotted(path)}: put a list of objects there")
    return len(value)


def whole(written: str, where: str, *, least: int) -> int:
    """A whole number that was written as text, in a label or an annotation."""
    try:
        value = int(written)
    except ValueError:
        value = least - 1
    if value < least or value >= 2**31:
        raise Ungroupable(f"{where} is {written!r}: put a whole number of at least {least} there")
    return value


def dotted(path: tuple[str | int, ...]) -> str:
    """A path as people write it."""
    return "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in path).lstrip(".")
