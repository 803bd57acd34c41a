"""A small cluster that lives on from cycle to cycle: what is decided is done at once; jobs end when a test says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.scheduler.actions import cycle
from shoal.scheduler.gpu_requests import NOTHING, GpuRequest
from shoal.scheduler.model.amounts import WITHOUT_LIMIT
from shoal.scheduler.model.cluster import Cluster
from shoal.scheduler.model.jobs import Job, SubGroup, single_pod_set
from shoal.scheduler.model.nodes import Hold, Nodes
from shoal.scheduler.model.queues import Queue
from shoal.scheduler.model.resources import ResourceNames
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import Constraints, Request, Task
from shoal.scheduler.plugins import NO_PLUGINS, Plugins
from shoal.scheduler.session.session import Bind, Session
from shoal.scheduler.session.settings import Settings
from tests.scheduler.builders import a_model_job, a_model_node, a_model_queue, a_model_task

_ANYWHERE = Constraints()


class World:
    """Nodes by their numbers of GPUs, queues, jobs and the time."""

    def __init__(
        self,
        nodes: Mapping[str, int],
        *,
        labels: Mapping[str, Mapping[str, str]] | None = None,
        queues: Sequence[Queue] = (a_model_queue("q", quota=WITHOUT_LIMIT),),
        **more: Any,
    ) -> None:
        self._names = ResourceNames()
        made = [
            a_model_node(
                name, gpus, cpu=64_000, memory=1e12, pods=100, labels=(labels or {}).get(name, {}), gpu_memory=1000
            )
            for name, gpus in nodes.items()
        ]
        self.now = 1000.0
        self.cluster = Cluster(nodes=Nodes(made, self._names), queues={queue.name: queue for queue in queues}, **more)
        self._requests: dict[tuple[int, float], Request] = {}
        self._count = 0

    def job(
        self,
        name: str,
        *,
        pods: int = 1,
        gpus: int = 1,
        portion: float = 0.0,
        on: str = "",
        least: int | None = None,
        root: SubGroup | None = None,
        runs_for: float | None = None,
        labels: Mapping[str, str] | None = None,
        ranks: Sequence[tuple[int, int, int]] = (),
        **more: Any,
    ) -> Job:
        """A job of pods that are alike; ``on`` a node, all of them run there already."""
        self._count += 1
        counted = {"uid": f"{self._count:06d}", "created": float(self._count)}
        job = a_model_job(name, root=root or single_pod_set(pods if least is None else least), **{**counted, **more})
        for index in range(pods):
            task = a_model_task(
                f"{name}-{index}",
                self._request(gpus, portion),
                uid=f"{job.uid}-{index:03d}",
                created=float(index),
                constraints=_ANYWHERE,
                labels=labels or {},
                rank=ranks[index] if ranks else (0, 0, 0),
                longest_run=runs_for,
            )
            job.add(task)
            if on:
                self.start(task, on)
        self.cluster.jobs[job.key] = job
        return job

    def end(self, job: Job) -> None:
        """All of a job's pods are gone."""
        for task in job.tasks.values():
            if task.hold is not None:
                self.cluster.nodes.remove(task.hold)
        del self.cluster.jobs[job.key]

    def decide(self, settings: Settings | None = None, *actions: str, plugins: Plugins = NO_PLUGINS) -> Session:
        """One cycle's session, still open."""
        session = Session(self.cluster, settings or Settings(), now=self.now, plugins=plugins)
        cycle.run(session, actions or ("allocate",))
        return session

    def placed(self, settings: Settings | None = None, *actions: str, plugins: Plugins = NO_PLUGINS) -> dict[str, str]:
        """The nodes that one cycle would give, by task; nothing of it is done."""
        session = self.decide(settings, *actions, plugins=plugins)
        session.close()
        return places(session)

    def cycle(self, settings: Settings | None = None, *actions: str, plugins: Plugins = NO_PLUGINS) -> Session:
        """One cycle: whoever got a place runs there."""
        session = self.decide(settings, *actions, plugins=plugins)
        session.close()
        for decision in session.decisions:
            if isinstance(decision, Bind):
                self.start(decision.task, decision.node, decision.gpu_groups)
        return session

    def start(self, task: Task, node: str, groups: tuple[str, ...] = ()) -> None:
        """A task runs on a node from now on, and there on these shared devices."""
        nodes = self.cluster.nodes
        row = nodes.index[node]
        task.node, task.gpu_groups, task.started = node, groups, self.now
        task.hold = Hold(task, row, Status.RUNNING, groups)
        nodes.add(task.hold)
        task.accepted = task.request.amounts_on(nodes.nodes[row].gpu_memory)
        task.become(Status.RUNNING)

    def _request(self, gpus: int, portion: float) -> Request:
        if (gpus, portion) not in self._requests:
            asked = GpuRequest(portion=portion, devices=1) if portion else GpuRequest(whole=gpus) if gpus else NOTHING
            amounts = {"cpu": 100.0, "memory": 1e6, "pods": 1.0, "gpu": 0.0 if portion else float(gpus)}
            self._requests[gpus, portion] = Request(vector=self._names.vector(amounts), gpu=asked)
        return self._requests[gpus, portion]


def places(session: Session) -> dict[str, str]:
    """The nodes that were given, by task."""
    return {one.task.name: one.node for one in session.decisions if isinstance(one, Bind)}
