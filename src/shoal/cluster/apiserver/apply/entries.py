"""The entries of metadata.managedFields: who they name, which of a request count, and their order."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Any

from shoal.api.meta import InvalidTime, format_time, parse_time
from shoal.cluster.apiserver.apply.elements import Untypeable
from shoal.cluster.apiserver.apply.fieldset import Tree, joined, parsed
from shoal.cluster.apiserver.kinds.kind import Object

Entry = dict[str, Any]
"""One entry as the wire has it; never changed once it is made, since objects share them."""

Owner = tuple[str, str, str, str]
"""What tells entries apart: manager, operation, apiVersion (empty for an applier) and subresource."""

UPDATE, APPLY = "Update", "Apply"

MOST_UPDATERS = 10
"""So many entries of updates are kept; the oldest are thrown together under one name."""
ANCIENT = "ancient-changes"


def owner_of(entry: Entry) -> Owner:
    """Who an entry belongs to."""
    operation = entry.get("operation", "")
    version = "" if operation == APPLY else entry.get("apiVersion", "")
    return entry.get("manager", ""), operation, version, entry.get("subresource", "")


def new_entry(owner: Owner, *, version: str, fields: Tree, time: str | None) -> Entry:
    """An entry, with its keys in the order of the wire."""
    manager, operation, _, subresource = owner
    entry: Entry = {}
    if manager:
        entry["manager"] = manager
    entry["operation"] = operation
    entry["apiVersion"] = version
    if time is not None:
        entry["time"] = time
    entry["fieldsType"] = "FieldsV1"
    entry["fieldsV1"] = fields
    if subresource:
        entry["subresource"] = subresource
    return entry


def with_fields(entry: Entry, fields: Tree) -> Entry:
    """The same entry with other fields."""
    return {**entry, "fieldsV1": fields}


def fields_of(entry: Entry) -> Tree:
    """The set of fields of an entry."""
    return entry.get("fieldsV1") or {}


def live_entries(live: Object | None) -> dict[Owner, Entry]:
    """The entries of a stored object."""
    entries = _metadata(live).get("managedFields") if live is not None else None
    return {owner_of(entry): entry for entry in entries or ()}


def counting_entries(live: Object | None, new: Object, *, subresource: str, is_custom: bool) -> dict[Owner, Entry]:
    """The entries that a write starts from.

    Those of the request, where it has any that can be read, so that clients may edit them; else the live object's,
    since most clients know nothing of them. A list with one empty entry forgets them all, and one with nothing in it
    too, but for custom objects, whose decoding drops it.
    """
    sent = _metadata(new).get("managedFields")
    if subresource or not isinstance(sent, list):
        return live_entries(live)
    if sent == [{}] or (not sent and not is_custom):
        return {}
    if live is not None and sent == _metadata(live).get("managedFields"):
        return live_entries(live)
    try:
        found = {owner_of(entry): entry for entry in map(_read, sent)}
    except Untypeable:
        found = {}
    return found or live_entries(live)


def written(entries: Iterable[Entry]) -> list[Entry]:
    """Entries in the order in which objects have them: appliers first, then by age and name."""
    return sorted(entries, key=_order)


def capped(entries: dict[Owner, Entry]) -> dict[Owner, Entry]:
    """The entries with the oldest updates thrown together, version by version, where there are too many."""
    updaters = [owner for owner in entries if owner[1] == UPDATE]
    excess = len(updaters) - MOST_UPDATERS
    if excess <= 0:
        return entries
    entries = dict(entries)
    updaters.sort(key=lambda owner: (entries[owner].get("time", ""), _identifier(owner)))
    first_of: dict[str, Owner] = {}
    for owner in updaters:
        if excess <= 0:
            break
        entry = entries[owner]
        version = entry.get("apiVersion", "")
        bucket = (ANCIENT, UPDATE, version, "")
        if version not in first_of:
            first_of[version] = owner
            continue
        if bucket not in entries:
            entries[bucket] = entries.pop(first_of[version])
        if owner == bucket:
            continue
        fields = joined(fields_of(entry), fields_of(entries[bucket]))
        del entries[owner]
        entries[bucket] = new_entry(bucket, version=version, fields=fields, time=entry.get("time"))
        excess -= 1
    return entries


def put(new: Object, entries: dict[Owner, Entry]) -> None:
    """Sets the entries of an object."""
    metadata = _metadata(new)
    if entries:
        metadata["managedFields"] = written(entries.values())
    else:
        metadata.pop("managedFields", None)


def _metadata(thing: Object) -> dict[str, Any]:
    metadata = thing.get("metadata")
    if not isinstance(metadata, dict):
        metadata = thing["metadata"] = {}
    return metadata


def _order(entry: Entry) -> tuple[str, str, str, str, str]:
    return (
        entry.get("operation", ""),
        entry.get("time", ""),
        entry.get("manager", ""),
        entry.get("apiVersion", ""),
        entry.get("subresource", ""),
    )


def _identifier(owner: Owner) -> str:
    """An owner as the text by which equals are ordered."""
    manager, operation, version, subresource = owner
    parts = (("manager", manager), ("operation", operation), ("apiVersion", version), ("subresource", subresource))
    return "{" + ",".join(f'"{name}":"{value}"' for name, value in parts if value) + "}"


def _read(entry: Any) -> Entry:
    """An entry that a client sent, in normal form; raises Untypeable for one that is wrong."""
    if not isinstance(entry, dict):
        raise Untypeable("not an entry")
    operation, version = entry.get("operation"), entry.get("apiVersion")
    if operation not in (APPLY, UPDATE):
        raise Untypeable("operation must be `Apply` or `Update`")
    if not isinstance(version, str) or not version:
        raise Untypeable("apiVersion must not be empty")
    if entry.get("fieldsType") != "FieldsV1":
        raise Untypeable("missing fieldsType in managed fields entry")
    manager, subresource = entry.get("manager") or "", entry.get("subresource") or ""
    if not isinstance(manager, str) or not isinstance(subresource, str):
        raise Untypeable("manager and subresource must be strings")
    owner = (manager, operation, "" if operation == APPLY else version, subresource)
    return new_entry(owner, version=version, fields=parsed(entry.get("fieldsV1")), time=_time(entry.get("time")))


_UTC_SECONDS = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")


def _time(text: Any) -> str | None:
    if text is None:
        return None
    if isinstance(text, str) and _UTC_SECONDS.fullmatch(text):
        return text
    try:
        return format_time(parse_time(text))
    except (InvalidTime, TypeError) as problem:
        raise Untypeable(str(problem)) from problem
