"""Ownership of replicas between an object and its scale: whoever owns the one owns the other.

A write to ``/scale`` is recorded on a Scale that starts with ``entries_for_scale`` of its object; what the Scale's
entries are afterwards goes back with ``entries_from_scale``.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from shoal.cluster.apiserver.apply.entries import Entry, Owner, fields_of, new_entry, owner_of, with_fields, written
from shoal.cluster.apiserver.apply.fieldset import contains, difference, tree_of

Paths = Mapping[str, tuple[str, ...] | None]
"""By apiVersion, where the object has its replicas; None for a version without a scale."""

_SCALE_VERSION = "autoscaling/v1"
_REPLICAS = ("spec", "replicas")


def entries_for_scale(entries: Iterable[Entry], paths: Paths) -> list[Entry]:
    """The entries that a Scale has: those of its object that own the replicas."""
    found = []
    for entry in _last_of_each(entries):
        path = paths.get(entry["apiVersion"])
        if path is not None and contains(fields_of(entry), _labels(path)):
            fields = tree_of([_REPLICAS])
            found.append(new_entry(owner_of(entry), version=_SCALE_VERSION, fields=fields, time=entry.get("time")))
    return written(found)


def entries_from_scale(
    entries: Iterable[Entry], scale_entries: Iterable[Entry], *, version: str, paths: Paths
) -> list[Entry]:
    """The entries of the object after a write to its scale: who lost the replicas there loses them here.

    Who owned more than them may have two entries afterwards, of which the later counts from then on.
    """
    entries = _last_of_each(entries)
    of_scale = {owner_of(entry): entry for entry in scale_entries}
    times = {owner_of(entry): entry.get("time") for entry in entries}
    found: dict[Owner, Entry] = {}
    for entry in entries:
        if entry["apiVersion"] not in paths:
            continue
        path = paths[entry["apiVersion"]]
        owner = owner_of(entry)
        if path is None or not contains(fields_of(entry), _labels(path)) or of_scale.pop(owner, None) is not None:
            found[owner] = entry
        elif fields := difference(fields_of(entry), tree_of([path])):
            found[owner] = with_fields(entry, fields)
    here = paths[version]
    for owner, entry in of_scale.items():
        if here is not None and contains(fields_of(entry), _labels(_REPLICAS)):
            found[owner] = new_entry(owner, version=version, fields=tree_of([here]), time=times.get(owner))
    return written(found.values())


def _last_of_each(entries: Iterable[Entry]) -> list[Entry]:
    return list({owner_of(entry): entry for entry in entries}.values())


def _labels(path: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"f:{name}" for name in path)
