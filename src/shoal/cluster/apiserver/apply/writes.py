"""The two ways in which a request changes ownership: by writing the object, and by applying a part of it."""

from __future__ import annotations

from collections.abc import Container, Sequence
from typing import Any

import msgspec

from shoal.cluster.apiserver.apply import check
from shoal.cluster.apiserver.apply.compare import same
from shoal.cluster.apiserver.apply.conflicts import conflict_refusal
from shoal.cluster.apiserver.apply.elements import Untypeable
from shoal.cluster.apiserver.apply.entries import (
    APPLY,
    UPDATE,
    Entry,
    Owner,
    capped,
    counting_entries,
    live_entries,
    put,
)
from shoal.cluster.apiserver.apply.fieldset import contains, paths, tree_of
from shoal.cluster.apiserver.apply.last_applied import takeable, with_annotation
from shoal.cluster.apiserver.apply.ownership import Conflicts, after_apply, after_update, under_schema
from shoal.cluster.apiserver.apply.shape import shape_of, zero_bytes
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.refusals import Refused, bad_request, refused
from shoal.cluster.apiserver.schema import Schema

BEFORE_FIRST_APPLY = "before-first-apply"
KUBECTL = "kubectl"
_TOO_DEEP = "the object is nested too deeply"

Paths = Sequence[tuple[str, ...]]


def record_update(
    schema: Schema,
    live: Object | None,
    new: Object,
    *,
    manager: str,
    subresource: str,
    now: str,
    resets: Paths = (),
    versions: Container[str] | None = None,
) -> None:
    """Completes the new object's managedFields after a create, update or patch by a manager.

    ``resets`` are the paths that a write to this endpoint does not own; ``versions`` the apiVersions that the kind has,
    where entries of others are to be forgotten. Entries that do not change are shared with the live object.
    """
    entries = counting_entries(live, new, subresource=subresource, is_custom=not schema.go_type)
    new["metadata"].pop("managedFields", None)
    if not entries and live is not None and live["metadata"].get("uid"):
        # Nobody has kept track so far: that starts with the first apply.
        return
    shape = shape_of(schema)
    version = new["apiVersion"]
    try:
        put(
            new,
            capped(
                after_update(
                    shape,
                    _before(schema, live),
                    new,
                    under_schema(shape, entries, versions=versions, is_fixed=bool(schema.go_type)),
                    owner=(manager or "unknown", UPDATE, version, subresource),
                    version=version,
                    now=now,
                    resets=tree_of(resets),
                )
            ),
        )
    except RecursionError:
        raise bad_request(_TOO_DEEP) from None
    except Untypeable:
        # The object does not fit its schema: ownership is dropped, the write goes on.
        new["metadata"].pop("managedFields", None)


def apply(
    schema: Schema,
    live: Object | None,
    applied: Object,
    *,
    manager: str,
    force: bool,
    subresource: str,
    now: str,
    resets: Paths = (),
    versions: Container[str] | None = None,
) -> Object:
    """The object after a server-side apply: merged, without what the manager gave up, ownership updated.

    Nulls may stand where all that a map or list held is gone; decoding the object again drops them.
    """
    try:
        return _Apply(schema, live, applied, manager=manager, subresource=subresource, now=now).outcome(
            force=force, resets=resets, versions=versions
        )
    except RecursionError:
        raise bad_request(_TOO_DEEP) from None


