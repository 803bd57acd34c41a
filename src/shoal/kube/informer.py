"""A shared picture of one kind: the store that reads are answered from, and the changes that wake controllers.

One informer serves any number of readers. What it holds is never older than what it held before: an event that is older
than the object in the store is passed over. After everything has been read again the objects that are missing are
reported as deleted, with their last known state.

An object that does not decode is no reason to stop. It is reported once for each problem; where an earlier state of it
was understood that one stays in the store (taking it for deleted could take its children with it), until it decodes
again or is really gone.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

import structlog

from shoal.api.meta.objects import HasMetadata
from shoal.api.meta.resource import DecodeError, Resource
from shoal.kube.client import Client
from shoal.kube.freshness import Deleted, Written, place_of
from shoal.kube.reflector import Pace, Reflector
from shoal.kube.selection import Selection
from shoal.kube.store import IndexFunction, Key, Store, key_of
from shoal.kube.watch import EventType, WatchEvent

T = TypeVar("T", bound=HasMetadata)

log = structlog.get_logger("shoal.kube.informer")


@dataclass(frozen=True, slots=True)
class Change(Generic[T]):
    """What happened to one object: ``before`` is None when it appeared, ``after`` is None when it went.

    ``is_resync`` marks what was read in bulk (the first picture, or a new one after a gap): nothing says that it just
    happened, so it may wait behind what did.
    """

    before: T | None
    after: T | None
    is_resync: bool = False

    @property
    def latest(self) -> T:
        """The newest state that is known: the last one before the deletion, if it was deleted."""
        latest = self.after if self.after is not None else self.before
        assert latest is not None
        return latest


Listener = Callable[[Change[T]], None]


class Informer(Generic[T]):
    """Lists, watches, keeps and tells. Made by ``Cache``, which shares it among all who ask for the same."""

    def __init__(
        self,
        client: Client,
        resource: Resource[T],
        *,
        namespace: str = "",
        label_selector: str = "",
        field_selector: str = "",
        pace: Pace = Pace(),
        is_vital: bool = True,
    ) -> None:
        self.resource = resource
        self.place = place_of(resource)
        self.namespace = namespace
        self.is_vital = is_vital
        self.is_selective = bool(label_selector or field_selector)
        self.selection = Selection.of(label_selector, field_selector)
        self.store: Store[T] = Store()
        self.undecodable: dict[Key, DecodeError] = {}
        self._listeners: list[Listener[T]] = []
        self._undecodable_listeners: list[Callable[[DecodeError], None]] = []
        self._serving_listeners: list[Callable[[], None]] = []
        self._synced = asyncio.Event()
        self._progress = 0
        self._lost = 0
        self._is_served = True
        self._waiting: dict[asyncio.Future[None], Callable[[], bool]] = {}
        selection = " ".join(
            part for part in (resource.type.__name__, namespace, label_selector, field_selector) if part
        )
        self._held = client.metrics.objects.labels(str(resource), selection)
        self._broken = client.metrics.undecodable.labels(str(resource), selection)
        self._reflector: Reflector[T] = Reflector(
            client,
            resource,
            self,
            namespace=namespace,
            label_selector=label_selector,
            field_selector=field_selector,
            pace=pace,
        )

    # For readers

    def get(self, name: str, namespace: str = "") -> T | None:
        """The object of that name, if there is one."""
        return self.store.get(Key(namespace, name))

    def items(self, namespace: str | None = None) -> list[T]:
        """All objects, or those of a namespace."""
        return self.store.items(namespace)

    def find(self, index: str, value: Hashable) -> list[T]:
        """The objects that an index has under a value."""
        return self.store.find(index, value)

    def add_indexes(self, indexes: Mapping[str, IndexFunction]) -> None:
        """Adds indexes; the same one may be asked for by several readers."""
        for name, function in indexes.items():
            self.store.add_index(name, function)

    def subscribe(self, listener: Listener[T]) -> None:
        """Calls ``listener`` for every change from now on, and at once for each object that is there already."""
        self._listeners.append(listener)
        for found in self.store.items():
            self._tell((listener,), Change(None, found, is_resync=True))

    def unsubscribe(self, listener: Listener[T]) -> None:
        """Ends what ``subscribe`` began."""
        self._listeners.remove(listener)

    def on_undecodable(self, listener: Callable[[DecodeError], None]) -> None:
        """Calls ``listener`` once for each object, and each new problem, that does not decode."""
        self._undecodable_listeners.append(listener)
        for error in self.undecodable.values():
            listener(error)

    def on_serving(self, listener: Callable[[], None]) -> None:
        """Calls ``listener`` whenever the server has begun, or ceased, to serve this kind: see ``is_served``."""
        self._serving_listeners.append(listener)

    # Time

    @property
    def is_served(self) -> bool:
        """Whether the server is known to serve this kind."""
        return self._is_served and self.has_synced

    @property
    def has_synced(self) -> bool:
        """Whether the first picture is complete, or the server is known not to serve this kind."""
        return self._synced.is_set()

    @property
    def problem(self) -> str:
        """Why there is no picture, or an old one, in words."""
        return self._reflector.problem

    async def wait_for_sync(self) -> None:
        """Waits for the first picture."""
        await self._synced.wait()

    def has_seen(self, version: int) -> bool:
        """Whether everything up to a resource version has been seen, or was lost with its server and never will be."""
        return self._progress >= version or self._lost >= version or not self._is_served

    async def wait_for_version(self, version: int) -> None:
        """Waits until everything up to a resource version has been seen."""
        await self._wait(lambda: self.has_seen(version))

    def shows_departure(self, written: Written) -> bool:
        """Whether an object that lies outside of the selection since it was written is not held as it was before."""
        held = self.store.get(Key(written.namespace, written.name))
        return held is None or held.metadata.uid != written.uid or self.has_seen(written.version)

    async def wait_for_departure(self, written: Written) -> None:
        """Waits until an object is not held that lies outside of the selection since it was written."""
        await self._wait(lambda: self.shows_departure(written))

    def shows_deletion(self, deleted: Deleted) -> bool:
        """Whether a deletion that was asked for shows: gone, replaced, or marked as going."""
        found = self.store.get(Key(deleted.namespace, deleted.name))
        if not self._is_served or found is None or (deleted.uid and found.metadata.uid != deleted.uid):
            return True
        return getattr(found.metadata, "deletion_timestamp", True) is not None

    async def wait_for_deletion(self, deleted: Deleted) -> None:
        """Waits until a deletion that was asked for shows."""
        await self._wait(lambda: self.shows_deletion(deleted))

    async def _wait(self, condition: Callable[[], bool]) -> None:
        if condition():
            return
        future: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting[future] = condition
        try:
            await future
        finally:
            del self._waiting[future]

    async def run(self) -> None:
        """Follows the server until cancelled."""
        await self._reflector.run()

    # What the reflector tells

    def replace(self, items: Sequence[T], undecodable: Sequence[DecodeError], version: str) -> None:
        """Takes a whole new picture, and tells what differs from the old one."""
        present = {key_of(item) for item in items}
        broken = {Key(error.namespace, error.name) for error in undecodable}
        for key in self.store.keys() - present - broken:
            self._remove(key, is_resync=True)
        for key in [key for key in self.undecodable if key not in broken]:
            del self.undecodable[key]
        for item in items:
            self._put(item, is_resync=True)
        for error in undecodable:
            self._report(error)
        if version.isdigit() and int(version) < self._progress:
            # The server was restored from a backup, and what it had said since then is lost.
            self._lost = self._progress
        self._progress = 0
        was_served, self._is_served = self.is_served, True
        self._advance(version)
        self._synced.set()
        if not was_served:
            self._tell_serving()

    def update(self, events: Sequence[WatchEvent[T]]) -> None:
        """Takes changes in their order."""
        for event in events:
            if event.undecodable is not None:
                key = Key(event.undecodable.namespace, event.undecodable.name)
                if event.type is EventType.DELETED:
                    self.undecodable.pop(key, None)
                    self._remove(key)
                else:
                    self._report(event.undecodable)
            elif event.object is not None:
                key = key_of(event.object)
                if event.type is EventType.DELETED:
                    self.undecodable.pop(key, None)
                    self._remove(key, last=event.object)
                else:
                    self.undecodable.pop(key, None)
                    self._put(event.object)
        if events:
            self._advance(events[-1].resource_version)

    def unserved(self) -> None:
        """A kind that is not served has no objects, and nobody shall wait for it."""
        for key in list(self.store.keys()):
            self._remove(key, is_resync=True)
        self.undecodable.clear()
        was_served, self._is_served = self.is_served, False
        self._advance("")
        self._synced.set()
        if was_served:
            self._tell_serving()

    def _put(self, item: T, *, is_resync: bool = False) -> None:
        known = self.store.get(key_of(item))
        if known is not None:
            if known.metadata.uid != item.metadata.uid:
                # Deleted and made anew while we were not looking: two lives, so two changes.
                self._remove(key_of(item), is_resync=is_resync)
            elif known.metadata.resource_version == item.metadata.resource_version:
                return
            elif not is_resync and not _is_newer(item, known):
                # A whole picture is believed even where it is older: the server may have been restored from a backup.
                return
        try:
            before = self.store.put(item)
        except Exception:
            # An index function that fails on one object must not end the watch of all.
            log.exception("object not indexed, and so not held", resource=str(self.resource), object=str(key_of(item)))
            return
        self._tell(tuple(self._listeners), Change(before, item, is_resync))

    def _remove(self, key: Key, *, last: T | None = None, is_resync: bool = False) -> None:
        known = self.store.get(key)
        if known is None or (last is not None and last.metadata.uid != known.metadata.uid):
            return
        self.store.remove(key)
        self._tell(tuple(self._listeners), Change(last if last is not None else known, None, is_resync))

    def _report(self, error: DecodeError) -> None:
        key = Key(error.namespace, error.name)
        held = self.store.get(key)
        if held is not None and held.metadata.uid != error.uid:
            self._remove(key)
        known = self.undecodable.get(key)
        self.undecodable[key] = error
        if known is not None and (known.uid, known.problem) == (error.uid, error.problem):
            return
        log.error("object does not decode", resource=str(self.resource), object=str(key), problem=error.problem)
        for listener in tuple(self._undecodable_listeners):
            listener(error)

    def _advance(self, version: str) -> None:
        if version.isdigit():
            self._progress = max(self._progress, int(version))
        self._held.set(len(self.store))
        self._broken.set(len(self.undecodable))
        if self._waiting:
            for future, condition in self._waiting.items():
                if not future.done() and condition():
                    future.set_result(None)

    def _tell_serving(self) -> None:
        for listener in tuple(self._serving_listeners):
            listener()

    def _tell(self, listeners: Iterable[Listener[T]], change: Change[T]) -> None:
        for listener in listeners:
            try:
                listener(change)
            except Exception:
                # One listener's fault must not keep the change from the others, nor end the watch.
                log.exception("listener failed", resource=str(self.resource), object=str(key_of(change.latest)))


def _is_newer(item: HasMetadata, known: HasMetadata) -> bool:
    new, old = item.metadata.resource_version, known.metadata.resource_version
    # Versions are comparable numbers on every server that is supported; anything else is taken as it comes.
    return not (new.isdigit() and old.isdigit()) or int(new) > int(old)
