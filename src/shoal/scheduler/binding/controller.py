"""All of it together: the binder and the keeper of reservations, on one manager."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.core import PERSISTENT_VOLUME_CLAIMS, PODS, PersistentVolumeClaim, Pod
from shoal.api.scheduling_run_ai import BIND_REQUESTS, BindRequest
from shoal.kube import Change, Controller, Key, Manager, Watch
from shoal.kube.changes import field_changed
from shoal.scheduler.binding.binder import Binder, on_node
from shoal.scheduler.binding.caches import BY_CLAIM, Caches
from shoal.scheduler.binding.keeper import ReservationKeeper, holding_changed
from shoal.scheduler.binding.orders import is_open
from shoal.scheduler.binding.reservation import device_of
from shoal.scheduler.binding.reservations import Reservations
from shoal.scheduler.binding.settings import BindingSettings
from shoal.scheduler.binding.steps import wanted_steps
from shoal.scheduler.storage import SELECTED_NODE

KEEPERS = 4
"""GPU groups that are looked at at once."""


def add_binding(manager: Manager, settings: BindingSettings = BindingSettings()) -> None:
    """Adds the binder, and the keeper of the reservations that it makes."""
    client, caches = manager.client, Caches(manager)
    namespace = settings.reservations.namespace
    reservations = Reservations(client, caches, settings.reservations)
    binder = Binder(client, manager.events, caches, reservations, wanted_steps(client, caches, settings))
    keeper = ReservationKeeper(client, manager.events, caches, reservations, namespace)

    def awaited_pod(change: Change[Pod]) -> bool:
        """Whether somebody may wait for this: a reservation's device, a reservation's end, a pod's appearance."""
        if change.latest.metadata.namespace == namespace:
            return _reservation_changed(change)
        return change.before is None and not change.latest.spec.node_name

    def nodes_of_pod(pod: Pod) -> Iterable[Key]:
        if pod.metadata.namespace == namespace:
            return [Key("", pod.spec.node_name)] if pod.spec.node_name else []
        return _nodes_awaiting(caches, pod.metadata.namespace, pod.metadata.name)

    def nodes_of_claim(claim: PersistentVolumeClaim) -> Iterable[Key]:
        metadata = claim.metadata
        for pod in caches.pods.find(BY_CLAIM, (metadata.namespace, metadata.name)):
            yield from _nodes_awaiting(caches, pod.metadata.namespace, pod.metadata.name)

    manager.add(
        Controller(
            "binder",
            BIND_REQUESTS,
            binder.reconcile,
            keys=on_node,
            when=_asks_for_work,
            watches=[
                Watch(resource=PODS, keys=nodes_of_pod, when=awaited_pod),
                Watch(resource=PERSISTENT_VOLUME_CLAIMS, keys=nodes_of_claim, when=field_changed(_binding_of_claim)),
            ],
            workers=settings.workers,
        )
    )
    manager.add(
        Controller(
            "gpu-reservations",
            PODS,
            keeper.reconcile,
            keys=keeper.groups_of_pod,
            when=keeper.group_of_pod_matters,
            watches=[Watch(resource=BIND_REQUESTS, keys=keeper.groups_of_request, when=holding_changed)],
            workers=KEEPERS,
        )
    )


def _nodes_awaiting(caches: Caches, namespace: str, pod: str) -> Iterable[Key]:
    """The nodes on which a pod is to be bound; a request bears its pod's name."""
    request = caches.requests.get(pod, namespace)
    return on_node(request) if request is not None and request.spec.pod_name == pod else ()


def _reservation_changed(change: Change[Pod]) -> bool:
    if change.before is None or change.after is None:
        return True
    return _standing(change.before) != _standing(change.after)


def _standing(reservation: Pod) -> tuple[str, str]:
    return device_of(reservation), reservation.status.phase


def _asks_for_work(change: Change[BindRequest]) -> bool:
    """Whether a request is new, or another one than before, and open: not what the binder itself has closed."""
    before, after = change.before, change.after
    if after is None or not is_open(after):
        return False
    return before is None or _state(before) != _state(after)


def _state(request: BindRequest) -> tuple[object, ...]:
    return request.metadata.uid, request.spec, request.status


def _binding_of_claim(claim: PersistentVolumeClaim) -> tuple[object, ...]:
    metadata = claim.metadata
    return claim.spec.volume_name, claim.status.phase, metadata.is_deleting, metadata.annotations.get(SELECTED_NODE)
