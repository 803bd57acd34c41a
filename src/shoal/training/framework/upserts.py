"""Putting one list's entries into another: an entry that is there already is replaced in its place, others are added.

The lists are those of a pod: each knows by which field its entries are the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any, TypeAlias

Json: TypeAlias = Mapping[str, Any]
"""A part of an object as plain values. It is shared and never changed: a change is a new value."""
Entries: TypeAlias = tuple[Json, ...]


def upsert_env(present: Iterable[Json], new: Iterable[Json]) -> Entries:
    """Variables, which are the same by name."""
    return _upsert(present, new, lambda one, other: one.get("name") == other.get("name"))


def upsert_volumes(present: Iterable[Json], new: Iterable[Json]) -> Entries:
    """Volumes, which are the same by name."""
    return _upsert(present, new, lambda one, other: one.get("name") == other.get("name"))


def upsert_mounts(present: Iterable[Json], new: Iterable[Json]) -> Entries:
    """Mounts, which are the same by the path that they are mounted at."""
    return _upsert(present, new, lambda one, other: one.get("mountPath") == other.get("mountPath"))


def upsert_ports(present: Iterable[Json], new: Iterable[Json]) -> Entries:
    """Ports, which are the same by number or by name; two without a name have the same one.

    So a port without a name takes the place of one that has none either, whatever its number, as it always did.
    """
    return _upsert(
        present,
        new,
        lambda one, other: (
            one.get("containerPort") == other.get("containerPort") or one.get("name") == other.get("name")
        ),
    )


def _upsert(present: Iterable[Json], new: Iterable[Json], are_same: Callable[[Json, Json], bool]) -> Entries:
    result = list(present)
    for entry in new:
        place = next((index for index, known in enumerate(result) if are_same(known, entry)), None)
        if place is None:
            result.append(entry)
        else:
            result[place] = entry
    return tuple(result)
