"""What a pod's claims are, and how far each has come on its way to a volume."""

from __future__ import annotations

from typing import Final, NamedTuple

from shoal.api.core import PersistentVolume, PersistentVolumeClaim, Pod
from shoal.api.meta import is_controlled_by
from shoal.api.storage import WAIT_FOR_FIRST_CONSUMER, StorageClass

SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
"""Annotation of a claim: the node on which its first consumer is to run."""
SINGLE_USER: Final = "ReadWriteOncePod"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
"""Of a class whose volumes are made by people."""

_BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
_OLD_CLASS: Final = "volume.beta.kubernetes.io/storage-class"


class ClaimUse(NamedTuple):
    """A claim that a pod uses."""

    name: str
    is_own: bool
    """Whether it is made for this pod, and goes with it."""


def claim_uses(pod: Pod) -> tuple[ClaimUse, ...]:
    """The claims that a pod uses, each once; those made for it alone bear its name."""
    uses = (
        ClaimUse(volume.persistent_volume_claim.claim_name, is_own=False)
        if volume.persistent_volume_claim is not None
        else ClaimUse(f"{pod.metadata.name}-{volume.name}", is_own=True)
        for volume in pod.spec.volumes
        if volume.persistent_volume_claim is not None or volume.ephemeral is not None
    )
    return tuple({use.name: use for use in uses}.values())


def claim_problem(pod: Pod, use: ClaimUse, claim: PersistentVolumeClaim | None) -> str:
    """Why a claim is of no use to a pod, whatever becomes of its volume; "" where nothing is wrong with it."""
    name = use.name
    if claim is None:
        if use.is_own:
            return f"claim {name} is still to be made for one of its volumes"
        return f"claim {name} does not exist: create PersistentVolumeClaim {name}"
    if claim.status.phase == "Lost":
        return f"claim {name} has lost its volume {claim.spec.volume_name}"
    if claim.metadata.is_deleting:
        return f"claim {name} is being deleted"
    if use.is_own and not is_controlled_by(claim.metadata, pod.metadata.uid):
        return f"claim {name} was not made for this pod"
    return ""


def is_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether a claim has its volume for good."""
    is_complete = claim.status.phase == "Bound" or _BIND_COMPLETED in claim.metadata.annotations
    return bool(claim.spec.volume_name) and is_complete


def is_delayed(claim: PersistentVolumeClaim, storage_class: StorageClass | None) -> bool:
    """Whether a claim gets its volume once its first consumer has a node; one that names its volume does not."""
    if claim.spec.volume_name or storage_class is None:
        return False
    return storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def is_for_one_pod(claim: PersistentVolumeClaim) -> bool:
    """Whether no two pods may use a claim at once."""
    return SINGLE_USER in claim.spec.access_modes


def provisions(storage_class: StorageClass) -> bool:
    """Whether volumes of a class are made when they are needed."""
    return storage_class.provisioner not in ("", NO_PROVISIONER)


def class_of(holder: PersistentVolumeClaim | PersistentVolume) -> str:
    """The storage class of a claim or of a volume; "" where it has none."""
    return holder.metadata.annotations.get(_OLD_CLASS) or holder.spec.storage_class_name or ""
