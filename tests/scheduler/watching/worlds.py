"""A cluster as plain objects, told to a mirror change by change; and all that a mirror knows, as values to compare."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from typing import Any

import msgspec

from shoal.api import kai_names as names
from shoal.api.core.nodes import Node
from shoal.api.core.pods import Pod
from shoal.api.meta.time import format_time
from shoal.api.scheduling_run_ai import BindRequest, PodGroup, Queue
from shoal.scheduler.model.jobs import Job, PodSet, SubGroup
from shoal.scheduler.model.tasks import Constraints, Request, Task
from shoal.scheduler.watching.groups import Dialect, GangKey, Seat, gang_of
from shoal.scheduler.watching.mirror import Mirror, MirrorSettings
from shoal.scheduler.watching.needs import ObjectKey
from shoal.scheduler.watching.reading import job_of, queue_of

MOMENT = 1_700_000_000.0
"""When everything was made."""
BOTH = frozenset({names.SCHEDULER, "default-scheduler"})
SETTINGS = MirrorSettings(scheduler_names=BOTH, grouped=frozenset({names.SCHEDULER}))


def stamp(after: float = 0.0) -> str:
    """A moment so many seconds after everything was made."""
    return format_time(datetime.fromtimestamp(MOMENT + after, UTC))


def a_pod(
    name: str,
    *,
    uid: str = "",
    scheduler: str = names.SCHEDULER,
    group: str = "",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    asks: Mapping[str, str] | None = None,
    port: int = 0,
    phase: str = "Pending",
    node: str = "",
    deleted: float | None = None,
    started: float | None = None,
    namespace: str = "default",
    **spec: Any,
) -> Pod:
    """A pod in few words."""
    marks = {**(annotations or {}), **({names.POD_GROUP: group} if group else {})}
    metadata: dict[str, Any] = {
        "name": name,
        "namespace": namespace,
        "uid": uid or f"uid-{name}",
        "labels": dict(labels or {}),
        "annotations": marks,
        "creationTimestamp": stamp(),
    }
    if deleted is not None:
        metadata["deletionTimestamp"] = stamp(deleted)
    container: dict[str, Any] = {"name": "main", "resources": {"requests": dict(asks or {"cpu": "1"})}}
    if port:
        container["ports"] = [{"containerPort": port, "hostPort": port}]
    body = {
        "metadata": metadata,
        "spec": {"schedulerName": scheduler, "containers": [container], "nodeName": node, **spec},
        "status": {"phase": phase, **({"startTime": stamp(started)} if started is not None else {})},
    }
    return msgspec.convert(body, Pod)


def a_node(name: str, *, gpus: int = 4, ready: bool = True, **amounts: str) -> Node:
    """A node in few words."""
    allocatable = {"cpu": "8", "memory": "64Gi", "pods": "20", names.NVIDIA_GPU: str(gpus), **amounts}
    body = {
        "metadata": {"name": name, "labels": {names.NODE_GPU_MEMORY: "1000"}},
        "status": {
            "allocatable": allocatable,
            "conditions": [{"type": "Ready", "status": "True" if ready else "False"}],
        },
    }
    return msgspec.convert(body, Node)


def a_group(name: str, *, queue: str = "team", members: int = 1, sets: tuple[str, ...] = ()) -> PodGroup:
    """A PodGroup of KAI's."""
    spec: dict[str, Any] = {"queue": queue}
    if sets:
        spec["subGroups"] = [{"name": one, "minMember": members} for one in sets]
    else:
        spec["minMember"] = members
    return msgspec.convert(
        {"metadata": {"name": name, "namespace": "default", "uid": f"uid-{name}"}, "spec": spec}, PodGroup
    )


def a_queue(name: str, *, parent: str = "") -> Queue:
    """A queue without limits."""
    part = {"quota": 4, "limit": -1, "overQuotaWeight": 1}
    spec = {"parentQueue": parent, "resources": {"cpu": part, "memory": part, "gpu": part}}
    return msgspec.convert({"metadata": {"name": name}, "spec": spec}, Queue)


def a_request(
    pod: str, node: str, *, phase: str = "Pending", owner: str = "", uid: str = "", groups: tuple[str, ...] = ()
) -> BindRequest:
    """An order for the binder."""
    owners = [{"apiVersion": "v1", "kind": "Pod", "name": pod, "uid": owner}] if owner else []
    body = {
        "metadata": {"name": pod, "namespace": "default", "uid": uid or f"uid-of-{pod}", "ownerReferences": owners},
        "spec": {"podName": pod, "selectedNode": node, "selectedGPUGroups": list(groups)},
        "status": {"phase": phase},
    }
    return msgspec.convert(body, BindRequest)


def a_job(name: str, *sets: str, members: int = 1, queue: str = "team") -> Callable[[], Job]:
    """A gang of another dialect."""

    def made() -> Job:
        return Job(
            uid=f"uid-{name}",
            name=f"other/{name}",
            namespace="default",
            queue=queue,
            priority=50,
            is_preemptible=True,
            created=0.0,
            root=SubGroup(name="", pod_sets=[PodSet(name=one, min_member=members) for one in sets or ("default",)]),
        )

    return made


