"""The changes that the collector makes to objects it knows only the metadata of, as JSON patches.

Every kind takes them, they touch nothing else, and they test what they rest on: where an object has changed in a way
that matters the server refuses, and where only its status has it does not.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from shoal.api.meta import ObjectMeta

Patch = list[dict[str, Any]]

_OWNERS = "/metadata/ownerReferences"
_FINALIZERS = "/metadata/finalizers"


def without_owners(metadata: ObjectMeta, uids: Collection[str]) -> Patch:
    """Takes the references to these owners off an object; empty where there are none."""
    owners = metadata.owner_references
    places = [index for index, owner in enumerate(owners) if owner.uid in uids]
    tests = [_test(f"{_OWNERS}/{index}/uid", owners[index].uid) for index in places]
    return _removing(metadata, _OWNERS, tests, places, len(owners))


def without_finalizer(metadata: ObjectMeta, finalizer: str) -> Patch:
    """Takes a finalizer off an object; empty where it is not there."""
    places = [index for index, name in enumerate(metadata.finalizers) if name == finalizer]
    tests = [_test(f"{_FINALIZERS}/{index}", finalizer) for index in places]
    return _removing(metadata, _FINALIZERS, tests, places, len(metadata.finalizers))


def unblocked(metadata: ObjectMeta) -> Patch:
    """Lets the owners of an object go before it; empty where it blocks none."""
    patch: Patch = []
    for index, owner in enumerate(metadata.owner_references):
        if owner.block_owner_deletion:
            place = f"{_OWNERS}/{index}"
            patch.append(_test(f"{place}/uid", owner.uid))
            patch.append({"op": "replace", "path": f"{place}/blockOwnerDeletion", "value": False})
    return [_test("/metadata/uid", metadata.uid), *patch] if patch else []


def _removing(metadata: ObjectMeta, path: str, tests: Patch, places: list[int], count: int) -> Patch:
    if not places:
        return []
    same = _test("/metadata/uid", metadata.uid)
    if len(places) == count:
        # What was added meanwhile must not go with them: the last of the list is tested to be the last.
        return [same, *tests, *_remove_each(path, places), _test(path, []), {"op": "remove", "path": path}]
    return [same, *tests, *_remove_each(path, places)]


def _remove_each(path: str, places: list[int]) -> Patch:
    """Removes from the end, since each removal moves what follows."""
    return [{"op": "remove", "path": f"{path}/{index}"} for index in reversed(places)]


def _test(path: str, value: Any) -> dict[str, Any]:
    return {"op": "test", "path": path, "value": value}
