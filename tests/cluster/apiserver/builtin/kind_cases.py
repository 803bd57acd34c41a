"""Objects of the built-in kinds, good ones and such with one field broken, to be put to our rules and to Kubernetes.

``KindCases`` holds a base object, and what to change in it: a path such as ``spec.ports.0.port`` and a value,
or ``GONE`` to take the field away. Each change makes one case.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

GONE = object()
LONG = "x" * 64
Change = tuple[str, Any] | tuple[tuple[str, Any], ...]


@dataclass(frozen=True)
class Case:
    """One object, and where it is posted."""

    id: str
    path: str
    object: dict[str, Any]
    namespaced: bool


def changed(base: dict[str, Any], *changes: tuple[str, Any]) -> dict[str, Any]:
    """A copy of an object with values put at paths, or taken away."""
    new = copy.deepcopy(base)
    for path, value in changes:
        *parents, last = path.split("|") if "|" in path else path.split(".")
        place: Any = new
        for part in parents:
            place = place[int(part)] if isinstance(place, list) else place.setdefault(part, {})
        if value is GONE:
            place.pop(last, None)
        elif isinstance(place, list):
            index = int(last)
            place[index : index + 1] = [copy.deepcopy(value)]
        else:
            place[last] = copy.deepcopy(value)
    return new


def cases_of(kinds: Iterable[KindCases]) -> Iterator[Case]:
    """Every case of some kinds."""
    for group in kinds:
        kind = group.object["kind"]
        stem = group.label or f"{kind}-{group.object['apiVersion']}"
        yield Case(f"{stem}-as-it-is", group.path, group.object, group.namespaced)
        for index, change in enumerate(group.changes):
            pairs = change if isinstance(change[0], tuple) else (change,)
            label = f"{stem}-{index:02d}-{pairs[0][0]}"
            yield Case(label, group.path, changed(group.object, *pairs), group.namespaced)


@dataclass(frozen=True)
class KindCases:
    """A kind's resource path, its base object, and the changes to try."""

    path: str
    object: dict[str, Any]
    changes: tuple[Change, ...]
    namespaced: bool = True
    label: str = ""
