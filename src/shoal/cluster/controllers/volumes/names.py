"""The names that volumes and claims are marked with."""

from __future__ import annotations

from shoal.api.core import PersistentVolume, PersistentVolumeClaim

PROVISIONER = "shoal.dev/local-path"
"""Makes volumes that are folders of this machine."""

LOCAL_CLASS = "local-path"
"""The class that is made where there is none."""

BIND_COMPLETED = "pv.kubernetes.io/bind-completed"
"""Annotation of a claim: it has had its volume, and will have no other."""

BOUND_BY_CONTROLLER = "pv.kubernetes.io/bound-by-controller"
"""Annotation of either side: the other one was chosen by the controller, not by a person."""

PROVISIONED_BY = "pv.kubernetes.io/provisioned-by"
"""Annotation of a volume: who made it."""

MIGRATED_TO = "pv.kubernetes.io/migrated-to"
"""Annotation of either: a driver elsewhere looks after it."""

SELECTED_NODE = "volume.kubernetes.io/selected-node"
"""Annotation of a claim: the node where its first user will be."""

STORAGE_PROVISIONER = "volume.kubernetes.io/storage-provisioner"
OLD_STORAGE_PROVISIONER = "volume.beta.kubernetes.io/storage-provisioner"
"""Annotations of a claim: who is to make its volume."""

CLAIM_PROTECTION = "kubernetes.io/pvc-protection"
VOLUME_PROTECTION = "kubernetes.io/pv-protection"
CONTENT_PROTECTION = "kubernetes.io/pv-controller"
"""Finalizers: pods use the claim; a claim uses the volume; the volume's content is still to be removed."""

PENDING, BOUND, LOST = "Pending", "Bound", "Lost"
AVAILABLE, RELEASED, FAILED = "Available", "Released", "Failed"
"""The phases of claims and volumes."""

_OLD_CLASS = "volume.beta.kubernetes.io/storage-class"


def class_of(found: PersistentVolume | PersistentVolumeClaim) -> str:
    """The class of a volume or claim; empty where it has none."""
    return found.metadata.annotations.get(_OLD_CLASS, found.spec.storage_class_name or "")


def names_a_class(claim: PersistentVolumeClaim) -> bool:
    """Whether a claim says which class it wants; none at all is a choice as well."""
    return _OLD_CLASS in claim.metadata.annotations or claim.spec.storage_class_name is not None


def volume_for(claim: PersistentVolumeClaim) -> str:
    """The name of the volume that is made for a claim."""
    return f"pvc-{claim.metadata.uid}"
