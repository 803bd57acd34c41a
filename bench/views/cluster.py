"""Views of a large cluster that lives: jobs come and go, those that wait move up, and nodes follow."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from shoal.api.visualizer import (
    UNLIMITED,
    Amounts,
    Bounds,
    ClusterView,
    JobView,
    NodeView,
    QueueView,
    SharedGpu,
    Sharer,
    TaskStatus,
    TaskView,
    Weights,
    WholeGpus,
)

NOON = datetime(2026, 3, 1, 12, tzinfo=UTC)
GIB = 1 << 30
PODS_OF_NODE = 35
TASKS = 5
NAMESPACES = 200
WAITING = 0.1
"""The part of the jobs that waits."""
_ALLOCATABLE = Amounts(milli_cpu=192_000, memory=2_048 * GIB, gpus=8)
_ASKED = Amounts(milli_cpu=4_000, memory=32 * GIB, gpus=1)
_WHY = "no node has 8 GPUs free: 3,812 node(s) have too few GPUs, 188 node(s) have too little memory"


class Cluster:
    """The last view, and how the next one comes to be."""

    def __init__(self, nodes: int, seed: int = 1) -> None:
        self._random = random.Random(seed)
        self._nodes = nodes
        jobs = nodes * PODS_OF_NODE // TASKS
        self.pods = jobs * TASKS
        self.view = ClusterView.of(
            cycle=1,
            at=NOON,
            nodes=[self._node(index) for index in range(nodes)],
            queues=[self._queue(index) for index in range(500)],
            jobs=[self._job(index, waits=index < jobs * WAITING) for index in range(jobs)],
        )
        self._jobs = [job for of in self.view.jobs.values() for job in of.values()]

    def chain(self, length: int) -> list[ClusterView]:
        """Views, each a cycle after the one before.

        A hundredth of the jobs and a twentieth of the nodes have changed, all jobs that wait have moved up, and
        every queue's figures are others.
        """
        views = [self.view]
        for _ in range(length - 1):
            self._next()
            views.append(self.view)
        return views

    def _next(self) -> None:
        cycle = self.view.cycle + 1
        changed: dict[str, JobView] = {}
        for of in self.view.jobs.values():
            for job in of.values():
                if job.position is not None:
                    changed[job.uid] = msgspec.structs.replace(job, position=job.position % 5_000 + 1)
        for job in self._random.sample(self._jobs, len(self._jobs) // 100):
            latest = self.view.jobs[job.namespace][job.uid]
            changed[job.uid] = msgspec.structs.replace(latest, tasks=tuple(map(self._moved, latest.tasks)))
        nodes = [self._node(index) for index in self._random.sample(range(self._nodes), self._nodes // 20)]
        self.view = self.view.followed_by(
            cycle=cycle,
            at=NOON + timedelta(seconds=cycle),
            nodes=nodes,
            queues=[self._queue(index) for index in range(500)],
            jobs=changed.values(),
        )

    def _moved(self, task: TaskView) -> TaskView:
        return msgspec.structs.replace(task, node=f"sim-h100-{self._random.randrange(self._nodes)}")

    def _node(self, index: int) -> NodeView:
        whole = tuple(
            WholeGpus(
                namespace=f"team-{number}",
                name=f"train-{index}-{number}-worker-0",
                uid=self._uid(),
                gpus=1,
                started=NOON + timedelta(seconds=self._random.randrange(100_000)),
            )
            for number in range(5)
        )
        shared = tuple(
            SharedGpu(
                group=self._uid(),
                sharers=tuple(
                    Sharer(
                        namespace="notebooks",
                        name=f"notebook-{index}-{device}-{number}",
                        uid=self._uid(),
                        portion=0.25,
                        started=NOON + timedelta(seconds=self._random.randrange(100_000)),
                    )
                    for number in range(3)
                ),
            )
            for device in range(2)
        )
        return NodeView(
            name=f"sim-h100-{index}",
            ready=True,
            allocatable=_ALLOCATABLE,
            used=Amounts(milli_cpu=self._random.randrange(150_000), memory=900 * GIB, gpus=6.5),
            pods=PODS_OF_NODE,
            pod_limit=110,
            gpu_count=8,
            gpu_model="NVIDIA-H100-80GB-HBM3",
            shared_gpus=shared,
            whole_gpus=whole,
        )

    def _queue(self, index: int) -> QueueView:
        """Ten roots with seven queues each below them, and the rest below those."""
        parent = "" if index < 10 else f"queue-{index % 10 if index < 80 else 10 + index % 70}"
        amounts = Amounts(milli_cpu=self._random.randrange(10**6), memory=9e12, gpus=self._random.randrange(100))
        return QueueView(
            name=f"queue-{index}",
            display_name=f"Queue {index}",
            parent=parent,
            quota=Bounds(milli_cpu=100_000, memory=1e12, gpus=32),
            limit=Bounds(milli_cpu=UNLIMITED, memory=UNLIMITED, gpus=UNLIMITED),
            over_quota_weight=Weights(milli_cpu=1, memory=1, gpus=1),
            fair_share=amounts,
            allocated=amounts,
            requested=amounts,
        )

    def _job(self, index: int, *, waits: bool) -> JobView:
        status = TaskStatus.PENDING if waits else TaskStatus.RUNNING
        return JobView(
            uid=self._uid(),
            name=f"train-{index}",
            namespace=f"team-{index % NAMESPACES}",
            queue=f"queue-{80 + index % 420}",
            created=NOON - timedelta(seconds=index),
            tasks=tuple(
                TaskView(
                    uid=self._uid(),
                    name=f"train-{index}-worker-{number}",
                    status=status,
                    node="" if waits else f"sim-h100-{(index + number) % self._nodes}",
                    requested=_ASKED,
                )
                for number in range(TASKS)
            ),
            waits=_WHY if waits else "",
            position=index + 1 if waits else None,
        )

    def _uid(self) -> str:
        return str(UUID(int=self._random.getrandbits(128)))
