"""Keeps each queue's status equal to what its gangs and the queues below it hold."""

from __future__ import annotations

from collections.abc import Hashable, Iterable
from typing import Final

from shoal.api.meta import now
from shoal.api.scheduling_run_ai import POD_GROUPS, QUEUES, PodGroup, Queue
from shoal.kube import Conflict, Controller, Key, Manager, NotFound, Requeue, Watch
from shoal.kube.changes import any_of, field_changed, labels_changed, spec_changed
from shoal.kube.queue import RESYNC
from shoal.scheduler.pace import EVERY, RACE_LOST, WritePace
from shoal.scheduler.queues.ledger import Ledger
from shoal.scheduler.queues.metrics import QueueMetrics
from shoal.scheduler.queues.settings import QueueSettings
from shoal.scheduler.queues.status import queue_status
from shoal.scheduler.queues.tree import ancestors, descendants, orphaned

BY_PARENT: Final = "queues by parent"


def by_parent(queue: Queue) -> Iterable[Hashable]:
    """Finds the queues below a queue, by its name."""
    return (queue.spec.parent_queue,) if queue.spec.parent_queue else ()


def add_queues(manager: Manager, settings: QueueSettings = QueueSettings()) -> None:
    """Adds the controller and its metrics."""
    queues = Queues(manager, settings)
    watches = [
        Watch(resource=QUEUES, keys=queues.around, when=field_changed(_place)),
        Watch(resource=POD_GROUPS, keys=queues.of_gang, when=field_changed(_use)),
    ]
    manager.add(
        Controller(
            "queue",
            QUEUES,
            queues.reconcile,
            when=any_of(spec_changed, labels_changed, field_changed(lambda queue: queue.status)),
            watches=watches,
            workers=settings.workers,
        )
    )


class Queues:
    """Writes what queues hold."""

    def __init__(self, manager: Manager, settings: QueueSettings) -> None:
        self._queues = manager.cache.informer(QUEUES, indexes={BY_PARENT: by_parent})
        self._ledger = Ledger()
        self._writer = manager.writer("kai-queue-controller")
        self._metrics = QueueMetrics(manager.metrics.registry, settings)
        self._pace: WritePace[Key] = WritePace(EVERY * manager.debounce)
        # Before any controller hears of a gang: its figures are there when a queue is looked at.
        manager.cache.informer(POD_GROUPS).subscribe(self._ledger.record)

    async def reconcile(self, key: Key) -> Requeue | None:
        """Makes one queue's status say what it and the queues below it hold."""
        queue = self._queues.store.get(key)
        if queue is None:
            self._metrics.forget(key.name)
            self._pace.forget(key)
            return None
        use = self._ledger.total([key.name, *descendants(key.name, self._children)])
        self._metrics.show(queue, use.allocated)
        status = queue_status(
            queue,
            children=self._children(key.name),
            use=use,
            orphaned=orphaned(key.name, self._parent),
            now=now(),
        )
        if status == queue.status:
            return None
        if wait := self._pace.left(key):
            return Requeue(after=wait, priority=RESYNC)
        try:
            is_written = await self._writer.patch_status(QUEUES, queue, before=queue.status, after=status)
        except NotFound:
            return None  # it was deleted: that event brings us back
        except Conflict:
            return Requeue(after=RACE_LOST)  # somebody was faster, and their event may have come already
        if is_written:
            self._pace.wrote(key)
        return None

    def around(self, queue: Queue) -> Iterable[Key]:
        """The queues that a queue's place concerns: those above have its figures, those below hang on to it."""
        name = queue.metadata.name
        above = [queue.spec.parent_queue, *ancestors(queue.spec.parent_queue, self._parent)]
        return [Key("", each) for each in (*above, *descendants(name, self._children)) if each]

    def of_gang(self, group: PodGroup) -> Iterable[Key]:
        """The queue of a gang, and those above it."""
        queue = group.spec.queue
        return [Key("", each) for each in (queue, *ancestors(queue, self._parent))] if queue else ()

    def _parent(self, name: str) -> str | None:
        queue = self._queues.get(name)
        return None if queue is None else queue.spec.parent_queue

    def _children(self, name: str) -> list[str]:
        """The queues below a queue; one that is its own parent is not below itself, or it could never be deleted."""
        children = (child.metadata.name for child in self._queues.find(BY_PARENT, name))
        return [child for child in children if child != name]


def _place(queue: Queue) -> object:
    return queue.spec.parent_queue


def _use(group: PodGroup) -> object:
    return (group.spec.queue, group.status.resources_status)