def volcano(name: str) -> GangKey:
    """A gang of Volcano's."""
    return GangKey(Dialect.VOLCANO, "default", name)


@dataclass
class World:
    """What there is."""

    pods: dict[str, Pod] = field(default_factory=dict)
    nodes: dict[str, Node] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    groups: dict[str, PodGroup] = field(default_factory=dict)
    requests: dict[str, BindRequest] = field(default_factory=dict)
    seats: dict[str, Seat] = field(default_factory=dict)
    others: dict[str, tuple[str, ...]] = field(default_factory=dict)
    """Gangs of another dialect, and their pod sets."""
    objects: dict[ObjectKey, Any] = field(default_factory=dict)
    """What pods need."""

    def tell(self, mirror: Mirror, kind: str, name: Any) -> None:
        """Notes one thing as it is, or that it is gone."""
        noted, place = mirror.noted, ("default", name)
        if kind == "objects":
            noted.objects[name] = self.objects.get(name)
        elif kind == "pods":
            noted.pods[place] = self.pods.get(name)
        elif kind == "nodes":
            noted.nodes[name] = self.nodes.get(name)
        elif kind == "queues":
            noted.queues[name] = queue_of(self.queues[name]) if name in self.queues else None
        elif kind == "requests":
            noted.requests[place] = self.requests.get(name)
        elif kind == "seats":
            noted.seats[volcano(name)] = self.seats.get(name)
            for pod in self.pods.values():
                if gang_of(pod) == volcano(name):
                    noted.pods["default", pod.metadata.name] = pod
        elif kind == "others":
            noted.gangs[volcano(name)] = a_job(name, *self.others[name]) if name in self.others else None
        else:
            key = GangKey(Dialect.KAI, "default", name)
            group = self.groups.get(name)
            noted.gangs[key] = None if group is None else partial(job_of, group, lambda _: 50, {})

    def mirror(self, now: float) -> Mirror:
        """A mirror that sees only how it is in the end."""
        made = Mirror(SETTINGS)
        for kind in ("pods", "nodes", "queues", "groups", "requests", "seats", "others", "objects"):
            for name in getattr(self, kind):
                self.tell(made, kind, name)
        made.catch_up(now)
        return made


def model(mirror: Mirror) -> dict[str, Any]:
    """Everything that a cycle would see."""
    nodes = mirror.cluster.nodes
    places = mirror.resources.known()

    def amounts(row: Any) -> dict[str, float]:
        return {name: float(row[place]) for name, place in places.items() if place < len(row) and row[place]}

    return {
        "nodes": {
            node.name: {
                "allocatable": amounts(nodes.allocatable[row]),
                "idle": amounts(nodes.idle[row]),
                "releasing": amounts(nodes.releasing[row]),
                "free GPUs": round(float(nodes.free_gpus()[row]), 6),
                "shared": {
                    name: (one.allocated, one.releasing, one.pipelined) for name, one in sorted(node.shared.items())
                },
                "holds": sorted((hold.task.name, hold.status.name) for hold in node.holds.values()),
                "ready": bool(nodes.is_ready[row]),
            }
            for row, node in enumerate(nodes.nodes)
        },
        "jobs": {job.key: _job(job) for job in mirror.cluster.jobs.values()},
        "foreign": mirror.cluster.foreign,
        "queues": {
            share.name: (share.allocated, share.allocated_non_preemptible, share.asked) for share in mirror.shares
        },
        "strays": {key: sorted(found) for key, found in mirror._strays.items()},
        "tasks": {key: _task(task) for key, task in sorted(mirror._tasks.items())},
        "port 80": _has_port(mirror),
    }


def _job(job: Job) -> dict[str, Any]:
    counters = ("pending", "gated", "allocated", "active_allocated", "active_used", "alive", "pipelined", "min_member")
    return {
        "queue": job.queue,
        "succeeded": job.succeeded,
        "tasks": sorted(task.name for task in job.tasks.values()),
        "sets": {
            name: {
                "tasks": sorted(task.name for task in one.tasks.values()),
                **{counter: getattr(one, counter) for counter in counters},
            }
            for name, one in job.pod_sets.items()
        },
    }


def _task(task: Task) -> dict[str, Any]:
    where = task.constraints
    return {
        "uid": task.uid,
        "job": task.job.name,
        "set": task.pod_set.name,
        "status": task.status.name,
        "node": task.node,
        "devices": task.gpu_groups,
        "accepted": task.accepted,
        "started": task.started,
        "has a hold": task.hold is not None,
        "asks": (tuple(task.request.vector[:4].tolist()), task.request.gpu, task.request.claimed_gpus),
        "goes": (where.tolerations, where.ports, where.missing, tuple(where.node_selector.items())),
        "reaches": where.allowed_nodes,
    }


def _has_port(mirror: Mirror) -> list[str]:
    probe = Task(
        uid="probe",
        name="probe",
        namespace="default",
        request=Request(vector=mirror.resources.vector({})),
        constraints=Constraints(ports=frozenset({("TCP", 80, "")})),
    )
    mask = mirror.pods.mask(probe)
    return [node.name for row, node in enumerate(mirror.cluster.nodes.nodes) if mask is None or mask[row]]
