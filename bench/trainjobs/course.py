"""The course of many TrainJobs: posted at once, their pods made, run for a second and ended, all of them Complete."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from bench.serving.contestants import rest
from bench.sets.calls import served, since
from bench.starting.clusters import Cluster
from bench.trainjobs.observer import Observer
from shoal.api.core import NAMESPACES, SERVICE_ACCOUNTS
from shoal.api.meta import Resource
from shoal.api.trainer import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS
from shoal.cluster.node.simulated.rules import RUN_TIME
from shoal.kube import AlreadyExists, Client

NAMESPACE = "bench"
NODES_OF_JOB = 2
_RUNTIME = "bench"
_WARM = "warm"
_CONNECTIONS = 16
_WRITES = frozenset({"POST", "CREATE", "PUT", "UPDATE", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})
_KINDS = frozenset(
    {
        "trainjobs",
        "trainjobs/status",
        "trainingruntimes",
        "clustertrainingruntimes",
        "jobsets",
        "jobsets/status",
        "jobs",
        "services",
        "configmaps",
        "secrets",
        "podgroups",
        "podgangs",
        "persistentvolumeclaims",
        "priorityclasses",
    }
)
"""What nobody but who looks after TrainJobs reads or writes here; events and the status of Jobs are others' too."""
Say = Callable[[str], None]


@dataclass(kw_only=True)
class Course:
    """What was measured, in seconds from the first request."""

    train_jobs: int
    operators: list[str]
    """The processes that look after TrainJobs and do nothing else; none where they are part of another."""
    posted: float = 0.0
    """Until the last TrainJob was accepted."""
    created: float = 0.0
    """Until a watch showed the last pod."""
    complete: float = 0.0
    """Until a watch showed the last TrainJob as Complete."""
    cpu: dict[str, float] = field(default_factory=dict)
    """CPU seconds of each process until then."""
    cpu_at_rest: dict[str, float] = field(default_factory=dict)
    """The same, until nothing was left to do, such as events to write."""
    memory: dict[str, int] = field(default_factory=dict)
    """Of each process, with all TrainJobs Complete."""
    served: dict[str, int] = field(default_factory=dict)
    """Requests of everyone to the API server until all is at rest, by verb and kind."""

    @property
    def writes(self) -> float:
        """Requests of those who look after TrainJobs that change something, for each TrainJob."""
        return self._requests(writes=True)

    @property
    def reads(self) -> float:
        """Their other requests, for each TrainJob."""
        return self._requests(writes=False)

    def _requests(self, *, writes: bool) -> float:
        own = {what: count for what, count in of_training(self.served).items() if is_write(what) == writes}
        posts = self.train_jobs if writes else 0  # the bench's own
        return (sum(own.values()) - posts) / self.train_jobs


def of_training(counted: Mapping[str, int]) -> dict[str, int]:
    """Of requests by verb and kind, those of kinds that only training knows; the bench's own TrainJobs among them."""
    return {what: count for what, count in counted.items() if what.partition(" ")[2].partition(" ")[0] in _KINDS}


def is_write(what: str) -> bool:
    """Whether a verb and kind is a request that changes something."""
    return what.partition(" ")[0] in _WRITES


def run(cluster: Cluster, operators: Mapping[str, int], count: int, say: Say) -> Course:
    """So many TrainJobs on a cluster with its simulated nodes ready, looked after by what runs there."""
    return asyncio.run(_run(cluster, operators, count, say))


async def _run(cluster: Cluster, operators: Collection[str], count: int, say: Say) -> Course:
    async with Observer(cluster.kubeconfig, NAMESPACE) as observer:
        await _prepare(observer, say)
        await asyncio.to_thread(rest, cluster.processes.values())
        course = Course(train_jobs=count, operators=list(operators))
        counted, before = served(await observer.metrics()), cluster.cpu()
        pods, ended = len(observer.pods), len(observer.complete)
        began = time.perf_counter()
        posting = asyncio.create_task(_post(observer.client, count))
        wanted = pods + count * NODES_OF_JOB
        course.created = await observer.until("pods are there", wanted, lambda: len(observer.pods), say) - began
        course.posted = await posting - began
        wanted = ended + count
        course.complete = await observer.until("are Complete", wanted, lambda: len(observer.complete), say) - began
        course.cpu = _since(before, cluster.cpu())
        say(f"  posted {course.posted:.1f} s, created {course.created:.1f} s, Complete {course.complete:.1f} s")
        await asyncio.to_thread(rest, cluster.processes.values())
        course.cpu_at_rest = _since(before, cluster.cpu())
        course.memory = cluster.memory()
        course.served = since(counted, served(await observer.metrics()))
        return course


async def _prepare(observer: Observer, say: Say) -> None:
    """The namespace, the runtime, and one TrainJob from beginning to end: then all who take part are there."""
    client = observer.client
    await _make(client, NAMESPACES, {"metadata": {"name": NAMESPACE}})
    await _make(client, SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, NAMESPACE)
    await _make(client, CLUSTER_TRAINING_RUNTIMES, runtime())
    await client.create(TRAIN_JOBS.documents(), train_job(_WARM), NAMESPACE)
    await observer.until("is Complete", 1, lambda: len(observer.complete), say)


async def _make(client: Client, kind: Resource[Any], body: dict[str, Any], namespace: str = "") -> None:
    try:
        await client.create(kind.documents(), body, namespace)
    except AlreadyExists:
        return  # the controllers may be quicker


async def _post(client: Client, count: int) -> float:
    waiting = iter(range(count))

    async def worker() -> None:
        for number in waiting:
            await client.create(TRAIN_JOBS.documents(), train_job(f"many-{number:05}"), NAMESPACE)

    await asyncio.gather(*(worker() for _ in range(_CONNECTIONS)))
    return time.perf_counter()


def train_job(name: str) -> dict[str, Any]:
    """A TrainJob of two nodes, as the SDK asks for one."""
    trainer = {
        "numNodes": NODES_OF_JOB,
        "image": "registry.local/trainer:1",
        "command": ["torchrun", "/workspace/train.py"],
        "env": [{"name": "EPOCHS", "value": "3"}],
        "resourcesPerNode": {"requests": {"cpu": "100m", "memory": "64Mi"}},
    }
    reference = {"kind": CLUSTER_TRAINING_RUNTIMES.kind, "name": _RUNTIME}
    return {
        "apiVersion": TRAIN_JOBS.api_version,
        "kind": TRAIN_JOBS.kind,
        "metadata": {"name": name},
        "spec": {"runtimeRef": reference, "trainer": trainer},
    }


def runtime() -> dict[str, Any]:
    """PyTorch on several nodes, whose pods end after a second on simulated nodes."""
    pod = {
        "metadata": {"annotations": {RUN_TIME: "1s"}},
        "spec": {"containers": [{"name": "node", "image": "registry.local/torch:1"}]},
    }
    job = {
        "metadata": {"labels": {"trainer.kubeflow.org/trainjob-ancestor-step": "trainer"}},
        "spec": {"template": pod},
    }
    return {
        "apiVersion": CLUSTER_TRAINING_RUNTIMES.api_version,
        "kind": CLUSTER_TRAINING_RUNTIMES.kind,
        "metadata": {"name": _RUNTIME, "labels": {"trainer.kubeflow.org/framework": "torch"}},
        "spec": {
            "mlPolicy": {"numNodes": 1, "torch": {}},
            "template": {"spec": {"replicatedJobs": [{"name": "node", "template": job}]}},
        },
    }


def _since(before: dict[str, float], after: dict[str, float]) -> dict[str, float]:
    return {name: after[name] - before[name] for name in after}
