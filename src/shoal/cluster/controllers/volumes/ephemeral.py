"""Makes the claims that pods bring with them; they belong to the pod and are collected with it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from shoal.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, PersistentVolumeClaim, Pod
from shoal.api.core.pods import PodVolume
from shoal.api.meta import is_controlled_by, owner_reference
from shoal.cluster.controllers.volumes.pictures import Pictures, claim_name
from shoal.kube import About, AlreadyExists, ApiError, Change, Controller, Key, Manager, Watch
from shoal.kube.store import key_of


class EphemeralVolumes:
    """Sees to it that each ephemeral volume of a pod has its claim."""

    def __init__(self, manager: Manager, pictures: Pictures) -> None:
        self._events = manager.events
        self._pictures = pictures
        self._writer = manager.writer("ephemeral-volume-controller")
        manager.add(
            Controller(
                "ephemeral-volumes",
                PODS,
                self.reconcile,
                when=_is_new_with_ephemeral_volumes,
                watches=[
                    Watch(
                        resource=PERSISTENT_VOLUME_CLAIMS,
                        keys=self._users_of,
                        when=lambda change: change.after is None,
                    )
                ],
            )
        )

    async def reconcile(self, key: Key) -> None:
        """Makes the claims that one pod lacks."""
        pod = self._pictures.pods.store.get(key)
        if pod is None or pod.metadata.is_deleting:
            return
        for volume in pod.spec.volumes:
            if volume.ephemeral is not None:
                await self._make(pod, volume)

    async def _make(self, pod: Pod, volume: PodVolume) -> None:
        name, namespace = claim_name(pod, volume), pod.metadata.namespace
        claim = self._pictures.claims.get(name, namespace)
        if claim is None:
            try:
                await self._writer.create(
                    PERSISTENT_VOLUME_CLAIMS, wanted_claim(pod, volume), owner=owner_reference(pod, PODS)
                )
            except AlreadyExists:
                raise
            except ApiError as error:
                self._say(pod, volume, f"create PVC {name}: {error.message}")
                raise
        elif not is_controlled_by(claim.metadata, pod.metadata.uid):
            # Nothing to try again: when that claim goes its deletion brings us back.
            where = f"{namespace}/{pod.metadata.name}"
            self._say(pod, volume, f"PVC {namespace}/{name} was not created for pod {where} (pod is not owner)")

    def _say(self, pod: Pod, volume: PodVolume, problem: str) -> None:
        self._events.warning(About.of(PODS, pod), "FailedBinding", f"ephemeral volume {volume.name}: {problem}")

    def _users_of(self, claim: PersistentVolumeClaim) -> Iterable[Key]:
        users = self._pictures.users(key_of(claim))
        return [key_of(pod) for pod in users if _has_ephemeral_volumes(pod) and not pod.metadata.is_deleting]


def wanted_claim(pod: Pod, volume: PodVolume) -> dict[str, Any]:
    """The claim for an ephemeral volume, from its template."""
    assert volume.ephemeral is not None
    template = volume.ephemeral.volume_claim_template
    metadata: dict[str, Any] = {"name": claim_name(pod, volume), "namespace": pod.metadata.namespace}
    given = template.get("metadata") or {}
    for field in ("labels", "annotations"):
        if given.get(field):
            metadata[field] = given[field]
    return {"metadata": metadata, "spec": template.get("spec") or {}}


def _has_ephemeral_volumes(pod: Pod) -> bool:
    return any(volume.ephemeral is not None for volume in pod.spec.volumes)


def _is_new_with_ephemeral_volumes(change: Change[Pod]) -> bool:
    pod = change.after
    return change.before is None and pod is not None and not pod.metadata.is_deleting and _has_ephemeral_volumes(pod)
