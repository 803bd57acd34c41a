"""Which volume suits a claim."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.core import Node, PersistentVolume, PersistentVolumeClaim
from shoal.api.meta import ZERO_QUANTITY, Quantity, ResourceList, Selector, parse_quantity
from shoal.cluster.controllers.volumes.names import AVAILABLE, class_of
from shoal.cluster.placement import matches_node_selector


def best_match(
    claim: PersistentVolumeClaim,
    volumes: Iterable[PersistentVolume],
    *,
    takes_unclaimed: bool = True,
    node: Node | None = None,
) -> PersistentVolume | None:
    """The volume for a claim: one that is reserved for it, or else the smallest that is large enough.

    Volumes with few access modes are tried before those with more. Without ``takes_unclaimed`` only a reserved one will
    do; with a ``node`` an unclaimed one must be usable there.
    """
    suitable = [volume for volume in volumes if _is_candidate(volume, claim)]
    for modes in sorted(
        {frozenset(volume.spec.access_modes) for volume in suitable}, key=lambda m: (len(m), sorted(m))
    ):
        group = [volume for volume in suitable if frozenset(volume.spec.access_modes) == modes]
        reserved = [volume for volume in group if is_reserved_for(volume, claim)]
        free = [volume for volume in group if takes_unclaimed and _is_free_for(volume, claim, node)]
        if reserved:
            return min(reserved, key=_size_and_name)
        if free:
            return min(free, key=_size_and_name)
    return None


def mismatch(volume: PersistentVolume, claim: PersistentVolumeClaim) -> str | None:
    """Why a claim cannot have the volume it asks for, in Kubernetes' words; None where it can."""
    if volume.metadata.is_deleting:
        return f'the volume is marked for deletion "{volume.metadata.name}"'
    if storage(volume.spec.capacity) < requested(claim):
        return "requested PV is too small"
    if class_of(volume) != class_of(claim):
        return "storageClassName does not match"
    if not _same_attributes(volume, claim):
        return "volumeAttributesClassName does not match"
    if not same_mode(volume, claim):
        return "incompatible volumeMode"
    if not set(claim.spec.access_modes) <= set(volume.spec.access_modes):
        return "incompatible accessMode"
    return None


def is_reserved_for(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether a volume points to this claim, by name or to this very one."""
    reference = volume.spec.claim_ref
    metadata = claim.metadata
    return (
        reference is not None
        and (reference.namespace, reference.name) == (metadata.namespace, metadata.name)
        and reference.uid in ("", metadata.uid)
    )


def same_mode(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    """Whether both mean a file system, or both a block device."""
    return (volume.spec.volume_mode or "Filesystem") == (claim.spec.volume_mode or "Filesystem")


def requested(claim: PersistentVolumeClaim) -> Quantity:
    """How much storage a claim asks for."""
    return storage(claim.spec.resources.requests)


def storage(amounts: ResourceList) -> Quantity:
    """The storage of a list of amounts."""
    amount = amounts.get("storage")
    return ZERO_QUANTITY if amount is None else parse_quantity(amount)


def is_usable_on(volume: PersistentVolume, node: Node) -> bool:
    """Whether a volume can be reached from a node."""
    required = (volume.spec.node_affinity or {}).get("required")
    return required is None or matches_node_selector(required, node)


def _is_candidate(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (
        (volume.spec.claim_ref is None or is_reserved_for(volume, claim))
        and set(claim.spec.access_modes) <= set(volume.spec.access_modes)
        and storage(volume.spec.capacity) >= requested(claim)
        and same_mode(volume, claim)
        and _same_attributes(volume, claim)
        and not volume.metadata.is_deleting
    )


def _is_free_for(volume: PersistentVolume, claim: PersistentVolumeClaim, node: Node | None) -> bool:
    selector = claim.spec.selector
    return (
        volume.spec.claim_ref is None
        and volume.status.phase == AVAILABLE
        and (selector is None or Selector.of(selector).matches(volume.metadata.labels))
        and class_of(volume) == class_of(claim)
        and (node is None or is_usable_on(volume, node))
    )


def _same_attributes(volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
    return (volume.spec.volume_attributes_class_name or "") == (claim.spec.volume_attributes_class_name or "")


def _size_and_name(volume: PersistentVolume) -> tuple[Quantity, str]:
    return (storage(volume.spec.capacity), volume.metadata.name)
