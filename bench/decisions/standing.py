"""Whole cycles on a large cluster that stands: what changed is taken in, decided upon, published and told.

The scheduler's own parts, from the objects that its watches would note: nodes, queues, PodGroups, pods that run and the
BindRequests that they were bound by. Only the writing is left out.
"""

from __future__ import annotations

import asyncio
import gc
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import msgspec

from bench.decisions.cycles import DecidedOtherwise, Took
from shoal.api import kai_names as names
from shoal.api.core.nodes import Node
from shoal.api.core.pods import Pod
from shoal.api.scheduling_run_ai import BindRequest, PodGroup, Queue
from shoal.kube import Connection, HttpTransport, Manager, configure_logs
from shoal.scheduler.explaining import short
from shoal.scheduler.session.session import Decision
from shoal.scheduler.session.settings import Settings
from shoal.scheduler.watching.carrying import Carrier
from shoal.scheduler.watching.cycles import Cycles, CycleSettings
from shoal.scheduler.watching.groups import Dialect, GangKey
from shoal.scheduler.watching.mirror import Mirror, MirrorSettings
from shoal.scheduler.watching.publishing import Publishing
from shoal.scheduler.watching.reading import job_of, queue_of
from shoal.scheduler.watching.telling import Telling

PODS_OF_NODE, TASKS = 35, 5
_WITH_A_GPU = 4
"""Of a node's pods; the other half of its GPUs is free."""
_QUEUES, _DEPARTMENTS = 100, 25
_SINCE = "2026-03-01T12:00:00Z"
_PRIORITY = 50
Say = Callable[[str], None]


def idle(nodes: int) -> str:
    """What the cycle is called in which there is nothing to do."""
    return f"idle: {nodes:,} nodes, {nodes * PODS_OF_NODE:,} pods"


IN_VAIN, PLACED = "… and 100 wait in vain", "… and six are placed"


def measure(nodes: int, rounds: int, say: Say) -> dict[str, list[Took]]:
    """So many cycles of each kind. Before each a pod has changed, in nothing that matters here."""
    configure_logs(level="warning")  # a cycle that decides something says so
    return asyncio.run(_measure(nodes, rounds, say))


async def _measure(nodes: int, rounds: int, say: Say) -> dict[str, list[Took]]:
    standing = _Standing(nodes)
    await standing.cycles.once()  # all is new to the first one, which nobody waits for
    found = {}
    gc.collect()
    gc.freeze()
    try:
        for name, gangs, tasks, gpus, binds in (
            (idle(nodes), 0, 1, 0, 0),
            (IN_VAIN, 100, 1, 9, 0),
            (PLACED, 1, 6, 4, 6),
        ):
            say(name)
            standing.add_waiting(gangs, tasks, gpus)
            await standing.cycles.once()
            found[name] = [await standing.cycle(binds) for _ in range(rounds)]
            standing.remove_waiting()
    finally:
        gc.unfreeze()
    return found


class _Unwritten(Carrier):
    """Carries nothing out, so that the next cycle finds everything as it was."""

    async def carry_out(self, decisions: Sequence[Decision], now: float) -> None:
        return

    async def mark(self, namespace: str, name: str, annotations: Mapping[str, str | None]) -> None:
        return


