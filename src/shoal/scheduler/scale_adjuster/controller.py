"""Keeps as many pods that ask for whole GPUs as those need that wait for parts. There is one key: all of them."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Iterable
from typing import Any, Final

import structlog

from shoal.api.core import NAMESPACES, PODS, Pod
from shoal.api.meta import PartialObject
from shoal.kube import AlreadyExists, ApiError, Change, Client, Controller, Informer, Key, Manager, NotFound, Requeue
from shoal.scheduler.scale_adjuster.objects import POD_NAME, asks_for, is_for, scaling_pod
from shoal.scheduler.scale_adjuster.scaling import devices_of, is_needed, pods_to_scale_for, waits_for_part
from shoal.scheduler.scale_adjuster.settings import ScaleAdjusterSettings

log = structlog.get_logger("shoal.scheduler.scale_adjuster")

_ALL: Final = Key("", "all")
_ROLE: Final = "scale adjuster"
_WAITING, _SCALING = "waiting", "scaling"
_PODS = PODS.view(PartialObject)
_TRY_AGAIN: Final = 10.0


def add_scale_adjuster(
    manager: Manager,
    settings: ScaleAdjusterSettings = ScaleAdjusterSettings(),
    clock: Callable[[], float] = time.monotonic,
) -> None:
    """Adds the adjuster."""
    role = _role_for(settings)
    pods = manager.cache.informer(PODS, indexes={_ROLE: role})
    adjuster = ScaleAdjuster(manager.client, pods, settings, clock)

    def matters(change: Change[Pod]) -> bool:
        return any(role(pod) for pod in (change.before, change.after) if pod is not None)

    manager.add(
        Controller("scale-adjuster", PODS, adjuster.reconcile, keys=lambda pod: [_ALL], when=matters, workers=1)
    )


class ScaleAdjuster:
    """Makes and removes the pods that ask for GPUs."""

    def __init__(
        self, client: Client, pods: Informer[Pod], settings: ScaleAdjusterSettings, clock: Callable[[], float]
    ) -> None:
        self._client = client
        self._pods = pods
        self._settings = settings
        self._clock = clock
        self._calm_until: float | None = None

    async def reconcile(self, key: Key) -> Requeue | None:
        """Removes what is not needed any more; while that is news, nothing is added."""
        standing = await self._without_unneeded(self._pods.find(_ROLE, _SCALING))
        calm = 0.0 if self._calm_until is None else self._calm_until - self._clock()
        waiting = self._pods.find(_ROLE, _WAITING)
        wanted = pods_to_scale_for(waiting, standing, memory_portion=self._settings.memory_portion)
        if not wanted:
            return None
        if calm > 0:
            return Requeue(after=calm)
        refused = [pod for pod in wanted if not await self._ask(pod)]
        return Requeue(after=_TRY_AGAIN) if refused else None

    async def _without_unneeded(self, found: Iterable[Pod]) -> dict[str, int]:
        """Removes those that nobody needs; gives how many GPUs the others ask for, by the uid of whom they are for."""
        standing = {}
        for pod in found:
            namespace, name = asks_for(pod)
            waiting = self._pods.get(name, namespace)
            if waiting is not None and is_for(pod, waiting) and is_needed(pod, waiting, self._settings.schedulers):
                standing[waiting.metadata.uid] = devices_of(waiting)
            elif not pod.metadata.is_deleting:
                await self._remove(pod)
        return standing

    async def _remove(self, pod: Pod) -> None:
        metadata = pod.metadata
        log.info("no GPU is asked for any more", pod=metadata.name)
        self._calm_until = self._clock() + self._settings.cool_down
        try:
            await self._client.delete(PODS, metadata.name, metadata.namespace, uid=metadata.uid)
        except NotFound:
            return

    async def _ask(self, waiting: Pod) -> bool:
        """Asks for GPUs in the stead of a pod; False where that was refused, which keeps none of the others waiting."""
        body = scaling_pod(waiting, self._settings)
        log.info("GPUs are asked for", pod=waiting.metadata.name, namespace=waiting.metadata.namespace)
        try:
            try:
                await self._create(body)
            except NotFound:
                await self._client.create(NAMESPACES, {"metadata": {"name": self._settings.namespace}})
                await self._create(body)
        except AlreadyExists:
            return True
        except ApiError as error:
            log.warning("no GPU could be asked for", pod=waiting.metadata.name, error=str(error))
            return False
        return True

    async def _create(self, body: dict[str, Any]) -> None:
        """Makes the pod, and says at once that it fits nowhere: so much is known, and autoscalers look for it."""
        namespace = self._settings.namespace
        made = await self._client.create(_PODS, body, namespace)
        condition = {"type": "PodScheduled", "status": "False", "reason": "Unschedulable"}
        patch = {"metadata": {"uid": made.metadata.uid}, "status": {"conditions": [condition]}}
        await self._client.strategic_patch(_PODS, made.metadata.name, patch, namespace, subresource="status")


def _role_for(settings: ScaleAdjusterSettings) -> Callable[[Pod], Iterable[Hashable]]:
    def role(pod: Pod) -> Iterable[Hashable]:
        """Whether a pod waits for parts of GPUs, or asks for whole ones; hardly any does either."""
        if pod.metadata.namespace == settings.namespace:
            return (_SCALING,) if POD_NAME in pod.metadata.labels else ()
        return (_WAITING,) if waits_for_part(pod, settings.schedulers) else ()

    return role
