"""Keeps the phase of each volume true, and reclaims those whose claim is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from shoal.api.core import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PersistentVolume, PersistentVolumeClaim
from shoal.api.meta import PartialObject
from shoal.cluster.controllers.volumes.binding import FIELD_MANAGER, Binder
from shoal.cluster.controllers.volumes.local_path import NotOurs, folder_of, remove_folder
from shoal.cluster.controllers.volumes.matching import same_mode
from shoal.cluster.controllers.volumes.names import (
    AVAILABLE,
    BOUND,
    CONTENT_PROTECTION,
    FAILED,
    MIGRATED_TO,
    PROVISIONED_BY,
    PROVISIONER,
    RELEASED,
)
from shoal.cluster.controllers.volumes.pictures import Pictures
from shoal.kube import About, Controller, Key, Manager, NotFound, Watch
from shoal.kube.changes import field_changed
from shoal.kube.errors import ReconcileError
from shoal.kube.store import key_of

DELETE: Final = "Delete"

REMOVAL_SECONDS = 3600.0
"""A folder with millions of files takes its time; a second attempt must not come into the way of the first."""


class Volumes:
    """Says of each volume whether it is free, bound or released, and deletes what is to go with its claim."""

    def __init__(self, manager: Manager, pictures: Pictures, binder: Binder, folder: Path) -> None:
        self._client = manager.client
        self._events = manager.events
        self._writer = manager.writer(FIELD_MANAGER)
        self._pictures = pictures
        self._binder = binder
        self._folder = folder
        manager.add(
            Controller(
                "volumes",
                PERSISTENT_VOLUMES,
                self.reconcile,
                timeout=REMOVAL_SECONDS,
                watches=[
                    Watch(
                        resource=PERSISTENT_VOLUME_CLAIMS,
                        keys=self._volumes_of,
                        when=field_changed(lambda claim: claim.spec.volume_name),
                    )
                ],
            )
        )

    async def reconcile(self, key: Key) -> None:
        """Makes what one volume says of itself true."""
        volume = self._pictures.volumes.store.get(key)
        if volume is None:
            return
        if await self._guard_content(volume):
            return  # our own change brings us back
        reference = volume.spec.claim_ref
        if reference is None or not reference.uid:
            if volume.metadata.is_deleting and is_ours(volume) and CONTENT_PROTECTION in volume.metadata.finalizers:
                await self._delete(volume)
            else:
                await self._binder.set_volume_phase(volume, AVAILABLE)
            return
        claim = await self._claim_of(volume)
        if claim is None:
            await self._release(volume)
        elif not claim.spec.volume_name:
            self._say_if_incompatible(volume, claim)
        elif claim.spec.volume_name == volume.metadata.name:
            await self._binder.set_volume_phase(volume, BOUND)
        elif PROVISIONED_BY in volume.metadata.annotations and _policy(volume) == DELETE:
            await self._release(volume)
        else:
            await self._binder.unbind(volume)

    async def _guard_content(self, volume: PersistentVolume) -> bool:
        """Holds a volume of ours until its folder is removed, and lets go of one that is to be kept."""
        if not is_ours(volume):
            return False
        if _policy(volume) == DELETE:
            return await self._writer.set_finalizer(PERSISTENT_VOLUMES, volume, CONTENT_PROTECTION)
        return await self._writer.clear_finalizer(PERSISTENT_VOLUMES, volume, CONTENT_PROTECTION)

    async def _claim_of(self, volume: PersistentVolume) -> PersistentVolumeClaim | None:
        """The very claim that a volume is bound to.

        Before a volume is released the server itself is asked: our picture of the claims may be late.
        """
        reference = volume.spec.claim_ref
        assert reference is not None
        claim = self._pictures.claims.get(reference.name, reference.namespace)
        is_free_already = claim is None and volume.status.phase in (RELEASED, FAILED)
        if (claim is None or claim.metadata.uid != reference.uid) and not is_free_already:
            try:
                claim = await self._client.get(PERSISTENT_VOLUME_CLAIMS, reference.name, reference.namespace)
            except NotFound:
                return None
        return claim if claim is not None and claim.metadata.uid == reference.uid else None

    async def _release(self, volume: PersistentVolume) -> None:
        if volume.status.phase not in (RELEASED, FAILED):
            volume = await self._binder.set_volume_phase(volume, RELEASED)
        if MIGRATED_TO in volume.metadata.annotations or _policy(volume) == "Retain":
            return
        if _policy(volume) == "Recycle":
            await self._fail(volume, "VolumeFailedRecycle", "No recycler plugin found for the volume!")
        elif _policy(volume) == DELETE:
            await self._delete(volume)
        else:
            message = "Volume has unrecognized PersistentVolumeReclaimPolicy"
            await self._fail(volume, "VolumeUnknownReclaimPolicy", message)

    async def _delete(self, volume: PersistentVolume) -> None:
        maker = volume.metadata.annotations.get(PROVISIONED_BY, "")
        if not is_ours(volume):
            if (maker and not maker.startswith("kubernetes.io/")) or volume.spec.csi is not None:
                return  # whoever made it deletes it
            problem = undeletable(volume)
            await self._fail(volume, "VolumeFailedDelete", problem)
            return
        if not await self._is_as_seen(volume):
            return  # the change that we have not seen yet brings us back
        try:
            await asyncio.to_thread(remove_folder, folder_of(volume, self._folder))
        except NotOurs as error:
            await self._fail(volume, "VolumeFailedDelete", str(error))
            return
        except OSError as error:
            await self._fail(volume, "VolumeFailedDelete", str(error))
            raise ReconcileError(str(error)) from error
        finalizers = [name for name in volume.metadata.finalizers if name != CONTENT_PROTECTION]
        if finalizers != volume.metadata.finalizers:
            volume = await self._binder.patch_volume(volume, {"metadata": {"finalizers": finalizers}})
        await self._writer.delete(PERSISTENT_VOLUMES, volume, propagation=None)

    async def _is_as_seen(self, volume: PersistentVolume) -> bool:
        """Asks the server before content is destroyed: somebody may have decided since to keep it."""
        try:
            live = await self._client.get(PERSISTENT_VOLUMES.view(PartialObject), volume.metadata.name)
        except NotFound:
            return False
        seen = volume.metadata
        return (live.metadata.uid, live.metadata.resource_version) == (seen.uid, seen.resource_version)

    async def _fail(self, volume: PersistentVolume, reason: str, message: str) -> None:
        if volume.status.phase != FAILED:
            await self._binder.set_volume_phase(volume, FAILED, message)
            self._events.warning(About.of(PERSISTENT_VOLUMES, volume), reason, message)

    def _say_if_incompatible(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """The claim's own turn will bind it; that of a block device to a file system never will."""
        if same_mode(volume, claim):
            return
        name = volume.metadata.name
        self._events.warning(
            About.of(PERSISTENT_VOLUMES, volume),
            "VolumeMismatch",
            f'Cannot bind PersistentVolume to requested PersistentVolumeClaim "{claim.metadata.name}" '
            "due to incompatible volumeMode.",
        )
        self._events.warning(
            About.of(PERSISTENT_VOLUME_CLAIMS, claim),
            "VolumeMismatch",
            f'Cannot bind PersistentVolume "{name}" to requested PersistentVolumeClaim due to incompatible volumeMode.',
        )

    def _volumes_of(self, claim: PersistentVolumeClaim) -> Iterable[Key]:
        named = [Key("", claim.spec.volume_name)] if claim.spec.volume_name else []
        return [*named, *(key_of(volume) for volume in self._pictures.volumes_pointing_to(key_of(claim)))]


def undeletable(volume: PersistentVolume) -> str:
    """Why the content of a volume that nobody made on demand stays, in Kubernetes' words.

    Kubernetes removes what is below /tmp; here nothing is removed that was not made here.
    """
    if volume.spec.host_path is not None:
        path = volume.spec.host_path.get("path", "")
        return f"host_path deleter only supports /tmp/.+ but received provided {path}"
    what = "volume plugin" if volume.spec.local is not None else "deletable volume plugin"
    return f'error getting deleter volume plugin for volume "{volume.metadata.name}": no {what} matched'


def is_ours(volume: PersistentVolume) -> bool:
    """Whether a volume was made here."""
    return volume.metadata.annotations.get(PROVISIONED_BY) == PROVISIONER


def _policy(volume: PersistentVolume) -> str:
    return volume.spec.persistent_volume_reclaim_policy
