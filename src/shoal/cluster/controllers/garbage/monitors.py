"""The kinds that the collector follows: all that can be deleted, listed and watched, as long as they are served.

Where another controller of this process has a picture of a kind already that one is used; of the others only the
metadata are kept. The graph of owners and dependents is no structure of its own: an index of each picture finds
dependents by the uid of their owner, and an owner is found by its coordinates.
"""

from __future__ import annotations

import typing
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any

from shoal.api.meta import ObjectMeta, PartialObject, Resource
from shoal.cluster.controllers.discovery import Discovered
from shoal.kube import Cache, Change, Informer, Key
from shoal.kube.store import BY_OWNER, by_owner

IGNORED = frozenset({("", "events"), ("events.k8s.io", "events")})
"""Kinds that nobody owns, and of which there are many."""


class Monitor:
    """One kind that is followed."""

    def __init__(self, resource: Resource[Any], informer: Informer[Any], *, is_ours: bool) -> None:
        self.resource = resource
        self.informer = informer
        self.is_ours = is_ours
        self.is_leaving = False
        self.listener: Callable[[Change[Any]], None] | None = None


@dataclass(frozen=True, slots=True)
class Item:
    """One object of a kind that is followed."""

    monitor: Monitor
    key: Key
    uid: str

    @property
    def current(self) -> ObjectMeta | None:
        """The object's metadata as they were last seen; None where it is gone, or another has its name."""
        found = self.monitor.informer.store.get(self.key)
        if found is None or found.metadata.uid != self.uid:
            return None
        metadata: ObjectMeta = found.metadata
        return metadata


Listener = Callable[[Monitor, Change[Any]], None]


class Monitors:
    """All kinds that are followed; ``listener`` hears of every change of their objects."""

    def __init__(self, cache: Cache, listener: Listener) -> None:
        self._cache = cache
        self._listener = listener
        self._monitors: dict[tuple[str, str], Monitor] = {}
        self._leaving: list[Monitor] = []
        self._kinds: dict[tuple[str, str], Resource[Any]] = {}

    def sync(self, discovered: Discovered) -> list[Monitor]:
        """Follows what is served, and lets go of what is not any more; gives the new ones, not yet listened to."""
        self._kinds = {(one.resource.api_version, one.resource.kind): one.resource for one in discovered.kinds} | {
            known: resource for known, resource in self._kinds.items() if known[0] in discovered.failures
        }
        wanted = {
            (one.resource.group, one.resource.plural): one.resource
            for one in discovered.preferred()
            if one.can("delete", "list", "watch")
        }
        for place, monitor in list(self._monitors.items()):
            if monitor.resource.api_version in discovered.failures:
                wanted.setdefault(place, monitor.resource)
            elif wanted.get(place) != monitor.resource:
                del self._monitors[place]
                self._leave(monitor, is_served=place in wanted)
        new = []
        for place, resource in wanted.items():
            if place in self._monitors or place in IGNORED or self._take_back(place, resource):
                continue
            self._monitors[place] = self._monitor(resource)
            new.append(self._monitors[place])
        return new

    def listen(self, monitor: Monitor) -> None:
        """Begins to hear of a kind's changes, and at once of every object that is there."""
        monitor.listener = partial(self._hear, monitor)
        monitor.informer.subscribe(monitor.listener)

    def resource(self, api_version: str, kind: str) -> Resource[Any] | None:
        """The kind that a reference names, in the version that it names; None where no such is served."""
        return self._kinds.get((api_version, kind))

    def seen(self, resource: Resource[Any], key: Key) -> ObjectMeta | None:
        """An object's metadata as they were last seen, whatever the version asked for."""
        monitor = self._monitors.get((resource.group, resource.plural))
        found = monitor.informer.store.get(key) if monitor is not None else None
        return found.metadata if found is not None else None

    def is_somewhere(self, resource: Resource[Any], uid: str) -> bool:
        """Whether an object of this kind and uid is anywhere; looks at all of them."""
        monitor = self._monitors.get((resource.group, resource.plural))
        return monitor is not None and any(found.metadata.uid == uid for found in monitor.informer.store)

    def dependents(self, owner: str) -> list[Item]:
        """The objects that name an owner's uid."""
        return list(self._dependents(owner))

    def has_dependents(self, owner: str) -> bool:
        """Whether any object names an owner's uid."""
        return next(self._dependents(owner), None) is not None

    def _dependents(self, owner: str) -> Iterator[Item]:
        for monitor in (*self._monitors.values(), *self._leaving):
            for found in monitor.informer.store.find(BY_OWNER, owner):
                metadata = found.metadata
                yield Item(monitor, Key(metadata.namespace, metadata.name), metadata.uid)

    def _monitor(self, resource: Resource[PartialObject]) -> Monitor:
        index = {BY_OWNER: by_owner}
        for informer in self._cache.informers:
            if _is_picture_of(resource, informer):
                informer.add_indexes(index)
                return Monitor(resource, informer, is_ours=False)
        informer = self._cache.informer(resource, indexes=index, is_vital=False)
        return Monitor(resource, informer, is_ours=True)

    def _hear(self, monitor: Monitor, change: Change[Any]) -> None:
        self._listener(monitor, change)
        if monitor.is_leaving and not len(monitor.informer.store):
            self._leaving.remove(monitor)
            self._end(monitor)

    def _leave(self, monitor: Monitor, *, is_served: bool) -> None:
        """Lets go of a kind. The deletions of its last objects are still heard of, where it is gone for good."""
        monitor.is_leaving = True
        if is_served or monitor.listener is None or not len(monitor.informer.store):
            self._end(monitor)
        else:
            self._leaving.append(monitor)

    def _take_back(self, place: tuple[str, str], resource: Resource[Any]) -> bool:
        """Goes on with a kind whose last objects had not gone when it is served again: it is listened to still."""
        found = next((monitor for monitor in self._leaving if monitor.resource == resource), None)
        if found is None:
            return False
        self._leaving.remove(found)
        found.is_leaving = False
        self._monitors[place] = found
        return True

    def _end(self, monitor: Monitor) -> None:
        if monitor.listener is not None:
            monitor.informer.unsubscribe(monitor.listener)
        if monitor.is_ours:
            self._cache.drop(monitor.informer)


def _is_picture_of(resource: Resource[Any], informer: Informer[Any]) -> bool:
    """Whether an informer holds all objects of a kind with all of their metadata that matter."""
    known = informer.resource
    is_same = (known.group, known.version, known.plural) == (resource.group, resource.version, resource.plural)
    if not is_same or informer.is_selective or informer.namespace:
        return False
    return typing.get_type_hints(known.type).get("metadata") is ObjectMeta
