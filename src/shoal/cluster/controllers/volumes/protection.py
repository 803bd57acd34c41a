"""Keeps claims while pods use them, and volumes while claims do: their finalizers go when the last user has gone.

What a claim holds may be destroyed with it. So before one goes the server itself is asked for its users: a pod that has
just come to a node may not be seen here yet.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable

from shoal.api.core import PERSISTENT_VOLUME_CLAIMS, PERSISTENT_VOLUMES, PODS, PersistentVolumeClaim, Pod
from shoal.api.meta import is_controlled_by
from shoal.cluster.controllers.volumes.names import BOUND, CLAIM_PROTECTION, VOLUME_PROTECTION
from shoal.cluster.controllers.volumes.pictures import Pictures, claim_name, keys_of_claims
from shoal.kube import Change, Client, Controller, Key, Manager, Watch
from shoal.kube.changes import Filter
from shoal.kube.store import key_of


class ClaimProtection:
    """Lets a claim go once no pod on a node uses it."""

    def __init__(self, manager: Manager, pictures: Pictures) -> None:
        self._pictures = pictures
        self._live_users = LiveUsers(manager.client)
        self._writer = manager.writer("pvc-protection-controller")
        manager.add(
            Controller(
                "claim-protection",
                PERSISTENT_VOLUME_CLAIMS,
                self.reconcile,
                when=_is_to_change(CLAIM_PROTECTION),
                watches=[Watch(resource=PODS, keys=self._leaving_claims_of)],
            )
        )

    async def reconcile(self, key: Key) -> None:
        """Sets or clears the finalizer of one claim."""
        claim = self._pictures.claims.store.get(key)
        if claim is None:
            return
        if not claim.metadata.is_deleting:
            await self._writer.set_finalizer(PERSISTENT_VOLUME_CLAIMS, claim, CLAIM_PROTECTION)
        elif CLAIM_PROTECTION in claim.metadata.finalizers and not await self._is_used(claim):
            await self._writer.clear_finalizer(PERSISTENT_VOLUME_CLAIMS, claim, CLAIM_PROTECTION)

    async def _is_used(self, claim: PersistentVolumeClaim) -> bool:
        return is_used(claim, self._pictures.users(key_of(claim))) or await self._live_users.has(claim)

    def _leaving_claims_of(self, pod: Pod) -> Iterable[Key]:
        return [key for key in keys_of_claims(pod) if self._is_leaving(key)] if pod.spec.volumes else ()

    def _is_leaving(self, key: Key) -> bool:
        claim = self._pictures.claims.store.get(key)
        return claim is not None and claim.metadata.is_deleting


class LiveUsers:
    """Who uses claims by the server's own word; one look at a namespace does for all claims deleted before it."""

    def __init__(self, client: Client) -> None:
        self._client = client
        self._looking = asyncio.Lock()
        self._namespace = ""
        self._version = 0
        self._pods: list[Pod] = []

    async def has(self, claim: PersistentVolumeClaim) -> bool:
        """Whether a pod uses a claim that is being deleted."""
        async with self._looking:
            if not self._is_after(claim) or is_used(claim, self._pods):
                # Who was there at the last look may have gone since.
                await self._look(claim.metadata.namespace)
            return is_used(claim, self._pods)

    def _is_after(self, claim: PersistentVolumeClaim) -> bool:
        metadata = claim.metadata
        return self._namespace == metadata.namespace and self._version >= int(metadata.resource_version)

    async def _look(self, namespace: str) -> None:
        listing = await self._client.list(PODS, namespace)
        self._pods = [pod for pod in listing.items if pod.spec.node_name and any(keys_of_claims(pod))]
        self._namespace, self._version = namespace, int(listing.resource_version)


class VolumeProtection:
    """Lets a volume go once it is not bound."""

    def __init__(self, manager: Manager, pictures: Pictures) -> None:
        self._pictures = pictures
        self._writer = manager.writer("pv-protection-controller")
        manager.add(
            Controller("volume-protection", PERSISTENT_VOLUMES, self.reconcile, when=_is_to_change(VOLUME_PROTECTION))
        )

    async def reconcile(self, key: Key) -> None:
        """Sets or clears the finalizer of one volume."""
        volume = self._pictures.volumes.store.get(key)
        if volume is None:
            return
        if not volume.metadata.is_deleting:
            await self._writer.set_finalizer(PERSISTENT_VOLUMES, volume, VOLUME_PROTECTION)
        elif volume.status.phase != BOUND:
            await self._writer.clear_finalizer(PERSISTENT_VOLUMES, volume, VOLUME_PROTECTION)


def is_used(claim: PersistentVolumeClaim, pods: Iterable[Pod]) -> bool:
    """Whether one of the pods has a claim."""
    return any(uses(pod, claim) for pod in pods)


def uses(pod: Pod, claim: PersistentVolumeClaim) -> bool:
    """Whether a pod has a claim: a pod without a node has none, since a claim that is to go keeps it from starting.

    A claim that was made for the pod is free as soon as the node is done with it, whatever still holds the pod itself.
    """
    if not pod.spec.node_name:
        return False
    is_over = pod.metadata.is_deleting and pod.metadata.deletion_grace_period_seconds == 0
    for volume in pod.spec.volumes:
        if claim_name(pod, volume) != claim.metadata.name:
            continue
        if volume.ephemeral is None or (not is_over and is_controlled_by(claim.metadata, pod.metadata.uid)):
            return True
    return False


def _is_to_change(finalizer: str) -> Filter:
    """The finalizer is missing, or is there and may have to go."""

    def matters(change: Change[PersistentVolumeClaim]) -> bool:
        found = change.after
        return found is not None and found.metadata.is_deleting == (finalizer in found.metadata.finalizers)

    return matters
