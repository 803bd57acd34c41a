"""A job as it is shown, and in which of four states it is.

The pods of a job come last in its JSON, so that they can be encoded by themselves: a job that only moves up in its
queue is told anew without looking at a thousand pods that stay as they are.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final

import msgspec

from shoal.api.visualizer import Amounts, JobView, TaskStatus, TaskView
from shoal.visualizer.shapes.resources import resource_stats

ACTIVE: Final = frozenset(
    {
        TaskStatus.ALLOCATED,
        TaskStatus.PIPELINED,
        TaskStatus.BINDING,
        TaskStatus.BOUND,
        TaskStatus.RUNNING,
        TaskStatus.RELEASING,
        TaskStatus.STUCK_IN_RELEASING,
    }
)
"""A pod of these holds something of a node, or is about to."""
WAITING: Final = frozenset({TaskStatus.PENDING, TaskStatus.GATED})
NAMES: Final = {status: status.value for status in TaskStatus}

_AMOUNTS = 4096
_encode = msgspec.json.Encoder().encode


class Job(msgspec.Struct, frozen=True, kw_only=True, gc=False, rename="camel"):
    """A job without its pods."""

    uid: str
    name: str
    namespace: str
    queue: str
    status: str
    create_time: datetime
    priority: int
    preemptible: bool
    waiting_reason: str
    queue_position: int | None
    overall_position: int | None


class Task(msgspec.Struct, frozen=True, gc=False, rename="camel"):
    """A pod of a job."""

    name: str
    status: str
    node_name: str
    requested: msgspec.Raw
    gpu_groups: tuple[str, ...]


def job_status(job: JobView) -> str:
    """Running if a pod of it holds something, else Pending if one waits or none was made, else Completed or Failed."""
    tasks = job.tasks
    if not tasks:
        return "Pending"
    if tasks[0].status is TaskStatus.RUNNING:  # as nearly always
        return "Running"
    seen = {task.status for task in tasks}
    if not seen.isdisjoint(ACTIVE):
        return "Running"
    if not seen.isdisjoint(WAITING):
        return "Pending"
    return "Completed" if TaskStatus.SUCCEEDED in seen else "Failed"


def encoded_head(job: JobView) -> bytes:
    """A job's JSON up to its pods."""
    head = _encode(
        Job(
            uid=job.uid,
            name=job.name,
            namespace=job.namespace,
            queue=job.queue,
            status=job_status(job),
            create_time=_in_utc(job.created),
            priority=job.priority,
            preemptible=job.preemptible,
            waiting_reason=job.waits,
            queue_position=job.position,
            overall_position=job.overall,
        )
    )
    return head[:-1] + b',"tasks":'


class TaskEncoder:
    """Encodes the pods of a job, and the end of it; what pods ask for is often the same for thousands of them."""

    def __init__(self) -> None:
        self._asked: dict[int, tuple[Amounts, msgspec.Raw]] = {}
        """By identity: an amount that is kept here cannot be mistaken for another."""

    def encoded(self, tasks: tuple[TaskView, ...]) -> bytes:
        """The pods' JSON."""
        return _encode([self._shown(task) for task in tasks]) + b"}"

    def _shown(self, task: TaskView) -> Task:
        known = self._asked.get(id(task.requested)) or self._encoded(task.requested)
        return Task(task.name, NAMES[task.status], task.node, known[1], task.gpu_groups)

    def _encoded(self, requested: Amounts) -> tuple[Amounts, msgspec.Raw]:
        if len(self._asked) >= _AMOUNTS:
            self._asked.clear()
        known = (requested, msgspec.Raw(_encode(resource_stats(requested))))
        self._asked[id(requested)] = known
        return known


def _in_utc(at: datetime) -> datetime:
    """Whole seconds in UTC, as Kubernetes writes them; a time without a zone is taken for UTC."""
    if at.tzinfo is UTC and not at.microsecond:
        return at
    return (at.astimezone(UTC) if at.tzinfo is not None else at.replace(tzinfo=UTC)).replace(microsecond=0)
