"""Parts of views, in a few words each."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.api.visualizer import (
    Amounts,
    ClusterView,
    JobView,
    NodeView,
    QueueView,
    SharedGpu,
    Sharer,
    TaskStatus,
    TaskView,
    WholeGpus,
)

NOON = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
GIB = 1 << 30


def minutes_past_noon(minutes: float) -> datetime:
    return NOON + timedelta(minutes=minutes)


def a_node_view(name: str = "node-1", *, gpus: int = 0, **fields: Any) -> NodeView:
    """A ready node with sixteen cores of which one is in use, and devices that nobody is on."""
    given: dict[str, Any] = {
        "ready": True,
        "allocatable": Amounts(milli_cpu=16_000, memory=64 * GIB, gpus=gpus),
        "used": Amounts(milli_cpu=1_000, memory=4 * GIB),
        "gpu_count": gpus,
    }
    return NodeView(name=name, **{**given, **fields})


def shared(group: str, *pods: str, index: int | None = None, portion: float = 0.5, started: float = 0) -> SharedGpu:
    sharers = tuple(
        Sharer(namespace="a", name=pod, uid=f"uid-{pod}", portion=portion, started=minutes_past_noon(started))
        for pod in pods
    )
    return SharedGpu(group=group, sharers=sharers, index=index)


def alone(pod: str, gpus: int = 1, *, started: float | None = 0, namespace: str = "a") -> WholeGpus:
    at = None if started is None else minutes_past_noon(started)
    return WholeGpus(namespace=namespace, name=pod, uid=f"uid-{namespace}-{pod}", gpus=gpus, started=at)


def a_queue_view(name: str, parent: str = "", **fields: Any) -> QueueView:
    return QueueView(name=name, parent=parent, **fields)


def a_task_view(name: str, status: TaskStatus = TaskStatus.RUNNING, **fields: Any) -> TaskView:
    return TaskView(uid=f"uid-{name}", name=name, status=status, **fields)


def a_job_view(name: str, *tasks: TaskView, namespace: str = "team-a", **fields: Any) -> JobView:
    given: dict[str, Any] = {"uid": f"uid-{namespace}-{name}", "queue": "research", "created": NOON}
    return JobView(name=name, namespace=namespace, tasks=tasks, **{**given, **fields})


def a_view(cycle: int = 1, **parts: Any) -> ClusterView:
    return ClusterView.of(cycle=cycle, at=NOON + timedelta(seconds=cycle), **parts)
