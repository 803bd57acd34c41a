"""The collector: hears what happens to owners and dependents, and decides over one object at a time.

An object is looked at when an owner of it goes or begins to wait, when it names an owner that is not where it should
be, and when it is deleted itself in a way that concerns its dependents. What is seen in the cache only ever keeps an
object; before one is deleted its owners are gone by their own deletion event, or by the server's word, and the deletion
carries the version that was judged.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import Any

import structlog

from shoal.api.meta import ObjectMeta, OwnerReference
from shoal.cluster.controllers.garbage import edits
from shoal.cluster.controllers.garbage.absence import Absent, Coordinates
from shoal.cluster.controllers.garbage.kinds import Kinds
from shoal.cluster.controllers.garbage.monitors import Item, Monitor, Monitors
from shoal.cluster.controllers.garbage.requests import Requests
from shoal.cluster.controllers.garbage.verdict import (
    FOREGROUND,
    ORPHAN,
    Delete,
    Detach,
    Standing,
    blocks,
    verdict,
    waits_for_dependents,
)
from shoal.kube import About, ApiError, Change, ConnectionFault, Key, Manager, NotLeading
from shoal.kube.queue import FRESH, RESYNC, RetryLimits, ShutDown, WorkQueue

log = structlog.get_logger("shoal.cluster.garbage")

WORKERS = 50
RETRIES = RetryLimits(rate=50.0, burst=500)


def add_garbage_collector(manager: Manager, *, workers: int = WORKERS) -> None:
    """Adds the collector; it begins with the manager, when the kinds that others follow are known."""
    manager.add_leader_task(lambda: Collector(manager, workers=workers).run())


class UnknownKind(Exception):
    """An owner is of a kind that is not served: whether it is there cannot be told, so its dependents stay."""

    def __init__(self, owner: OwnerReference) -> None:
        self.kind = (owner.api_version, owner.kind)
        super().__init__(f"{owner.kind} of {owner.api_version} is not served")


class Misplaced(Exception):
    """A cluster-scoped object names an owner in a namespace, which none can have; it is left alone."""


@dataclass
class _Waiting:
    """An owner that goes after its dependents, and the uids of those that block it."""

    item: Item
    blockers: set[str] = field(default_factory=set)


class Collector:
    """Collects garbage of every kind that the server serves."""

    def __init__(self, manager: Manager, *, workers: int = WORKERS) -> None:
        self._requests = Requests(manager.client)
        self._events = manager.events
        self._workers = workers
        self._monitors = Monitors(manager.cache, self._hear)
        self._kinds = Kinds(manager, self._monitors, self._look_again)
        self._absent = Absent()
        self._queue = WorkQueue("garbage-collector", manager.metrics, retries=RETRIES)
        self._items: dict[Key, Item] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._parked: dict[tuple[str, str], dict[Key, Item]] = {}

    async def run(self) -> None:
        """Collects until cancelled."""
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(self._kinds.run(), name="garbage kinds")
            for number in range(self._workers):
                tasks.create_task(self._work(), name=f"garbage worker {number}")

    def _look_again(self) -> None:
        """Looks again at the dependents of owners whose kind was not known, and at owners that wait for dependents.

        Where another version of a kind is followed from now on, what went in between was not heard of.
        """
        for kind in [kind for kind in self._parked if self._monitors.resource(*kind) is not None]:
            for item in self._parked.pop(kind).values():
                self._enqueue(item)
        for waiting in self._waiting.values():
            self._enqueue(waiting.item)

    # What happened

    def _hear(self, monitor: Monitor, change: Change[Any]) -> None:
        priority = RESYNC if change.is_resync else FRESH
        if change.after is None:
            self._went(_item(monitor, change.latest.metadata), change.latest.metadata, change.is_resync)
            return
        metadata: ObjectMeta = change.after.metadata
        if change.before is not None:
            before: ObjectMeta = change.before.metadata
            has_same_owners = before.owner_references == metadata.owner_references
            is_same_deletion = before.deletion_timestamp == metadata.deletion_timestamp
            if has_same_owners and is_same_deletion and before.finalizers == metadata.finalizers:
                return
            if not has_same_owners:
                self._release(before, metadata)
        if metadata.is_deleting:
            if ORPHAN in metadata.finalizers or FOREGROUND in metadata.finalizers:
                self._enqueue(_item(monitor, metadata), priority)
        elif any(self._is_in_doubt(metadata, owner) for owner in metadata.owner_references):
            self._enqueue(_item(monitor, metadata), priority)

    def _went(self, item: Item, metadata: ObjectMeta, is_resync: bool) -> None:
        self._waiting.pop(item.uid, None)
        self._release(metadata, None)
        dependents = self._monitors.dependents(item.uid)
        if not dependents:
            return
        if not is_resync:
            # What is merely missing from a new picture is asked for once more: a kind may just not be served now.
            resource = item.monitor.resource
            self._absent.add(
                Coordinates(resource.api_version, resource.kind, item.key.namespace, item.key.name, item.uid)
            )
        for dependent in dependents:
            self._enqueue(dependent)

    def _release(self, before: ObjectMeta, after: ObjectMeta | None) -> None:
        """Tells the owners that wait for this object and are not blocked by it any more, and forgets the others."""
        for owner in before.owner_references:
            if parked := self._parked.get((owner.api_version, owner.kind)):
                parked.pop(Key(before.namespace, before.uid), None)
            waiting = self._waiting.get(owner.uid)
            if waiting is None or before.uid not in waiting.blockers or (after and blocks(after, owner.uid)):
                continue
            waiting.blockers.discard(before.uid)
            if not waiting.blockers:
                self._enqueue(waiting.item)

    def _is_in_doubt(self, metadata: ObjectMeta, owner: OwnerReference) -> bool:
        """Whether an owner is not seen where it should be, or waits for its dependents to go."""
        if owner.uid in self._waiting:
            return True
        resource = self._monitors.resource(owner.api_version, owner.kind)
        if resource is None:
            return True
        seen = self._monitors.seen(resource, Key(metadata.namespace if resource.namespaced else "", owner.name))
        return seen is None or seen.uid != owner.uid or waits_for_dependents(seen)

    def _enqueue(self, item: Item, priority: int = FRESH) -> None:
        key = Key(item.key.namespace, item.uid)
        self._items[key] = item
        self._queue.add(key, priority=priority)

    # The work on one object

    async def _work(self) -> None:
        while True:
            try:
                key, priority = await self._queue.get()
            except ShutDown:
                return
            item = self._items.pop(key)  # whoever adds a key puts its item here first
            try:
                is_settled = await self._attempt(key, item)
            except (ApiError, ConnectionFault, NotLeading, TimeoutError) as error:
                log.warning("not collected yet", error=str(error), **_told(item))
                is_settled = False
            except Exception:
                log.exception("not collected, by a fault of the program", **_told(item))
                is_settled = False
            if is_settled:
                self._queue.forget(key)
            else:
                self._items.setdefault(key, item)
                self._queue.retry(key, priority=priority)
            self._queue.done(key)

    async def _attempt(self, key: Key, item: Item) -> bool:
        """Does what is to be done about an object; False where it has to be looked at again without an event."""
        metadata = item.current
        if metadata is None:
            return True
        if metadata.is_deleting:
            if ORPHAN in metadata.finalizers:
                await self._orphan_dependents(item, metadata)
            elif FOREGROUND in metadata.finalizers:
                await self._await_dependents(item, metadata)
            return True
        try:
            return await self._judge(item, metadata)
        except UnknownKind as unknown:
            log.debug("dependent kept", reason=str(unknown), **_told(item))
            self._parked.setdefault(unknown.kind, {})[key] = item
        except Misplaced:
            log.debug("dependent kept: it is cluster-scoped, and names an owner in a namespace", **_told(item))
        return True

    async def _orphan_dependents(self, owner: Item, metadata: ObjectMeta) -> None:
        limit = asyncio.Semaphore(self._workers)

        async def orphan(dependent: Item) -> None:
            async with limit:
                if (current := dependent.current) is not None:
                    await self._requests.edit(
                        dependent, current, lambda found: edits.without_owners(found, [owner.uid])
                    )

        dependents = self._monitors.dependents(owner.uid)
        results = await asyncio.gather(*map(orphan, dependents), return_exceptions=True)
        for result in results:
            if isinstance(result, BaseException):
                raise result
        await self._requests.edit(owner, metadata, lambda found: edits.without_finalizer(found, ORPHAN))

    async def _await_dependents(self, owner: Item, metadata: ObjectMeta) -> None:
        blockers = set()
        for dependent in self._monitors.dependents(owner.uid):
            current = dependent.current
            if current is None:
                continue
            if blocks(current, owner.uid):
                blockers.add(current.uid)
            if not current.is_deleting:
                self._enqueue(dependent)
        if blockers:
            self._waiting[owner.uid] = _Waiting(owner, blockers)
        else:
            await self._requests.edit(owner, metadata, lambda found: edits.without_finalizer(found, FOREGROUND))

    async def _judge(self, item: Item, metadata: ObjectMeta) -> bool:
        standings: dict[str, Standing] = {}
        is_settled = True
        for owner in metadata.owner_references:
            standing, is_seen = await self._standing(item, owner)
            is_settled = is_settled and is_seen
            if standings.get(owner.uid) is not Standing.SOLID:
                standings[owner.uid] = standing
        dependents = self._monitors.dependents(item.uid) if Standing.WAITING in standings.values() else []
        decision = verdict(
            standings,
            metadata.finalizers,
            has_dependents=bool(dependents),
            has_waiting_dependents=any(_waits(dependent) for dependent in dependents),
        )
        if isinstance(decision, Detach):
            await self._requests.edit(item, metadata, lambda found: edits.without_owners(found, decision.uids))
        elif isinstance(decision, Delete):
            if decision.unblock:
                metadata = await self._requests.edit(item, metadata, edits.unblocked) or metadata
            await self._requests.delete(item, metadata, decision.propagation)
        return is_settled

    async def _standing(self, item: Item, owner: OwnerReference) -> tuple[Standing, bool]:
        """How an owner stands, and whether its end would be heard of."""
        place = Coordinates(owner.api_version, owner.kind, item.key.namespace, owner.name, owner.uid)
        if (absent := self._absent.find(place)) is not None:
            self._warn_of_namespace(item, absent)
            return Standing.DANGLING, True
        resource = self._monitors.resource(owner.api_version, owner.kind)
        if resource is None:
            raise UnknownKind(owner)
        if not resource.namespaced:
            place = place._replace(namespace="")
        elif not place.namespace:
            raise Misplaced
        found = self._monitors.seen(resource, Key(place.namespace, owner.name))
        is_seen = found is not None and found.uid == owner.uid
        if not is_seen:
            found = await self._requests.live(resource, Key(place.namespace, owner.name))
        if found is None or found.uid != owner.uid:
            is_elsewhere = resource.namespaced and self._monitors.is_somewhere(resource, owner.uid)
            self._absent.add(place, is_elsewhere=is_elsewhere)
            self._warn_of_namespace(item, place)
            return Standing.DANGLING, True
        return (Standing.WAITING if waits_for_dependents(found) else Standing.SOLID), is_seen

    def _warn_of_namespace(self, item: Item, owner: Coordinates) -> None:
        if self._absent.is_elsewhere(owner):
            resource, namespace = item.monitor.resource, item.key.namespace
            about = About(
                api_version=resource.api_version,
                kind=resource.kind,
                namespace=namespace,
                name=item.key.name,
                uid=item.uid,
            )
            message = f'ownerRef {owner} does not exist in namespace "{namespace}"'
            self._events.warning(about, "OwnerRefInvalidNamespace", message)


def _item(monitor: Monitor, metadata: ObjectMeta) -> Item:
    return Item(monitor, Key(metadata.namespace, metadata.name), metadata.uid)


def _waits(item: Item) -> bool:
    metadata = item.current
    return metadata is not None and waits_for_dependents(metadata)


def _told(item: Item) -> dict[str, str]:
    return {"resource": str(item.monitor.resource), "object": str(item.key)}
