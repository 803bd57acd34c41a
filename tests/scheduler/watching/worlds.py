"""A cluster as plain objects, told to a mirror change by change; and all that a mirror knows, as values to compare."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
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
from shoal.scheduler.model.tasks import Constraints, Task
from shoal.scheduler.watching.groups import Dialect, GangKey, Seat, gang_of
from shoal.scheduler.watching.mirror import Mirror, MirrorSettings
from shoal.scheduler.watching.needs import ObjectKey
from shoal.scheduler.watching.reading import job_of, queue_of
from tests.scheduler.builders import a_kai_pod, a_model_job, a_model_task, a_pod_group
from tests.support.builders.nodes import a_node

MOMENT = 1_700_000_000.0
"""When everything was made."""
BOTH = frozenset({names.SCHEDULER, "default-scheduler"})
SETTINGS = MirrorSettings(scheduler_names=BOTH, grouped=frozenset({names.SCHEDULER}))


def stamp(after: float = 0.0) -> str:
    """A moment so many seconds after everything was made, as it is written."""
    return format_time(_moment(after))


def _moment(after: float = 0.0) -> datetime:
    return datetime.fromtimestamp(MOMENT + after, UTC)


def a_mirrored_pod(
    name: str,
    *,
    containers: Iterable[str | Mapping[str, Any]] | None = None,
    requests: Mapping[str, str] | None = None,
    deleted: float | None = None,
    started: float | None = None,
    status: Mapping[str, Any] | None = None,
    **given: Any,
) -> Pod:
    """A pending pod for a mirror; it requests one core where no containers are given."""
    return a_kai_pod(
        name,
        created=_moment(),
        deleted=None if deleted is None else _moment(deleted),
        containers=["main"] if containers is None else containers,
        requests=requests or ({"cpu": "1"} if containers is None else {}),
        status={**(status or {}), **({} if started is None else {"startTime": stamp(started)})},
        **{"phase": "Pending", **given},
    )


def a_gpu_node(name: str, *, gpus: int = 4, ready: bool = True, **amounts: str) -> Node:
    """A node with GPUs of a known size, and room for twenty pods."""
    room = {"cpu": "8", "memory": "64Gi", "pods": "20", names.NVIDIA_GPU: str(gpus), **amounts}
    return a_node(name, labels={names.NODE_GPU_MEMORY: "1000"}, allocatable=room, ready=ready)


def a_group(name: str, *, queue: str = "team", members: int = 1, sets: tuple[str, ...] = ()) -> PodGroup:
    """A PodGroup of KAI's: of so many pods, or of parts with so many each."""
    if not sets:
        return a_pod_group(name, queue, minMember=members)
    return a_pod_group(name, queue, minMember=None, subGroups=[{"name": one, "minMember": members} for one in sets])


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
        root = SubGroup(name="", pod_sets=[PodSet(name=one, min_member=members) for one in sets or ("default",)])
        return a_model_job(f"other/{name}", queue, uid=f"uid-{name}", root=root)

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
    probe = a_model_task("probe", constraints=Constraints(ports=frozenset({("TCP", 80, "")})))
    mask = mirror.pods.mask(probe)
    return [node.name for row, node in enumerate(mirror.cluster.nodes.nodes) if mask is None or mask[row]]
