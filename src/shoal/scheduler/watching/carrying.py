"""Carrying out what a cycle decided: bindings, orders for the binder, evictions, and what people are to know of it.

A pod that takes nothing but a node is bound here and now. One that needs more first (a share of a device, a volume),
or that the API server would not have bound, becomes an order for the binder, which remembers and paces its attempts.

All decisions of a cycle are written at once, a bounded number at a time. Each stands for itself: one that the API
server refuses is told and forgotten, so that the next cycle decides anew, and holds up none of the others.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import structlog

from shoal.api import kai_names as names
from shoal.api.core import PODS
from shoal.api.core.pods import Pod
from shoal.api.meta.ownership import owner_reference
from shoal.api.meta.time import format_time
from shoal.api.scheduling_run_ai import BIND_REQUESTS, POD_GROUPS, BindRequest
from shoal.kube import About, ApiError, Conflict, ConnectionFault, Manager, NotFound
from shoal.scheduler.binding.backoff import carried_failures
from shoal.scheduler.binding.orders import takes_only_a_node
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.tasks import Request
from shoal.scheduler.numa import written_zones, zones_text
from shoal.scheduler.session.session import Bind, Decision, Eviction, Promise
from shoal.scheduler.watching.groups import Dialect, GangKey
from shoal.scheduler.watching.mirror import Mirror

log = structlog.get_logger("shoal.scheduler")

_AT_ONCE: Final = 64
_CONFIRMED_WITHIN: Final = 120.0
_SELECTED_NODE: Final = "selected-node"
FIELD_MANAGER: Final = "kai-scheduler"


class Carrier:
    """Writes decisions down."""

    def __init__(
        self,
        manager: Manager,
        mirror: Mirror,
        *,
        node_pool_key: str = names.NODE_POOL,
        node_pool: str = "",
        why: Callable[[Eviction], str] = lambda eviction: eviction.reason.message,
    ) -> None:
        self._client = manager.client
        self._events = manager.events
        self._mirror = mirror
        self._pool = {node_pool_key: node_pool} if node_pool else {}
        self._why = why
        self._slots = asyncio.Semaphore(_AT_ONCE)
        self.on_bound: list[Callable[[Bind, float], None]] = []
        """Told of every order that the binder was given, and how many seconds it took to write."""
        self.on_evicted: list[Callable[[Eviction], None]] = []
        """Told of every pod that has to go."""

    async def carry_out(self, decisions: Sequence[Decision], now: float) -> None:
        """Writes all of them; the model assumes at once what has been given away."""
        work: list[Callable[[], Awaitable[None]]] = []
        for decision in decisions:
            pod = self._mirror.pod(decision.task.key)
            if pod is None:
                continue
            if isinstance(decision, Bind):
                self._mirror.assume(
                    decision.task,
                    decision.node,
                    decision.gpu_groups,
                    until=now + _CONFIRMED_WITHIN,
                    zones=decision.zones,
                )
                work.append(lambda bind=decision, pod=pod: self._bind(bind, pod))  # type: ignore[misc]
            elif isinstance(decision, Eviction):
                work.append(lambda eviction=decision, pod=pod: self._evict(eviction, pod))  # type: ignore[misc]
            elif isinstance(decision, Promise):
                message = f"waits for node {decision.node}, where pods are ending"
                self._events.normal(About.of(PODS, pod), "Pipelined", message)
        async with asyncio.TaskGroup() as group:
            for one in work:
                group.create_task(self._run(one))

    async def mark(self, namespace: str, name: str, annotations: Mapping[str, str | None]) -> None:
        """Notes on a PodGroup when it started, was evicted or became stale."""
        try:
            await self._client.merge_patch(
                POD_GROUPS,
                name,
                {"metadata": {"annotations": dict(annotations)}},
                namespace,
                field_manager=FIELD_MANAGER,
            )
        except NotFound:
            return
        except (ApiError, ConnectionFault) as error:
            log.warning("podgroup not marked", podgroup=f"{namespace}/{name}", error=str(error))

    async def _run(self, work: Callable[[], Awaitable[None]]) -> None:
        async with self._slots:
            await work()

    async def _bind(self, bind: Bind, pod: Pod) -> None:
        start = time.perf_counter()
        before = self._mirror.request(bind.task.key)
        try:
            if before is not None:
                await self._remove(before)
            elif takes_only_a_node(pod, bind.task.request) and await self._bind_at_once(bind, pod):
                self._tell_bound(bind, pod, start)
                return
            body = bind_request(bind, pod, before, labels=self._pool)
            await self._client.create(BIND_REQUESTS, body, pod.metadata.namespace, field_manager=FIELD_MANAGER)
        except (ApiError, ConnectionFault) as error:
            log.warning("pod not bound", pod=f"{pod.metadata.namespace}/{pod.metadata.name}", error=str(error))
            self._mirror.forget(bind.task)
            return
        self._tell_bound(bind, pod, start)

    async def _bind_at_once(self, bind: Bind, pod: Pod) -> bool:
        """Binds a pod without an order; False where the server refuses, which is for the binder to deal with."""
        metadata = pod.metadata
        annotations = {names.RECEIVED_RESOURCE_TYPE: resource_type(bind.task.request)}
        if bind.zones:
            annotations[names.NUMA_PREDICTED] = zones_text(written_zones(bind.zones))
        try:
            await self._client.bind(
                PODS, metadata.name, metadata.namespace, node=bind.node, uid=metadata.uid, annotations=annotations
            )
        except (NotFound, Conflict):
            raise
        except ApiError:
            return False
        return True

    def _tell_bound(self, bind: Bind, pod: Pod, start: float) -> None:
        for tell in self.on_bound:
            tell(bind, time.perf_counter() - start)
        pool = next(iter(self._pool.values()), "default")
        message = f"assigned {pod.metadata.namespace}/{pod.metadata.name} to {bind.node} of node pool {pool}"
        self._events.normal(About.of(PODS, pod), "Scheduled", message)

    async def _remove(self, request: BindRequest) -> None:
        try:
            await self._client.delete(
                BIND_REQUESTS, request.metadata.name, request.metadata.namespace, uid=request.metadata.uid
            )
        except NotFound:
            return

    async def _evict(self, eviction: Eviction, pod: Pod) -> None:
        metadata = pod.metadata
        try:
            await self._client.delete(PODS, metadata.name, metadata.namespace, uid=metadata.uid)
        except NotFound:
            return
        except (ApiError, ConnectionFault) as error:
            log.warning("pod not evicted", pod=f"{metadata.namespace}/{metadata.name}", error=str(error))
            return
        for tell in self.on_evicted:
            tell(eviction)
        message = self._why(eviction) or f"{metadata.name} ends for {eviction.reason.action}"
        self._events.normal(self._about(eviction.task.job, pod), "Evict", message)

    def _about(self, job: Job, pod: Pod) -> About:
        """A gang's PodGroup; one of another dialect is told by its pod."""
        if self._mirror.job(GangKey(Dialect.KAI, job.namespace, job.name)) is not job:
            return About.of(PODS, pod)
        return About(
            api_version=POD_GROUPS.api_version,
            kind=POD_GROUPS.kind,
            namespace=job.namespace,
            name=job.name,
            uid=job.uid,
        )


