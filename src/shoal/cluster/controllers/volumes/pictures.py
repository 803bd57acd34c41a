"""The cache's pictures of volumes, claims and pods, with the indexes by which they find each other."""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from shoal.api.core import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
)
from shoal.api.core.pods import PodVolume
from shoal.cluster.controllers.volumes.names import BIND_COMPLETED, class_of
from shoal.cluster.indexes import all_pods
from shoal.kube import Informer, Key, Manager
from shoal.kube.store import key_of

_WAITING = "volumes: waiting by class"
_BY_VOLUME = "volumes: by volume"
_FREE = "volumes: free by class"
_BY_CLAIM = "volumes: by claim"
_USERS = "volumes: users by claim"


class Pictures:
    """What is known of volumes, claims and the pods that use them."""

    def __init__(self, manager: Manager) -> None:
        self.claims: Informer[PersistentVolumeClaim] = manager.cache.informer(
            PERSISTENT_VOLUME_CLAIMS, indexes={_WAITING: _waiting_by_class, _BY_VOLUME: _by_volume}
        )
        self.volumes: Informer[PersistentVolume] = manager.cache.informer(
            PERSISTENT_VOLUMES, indexes={_FREE: _free_by_class, _BY_CLAIM: _by_claim}
        )
        self.pods = all_pods(manager)
        self.pods.add_indexes({_USERS: keys_of_claims})

    def waiting_claims(self, storage_class: str) -> list[PersistentVolumeClaim]:
        """The claims of a class that have no volume and ask for none by name."""
        return self.claims.find(_WAITING, storage_class)

    def claims_on(self, volume: str) -> list[PersistentVolumeClaim]:
        """The claims that name a volume."""
        return self.claims.find(_BY_VOLUME, volume)

    def candidates(self, claim: PersistentVolumeClaim) -> list[PersistentVolume]:
        """The volumes that a claim may get: the free ones of its class, and those that point to it."""
        return [*self.volumes.find(_FREE, class_of(claim)), *self.volumes_pointing_to(key_of(claim))]

    def volumes_pointing_to(self, claim: Key) -> list[PersistentVolume]:
        """The volumes that are reserved for, or bound to, a claim of that name."""
        return self.volumes.find(_BY_CLAIM, claim)

    def users(self, claim: Key) -> list[Pod]:
        """The pods that name a claim."""
        return self.pods.find(_USERS, claim)


def keys_of_claims(pod: Pod) -> Iterable[Key]:
    """The claims that a pod's volumes name, those that are made for it included."""
    names = (claim_name(pod, volume) for volume in pod.spec.volumes)
    return [Key(pod.metadata.namespace, name) for name in names if name]


def claim_name(pod: Pod, volume: PodVolume) -> str:
    """The claim behind a volume of a pod; empty where there is none."""
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else ""


def _waiting_by_class(claim: PersistentVolumeClaim) -> Iterable[Hashable]:
    waits = not claim.spec.volume_name and BIND_COMPLETED not in claim.metadata.annotations
    return (class_of(claim),) if waits else ()


def _by_volume(claim: PersistentVolumeClaim) -> Iterable[Hashable]:
    return (claim.spec.volume_name,) if claim.spec.volume_name else ()


def _free_by_class(volume: PersistentVolume) -> Iterable[Hashable]:
    return (class_of(volume),) if volume.spec.claim_ref is None else ()


def _by_claim(volume: PersistentVolume) -> Iterable[Hashable]:
    reference = volume.spec.claim_ref
    return (Key(reference.namespace, reference.name),) if reference is not None else ()
