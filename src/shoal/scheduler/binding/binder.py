"""Binds pods as BindRequests say, one by one on each node, and all nodes at once.

A key is a node, so the queue itself keeps two orders for a node apart, and an order that waits for a device or a volume
keeps nobody else waiting: it is passed over until an event says that there is more to see. All that is known stands in
objects: whoever is started anew finds a bound pod bound, a reservation made, and goes on from there.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import structlog

from shoal.api import kai_names as names
from shoal.api.core import PODS, Pod, is_finished
from shoal.api.meta import PartialObject, format_micro_time
from shoal.api.scheduling_run_ai import BIND_REQUESTS, BindRequest
from shoal.kube import About, ApiError, Client, Conflict, Key, NotFound, Recorder, Requeue
from shoal.kube.errors import ConnectionFault, NotLeading
from shoal.scheduler.binding.backoff import FAILED, FAILED_AT, SUCCEEDED, rests_until
from shoal.scheduler.binding.caches import Caches
from shoal.scheduler.binding.groups import group_labels, is_group_label
from shoal.scheduler.binding.orders import Order, Refused, Wait, is_for, is_open, is_shared
from shoal.scheduler.binding.reservations import Reservations
from shoal.scheduler.binding.steps import Step
from shoal.scheduler.numa import zones_text

log = structlog.get_logger("shoal.scheduler.binding")

_PODS = PODS.view(PartialObject)
_REQUESTS = BIND_REQUESTS.view(PartialObject)


class Binder:
    """Carries out the open orders of nodes."""

    def __init__(
        self,
        client: Client,
        events: Recorder,
        caches: Caches,
        reservations: Reservations,
        steps: tuple[Step, ...],
    ) -> None:
        self._client = client
        self._events = events
        self._caches = caches
        self._reservations = reservations
        self._steps = steps

    async def reconcile(self, key: Key) -> Requeue | None:
        """Carries out what can be carried out on a node, and says when to look at the rest again."""
        waits: list[float] = []
        faults: list[Exception] = []
        for request in self._caches.open_requests(key.name):
            try:
                wait = await self._carry_out(request)
            except (ConnectionFault, NotLeading):
                raise
            except Exception as fault:  # one that cannot be dealt with keeps nobody else from being bound
                faults.append(fault)
            else:
                if wait is not None:
                    waits.append(wait.seconds)
        if faults:
            raise ExceptionGroup(f"orders for node {key.name}", faults)
        return Requeue(after=max(0.0, min(waits))) if waits else None

    async def _carry_out(self, request: BindRequest) -> Wait | None:
        pod = self._caches.pod_of(request)
        if pod is None:
            await self._look_for_pod(request)
            return None
        if not is_for(request, pod) or pod.metadata.is_deleting or is_finished(pod):
            return None  # the request goes with the pod that it was made for
        if pod.spec.node_name:
            await self._settle(request, pod)
            return None
        due = rests_until(request)
        if due is not None and (rest := (due - datetime.now(UTC)).total_seconds()) > 0:
            return Wait(rest)
        return await self._attempt(request, pod)

    async def _attempt(self, request: BindRequest, pod: Pod) -> Wait | None:
        order = Order(request=request, pod=pod)
        try:
            if self._caches.nodes.get(order.node) is None:
                raise Refused(f"node {order.node} does not exist")
            if is_shared(request):
                devices = await self._reservations.devices(request, pod)
                if isinstance(devices, Wait):
                    return devices
                order = Order(request=request, pod=pod, devices=devices)
            for step in self._steps:
                wait = await step.prepare(order)
                if wait is not None:
                    return wait
            await self._bind(order)
        except (Refused, ApiError) as problem:
            await self._undo(order)
            await self._fail(order.request, pod, problem.message if isinstance(problem, ApiError) else str(problem))
            return None
        await self._succeed(request)
        self._events.normal(About.of(PODS, pod), "Bound", f"Pod bound successfully to node {order.node}")
        return None

    async def _bind(self, order: Order) -> None:
        metadata, kind = order.pod.metadata, order.request.spec.received_resource_type
        annotations = {names.RECEIVED_RESOURCE_TYPE: kind} if kind else {}
        if zones := order.request.spec.predicted_numa_zones:
            annotations[names.NUMA_PREDICTED] = zones_text(zones)
        if is_shared(order.request):
            # Labels come before the node: who sees the pod on its node must see whose device it is on.
            await self._label(order.pod, group_labels(order.request.spec.selected_gpu_groups), annotations)
            annotations = {}
        try:
            await self._client.bind(
                PODS, metadata.name, metadata.namespace, node=order.node, uid=metadata.uid, annotations=annotations
            )
        except Conflict:
            if not await self._is_bound(order):
                raise

    async def _label(self, pod: Pod, labels: dict[str, str], annotations: dict[str, str]) -> None:
        present = pod.metadata
        stale = dict.fromkeys(label for label in present.labels if is_group_label(label) and label not in labels)
        wanted = {label: value for label, value in labels.items() if present.labels.get(label) != value}
        noted = {name: value for name, value in annotations.items() if present.annotations.get(name) != value}
        if not (stale or wanted or noted):
            return
        patch: dict[str, Any] = {"uid": present.uid, "labels": {**stale, **wanted}, "annotations": noted}
        await self._client.merge_patch(_PODS, present.name, {"metadata": patch}, present.namespace)

    async def _is_bound(self, order: Order) -> bool:
        """Whether the pod is where it should be after all: the answer to an earlier attempt may have been lost."""
        metadata = order.pod.metadata
        try:
            live = await self._client.get(PODS, metadata.name, metadata.namespace)
        except NotFound:
            return False
        return live.metadata.uid == metadata.uid and live.spec.node_name == order.node

    async def _undo(self, order: Order) -> None:
        """Takes back what was made for the order; what cannot be is found and removed later, or harms nobody."""
        for step in reversed(self._steps):
            try:
                await step.undo(order)
            except (ApiError, Refused) as error:
                log.warning("a step of a binding was not undone", pod=order.pod.metadata.name, error=str(error))
        try:
            if is_shared(order.request):
                # What of the labels is there the cache may not show yet, so all that may be are named.
                metadata = order.pod.metadata
                ours = group_labels(order.request.spec.selected_gpu_groups)
                labels = dict.fromkeys([*ours, *filter(is_group_label, metadata.labels)])
                patch = {"metadata": {"uid": metadata.uid, "labels": labels}}
                await self._client.merge_patch(_PODS, metadata.name, patch, metadata.namespace)
        except ApiError as error:
            log.warning("a pod keeps the label of its GPU group", pod=order.pod.metadata.name, error=str(error))

    async def _settle(self, request: BindRequest, pod: Pod) -> None:
        """Writes down what became of a request whose pod has a node, by whomever."""
        if pod.spec.node_name == request.spec.selected_node:
            await self._succeed(request)
        else:
            await self._fail(request, None, f"the pod is on node {pod.spec.node_name} already")

    async def _look_for_pod(self, request: BindRequest) -> None:
        """A pod that the cache does not show may be too new for it; one that the server does not have is gone."""
        try:
            await self._client.get(_PODS, request.spec.pod_name, request.metadata.namespace)
        except NotFound:
            await self._fail(request, None, f"pod {request.spec.pod_name} does not exist")

    async def _succeed(self, request: BindRequest) -> None:
        await self._patch_status(request, {"phase": SUCCEEDED, "reason": None})

    async def _fail(self, request: BindRequest, pod: Pod | None, reason: str) -> None:
        """Writes down a failure. Its time comes first: without it the count alone would make nobody wait."""
        metadata, node = request.metadata, request.spec.selected_node
        attempts = (request.status.failed_attempts or 0) + 1
        log.warning("a pod could not be bound", pod=request.spec.pod_name, node=node, attempts=attempts, reason=reason)
        noted = {"uid": metadata.uid, "annotations": {FAILED_AT: format_micro_time(datetime.now(UTC))}}
        try:
            await self._client.merge_patch(_REQUESTS, metadata.name, {"metadata": noted}, metadata.namespace)
        except (NotFound, Conflict):
            return
        await self._patch_status(request, {"phase": FAILED, "reason": reason, "failedAttempts": attempts})
        if pod is not None:
            self._events.warning(About.of(PODS, pod), "FailedBinding", f"Not bound to node {node}: {reason}")

    async def _patch_status(self, request: BindRequest, status: dict[str, Any]) -> None:
        metadata = request.metadata
        patch = {"metadata": {"uid": metadata.uid}, "status": status}
        try:
            await self._client.merge_patch(_REQUESTS, metadata.name, patch, metadata.namespace, subresource="status")
        except (NotFound, Conflict):
            return  # gone with its pod, or another one by now


def on_node(request: BindRequest) -> list[Key]:
    """The key under which a request is carried out."""
    return [Key("", request.spec.selected_node)] if is_open(request) else []
