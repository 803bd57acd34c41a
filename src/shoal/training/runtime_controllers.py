"""The controllers of runtimes: they tell of deprecated ones, and let those go that earlier versions held back."""

from __future__ import annotations

from typing import Any

from shoal.api.core import EVENTS
from shoal.api.meta import Document, PartialObject, Resource
from shoal.api.trainer import CLUSTER_TRAINING_RUNTIMES, TRAINING_RUNTIMES, names
from shoal.kube import About, Controller, Informer, Key, Manager, Recorder
from shoal.kube.changes import any_of, field_changed
from shoal.training.settings import TrainingSettings

_CONTROLLERS: dict[str, Resource[Any]] = {
    names.TRAINING_RUNTIME_CONTROLLER: TRAINING_RUNTIMES,
    names.CLUSTER_TRAINING_RUNTIME_CONTROLLER: CLUSTER_TRAINING_RUNTIMES,
}
DEPRECATED_MESSAGE = "This runtime is deprecated"


def add_runtimes(manager: Manager, settings: TrainingSettings) -> None:
    """Adds the controllers of both kinds of runtimes."""
    matters = any_of(
        field_changed(lambda found: found.metadata.labels.get(names.SUPPORT_LABEL)),
        field_changed(lambda found: found.metadata.finalizers),
    )
    for name, kind in _CONTROLLERS.items():
        runtimes = Runtimes(manager, kind.view(PartialObject))
        manager.add_leader_task(runtimes.events.run)
        manager.add(
            Controller(name, runtimes.resource, runtimes.reconcile, when=matters, workers=settings.workers.runtimes)
        )


class Runtimes:
    """Looks after the runtimes of one kind."""

    def __init__(self, manager: Manager, resource: Resource[PartialObject]) -> None:
        self.resource = resource
        self.events = Recorder(manager.client, names.EVENT_SOURCE, calm=manager.calm)
        self._client = manager.client
        self._runtimes: Informer[PartialObject] = manager.cache.informer(resource)
        self._writer = manager.writer(names.FIELD_MANAGER)

    async def reconcile(self, key: Key) -> None:
        """Lets a runtime go whenever somebody deletes it, and says once that it is deprecated."""
        found = self._runtimes.store.get(key)
        if found is None:
            return
        if await self._writer.clear_finalizer(self.resource, found, names.LEFTOVER_FINALIZER):
            return
        is_deprecated = found.metadata.labels.get(names.SUPPORT_LABEL) == names.DEPRECATED
        if is_deprecated and not found.metadata.is_deleting and not await self._was_told(found):
            self.events.warning(About.of(self.resource, found), names.DEPRECATED_EVENT, DEPRECATED_MESSAGE)

    async def _was_told(self, found: PartialObject) -> bool:
        """Whether there is such an event already: a controller that starts again does not repeat itself."""
        selector = f"involvedObject.uid={found.metadata.uid},reason={names.DEPRECATED_EVENT}"
        place = found.metadata.namespace or "default"
        told: list[Document] = (await self._client.list(EVENTS, place, field_selector=selector)).items
        return bool(told)
