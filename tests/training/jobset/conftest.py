"""A JobSet's world: the embedded server with real controllers of Jobs and garbage, and pods that end as told."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest

from shoal.api import jobset
from shoal.api.batch import JOBS
from shoal.api.core import EVENTS, PODS
from shoal.api.crd import CustomResource
from shoal.api.jobset import JOB_SETS
from shoal.api.meta import Document, Resource
from shoal.cluster.controllers.garbage.controller import add_garbage_collector
from shoal.cluster.controllers.jobs import add_jobs
from shoal.kube import Manager, running
from shoal.training.jobset import JobSetSettings, add_everything
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster
from tests.training.jobset.builders import a_job_set

Body = dict[str, Any]
CLUSTER_ROLES, CLUSTER_ROLE_BINDINGS = (
    Resource(
        type=Document,
        group="rbac.authorization.k8s.io",
        version="v1",
        kind=kind,
        plural=f"{kind.lower()}s",
        namespaced=False,
    )
    for kind in ("ClusterRole", "ClusterRoleBinding")
)


class JobSetWorld:
    """One namespace with JobSets, and what happens to their pods."""

    def __init__(self, cluster: Cluster, namespace: str = "default") -> None:
        self.cluster = cluster
        self.namespace = namespace

    def running(
        self, settings: JobSetSettings = JobSetSettings(), *more: Callable[[Manager], None]
    ) -> AbstractAsyncContextManager[Manager]:
        """The controllers of JobSets, Jobs and garbage, for the length of a block."""
        return self.cluster.controllers(
            lambda manager: add_everything(manager, settings), add_jobs, add_garbage_collector, *more
        )

    @asynccontextmanager
    async def running_with_rights(self, rules: Sequence[dict[str, list[str]]]) -> AsyncIterator[Manager]:
        """The same, but the controllers of JobSets are a user with these rights; the manager is theirs."""
        group = "rbac.authorization.k8s.io"
        await self.cluster.make(CLUSTER_ROLES, {"metadata": {"name": "jobset"}, "rules": list(rules)})
        binding = {
            "metadata": {"name": "jobset"},
            "roleRef": {"apiGroup": group, "kind": "ClusterRole", "name": "jobset"},
            "subjects": [{"apiGroup": group, "kind": "User", "name": "jobset"}],
        }
        await self.cluster.make(CLUSTER_ROLE_BINDINGS, binding)
        manager = Manager(self.cluster.server.transport(user="jobset"), name="jobset")
        add_everything(manager, JobSetSettings())
        async with self.cluster.controllers(add_jobs, add_garbage_collector), running(manager):
            yield manager

    async def make(self, *replicated_jobs: Body, name: str = "train", **fields: Any) -> Body:
        body = a_job_set(*replicated_jobs, name=name, **fields)
        body["metadata"]["namespace"] = self.namespace
        return (await self.cluster.make(JOB_SETS, body, self.namespace)).content

    async def change(self, name: str = "train", **spec: Any) -> None:
        """Changes fields of a JobSet's specification."""
        await self.cluster.client.merge_patch(JOB_SETS.documents(), name, {"spec": spec}, self.namespace)

    async def job_set(self, name: str = "train") -> Body:
        found = await self.cluster.read(JOB_SETS, name, self.namespace)
        assert found is not None
        return found

    async def jobs(self) -> dict[str, Body]:
        """All Jobs by name."""
        return {each["metadata"]["name"]: each for each in await self.cluster.all(JOBS, self.namespace)}

    async def has_jobs(self, *wanted: str, **labels: str) -> dict[str, Body]:
        """The Jobs, as soon as they are just these, none of them on its way out, all with these labels."""

        async def there() -> dict[str, Body] | None:
            found = await self.jobs()
            fits = all(
                "deletionTimestamp" not in each["metadata"]
                and all(each["metadata"]["labels"].get(f"jobset.sigs.k8s.io/{key}") == value for key, value in given)
                for each in found.values()
            )
            return found if set(found) == set(wanted) and fits else None

        given = [(key.replace("_", "-"), value) for key, value in labels.items()]
        return dict(await self._until(there, f"Jobs {wanted} {labels}", self.jobs))

    async def pods(self, job: str) -> list[Body]:
        found = await self.cluster.all(PODS, self.namespace, labels=f"job-name={job}")
        return [pod for pod in found if "deletionTimestamp" not in pod["metadata"]]

    async def pod(self, job: str) -> Body:
        """The pod of a Job of one pod, as soon as it is there."""

        async def there() -> Body | None:
            found = [pod for pod in await self.pods(job) if pod["status"].get("phase") in ("Pending", "Running")]
            return found[0] if found else None

        return dict(await self._until(there, f"a pod of {job}", self.jobs))

    async def ready(self, *jobs: str) -> None:
        """Lets the pods of Jobs run."""
        for job in jobs:
            pod = await self.pod(job)
            conditions = [{"type": "Ready", "status": "True"}]
            await self.cluster.set_status(
                PODS, pod["metadata"]["name"], {"phase": "Running", "conditions": conditions}, self.namespace
            )

    async def end(self, *jobs: str, phase: str = "Succeeded") -> None:
        """Lets the pods of Jobs end, as a node would say it."""
        for job in jobs:
            pod = await self.pod(job)
            code = 0 if phase == "Succeeded" else 1
            state = {"terminated": {"exitCode": code, "finishedAt": "2026-01-01T00:00:00Z"}}
            container = {"name": "main", "image": "busybox", "imageID": "", "ready": False, "restartCount": 0}
            status = {"phase": phase, "conditions": [], "containerStatuses": [{**container, "state": state}]}
            await self.cluster.set_status(PODS, pod["metadata"]["name"], status, self.namespace)

    async def fail(self, *jobs: str) -> None:
        await self.end(*jobs, phase="Failed")

    async def condition(self, type_: str, status: str = "True", *, name: str = "train") -> Body:
        """A condition of the JobSet, as soon as it has this status."""

        async def holds() -> Body | None:
            for condition in (await self.job_set(name)).get("status", {}).get("conditions", ()):
                if (condition["type"], condition["status"]) == (type_, status):
                    return dict(condition)
            return None

        return dict(await self._until(holds, f"{type_}={status}", lambda: self.job_set(name)))

    async def counters(self, name: str = "train", **wanted: tuple[int, ...]) -> None:
        """Waits until replicated jobs have these counters: ready, succeeded, failed, active, suspended."""
        order = ("ready", "succeeded", "failed", "active", "suspended")

        async def so() -> bool:
            statuses = (await self.job_set(name)).get("status", {}).get("replicatedJobsStatus", [])
            return {each["name"]: tuple(each[key] for key in order) for each in statuses} == wanted

        await self._until(so, str(wanted), lambda: self.job_set(name))

    async def gone(self, name: str = "train") -> None:
        async def is_gone() -> bool:
            return await self.cluster.read(JOB_SETS, name, self.namespace) is None

        await self._until(is_gone, f"{name} to be gone", self.jobs)

    async def events(self, *wanted: str) -> list[Body]:
        """The events of JobSets, as soon as they have these reasons."""

        async def told() -> list[Body] | None:
            found = [
                each
                for each in await self.cluster.all(EVENTS, self.namespace)
                if each["involvedObject"]["kind"] == "JobSet"
            ]
            return found if set(wanted) <= {each["reason"] for each in found} else None

        return list(await self._until(told, f"events {wanted}", lambda: self.cluster.all(EVENTS, self.namespace)))

    async def _until(self, condition: Callable[[], Any], what: str, otherwise: Callable[[], Any]) -> Any:
        try:
            return await until(condition, within=30)
        except TimeoutError:
            raise AssertionError(f"waited in vain for {what}; there is {await otherwise()}") from None


@pytest.fixture
def kinds() -> Sequence[CustomResource]:
    """JobSet."""
    return jobset.DEFINITIONS


@pytest.fixture
def world(cluster: Cluster) -> JobSetWorld:
    """JobSets on a server of their own."""
    return JobSetWorld(cluster)
