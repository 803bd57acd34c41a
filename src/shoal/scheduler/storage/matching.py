"""Which volume suits a claim, as Kubernetes' own scheduler sees it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Final

from shoal.api.core import PersistentVolume, PersistentVolumeClaim
from shoal.api.meta import (
    ZERO_QUANTITY,
    InvalidQuantity,
    InvalidSelector,
    Quantity,
    ResourceList,
    Selector,
    parse_quantity,
)
from shoal.scheduler.storage.claims import class_of

_AVAILABLE: Final = "Available"


def best_volume(
    claim: PersistentVolumeClaim, volumes: Iterable[PersistentVolume], *, taken: Iterable[str] = ()
) -> PersistentVolume | None:
    """The volume for a claim, of those that can be reached: one that is reserved for it, else the smallest that suits.

    ``taken``: volumes that others are to have.
    """
    others = frozenset(taken)
    suitable = [volume for volume in volumes if volume.metadata.name not in others and suits(volume, claim)]
    reserved = [volume for volume in suitable if is_reserved_for(volume, claim)]
    return min(reserved or suitable, key=_size_and_name, default=None)


def suits(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a claim may have a volume, wherever that is."""
    spec = volume.spec
    if _storage(spec.capacity) < requested_storage(claim) or volume.metadata.is_deleting:
        return False
    if (spec.volume_mode or "Filesystem") != (claim.spec.volume_mode or "Filesystem"):
        return False
    if (spec.volume_attributes_class_name or "") != (claim.spec.volume_attributes_class_name or ""):
        return False
    if spec.claim_ref is not None:
        return is_reserved_for(volume, claim)
    return (
        volume.status.phase == _AVAILABLE
        and class_of(volume) == class_of(claim)
        and set(claim.spec.access_modes) <= set(spec.access_modes)
        and _is_selected(volume, claim)
    )


def is_reserved_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume points to a claim of this name, or to this very one."""
    reference, metadata = volume.spec.claim_ref, claim.metadata
    return (
        reference is not None
        and (reference.namespace, reference.name) == (metadata.namespace, metadata.name)
        and reference.uid in ("", metadata.uid)
    )


def requested_storage(claim: PersistentVolumeClaim) -> Quantity:
    """How much storage a claim asks for."""
    return _storage(claim.spec.resources.requests)


def _storage(amounts: ResourceList) -> Quantity:
    try:
        return parse_quantity(amounts.get("storage", 0))
    except InvalidQuantity:
        return ZERO_QUANTITY


def _is_selected(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    if claim.spec.selector is None:
        return True
    try:
        return Selector.of(claim.spec.selector).matches(volume.metadata.labels)
    except InvalidSelector:
        return False


def _size_and_name(volume: PersistentVolume) -> tuple[Quantity, str]:
    return _storage(volume.spec.capacity), volume.metadata.name
