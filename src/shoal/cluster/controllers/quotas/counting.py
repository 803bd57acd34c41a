"""How many objects of any kind a namespace holds, for kinds that nobody thought of."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import WeakSet

from shoal.api.meta import Resource
from shoal.cluster.controllers.discovery import discover
from shoal.cluster.indexes import BY_NAMESPACE
from shoal.kube import Change, Informer, Manager, ReconcileError, by_namespace
from shoal.kube.freshness import place_of

LOOK_AGAIN = 30.0
"""Seconds until a kind that was not served, or not read, is asked for again."""


READ_WITHIN = 2.0
"""Seconds that the first picture of a kind has."""


class Unread(ReconcileError):
    """A kind of which there is no picture yet."""


class Counting:
    """Counts by whatever picture of a kind this process has; ``on_change`` hears where an object of one went."""

    def __init__(self, manager: Manager, on_change: Callable[[str, str], None]) -> None:
        self._client = manager.client
        self._cache = manager.cache
        self._on_change = on_change
        self._served: dict[str, Resource[Any]] = {}
        self._looked = -LOOK_AGAIN
        self._heard: WeakSet[Informer[Any]] = WeakSet()

    async def count(self, kind: str, namespace: str) -> int | None:
        """How many objects of a kind, as ``plural.group``, a namespace holds; None where it is not served.

        Raises Unread where the server does not tell: a quota may be about other kinds as well, which shall not wait.
        """
        resource = await self._resource(kind)
        if resource is None:
            return None
        informer = self._picture(resource)
        if informer not in self._heard:
            informer.add_indexes({BY_NAMESPACE: by_namespace})
            informer.subscribe(partial(self._hear, kind))
            self._heard.add(informer)
        if not await _is_read(informer):
            raise Unread(f"{kind} cannot be counted: {informer.problem or 'the server has not answered yet'}")
        return len(informer.find(BY_NAMESPACE, namespace))

    async def _resource(self, kind: str) -> Resource[Any] | None:
        if kind not in self._served and time.monotonic() - self._looked >= LOOK_AGAIN:
            discovered = await discover(self._client)
            self._looked = time.monotonic()
            self._served = {
                each.resource.full_name: each.resource
                for each in discovered.preferred()
                if each.resource.namespaced and each.can("create", "list", "watch", "delete")
            }
        return self._served.get(kind)

    def _picture(self, resource: Resource[Any]) -> Informer[Any]:
        for informer in self._cache.informers:
            is_whole = not informer.is_selective and not informer.namespace
            if is_whole and place_of(informer.resource) == place_of(resource):
                return informer
        return self._cache.informer(resource, is_vital=False)

    def _hear(self, kind: str, change: Change[Any]) -> None:
        if change.after is None:
            self._on_change(kind, change.latest.metadata.namespace)


async def _is_read(informer: Informer[Any]) -> bool:
    if not informer.has_synced and not informer.problem:
        with suppress(TimeoutError):
            async with asyncio.timeout(READ_WITHIN):
                await informer.wait_for_sync()
    return informer.has_synced
