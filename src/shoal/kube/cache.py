"""The informers of a process, shared: whoever asks for the same selection of the same kind gets the same one."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from functools import partial
from typing import Any, TypeVar

import structlog

from shoal.api.meta.objects import HasMetadata
from shoal.api.meta.resource import Resource
from shoal.kube.client import Client
from shoal.kube.freshness import Place, WriteLog
from shoal.kube.informer import Informer
from shoal.kube.reflector import Pace
from shoal.kube.store import IndexFunction

T = TypeVar("T", bound=HasMetadata)

log = structlog.get_logger("shoal.kube.cache")


class NotSynced(Exception):
    """Some kinds could not be read in time; says which and why."""


class Cache:
    """Holds informers and runs them."""

    def __init__(self, client: Client, *, namespace: str = "", pace: Pace = Pace()) -> None:
        self._client = client
        self._namespace = namespace
        self._pace = pace
        self._informers: dict[tuple[Any, ...], Informer[Any]] = {}
        self._of_kind: dict[Place, list[Informer[Any]]] = {}
        self._tasks: asyncio.TaskGroup | None = None
        self._running: dict[Informer[Any], asyncio.Task[None]] = {}

    def informer(
        self,
        resource: Resource[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        indexes: Mapping[str, IndexFunction] | None = None,
        is_vital: bool = True,
    ) -> Informer[T]:
        """The informer of a selection; it starts with the cache, or at once where that already runs.

        One that is not vital to any who asked for it is not waited for: neither at the start, nor for readiness, nor
        until it shows what a reconcile wrote. That is for those who follow kinds that they know nothing about.
        """
        chosen = (namespace or self._namespace) if resource.namespaced else ""
        key = (resource, chosen, label_selector, field_selector)
        informer = self._informers.get(key)
        if informer is None:
            informer = Informer(
                self._client,
                resource,
                namespace=chosen,
                label_selector=label_selector,
                field_selector=field_selector,
                pace=self._pace,
                is_vital=is_vital,
            )
            self._add(key, informer)
            if self._tasks is not None:
                self._start(informer, self._tasks)
        informer.is_vital = informer.is_vital or is_vital
        informer.add_indexes(indexes or {})
        return informer

    def drop(self, informer: Informer[Any]) -> None:
        """Ends an informer that nobody needs any more; one that is vital to somebody stays."""
        if informer.is_vital:
            return
        self._informers = {key: kept for key, kept in self._informers.items() if kept is not informer}
        self._of_kind[informer.place] = [kept for kept in self._of_kind[informer.place] if kept is not informer]
        task = self._running.pop(informer, None)
        if task is not None:
            task.cancel()

    def _add(self, key: tuple[Any, ...], informer: Informer[Any]) -> None:
        self._informers[key] = informer
        self._of_kind.setdefault(informer.place, []).append(informer)

    @property
    def informers(self) -> list[Informer[Any]]:
        """All informers that were asked for."""
        return list(self._informers.values())

    async def run(self) -> None:
        """Runs every informer, also those asked for later, until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            self._tasks = tasks
            try:
                for informer in self._informers.values():
                    self._start(informer, tasks)
                await asyncio.Event().wait()
            finally:
                self._tasks = None
                self._running.clear()

    def _start(self, informer: Informer[Any], tasks: asyncio.TaskGroup) -> None:
        self._running[informer] = tasks.create_task(informer.run(), name=f"informer {informer.resource}")

    async def wait_for_sync(self, within: float | None = None) -> None:
        """Waits for the first picture of every kind asked for so far, as far as it is vital.

        Building a large picture makes nothing but objects that stay, which is the worst case of Python's cyclic
        collector: it is off meanwhile, and what was built is taken out of its sight afterwards.
        """
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            async with asyncio.timeout(within):
                for informer in self.informers:
                    if informer.is_vital:
                        await informer.wait_for_sync()
        except TimeoutError:
            late = [informer for informer in self.informers if informer.is_vital and not informer.has_synced]
            reasons = "; ".join(f"{informer.resource}: {informer.problem or 'no answer'}" for informer in late)
            raise NotSynced(f"not read within {within:.0f} s: {reasons}") from None
        finally:
            if was_enabled:
                gc.enable()
        gc.freeze()

    def shows(self, writes: WriteLog) -> bool:
        """Whether the informers that can see these writes do."""
        if not writes:  # most reconciles find all as it should be
            return True
        return next(self._unseen(writes), None) is None

    async def wait_for_writes(self, writes: WriteLog, within: float) -> bool:
        """Waits until the informers that can see these writes do; False when they did not in time."""
        try:
            async with asyncio.timeout(within):
                for wait in self._unseen(writes):
                    await wait()
        except TimeoutError:
            return False
        return True

    def selecting(self, place: Place) -> Iterable[Informer[Any]]:
        """The informers of a kind that select some of its objects."""
        return [informer for informer in self._of_kind.get(place, ()) if informer.is_selective]

    def _unseen(self, writes: WriteLog) -> Iterator[Callable[[], Awaitable[None]]]:
        """How to wait for each of the writes that an informer can see and has not seen yet.

        What appears comes first: an object that was made and is gone again has to be held before it can be let go of.
        """
        # Copies: a task that the reconcile left behind may still be writing.
        for (place, namespace), version in list(writes.versions.items()):
            for informer in self._vital(place, namespace):
                if not informer.is_selective and not informer.has_seen(version):
                    yield partial(informer.wait_for_version, version)
        for informer, version in list(writes.selected.items()):
            if informer.is_vital and not informer.has_seen(version):
                yield partial(informer.wait_for_version, version)
        for informer, written in list(writes.unselected):
            if informer.is_vital and not informer.shows_departure(written):
                yield partial(informer.wait_for_departure, written)
        for deleted in list(writes.deletions):
            for informer in self._vital(deleted.place, deleted.namespace):
                if not informer.shows_deletion(deleted):
                    yield partial(informer.wait_for_deletion, deleted)

    def _vital(self, place: Place, namespace: str) -> list[Informer[Any]]:
        """The informers that hold objects of a kind and namespace, as far as they are waited for."""
        informers = self._of_kind.get(place, ())
        return [one for one in informers if one.is_vital and one.namespace in ("", namespace)]
