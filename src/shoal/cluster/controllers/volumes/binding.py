"""Writing a binding: the volume first, then the claim, so that whoever is interrupted finds what was meant.

Every write carries the version that was read: where two want the same volume one is refused, and looks again.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.core import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    ObjectReference,
    PersistentVolume,
    PersistentVolumeClaim,
)
from shoal.api.core.volumes import ClaimStatus
from shoal.cluster.controllers.volumes.matching import is_reserved_for, storage
from shoal.cluster.controllers.volumes.names import (
    AVAILABLE,
    BIND_COMPLETED,
    BOUND,
    BOUND_BY_CONTROLLER,
    PENDING,
)
from shoal.kube import Client
from shoal.kube.patches import merge_patch_between

FIELD_MANAGER = "persistent-volume-binder"


class Binder:
    """Binds volumes and claims to each other, and writes their phases."""

    def __init__(self, client: Client) -> None:
        self._client = client

    async def bind(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        """Makes a volume and a claim each other's; what is so already is not written."""
        volume = await self.patch_volume(volume, volume_patch(volume, claim))
        volume = await self.set_volume_phase(volume, BOUND)
        claim = await self.patch_claim(claim, claim_patch(claim, volume))
        await self.set_claim_phase(claim, BOUND, volume)

    async def unbind(self, volume: PersistentVolume) -> None:
        """Takes a volume back from a claim that has got another; a person's reservation stays one."""
        if BOUND_BY_CONTROLLER in volume.metadata.annotations:
            patch: dict[str, Any] = {
                "metadata": {"annotations": {BOUND_BY_CONTROLLER: None}},
                "spec": {"claimRef": None},
            }
        else:
            patch = {"spec": {"claimRef": {"uid": None}}}
        volume = await self.patch_volume(volume, patch)
        await self.set_volume_phase(volume, AVAILABLE)

    async def set_claim_phase(
        self, claim: PersistentVolumeClaim, phase: str, volume: PersistentVolume | None = None
    ) -> PersistentVolumeClaim:
        """Writes a claim's phase, and what it has of its volume."""
        return await self.set_claim_status(claim, claim_status(claim, phase, volume))

    async def set_claim_status(self, claim: PersistentVolumeClaim, wanted: ClaimStatus) -> PersistentVolumeClaim:
        """Writes a claim's status."""
        patch = merge_patch_between(_plain(claim.status), _plain(wanted))
        return await self.patch_claim(claim, {"status": patch} if patch else {}, subresource="status")

    async def set_volume_phase(self, volume: PersistentVolume, phase: str, message: str = "") -> PersistentVolume:
        """Writes a volume's phase; the message says why it failed."""
        if volume.status.phase == phase:
            return volume
        status = {"phase": phase, "message": message or None}
        return await self.patch_volume(volume, {"status": status}, subresource="status")

    async def patch_volume(
        self, volume: PersistentVolume, patch: dict[str, Any], *, subresource: str = ""
    ) -> PersistentVolume:
        """Changes a volume; an empty patch is not sent."""
        if not patch:
            return volume
        body = _with_version(patch, volume.metadata.resource_version)
        return await self._client.merge_patch(
            PERSISTENT_VOLUMES, volume.metadata.name, body, subresource=subresource, field_manager=FIELD_MANAGER
        )

    async def patch_claim(
        self, claim: PersistentVolumeClaim, patch: dict[str, Any], *, subresource: str = ""
    ) -> PersistentVolumeClaim:
        """Changes a claim; an empty patch is not sent."""
        if not patch:
            return claim
        metadata = claim.metadata
        body = _with_version(patch, metadata.resource_version)
        return await self._client.merge_patch(
            PERSISTENT_VOLUME_CLAIMS, metadata.name, body, metadata.namespace, subresource=subresource,
            field_manager=FIELD_MANAGER,
        )  # fmt: skip


def volume_patch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> dict[str, Any]:
    """What a volume lacks to be bound to a claim."""
    patch: dict[str, Any] = {}
    reference, metadata = volume.spec.claim_ref, claim.metadata
    points_there = reference is not None and (
        (reference.namespace, reference.name, reference.uid) == (metadata.namespace, metadata.name, metadata.uid)
    )
    if not points_there:
        patch["spec"] = {"claimRef": msgspec.to_builtins(reference_to(claim))}
    if not is_reserved_for(volume, claim) and BOUND_BY_CONTROLLER not in volume.metadata.annotations:
        patch["metadata"] = {"annotations": {BOUND_BY_CONTROLLER: "yes"}}
    return patch


def claim_patch(claim: PersistentVolumeClaim, volume: PersistentVolume) -> dict[str, Any]:
    """What a claim lacks to be bound to a volume."""
    patch: dict[str, Any] = {}
    held, added = claim.metadata.annotations, {}
    if claim.spec.volume_name != volume.metadata.name:
        patch["spec"] = {"volumeName": volume.metadata.name}
        if BOUND_BY_CONTROLLER not in held:
            added[BOUND_BY_CONTROLLER] = "yes"
    if BIND_COMPLETED not in held:
        added[BIND_COMPLETED] = "yes"
    if added:
        patch["metadata"] = {"annotations": added}
    return patch


def claim_status(claim: PersistentVolumeClaim, phase: str, volume: PersistentVolume | None) -> ClaimStatus:
    """A claim's status in a phase.

    Its capacity is that of the volume when it becomes bound; later the two may differ, while a volume grows.
    """
    status = claim.status
    if volume is None:
        return msgspec.structs.replace(
            status, phase=phase, access_modes=[], capacity={}, current_volume_attributes_class_name=None
        )
    changes: dict[str, Any] = {"phase": phase, "access_modes": volume.spec.access_modes}
    if status.phase != phase and (
        "storage" not in status.capacity or storage(status.capacity) != storage(volume.spec.capacity)
    ):
        changes["capacity"] = volume.spec.capacity
    if (status.phase, phase) == (PENDING, BOUND):
        changes["current_volume_attributes_class_name"] = volume.spec.volume_attributes_class_name
    return msgspec.structs.replace(status, **changes)


def reference_to(claim: PersistentVolumeClaim) -> ObjectReference:
    """How a volume points to a claim."""
    return ObjectReference(
        api_version="v1",
        kind="PersistentVolumeClaim",
        namespace=claim.metadata.namespace,
        name=claim.metadata.name,
        uid=claim.metadata.uid,
        resource_version=claim.metadata.resource_version,
    )


def _plain(status: ClaimStatus) -> dict[str, Any]:
    plain: dict[str, Any] = msgspec.json.decode(msgspec.json.encode(status))
    return plain


def _with_version(patch: dict[str, Any], version: str) -> dict[str, Any]:
    return {**patch, "metadata": {**patch.get("metadata", {}), "resourceVersion": version}}
