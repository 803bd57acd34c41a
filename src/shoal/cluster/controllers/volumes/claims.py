"""Gives each claim its volume, and says why one waits."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import msgspec

from shoal.api.core import (
    NODES,
    PERSISTENT_VOLUME_CLAIMS,
    PERSISTENT_VOLUMES,
    PODS,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    is_finished,
)
from shoal.api.meta import now
from shoal.api.storage import STORAGE_CLASSES, WAIT_FOR_FIRST_CONSUMER, StorageClass, is_default_class
from shoal.cluster.controllers.volumes.binding import FIELD_MANAGER, Binder
from shoal.cluster.controllers.volumes.local_path import new_volume, provisioning_problem
from shoal.cluster.controllers.volumes.matching import best_match, is_reserved_for, mismatch, requested, storage
from shoal.cluster.controllers.volumes.names import (
    AVAILABLE,
    BIND_COMPLETED,
    BOUND,
    LOST,
    OLD_STORAGE_PROVISIONER,
    PENDING,
    PROVISIONED_BY,
    PROVISIONER,
    SELECTED_NODE,
    STORAGE_PROVISIONER,
    class_of,
    names_a_class,
    volume_for,
)
from shoal.cluster.controllers.volumes.pictures import Pictures, keys_of_claims
from shoal.cluster.controllers.volumes.telling import Telling
from shoal.kube import About, AlreadyExists, Controller, Key, Manager, Watch
from shoal.kube.changes import field_changed
from shoal.kube.events import EventType
from shoal.kube.store import key_of


class Claims:
    """Binds claims to volumes, and has volumes made for those that find none."""

    def __init__(self, manager: Manager, pictures: Pictures, binder: Binder, folder: Path) -> None:
        self._client = manager.client
        self._events = manager.events
        self._pictures = pictures
        self._binder = binder
        self._folder = folder
        self._nodes = manager.cache.informer(NODES)
        self._classes = manager.cache.informer(STORAGE_CLASSES)
        self._telling = Telling(manager.events, since=now())
        pictures.claims.subscribe(self._telling.claim_changed)
        manager.add(
            Controller(
                "volume-claims",
                PERSISTENT_VOLUME_CLAIMS,
                self.reconcile,
                watches=[
                    Watch(resource=PERSISTENT_VOLUMES, keys=self._claims_of_volume),
                    Watch(resource=STORAGE_CLASSES, keys=self._claims_of_class),
                    Watch(
                        resource=PODS, keys=self._unbound_claims_of, when=field_changed(lambda pod: pod.spec.node_name)
                    ),
                ],
            )
        )

    async def reconcile(self, key: Key) -> None:
        """Brings one claim a step further, up to bound."""
        claim = self._pictures.claims.store.get(key)
        if claim is None:
            return
        if BIND_COMPLETED in claim.metadata.annotations:
            await self._keep_bound(claim)
        elif claim.spec.volume_name:
            await self._bind_to_named(claim, claim.spec.volume_name)
        else:
            await self._find_volume(claim)

    async def _find_volume(self, claim: PersistentVolumeClaim) -> None:
        storage_class = self._classes.get(class_of(claim)) if class_of(claim) else None
        is_delayed = storage_class is not None and storage_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
        node_name = self._node_of_first_user(claim) if is_delayed else ""
        node = self._nodes.get(node_name) if node_name else None
        volume = best_match(
            claim,
            self._pictures.candidates(claim),
            takes_unclaimed=not is_delayed or node is not None,
            node=node,
        )
        if volume is not None:
            await self._binder.bind(volume, claim)
            return
        if not names_a_class(claim) and (default := self._default_class()) is not None:
            await self._binder.patch_claim(claim, {"spec": {"storageClassName": default.metadata.name}})
            return
        if is_delayed and not node_name:
            self._say_what_it_waits_for(claim)
        elif class_of(claim):
            await self._provision(claim, storage_class)
            return
        else:
            message = "no persistent volumes available for this claim and no storage class is set"
            self._telling.tell(claim, "Normal", "FailedBinding", message)
        await self._binder.set_claim_phase(claim, PENDING)

    async def _bind_to_named(self, claim: PersistentVolumeClaim, name: str) -> None:
        volume = self._pictures.volumes.get(name)
        if volume is not None and is_reserved_for(volume, claim):
            await self._binder.bind(volume, claim)
            return
        if volume is not None and volume.spec.claim_ref is None:
            problem = mismatch(volume, claim)
            if problem is None:
                await self._binder.bind(volume, claim)
                return
            message = f'Cannot bind to requested volume "{name}": {problem}'
            self._telling.tell(claim, "Warning", "VolumeMismatch", message)
        elif volume is not None:
            message = f'volume "{name}" already bound to a different claim.'
            self._telling.tell(claim, "Warning", "FailedBinding", message)
        await self._binder.set_claim_phase(claim, PENDING)

    async def _keep_bound(self, claim: PersistentVolumeClaim) -> None:
        name = claim.spec.volume_name
        volume = self._pictures.volumes.get(name) if name else None
        reference = volume.spec.claim_ref if volume is not None else None
        if not name:
            await self._lose(
                claim, "ClaimLost", "Bound claim has lost reference to PersistentVolume. Data on the volume is lost!"
            )
        elif volume is None:
            await self._lose(
                claim, "ClaimLost", "Bound claim has lost its PersistentVolume. Data on the volume is lost!"
            )
        elif reference is None or reference.uid == claim.metadata.uid:
            await self._binder.bind(volume, claim)
            if claim.status.phase == BOUND and requested(claim) > storage(claim.status.capacity):
                await self._grow(volume, claim)
        else:
            await self._lose(
                claim, "ClaimMisbound", "Two claims are bound to the same volume, this one is bound incorrectly"
            )

    async def _lose(self, claim: PersistentVolumeClaim, reason: str, message: str) -> None:
        if claim.status.phase != LOST:
            await self._binder.set_claim_phase(claim, LOST)
            self._events.warning(About.of(PERSISTENT_VOLUME_CLAIMS, claim), reason, message)

    async def _grow(self, volume: PersistentVolume, claim: PersistentVolumeClaim) -> None:
        if volume.metadata.annotations.get(PROVISIONED_BY) != PROVISIONER:
            kind: EventType = "Normal" if volume.spec.csi is not None else "Warning"
            message = "waiting for an external controller to expand this PVC"
            self._telling.tell(claim, kind, "ExternalExpanding", message)
            return
        size = claim.spec.resources.requests["storage"]
        if storage(volume.spec.capacity) < requested(claim):
            await self._binder.patch_volume(volume, {"spec": {"capacity": {"storage": size}}})
        capacity = {**claim.status.capacity, "storage": size}
        await self._binder.set_claim_status(claim, msgspec.structs.replace(claim.status, capacity=capacity))
        message = f"ExpandVolume succeeded for volume {key_of(claim)}"
        self._events.normal(About.of(PERSISTENT_VOLUME_CLAIMS, claim), "VolumeResizeSuccessful", message)

    async def _provision(self, claim: PersistentVolumeClaim, storage_class: StorageClass | None) -> None:
        if storage_class is None:
            message = f'storageclass.storage.k8s.io "{class_of(claim)}" not found'
            self._telling.tell(claim, "Warning", "ProvisioningFailed", message)
            return
        provisioner = storage_class.provisioner
        if provisioner.startswith("kubernetes.io/"):
            message = f"no volume plugin matched name: {provisioner}"
            self._telling.tell(claim, "Warning", "ProvisioningFailed", message)
            return
        problem = provisioning_problem(claim, storage_class) if provisioner == PROVISIONER else None
        if problem is not None:
            self._telling.tell(claim, "Warning", "ProvisioningFailed", problem)
            return
        if claim.metadata.annotations.get(STORAGE_PROVISIONER) != provisioner:
            marks = {OLD_STORAGE_PROVISIONER: provisioner, STORAGE_PROVISIONER: provisioner}
            claim = await self._binder.patch_claim(claim, {"metadata": {"annotations": marks}})
        if provisioner == PROVISIONER:
            await self._make_volume(claim, storage_class)
            return
        message = (
            f"Waiting for a volume to be created either by the external provisioner '{provisioner}' or manually by "
            "the system administrator. If volume creation is delayed, please verify that the provisioner is running "
            "and correctly registered."
        )
        self._telling.tell(claim, "Normal", "ExternalProvisioning", message)

    async def _make_volume(self, claim: PersistentVolumeClaim, storage_class: StorageClass) -> None:
        name = volume_for(claim)
        if self._pictures.volumes.get(name) is not None:
            return  # it is there, and not for this claim to have: it is on its way out
        body = new_volume(claim, storage_class, self._folder)
        try:
            volume = await self._client.create(PERSISTENT_VOLUMES, body, field_manager=FIELD_MANAGER)
        except AlreadyExists:
            return  # made by an earlier try: its event brings us back
        message = f"Successfully provisioned volume {name} using {PROVISIONER}"
        self._events.normal(About.of(PERSISTENT_VOLUME_CLAIMS, claim), "ProvisioningSucceeded", message)
        await self._binder.bind(volume, claim)

    def _say_what_it_waits_for(self, claim: PersistentVolumeClaim) -> None:
        users = [pod for pod in self._pictures.users(key_of(claim)) if not is_finished(pod)]
        names = sorted(pod.metadata.name for pod in users if not pod.spec.node_name)
        if not names:
            message = "waiting for first consumer to be created before binding"
            self._telling.tell(claim, "Normal", "WaitForFirstConsumer", message)
            return
        which = f"pod {names[0]}" if len(names) == 1 else f"pods {','.join(names)}"
        self._telling.tell(claim, "Normal", "WaitForPodScheduled", f"waiting for {which} to be scheduled")

    def _node_of_first_user(self, claim: PersistentVolumeClaim) -> str:
        """The node that a scheduler chose for the claim, or that a pod which uses it is on already."""
        if node := claim.metadata.annotations.get(SELECTED_NODE):
            return node
        users = (pod for pod in self._pictures.users(key_of(claim)) if not is_finished(pod))
        return next((pod.spec.node_name for pod in users if pod.spec.node_name), "")

    def _default_class(self) -> StorageClass | None:
        """The newest of the classes that are marked as the default."""
        defaults = sorted(filter(is_default_class, self._classes.items()), key=lambda each: each.metadata.name)
        return max(defaults, key=lambda each: str(each.metadata.creation_timestamp), default=None)

    def _claims_of_volume(self, volume: PersistentVolume) -> Iterable[Key]:
        claims = [key_of(claim) for claim in self._pictures.claims_on(volume.metadata.name)]
        if volume.spec.claim_ref is not None:
            claims.append(Key(volume.spec.claim_ref.namespace, volume.spec.claim_ref.name))
        elif volume.status.phase == AVAILABLE:
            claims += [key_of(claim) for claim in self._pictures.waiting_claims(class_of(volume))]
        return claims

    def _claims_of_class(self, storage_class: StorageClass) -> Iterable[Key]:
        waiting = self._pictures.waiting_claims(storage_class.metadata.name)
        if is_default_class(storage_class):
            waiting += [claim for claim in self._pictures.waiting_claims("") if not names_a_class(claim)]
        return map(key_of, waiting)

    def _unbound_claims_of(self, pod: Pod) -> Iterable[Key]:
        return [key for key in keys_of_claims(pod) if self._is_unbound(key)] if pod.spec.volumes else ()

    def _is_unbound(self, key: Key) -> bool:
        claim = self._pictures.claims.store.get(key)
        return claim is not None and BIND_COMPLETED not in claim.metadata.annotations
