"""Who owns what after a write: the rules of structured merge on entries of managedFields."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from shoal.cluster.apiserver.apply.compare import compared, same
from shoal.cluster.apiserver.apply.entries import Entry, Owner, fields_of, new_entry, with_fields
from shoal.cluster.apiserver.apply.fieldset import (
    Tree,
    difference,
    intersection,
    joined,
    recursive_difference,
    tree_of,
)
from shoal.cluster.apiserver.apply.merge import merged
from shoal.cluster.apiserver.apply.prune import owned, pruned
from shoal.cluster.apiserver.apply.reconcile import reconciled
from shoal.cluster.apiserver.apply.shape import Shape

Entries = dict[Owner, Entry]

NEVER_OWNED = tree_of(
    [
        ("apiVersion",),
        ("kind",),
        ("metadata",),
        *(
            ("metadata", name)
            for name in (
                "name",
                "namespace",
                "creationTimestamp",
                "selfLink",
                "uid",
                "clusterName",
                "generation",
                "managedFields",
                "resourceVersion",
            )
        ),
    ]
)
"""What names an object, and what the server keeps for itself."""


class Conflicts(Exception):
    """An apply without force would change fields of others."""

    def __init__(self, fields: dict[Owner, Tree]) -> None:
        self.fields = fields
        super().__init__(f"conflicts with {len(fields)} managers")


def after_update(
    shape: Shape, live: Any, new: Any, entries: Entries, *, owner: Owner, version: str, now: str, resets: Tree
) -> Entries:
    """The entries after a write of the whole object: what it sets or changes is the writer's alone."""
    taken, removed = _difference(shape, live, new, resets)
    after = _disowned(entries, taken, removed)
    mine = difference(taken, NEVER_OWNED)
    if mine:
        before = after.get(owner)
        fields = mine if before is None else joined(mine, fields_of(before))
        after[owner] = new_entry(owner, version=version, fields=fields, time=now)
    return after


def after_apply(
    shape: Shape,
    live: Any,
    applied: Any,
    entries: Entries,
    *,
    owner: Owner,
    version: str,
    now: str,
    force: bool,
    resets: Tree,
    versions: Container[str] | None,
) -> tuple[Any, Entries]:
    """The merged object, the live one itself where nothing changes, and the entries; raises Conflicts."""
    new = merged(shape, live, applied)
    last = entries.get(owner)
    mine = recursive_difference(owned(shape, applied), resets)
    others = {name: entry for name, entry in entries.items() if name != owner}
    if last is not None and difference(fields_of(last), mine) and (versions is None or last["apiVersion"] in versions):
        all_owned = mine
        for entry in others.values():
            all_owned = joined(all_owned, fields_of(entry))
        new = pruned(shape, new, last=fields_of(last), all_owned=all_owned)
    taken, removed = _difference(shape, live, new, resets)
    if not force:
        conflicts = {name: intersection(fields_of(entry), taken) for name, entry in others.items()}
        conflicts = {name: fields for name, fields in conflicts.items() if fields}
        if conflicts:
            raise Conflicts(conflicts)
    after = _disowned(others, taken, removed)
    mine = difference(mine, NEVER_OWNED)
    changed = live != new if shape.is_exact else not same(live, new)
    if mine:
        time = now if changed else last.get("time") if last is not None else None
        after[owner] = new_entry(owner, version=version, fields=mine, time=time)
    return (new if changed else live), after


def under_schema(shape: Shape, entries: Entries, *, versions: Container[str] | None, is_fixed: bool) -> Entries:
    """The entries as the schema of today has them, where it may change, without those of versions that are no more."""
    if is_fixed and versions is None:
        return entries
    out: Entries = {}
    for owner, entry in entries.items():
        if versions is not None and entry.get("apiVersion") not in versions:
            continue
        before = fields_of(entry)
        fields = before if is_fixed else reconciled(shape, before)
        out[owner] = entry if fields is before else with_fields(entry, fields)
    return out


def _difference(shape: Shape, live: Any, new: Any, resets: Tree) -> tuple[Tree, Tree]:
    taken, removed = compared(shape, live, new)
    taken, removed = taken or {}, removed or {}
    if resets:
        return recursive_difference(taken, resets), recursive_difference(removed, resets)
    return taken, removed


def _disowned(entries: Entries, taken: Tree, removed: Tree) -> Entries:
    """The entries without fields that someone else has set now, or that are gone; empty ones go too."""
    out: Entries = {}
    for owner, entry in entries.items():
        before = fields_of(entry)
        fields = difference(difference(before, taken), removed)
        if fields:
            out[owner] = entry if fields is before else with_fields(entry, fields)
    return out