class _Standing:
    """The cluster, and the scheduler on it."""

    def __init__(self, nodes: int) -> None:
        manager = Manager(HttpTransport(Connection(server="http://127.0.0.1:9")), name="bench")  # is never asked
        self._mirror = Mirror(MirrorSettings())
        self.cycles = Cycles(self._mirror, _Unwritten(manager, self._mirror), Settings(), CycleSettings())
        self.cycles.on_outcome += (
            Telling(manager, self._mirror).collect,
            Publishing(self._mirror, lambda view: None, short).after,
        )
        self._waiting: list[tuple[str, int]] = []
        self._running: list[Pod] = []
        self._turn = 0
        self._note_queues(nodes)
        for place in range(nodes):
            self._mirror.noted.nodes[f"node-{place}"] = _node(f"node-{place}")
        for job in range(nodes * PODS_OF_NODE // TASKS):
            self._note_gang(f"job-{job}", TASKS, queue=job % _QUEUES)
            for task in range(TASKS):
                number = job * TASKS + task
                pod = _pod(f"job-{job}", task, gpus=int(number // nodes < _WITH_A_GPU), node=f"node-{number % nodes}")
                self._running.append(pod)
                self._note(pod)
                self._mirror.noted.requests["bench", pod.metadata.name] = _request(pod)

    def add_waiting(self, gangs: int, tasks: int, gpus: int) -> None:
        """Gangs that wait."""
        self._waiting = [(f"waits-{gpus}-{place}", tasks) for place in range(gangs)]
        for place, (name, count) in enumerate(self._waiting):
            self._note_gang(name, count, queue=place % _QUEUES)
            for task in range(count):
                self._note(_pod(name, task, gpus=gpus))

    def remove_waiting(self) -> None:
        """They are deleted again."""
        for name, tasks in self._waiting:
            self._mirror.noted.gangs[GangKey(Dialect.KAI, "bench", name)] = None
            for task in range(tasks):
                self._mirror.noted.pods["bench", f"{name}-{task}"] = None

    async def cycle(self, binds: int) -> Took:
        """One cycle, from the change on."""
        pod = self._running[self._turn % len(self._running)]
        self._turn += 1
        self._note(msgspec.structs.replace(pod, status=msgspec.structs.replace(pod.status, message="as before")))
        cpu, start = time.process_time(), time.perf_counter()
        outcome = await self.cycles.once()
        took = Took(time.perf_counter() - start, 0.0, 0, time.process_time() - cpu)
        calls = outcome.session.calls
        if (calls.binds, calls.evictions, calls.pipelines) != (binds, 0, 0):
            raise DecidedOtherwise(f"a standing cluster: {calls}, and not {binds} binds alone")
        return took

    def _note(self, pod: Pod) -> None:
        self._mirror.noted.pods[pod.metadata.namespace, pod.metadata.name] = pod

    def _note_queues(self, nodes: int) -> None:
        every = [(f"dept-{place}", "", _DEPARTMENTS) for place in range(_DEPARTMENTS)]
        every += [(f"queue-{place}", f"dept-{place % _DEPARTMENTS}", _QUEUES) for place in range(_QUEUES)]
        for name, parent, sharers in every:
            free = {"quota": -1, "limit": -1, "overQuotaWeight": 1}
            resources = {"cpu": free, "memory": free, "gpu": {**free, "quota": nodes * 8 / sharers}}
            spec = {"parentQueue": parent, "resources": resources}
            queue = msgspec.convert({"metadata": {"name": name}, "spec": spec}, Queue)
            self._mirror.noted.queues[name] = queue_of(queue)

    def _note_gang(self, name: str, members: int, *, queue: int) -> None:
        metadata = {"name": name, "namespace": "bench", "uid": name, "creationTimestamp": _SINCE}
        group = msgspec.convert(
            {"metadata": metadata, "spec": {"queue": f"queue-{queue}", "minMember": members}}, PodGroup
        )
        self._mirror.noted.gangs[GangKey(Dialect.KAI, "bench", name)] = partial(job_of, group, lambda _: _PRIORITY, {})


def _node(name: str) -> Node:
    allocatable = {"cpu": "128", "memory": "2000Gi", "pods": "110", names.NVIDIA_GPU: "8"}
    status = {"allocatable": allocatable, "conditions": [{"type": "Ready", "status": "True"}]}
    return msgspec.convert(
        {"metadata": {"name": name, "labels": {names.NODE_GPU_MEMORY: "80000"}}, "status": status}, Node
    )


def _pod(gang: str, task: int, *, gpus: int, node: str = "") -> Pod:
    name = f"{gang}-{task}"
    devices = {names.NVIDIA_GPU: str(gpus)} if gpus else {}
    metadata = {
        "name": name,
        "namespace": "bench",
        "uid": name,
        "annotations": {names.POD_GROUP: gang},
        "creationTimestamp": _SINCE,
    }
    resources = {"requests": {"cpu": "1", "memory": "1Gi", **devices}, "limits": devices}
    body: dict[str, Any] = {
        "metadata": metadata,
        "spec": {
            "schedulerName": names.SCHEDULER,
            "nodeName": node,
            "containers": [{"name": "main", "resources": resources}],
        },
        "status": {"phase": "Running", "startTime": _SINCE} if node else {"phase": "Pending"},
    }
    return msgspec.convert(body, Pod)


def _request(pod: Pod) -> BindRequest:
    name = pod.metadata.name
    body = {
        "metadata": {"name": name, "namespace": pod.metadata.namespace, "uid": f"request-{name}"},
        "spec": {"podName": name, "selectedNode": pod.spec.node_name},
        "status": {"phase": "Succeeded"},
    }
    return msgspec.convert(body, BindRequest)