class _Apply:
    """One apply, with what its steps share."""

    def __init__(
        self, schema: Schema, live: Object | None, applied: Object, *, manager: str, subresource: str, now: str
    ) -> None:
        self.shape = shape_of(schema)
        self.is_builtin = bool(schema.go_type)
        self.zero = msgspec.json.decode(zero_bytes(schema))
        self.live = live
        self.applied = applied
        self.manager = manager
        self.version: str = applied.get("apiVersion", "")
        self.subresource = subresource
        self.now = now

    def outcome(self, *, force: bool, resets: Paths, versions: Container[str] | None) -> Object:
        self._require_wellformed()
        # A copy, since the result takes over parts of it and others will complete that.
        live = msgspec.json.decode(msgspec.json.encode(self.live)) if self.live is not None else self._empty()
        arguments: dict[str, Any] = {
            "owner": (self.manager, APPLY, "", self.subresource),
            "version": self.version,
            "now": self.now,
            "resets": tree_of(resets),
            "versions": versions,
        }
        try:
            before = self._entries_before(resets)
            before = under_schema(self.shape, before, versions=versions, is_fixed=self.is_builtin)
            new, entries = after_apply(self.shape, live, self.applied, before, force=force, **arguments)
        except Conflicts as conflicts:
            self._require_takeable(live, conflicts)
            new, entries = after_apply(self.shape, live, self.applied, before, force=True, **arguments)
        except Untypeable as problem:
            raise _failed(f"failed to create typed live object ({_named(live)}): {problem}") from problem
        outcome: Object = new
        if self.manager == KUBECTL:
            with_annotation(outcome, self.applied)
        put(outcome, entries)
        return outcome

    def _require_wellformed(self) -> None:
        if self.live is not None and _kind(self.live) != _kind(self.applied):
            raise bad_request(f"invalid object type: {_kind(self.applied)}")
        metadata = self.applied.get("metadata")
        if isinstance(metadata, dict) and metadata.get("managedFields") is not None:
            raise bad_request("metadata.managedFields must be nil")
        if not check.fits(self.shape, self.applied):
            found = check.problems(self.shape, self.applied)
            raise _failed(f"failed to create typed patch object ({_named(self.applied)}): {check.message(found)}")

    def _entries_before(self, resets: Paths) -> dict[Owner, Entry]:
        """The entries of the live object; all that an untracked one has is owned by a manager made up for that."""
        entries = live_entries(self.live)
        if entries or self.live is None:
            return entries
        owner = (BEFORE_FIRST_APPLY, UPDATE, self.version, self.subresource)
        return after_update(
            self.shape,
            self._empty(),
            self.live,
            {},
            owner=owner,
            version=self.version,
            now=self.now,
            resets=tree_of(resets),
        )

    def _require_takeable(self, live: Object, conflicts: Conflicts) -> None:
        """Refuses, unless kubectl takes over what it applied from the client's side."""
        fields = takeable(self.shape, live) if self.manager == KUBECTL else {}
        if not fields:
            raise conflict_refusal(conflicts.fields) from None
        left = {
            owner: [path for path in paths(tree) if not contains(fields, path)]
            for owner, tree in conflicts.fields.items()
        }
        if any(left.values()):
            raise conflict_refusal({owner: _tree(found) for owner, found in left.items() if found}) from None

    def _empty(self) -> Object:
        return {"apiVersion": self.applied["apiVersion"], "kind": self.applied["kind"], **self.zero}


def keep_times(live: Object, new: Object) -> None:
    """Puts the old times back into managedFields where nothing but times has changed, so that no write is needed.

    To be called last, on the object as it would be stored.
    """
    before, after = live["metadata"].get("managedFields"), new["metadata"].get("managedFields")
    if not before or not after or len(before) != len(after) or before == after:
        return
    if [_timeless(entry) for entry in before] != [_timeless(entry) for entry in after]:
        return
    old_metadata, new_metadata = dict(live["metadata"]), dict(new["metadata"])
    old_metadata["managedFields"] = new_metadata["managedFields"] = None
    if same({**live, "metadata": old_metadata}, {**new, "metadata": new_metadata}):
        new["metadata"]["managedFields"] = before


def _timeless(entry: Entry) -> Entry:
    return {key: value for key, value in entry.items() if key != "time"}


def _before(schema: Schema, live: Object | None) -> Any:
    return live if live is not None else msgspec.json.decode(zero_bytes(schema))


def _tree(found: list[tuple[str, ...]]) -> dict[str, Any]:
    root: dict[str, Any] = {}
    for path in found:
        branch = root
        for label in path[:-1]:
            held = branch.get(label)
            if held == {}:
                held["."] = {}
            branch = branch.setdefault(label, {})
        branch.setdefault(path[-1], {})
    return root


def _named(thing: Object) -> str:
    metadata = thing.get("metadata")
    found = (metadata.get(key) for key in ("namespace", "name")) if isinstance(metadata, dict) else ()
    namespace, name = [part if isinstance(part, str) else "" for part in found] or ("", "")
    return f"{namespace}/{name}; {_kind(thing)}"


def _kind(thing: Object) -> str:
    group, _, version = thing.get("apiVersion", "").rpartition("/")
    return f"{group}/{version}, Kind={thing.get('kind', '')}"


def _failed(message: str) -> Refused:
    return refused(500, "", message)
