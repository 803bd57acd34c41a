"""Volumes before pods: claims that wait for their first consumer get their volume, and all are bound before the pod is.

Such a claim gets a volume that is there and that the node reaches, or else is told the node, for which a volume is then
made. What is reserved or told already is found again in the objects themselves.
"""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any, Final

from shoal.api.core import (
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    is_finished,
)
from shoal.api.meta import PartialObject
from shoal.kube import Client, Conflict, NotFound
from shoal.scheduler.binding.caches import BY_CLAIM, BY_CLASS, Caches
from shoal.scheduler.binding.orders import Order, Refused, Wait
from shoal.scheduler.ground import Ground
from shoal.scheduler.storage import (
    SELECTED_NODE,
    best_volume,
    claim_problem,
    claim_uses,
    class_of,
    is_delayed,
    is_for_one_pod,
    is_reserved_for,
    provisions,
)

_BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
_CLAIMS = PERSISTENT_VOLUME_CLAIMS.view(PartialObject)
_VOLUMES = PERSISTENT_VOLUMES.view(PartialObject)
_SOON: Final = 0.5
"""Seconds until it is tried again after somebody else changed the same volume."""

Key = tuple[str, str]


class Volumes:
    """Waits until a pod's claims have their volumes."""

    def __init__(self, client: Client, caches: Caches, timeout: float) -> None:
        self._client = client
        self._caches = caches
        self._timeout = timeout
        self._users: dict[Key, Pod] = {}
        """Who is to use claims that are for one pod alone, as far as it was decided here."""
        self._given: dict[str, str] = {}
        """Volumes that were given away here, and to which claim: the cache may not show it yet."""
        self._told: dict[str, tuple[str, str, str]] = {}
        """What claims were told here: in which order, which node, and the version of the claim that says it."""

    async def prepare(self, order: Order) -> Wait | None:
        """Finds volumes for claims that wait for the pod; waits while any is without."""
        if not order.pod.spec.volumes:
            return None
        claims = self._claims(order)
        for claim in claims:
            self._take(order, claim)
        unbound = [claim for claim in claims if not _is_bound(claim)]
        self._check_reach(order, [claim for claim in claims if _is_bound(claim)])
        if not unbound:
            self._forget(claims)
            return None
        left = self._time_left(order)
        if left <= 0:
            named = ", ".join(claim.metadata.name for claim in unbound)
            raise Refused(f"no volume was bound to claim {named} within {self._timeout:g} s")
        for claim in unbound:
            if self._is_delayed(claim) and not await self._find_volume(order, claim):
                return Wait(_SOON)
        return Wait(left)

    async def undo(self, order: Order) -> None:
        """Lets the claims that have no volume yet follow the pod elsewhere."""
        namespace, uid = order.pod.metadata.namespace, order.pod.metadata.uid
        for use in claim_uses(order.pod):
            user = self._users.get((namespace, use.name))
            if user is not None and user.metadata.uid == uid:
                del self._users[namespace, use.name]
            claim = self._caches.claims.get(use.name, namespace)
            if claim is None:
                continue
            told = self._told.pop(claim.metadata.uid, None)
            is_told = told is not None or claim.metadata.annotations.get(SELECTED_NODE) == order.node
            if _is_bound(claim) or not is_told:
                continue
            try:
                await self._select(claim, None)
            except NotFound:
                continue

    def _claims(self, order: Order) -> list[PersistentVolumeClaim]:
        """The claims of the pod; refuses it where one is of no use."""
        found = []
        for use in claim_uses(order.pod):
            claim = self._caches.claims.get(use.name, order.pod.metadata.namespace)
            if problem := claim_problem(order.pod, use, claim):
                raise Refused(problem)
            assert claim is not None
            found.append(claim)
        return found

    def _take(self, order: Order, claim: PersistentVolumeClaim) -> None:
        """Makes the pod the user of a claim that no two pods may use; refuses it where there is another."""
        if not is_for_one_pod(claim):
            return
        key, own = (claim.metadata.namespace, claim.metadata.name), order.pod.metadata.uid
        users = [pod for pod in self._caches.pods.find(BY_CLAIM, key) if pod.metadata.uid != own]
        busy = [pod for pod in users if pod.spec.node_name and not is_finished(pod)]
        first = self._users.get(key)
        if first is not None and any(pod.metadata.uid == first.metadata.uid for pod in users if not is_finished(pod)):
            busy.append(first)
        if busy:
            raise Refused(
                f"claim {claim.metadata.name} may be used by one pod at a time, and pod {busy[0].metadata.name} uses it"
            )
        self._users[key] = order.pod

    def _check_reach(self, order: Order, bound: list[PersistentVolumeClaim]) -> None:
        ground = self._ground(order)
        for claim in bound:
            volume = self._caches.volumes.get(claim.spec.volume_name)
            if volume is not None and not ground.reaching(volume).all():
                named = f"volume {volume.metadata.name} of claim {claim.metadata.name}"
                raise Refused(f"node {order.node} does not reach {named}")

    async def _find_volume(self, order: Order, claim: PersistentVolumeClaim) -> bool:
        """Reserves a volume for a claim, or has one made; False where it is to be tried again."""
        if claim.metadata.annotations.get(SELECTED_NODE) == order.node:
            return True
        told = self._told.get(claim.metadata.uid)
        if told is not None and told[:2] == (order.request.metadata.uid, order.node):
            if _is_at_least(claim, told[2]):
                raise Refused(f"no volume could be made on node {order.node} for claim {claim.metadata.name}")
            return True
        ground = self._ground(order)
        volumes = [one for one in self._caches.volumes.find(BY_CLASS, class_of(claim)) if ground.reaching(one).all()]
        own = claim.metadata.uid
        volume = best_volume(claim, volumes, taken=[name for name, uid in self._given.items() if uid != own])
        if volume is not None:
            return await self._reserve(volume, claim)
        storage_class = self._caches.storage_classes.get(class_of(claim))
        if storage_class is None or not provisions(storage_class):
            raise Refused(f"node {order.node} reaches no volume of class {class_of(claim)} for {claim.metadata.name}")
        version = await self._select(claim, order.node)
        self._told[own] = order.request.metadata.uid, order.node, version
        return True

    async def _reserve(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> bool:
        """Gives a volume to a claim; who looks after volumes then binds the two."""
        reference, metadata = volume.spec.claim_ref, claim.metadata
        if reference is not None and reference.uid == metadata.uid:
            return True
        if self._given.get(volume.metadata.name) == metadata.uid:
            return True
        annotations = {} if is_reserved_for(volume, claim) else {_BOUND_BY_CONTROLLER: "yes"}
        patch: dict[str, Any] = {
            "metadata": {"resourceVersion": volume.metadata.resource_version, "annotations": annotations},
            "spec": {
                "claimRef": {
                    "apiVersion": "v1",
                    "kind": "PersistentVolumeClaim",
                    "namespace": metadata.namespace,
                    "name": metadata.name,
                    "uid": metadata.uid,
                    "resourceVersion": metadata.resource_version,
                }
            },
        }
        try:
            await self._client.merge_patch(_VOLUMES, volume.metadata.name, patch)
        except (Conflict, NotFound):
            return False
        self._given[volume.metadata.name] = metadata.uid
        return True

    def _forget(self, bound: list[PersistentVolumeClaim]) -> None:
        """Claims have their volumes: what was kept in mind for them is in the objects now."""
        uids = {claim.metadata.uid for claim in bound}
        for name, uid in list(self._given.items()):
            volume = self._caches.volumes.get(name)
            if uid in uids or volume is None or volume.spec.claim_ref is not None:
                del self._given[name]
        for uid in uids:
            self._told.pop(uid, None)

    def _ground(self, order: Order) -> Ground:
        node = self._caches.nodes.get(order.node)
        return Ground.of_one(order.node, node.metadata.labels if node is not None else {})

    def _is_delayed(self, claim: PersistentVolumeClaim) -> bool:
        return is_delayed(claim, self._caches.storage_classes.get(class_of(claim)))

    def _time_left(self, order: Order) -> float:
        now = datetime.now(UTC)
        began = order.request.metadata.creation_timestamp or now
        return (began + timedelta(seconds=self._timeout) - now).total_seconds()

    async def _select(self, claim: PersistentVolumeClaim, node: str | None) -> str:
        """Tells a claim its node, or that it has none; gives the version of the claim that says so."""
        metadata = claim.metadata
        patch = {"metadata": {"uid": metadata.uid, "annotations": {SELECTED_NODE: node}}}
        written = await self._client.merge_patch(_CLAIMS, metadata.name, patch, metadata.namespace)
        return written.metadata.resource_version


def _is_bound(claim: PersistentVolumeClaim) -> bool:
    return claim.status.phase == "Bound" and bool(claim.spec.volume_name)


def _is_at_least(claim: PersistentVolumeClaim, version: str) -> bool:
    known = claim.metadata.resource_version
    return known.isdigit() and version.isdigit() and int(known) >= int(version)
