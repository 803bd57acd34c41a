"""Makes the class of volumes that are folders of this machine, once, where a cluster starts without any class.

A mark in the folder remembers that this was decided: who deletes the class has it deleted.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path

from shoal.api.storage import IMMEDIATE, IS_DEFAULT_CLASS, STORAGE_CLASSES
from shoal.cluster.controllers.volumes.binding import FIELD_MANAGER
from shoal.cluster.controllers.volumes.names import LOCAL_CLASS, PROVISIONER
from shoal.kube import AlreadyExists, Controller, Key, Manager

MARK = ".storage-class-decided"


class DefaultClass:
    """Decides at the first start."""

    def __init__(self, manager: Manager, folder: Path) -> None:
        self._client = manager.client
        self._classes = manager.cache.informer(STORAGE_CLASSES)
        self._folder = folder
        controller = Controller("default-storage-class", STORAGE_CLASSES, self.reconcile, when=lambda change: False)
        manager.add(controller)
        controller.enqueue(Key("", LOCAL_CLASS))

    async def reconcile(self, key: Key) -> None:
        """Makes the class if there is none, and was never one of ours."""
        if await asyncio.to_thread(self._is_decided):
            return
        if not self._classes.items():
            body = {
                "metadata": {"name": LOCAL_CLASS, "annotations": {IS_DEFAULT_CLASS: "true"}},
                "provisioner": PROVISIONER,
                "reclaimPolicy": "Delete",
                "volumeBindingMode": IMMEDIATE,
                "allowVolumeExpansion": True,
            }
            with suppress(AlreadyExists):
                await self._client.create(STORAGE_CLASSES, body, field_manager=FIELD_MANAGER)
        await asyncio.to_thread(self._decide)

    def _is_decided(self) -> bool:
        return (self._folder / MARK).exists()

    def _decide(self) -> None:
        self._folder.mkdir(parents=True, exist_ok=True)
        (self._folder / MARK).touch()
