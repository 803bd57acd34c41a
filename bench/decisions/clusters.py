"""Clusters as plain values: nodes of eight GPUs, queues below departments, jobs that run or wait."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shoal.scheduler.gpu_requests import GpuRequest
from shoal.scheduler.model.amounts import UNLIMITED, Amounts
from shoal.scheduler.model.cluster import Cluster
from shoal.scheduler.model.jobs import Job, single_pod_set
from shoal.scheduler.model.nodes import Hold, Node, Nodes
from shoal.scheduler.model.queues import Queue
from shoal.scheduler.model.resources import ResourceNames
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import Request, Task

GPUS = 8
GPU_MEMORY = 80_000
NOW = 1_000_000.0
_RESOURCES = {"cpu": 128_000.0, "memory": 2e12, "gpu": float(GPUS), "pods": 110.0}


@dataclass(frozen=True, slots=True, kw_only=True)
class Wish:
    """A job to make."""

    queue: str
    tasks: int = 1
    gpus: int = 1
    rows: Sequence[int] = ()
    """The nodes that its tasks run on; none, and they wait."""


def a_queue(name: str, gpus: float, *, parent: str = "", weight: float = 1.0, age: float = 0.0) -> Queue:
    """A queue that is entitled to so many GPUs, and to any amount of CPU and memory."""
    return Queue(
        name=name,
        parent=parent,
        quota=Amounts(UNLIMITED, UNLIMITED, gpus),
        weight=Amounts(1.0, 1.0, weight),
        created=age,
    )


def departments(queues: int, gpus: int) -> list[Queue]:
    """Queues that share all GPUs evenly, four of them below each department."""
    count = max(1, -(-queues // 4))
    made = [a_queue(f"dept-{place}", gpus / count, age=place) for place in range(count)]
    made += [
        a_queue(f"queue-{place}", gpus / queues, parent=f"dept-{place % count}", age=place) for place in range(queues)
    ]
    return made


def a_cluster(nodes: int, queues: Iterable[Queue], wishes: Iterable[Wish]) -> Cluster:
    """Makes the model. Tasks that ask for the same hold the same request, as the scheduler's own reading has it."""
    names = ResourceNames()
    table = Nodes(
        (
            Node(
                name=f"node-{row:05d}",
                allocatable=names.vector(_RESOURCES),
                gpu_memory=GPU_MEMORY,
                is_gpu_memory_known=True,
                gpu_count=GPUS,
            )
            for row in range(nodes)
        ),
        names,
    )
    requests: dict[int, Request] = {}
    jobs = {}
    for place, wish in enumerate(wishes):
        if wish.gpus not in requests:
            vector = names.vector({"cpu": 1_000.0, "memory": 1e9, "gpu": float(wish.gpus), "pods": 1.0})
            requests[wish.gpus] = Request(vector=vector, gpu=GpuRequest(whole=wish.gpus))
        job = _job(place, wish)
        for task in _tasks(job, wish, requests[wish.gpus]):
            if wish.rows:
                _settle(task, table, wish.rows[len(job.tasks)])
            job.add(task)
        jobs[job.key] = job
    return Cluster(nodes=table, jobs=jobs, queues={queue.name: queue for queue in queues})


def _job(place: int, wish: Wish) -> Job:
    return Job(
        uid=f"{place:07d}",
        name=f"job-{place}",
        namespace="bench",
        queue=wish.queue,
        priority=50,
        is_preemptible=True,
        created=place * 1e-3,
        root=single_pod_set(wish.tasks),
    )


def _tasks(job: Job, wish: Wish, request: Request) -> Iterator[Task]:
    for place in range(wish.tasks):
        yield Task(
            uid=f"{job.uid}-{place:05d}",
            name=f"{job.name}-{place}",
            namespace=job.namespace,
            request=request,
            created=place * 1e-3,
        )


def _settle(task: Task, nodes: Nodes, row: int) -> None:
    task.status, task.node = Status.RUNNING, nodes.nodes[row].name
    task.hold = Hold(task, row, Status.RUNNING)
    task.accepted = task.request.amounts_on(GPU_MEMORY)
    nodes.add(task.hold)
