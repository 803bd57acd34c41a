"""Hears when the last of what keeps a namespace has gone, so that nobody has to ask again and again.

Whatever pictures of kinds this process keeps already are listened to, by whichever controller they were asked for; of
the other kinds nothing is heard, and the namespace is looked at again after a while.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

from shoal.cluster.controllers.namespaces.content import Left
from shoal.kube import Cache, Change, Informer
from shoal.kube.freshness import Place, place_of


class Vigil:
    """Counts down what is left in namespaces, and tells of each in which nothing is."""

    def __init__(self, cache: Cache, wake: Callable[[str], None]) -> None:
        self._cache = cache
        self._wake = wake
        self._left: dict[str, set[str]] = {}
        self._heard: weakref.WeakSet[Informer[Any]] = weakref.WeakSet()

    def keep(self, namespace: str, left: Iterable[Left]) -> bool:
        """Waits for the end of what is left in a namespace; False where it has come meanwhile."""
        informers = self._informers()
        awaited: set[str] = set()
        is_unheard = False
        for one in left:
            informer = informers.get(place_of(one.resource)) if one.count else None
            if informer is None:
                is_unheard = is_unheard or bool(one.count)
                continue
            if informer not in self._heard:
                self._heard.add(informer)
                informer.subscribe(self._hear)
            is_newer = one.version.isdigit() and informer.has_seen(int(one.version))
            for uid, key in one.objects.items():
                found = informer.store.get(key)
                if not is_newer or (found is not None and found.metadata.uid == uid):
                    awaited.add(uid)
        if awaited:
            self._left[namespace] = awaited
        else:
            self._left.pop(namespace, None)
        return bool(awaited) or is_unheard

    def end(self, namespace: str) -> None:
        """Waits for nothing any more."""
        self._left.pop(namespace, None)

    def _hear(self, change: Change[Any]) -> None:
        if change.after is not None or not self._left:
            return
        metadata = change.latest.metadata
        awaited = self._left.get(metadata.namespace)
        if awaited is not None and metadata.uid in awaited:
            awaited.remove(metadata.uid)
            if not awaited:
                del self._left[metadata.namespace]
                self._wake(metadata.namespace)

    def _informers(self) -> dict[Place, Informer[Any]]:
        return {
            place_of(informer.resource): informer
            for informer in self._cache.informers
            if informer.has_synced and not informer.is_selective and not informer.namespace
        }
