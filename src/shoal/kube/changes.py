"""Which changes matter to a controller, and whose reconcile they ask for: both as plain functions.

A filter is ``Change → bool``; a mapping is ``object → keys``. A controller declares them with what it watches.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from shoal.api.meta.resource import Resource
from shoal.kube.informer import Change
from shoal.kube.store import Key, key_of

Filter = Callable[[Change[Any]], bool]
Mapping = Callable[[Any], Iterable[Key]]


def any_change(change: Change[Any]) -> bool:
    """Every change matters."""
    return True


def spec_changed(change: Change[Any]) -> bool:
    """The generation differs: what is wanted changed, not what was observed. Deletion counts as well."""
    return _differs(change, lambda found: (found.metadata.generation, found.metadata.is_deleting))


def labels_changed(change: Change[Any]) -> bool:
    """The labels differ."""
    return _differs(change, lambda found: found.metadata.labels)


def annotations_changed(change: Change[Any]) -> bool:
    """The annotations differ."""
    return _differs(change, lambda found: found.metadata.annotations)


def field_changed(read: Callable[[Any], Any]) -> Filter:
    """What ``read`` gives of the object differs."""
    return lambda change: _differs(change, read)


def all_of(*filters: Filter) -> Filter:
    """Every one of these holds."""
    return lambda change: all(holds(change) for holds in filters)


def any_of(*filters: Filter) -> Filter:
    """At least one of these holds."""
    return lambda change: any(holds(change) for holds in filters)


def none_of(*filters: Filter) -> Filter:
    """None of these holds."""
    return lambda change: not any(holds(change) for holds in filters)


def itself(found: Any) -> Iterable[Key]:
    """The object's own key."""
    return (key_of(found),)


def controlling_owner(owner: Resource[Any]) -> Mapping:
    """The key of the owner of this kind that manages the object."""
    return _owners(owner, only_controller=True)


def any_owner(owner: Resource[Any]) -> Mapping:
    """The keys of all owners of this kind."""
    return _owners(owner, only_controller=False)


def _owners(owner: Resource[Any], *, only_controller: bool) -> Mapping:
    def keys(found: Any) -> Iterable[Key]:
        namespace = found.metadata.namespace if owner.namespaced else ""
        return [
            Key(namespace, reference.name)
            for reference in found.metadata.owner_references
            if reference.kind == owner.kind
            # The version may differ: an owner is the same object in each of its group's versions.
            and reference.api_version.rpartition("/")[0] == owner.group
            and (reference.controller or not only_controller)
        ]

    return keys


def _differs(change: Change[Any], read: Callable[[Any], Any]) -> bool:
    if change.before is None or change.after is None:
        return True
    return bool(read(change.before) != read(change.after))
