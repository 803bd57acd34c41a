"""Gets shared devices for pods: a reservation for each group, made by whoever comes first, and the device it holds.

Nobody waits here. A reservation that has been asked for is looked at again when its pod changes, and given up when its
device has not become known in time.
"""

from __future__ import annotations

from datetime import UTC, datetime

import structlog

from shoal.api.core import PODS, Pod, is_finished
from shoal.api.meta import PartialObject
from shoal.api.scheduling_run_ai import BindRequest
from shoal.kube import AlreadyExists, Client, Conflict, Forbidden, NotFound
from shoal.scheduler.binding.caches import Caches
from shoal.scheduler.binding.orders import Refused, Wait
from shoal.scheduler.binding.reservation import deadline_of, device_of, reservation_body
from shoal.scheduler.binding.room import make_room
from shoal.scheduler.binding.settings import ReservationSettings

log = structlog.get_logger("shoal.scheduler.binding")

_PODS = PODS.view(PartialObject)
_SOON = 1.0
"""Seconds after which what an event must tell of is looked at all the same."""


class Reservations:
    """The pods that hold shared devices, as far as the binder needs them."""

    def __init__(self, client: Client, caches: Caches, settings: ReservationSettings) -> None:
        self._client = client
        self._caches = caches
        self._settings = settings
        self._going: set[str] = set()
        """Reservations whose end has been decided, by uid: nobody may count on one, whatever the cache shows."""

    async def devices(self, request: BindRequest, pod: Pod) -> tuple[str, ...] | Wait:
        """The devices of a request's groups; raises Refused where one cannot be had."""
        groups = request.spec.selected_gpu_groups
        if not groups:
            raise Refused("the pod is to share a GPU, and the request names no GPU group")
        found = [await self._device(request.spec.selected_node, group, pod) for group in groups]
        waits = [one.seconds for one in found if isinstance(one, Wait)]
        return Wait(min(waits)) if waits else tuple(one for one in found if isinstance(one, str))

    async def drop(self, reservation: Pod) -> None:
        """Ends a reservation; from this moment nobody counts on it."""
        metadata = reservation.metadata
        if metadata.is_deleting:
            return
        self._going.add(metadata.uid)
        log.info("the reservation of a GPU ends", reservation=metadata.name, node=reservation.spec.node_name)
        try:
            await self._client.delete(PODS, metadata.name, metadata.namespace, uid=metadata.uid, grace_seconds=0)
        except (NotFound, Conflict):
            return  # it is gone, or another one by now
        except BaseException:
            self._going.discard(metadata.uid)
            raise

    def forget(self, uid: str) -> None:
        """A reservation is gone."""
        self._going.discard(uid)

    async def _device(self, node: str, group: str, pod: Pod) -> str | Wait:
        found = [
            one for one in self._caches.reservations(self._settings.namespace, group) if one.spec.node_name == node
        ]
        if not found:
            return await self._make(node, group, pod)
        standing = [one for one in found if not one.metadata.is_deleting and one.metadata.uid not in self._going]
        if not standing:
            return Wait(self._settings.timeout)  # the next one has the same name: this one must be gone first
        reservation = standing[0]
        if is_finished(reservation):
            await self.drop(reservation)
            said = reservation.status.message or reservation.status.reason or reservation.status.phase
            raise Refused(f"the reservation of GPU group {group} ended on node {node}: {said}")
        if device := device_of(reservation):
            return device
        now = datetime.now(UTC)
        left = (deadline_of(reservation, timeout=self._settings.timeout, now=now) - now).total_seconds()
        if left > 0:
            return Wait(left)
        await self.drop(reservation)
        raise Refused(f"the device of GPU group {group} did not become known within {self._settings.timeout:g} s")

    async def _make(self, node: str, group: str, pod: Pod) -> Wait:
        body = reservation_body(node, group, pod.spec.tolerations, self._settings)
        try:
            await self._create(body)
        except AlreadyExists:
            return Wait(_SOON)  # made a moment ago, and not seen yet
        except (NotFound, Forbidden):
            await make_room(self._client, self._settings)
            await self._create(body)
        log.info("a GPU is reserved", group=group, node=node)
        return Wait(self._settings.timeout)

    async def _create(self, body: dict[str, object]) -> None:
        await self._client.create(_PODS, body, self._settings.namespace)
