"""A cluster with Trainer's kinds, in which a test plays whoever keeps JobSets."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from datetime import datetime
from typing import Any

from shoal.api.core import CONFIG_MAPS, EVENTS
from shoal.api.jobset import JOB_SETS
from shoal.api.meta import format_time, now
from shoal.api.trainer import CLUSTER_TRAINING_RUNTIMES, TRAIN_JOBS
from shoal.cluster.controllers.garbage.controller import add_garbage_collector
from shoal.kube import Manager
from shoal.training.controller import add_train_jobs
from shoal.training.plugins import load_framework
from shoal.training.runtime_controllers import add_runtimes
from shoal.training.runtime_kinds import RuntimeKinds
from shoal.training.settings import TrainingSettings
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster
from tests.training.builders import a_trainer

Body = dict[str, Any]
SNAPSHOT = "demo-runtime-snapshot"


def training(manager: Manager, kinds: RuntimeKinds | None = None) -> None:
    """The controllers of TrainJobs and runtimes, without that of JobSets."""
    settings = TrainingSettings()
    add_train_jobs(manager, settings, load_framework(), kinds)
    add_runtimes(manager, settings)


class Stage:
    """One namespace with TrainJobs, and what happens to their JobSets."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    def running(self, *add: Callable[[Manager], None]) -> AbstractAsyncContextManager[Manager]:
        """The controllers, for the length of a block."""
        return self.cluster.controllers(*(add or (training,)))

    def collecting(self) -> AbstractAsyncContextManager[Manager]:
        """The collector of garbage."""
        return self.cluster.controllers(add_garbage_collector)

    # What people do

    async def add_runtime(self, name: str = "plain", *, labels: Any = None, **spec: Any) -> None:
        """Makes a ClusterTrainingRuntime; a torch one with one node where nothing is said."""
        metadata = {"name": name, "labels": {"trainer.kubeflow.org/framework": "torch", **(labels or {})}}
        jobs = spec.pop("jobs", [a_trainer()])
        body = {
            "mlPolicy": spec.pop("ml", {"numNodes": 1, "torch": {}}),
            "template": {"spec": {"replicatedJobs": jobs}},
        }
        await self.cluster.make(CLUSTER_TRAINING_RUNTIMES, {"metadata": metadata, "spec": {**body, **spec}})

    async def submit(self, name: str = "demo", *, labels: Any = None, kind: str = "", **spec: Any) -> None:
        """Makes a TrainJob."""
        reference = {"name": spec.pop("runtime", "plain"), **({"kind": kind} if kind else {})}
        metadata = {"name": name, "labels": labels or {}}
        await self.cluster.make(TRAIN_JOBS, {"metadata": metadata, "spec": {"runtimeRef": reference, **spec}})

    async def change(self, name: str = "demo", **spec: Any) -> None:
        """Changes a TrainJob's specification."""
        await self.cluster.client.merge_patch(TRAIN_JOBS.documents(), name, {"spec": spec}, "default")

    # What is there

    async def train_job(self, name: str = "demo") -> Body:
        found = await self.cluster.read(TRAIN_JOBS, name)
        assert found is not None
        return found

    async def status(self, name: str = "demo") -> Body:
        status: Body = (await self.train_job(name)).get("status", {})
        return status

    async def condition(self, type: str, name: str = "demo") -> Body:  # noqa: A002 - the wire's own word
        found = [one for one in (await self.status(name)).get("conditions", []) if one["type"] == type]
        return found[0] if found else {}

    async def job_set(self, name: str = "demo") -> Body | None:
        return await self.cluster.read(JOB_SETS, name)

    async def snapshot(self) -> Body | None:
        return await self.cluster.read(CONFIG_MAPS, SNAPSHOT)

    async def events(self, reason: str) -> list[Body]:
        return [one for one in await self.cluster.all(EVENTS) if one["reason"] == reason]

    # What the controller of JobSets does

    async def tell(self, *, end: str = "", reason: str = "AllJobsCompleted", **counters: int) -> None:
        """Tells how the JobSet's nodes are, and how it ended."""
        whole = {"ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0, **counters}
        status: Body = {"restarts": 0, "replicatedJobsStatus": [{"name": "node", **whole}]}
        if end:
            status["terminalState"] = end
            status["conditions"] = [
                {
                    "type": end,
                    "status": "True",
                    "reason": reason,
                    "message": f"told by the test: {reason}",
                    "lastTransitionTime": format_time(now()),
                }
            ]
        await self.cluster.set_status(JOB_SETS, "demo", status)

    # Waiting

    async def until_job_set(self, *, suspend: bool = False, other_than: str = "") -> Body:
        """The JobSet, once there is one that is, or is not, suspended."""

        async def is_there() -> bool:
            found = await self.job_set()
            return bool(found and found["spec"]["suspend"] is suspend and found["metadata"]["uid"] != other_than)

        await until(is_there, within=30)
        found = await self.job_set()
        assert found is not None
        return found

    async def until_condition(self, type: str, status: str = "True") -> Body:  # noqa: A002
        async def is_so() -> bool:
            return (await self.condition(type)).get("status") == status

        await until(is_so, within=30)
        return await self.condition(type)

    async def until_told(self, condition: Callable[[Body], object]) -> Body:
        """The TrainJob's status, once it is so."""

        async def is_so() -> bool:
            return bool(condition(await self.status()))

        await until(is_so, within=30)
        return await self.status()

    async def until_event(self, reason: str) -> Body:
        async def is_told() -> bool:
            return bool(await self.events(reason))

        await until(is_told, within=30)
        return (await self.events(reason))[0]

    async def until_gone(self, read: Callable[[], Awaitable[Body | None]]) -> None:
        async def is_gone() -> bool:
            return await read() is None

        await until(is_gone, within=30)


def at(text: str) -> datetime:
    """A moment of the wire."""
    return datetime.fromisoformat(text)
