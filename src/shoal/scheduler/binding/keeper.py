"""Keeps reservations as long as they are needed, and no pod on a device that is not reserved.

A key is a GPU group. A reservation goes when nobody is on its device and no request holds it. A running pod goes when
the reservation it started under is no more: somebody else may have been given the device since.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import structlog

from shoal.api.core import PODS, RUNNING, Pod, is_finished, pod_condition
from shoal.api.scheduling_run_ai import BindRequest
from shoal.kube import About, Change, Client, Conflict, Key, NotFound, Recorder
from shoal.scheduler.binding.caches import Caches
from shoal.scheduler.binding.groups import groups_of
from shoal.scheduler.binding.orders import held_groups
from shoal.scheduler.binding.reservations import Reservations

log = structlog.get_logger("shoal.scheduler.binding")

_CLOCKS_APART = timedelta(seconds=5)


class ReservationKeeper:
    """Ends reservations that nobody needs, and pods that have lost theirs."""

    def __init__(
        self, client: Client, events: Recorder, caches: Caches, reservations: Reservations, namespace: str
    ) -> None:
        self._client = client
        self._events = events
        self._caches = caches
        self._reservations = reservations
        self._namespace = namespace

    async def reconcile(self, key: Key) -> None:
        """Looks at one group."""
        reservations = self._caches.reservations(self._namespace, key.name)
        sharers = self._caches.sharers(self._namespace, key.name)
        if not sharers and not self._caches.holders(key.name):
            for reservation in reservations:
                await self._reservations.drop(reservation)
        for pod in unreserved(sharers, reservations):
            await self._end(pod, key.name)

    def group_of_pod_matters(self, change: Change[Pod]) -> bool:
        """Whether a pod's change may end a reservation, or another pod."""
        if change.after is None:
            self._reservations.forget(change.latest.metadata.uid)
        return _facts(change.before) != _facts(change.after)

    def groups_of_pod(self, pod: Pod) -> Iterable[Key]:
        """The groups that a pod is in."""
        return [Key("", group) for group in groups_of(pod.metadata.labels)]

    def groups_of_request(self, request: BindRequest) -> Iterable[Key]:
        """The groups that a request names."""
        return [Key("", group) for group in request.spec.selected_gpu_groups]

    async def _end(self, pod: Pod, group: str) -> None:
        metadata = pod.metadata
        log.warning("a pod has lost its reservation", pod=metadata.name, namespace=metadata.namespace, group=group)
        self._events.warning(
            About.of(PODS, pod), "ReservationLost", f"GPU group {group} is not reserved any more: the pod is deleted"
        )
        try:
            await self._client.delete(PODS, metadata.name, metadata.namespace, uid=metadata.uid)
        except (NotFound, Conflict):
            return


def unreserved(sharers: Sequence[Pod], reservations: Sequence[Pod]) -> list[Pod]:
    """The running pods whose device is not held for them: there is no reservation, or only one that is younger.

    A reservation is older than the pods that were bound under it: one that came after them has another device.
    """
    made = [one.metadata.creation_timestamp for one in reservations if not is_finished(one)]
    oldest = min((moment for moment in made if moment is not None), default=None)
    return [
        pod
        for pod in sharers
        if pod.status.phase == RUNNING
        and not pod.metadata.is_deleting
        and (not made or (oldest is not None and _is_bound_before(pod, oldest)))
    ]


def _is_bound_before(pod: Pod, moment: datetime) -> bool:
    """Whether a pod surely had its node by then; both times are an API server's, of which there may be several."""
    condition = pod_condition(pod, "PodScheduled")
    bound = condition.last_transition_time if condition is not None and condition.status == "True" else None
    return bound is not None and bound + _CLOCKS_APART < moment


def holding_changed(change: Change[BindRequest]) -> bool:
    """Whether a request lets go of devices, or its groups came to be known."""
    before = () if change.before is None else held_groups(change.before)
    after = () if change.after is None else held_groups(change.after)
    return before != after


def _facts(pod: Pod | None) -> tuple[object, ...]:
    if pod is None:
        return ()
    groups = groups_of(pod.metadata.labels)
    return (groups, pod.status.phase, pod.metadata.is_deleting, pod.metadata.uid) if groups else ()
