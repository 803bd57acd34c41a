"""Lists of objects, whole or in pages, as they are or as they were."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping
from heapq import merge
from itertools import islice

import msgspec

from shoal.cluster.apiserver.storage.records import Record
from shoal.cluster.apiserver.storage.shelf import Key, Shelf, place


class Page(msgspec.Struct, frozen=True, gc=False):
    """A part of a list, in the order of namespaces and names."""

    records: list[Record]
    revision: int
    """The revision whose state it shows."""
    next: Key | None = None
    """The last key given, where more follow."""
    remaining: int | None = None
    """How many follow; unknown where a selection was made, and None where nothing follows."""


def page_of(
    shelf: Shelf,
    namespace: str | None,
    *,
    revision: int,
    past: Mapping[Key, Record | None],
    after: Key | None,
    limit: int | None,
    selects: Callable[[Record], bool] | None,
) -> Page:
    """One page. ``past`` says how objects that have changed since were at that revision."""
    if namespace is not None:
        past = {key: record for key, record in past.items() if key[0] == namespace}
    if not past and after is None and not limit:
        every = shelf.everything(namespace)
        return Page(every if selects is None else [record for record in every if selects(record)], revision)
    records: Iterable[Record] = shelf.records(namespace, after)
    if past:
        records = _as_they_were(records, past, after)
    if selects is not None:
        records = filter(selects, records)
    if not limit:
        return Page(list(records), revision)
    found = list(islice(records, min(limit, sys.maxsize - 1) + 1))
    if len(found) <= limit:
        return Page(found, revision)
    found.pop()
    last = (found[-1].namespace, found[-1].name)
    remaining = _count(shelf, namespace, past, last) if selects is None else None
    return Page(found, revision, last, remaining)


def _as_they_were(current: Iterable[Record], past: Mapping[Key, Record | None], after: Key | None) -> Iterator[Record]:
    start = None if after is None else place(after)
    unchanged = (record for record in current if (record.namespace, record.name) not in past)
    earlier = [record for key, record in past.items() if record is not None and (start is None or place(key) > start)]
    return merge(unchanged, sorted(earlier, key=_place), key=_place)


def _count(shelf: Shelf, namespace: str | None, past: Mapping[Key, Record | None], after: Key) -> int:
    start = place(after)
    count = shelf.count(namespace, after)
    for key, record in past.items():
        if place(key) > start:
            count += (record is not None) - (key in shelf)
    return count


def _place(record: Record) -> Key:
    return place((record.namespace, record.name))