def bind_request(
    bind: Bind, pod: Pod, before: BindRequest | None = None, *, labels: Mapping[str, str] = {}
) -> dict[str, Any]:
    """The order for the binder: it bears the pod's name and goes with it."""
    request = bind.task.request
    owner = owner_reference(pod, PODS, controller=False, block_owner_deletion=False)
    spec: dict[str, Any] = {
        "podName": pod.metadata.name,
        "selectedNode": bind.node,
        "receivedResourceType": resource_type(request),
    }
    if request.is_shared:
        spec["receivedGPU"] = {"count": request.gpu.devices, "portion": f"{_portion(bind):.2f}"}
        spec["selectedGPUGroups"] = list(bind.gpu_groups)
    elif request.gpu.whole:
        spec["receivedGPU"] = {"count": request.gpu.whole, "portion": "1.00"}
    if bind.zones:
        spec["predictedNUMAZones"] = [{"zone": one.zone, "amount": one.amount} for one in written_zones(bind.zones)]
    metadata: dict[str, Any] = {
        "name": pod.metadata.name,
        "namespace": pod.metadata.namespace,
        "labels": {_SELECTED_NODE: bind.node, **labels},
        "ownerReferences": [owner],
    }
    if before is not None and (annotations := carried_failures(before)):
        metadata["annotations"] = annotations
    return {
        "apiVersion": BIND_REQUESTS.api_version,
        "kind": BIND_REQUESTS.kind,
        "metadata": metadata,
        "spec": spec,
    }


def resource_type(request: Request) -> str:
    """What kind of GPU a pod gets, in the binder's words."""
    if request.is_shared:
        return "Fraction"
    return "MigInstance" if request.gpu.mig else "Regular"


def moment(seconds: float) -> str:
    """A moment as annotations have it."""
    return format_time(datetime.fromtimestamp(seconds, UTC))


def _portion(bind: Bind) -> float:
    devices = bind.task.request.gpu.devices
    return bind.task.accepted.gpu / devices if devices else 0.0
