"""Jobs and small clusters in a few words, and one cycle on them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager

from shoal.scheduler.actions import cycle
from shoal.scheduler.gpu_requests import NOTHING, GpuRequest
from shoal.scheduler.model.cluster import Cluster, Topology
from shoal.scheduler.model.jobs import Job, SubGroup, TopologyWish, single_pod_set
from shoal.scheduler.model.nodes import Hold, Node, Nodes
from shoal.scheduler.model.queues import Queue
from shoal.scheduler.model.resources import ResourceNames
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import ANYWHERE, Constraints, Request
from shoal.scheduler.session.session import Session
from shoal.scheduler.session.settings import ACTIONS, Settings
from tests.scheduler.builders import a_model_job, a_model_task

NOW = 1_800_000_000.0
NAMES = ResourceNames()
_KINDS: dict[tuple[float, float, GpuRequest], Request] = {}


def a_request(gpus: float = 1, *, cpu: float = 1, gpu: GpuRequest = NOTHING) -> Request:
    asked = gpu if gpu is not NOTHING or not gpus else GpuRequest(whole=int(gpus))
    amounts = {"cpu": cpu * 1000, "pods": 1.0}
    if asked.whole:
        amounts["gpu"] = float(asked.whole)
    key = cpu, float(asked.whole), asked
    return _KINDS.setdefault(key, Request(vector=NAMES.vector(amounts), gpu=asked))


def a_job(
    name: str,
    queue: str = "a",
    *,
    pods: int = 1,
    needs: int | None = None,
    request: Request | None = None,
    on: str | Sequence[str] = (),
    priority: int = 50,
    preemptible: bool = True,
    age: float = 100.0,
    gated: int = 0,
    constraints: Constraints = ANYWHERE,
    wish: TopologyWish | None = None,
    root: SubGroup | None = None,
    subgroups: Sequence[str] = (),
    started: float | None = None,
    delay: float = 0.0,
) -> Job:
    """``on``: the nodes of its first pods, which run there."""
    places = [on] * pods if isinstance(on, str) else list(on)
    job = a_model_job(
        name,
        queue,
        namespace="team",
        priority=priority,
        is_preemptible=preemptible,
        created=NOW - age,
        root=root or single_pod_set(pods if needs is None else needs, wish),
        last_start=NOW - started if started is not None else None,
        preemption_delay=delay,
    )
    for place in range(pods):
        node = places[place] if place < len(places) else ""
        waiting = Status.GATED if pods - place <= gated else Status.PENDING
        task = a_model_task(
            f"{name}-{place}",
            request or a_request(),
            namespace="team",
            created=NOW - age,
            constraints=constraints,
            subgroup=subgroups[place] if subgroups else "",
            status=Status.RUNNING if node else waiting,
            node=node,
        )
        job.add(task)
    return job


def a_cluster(
    nodes: Iterable[Node], queues: Iterable[Queue], jobs: Iterable[Job], topologies: Iterable[Topology] = ()
) -> Cluster:
    table = Nodes(nodes, NAMES)
    known = list(jobs)
    for job in known:
        for task in job.tasks.values():
            if task.node:
                task.hold = Hold(task, table.index[task.node], task.status, task.gpu_groups)
                table.add(task.hold)
                task.accepted = task.request.amounts_on(table.nodes[task.hold.node].gpu_memory)
    return Cluster(
        nodes=table,
        jobs={job.key: job for job in known},
        queues={queue.name: queue for queue in queues},
        topologies={one.name: one for one in topologies},
    )


@contextmanager
def after_a_cycle(
    cluster: Cluster, settings: Settings = Settings(), actions: Sequence[str] = ACTIONS
) -> Iterator[Session]:
    """The session of a cycle that has decided everything, and is not closed yet."""
    session = Session(cluster, settings, now=NOW)
    cycle.run(session, actions)
    try:
        yield session
    finally:
        session.close()
