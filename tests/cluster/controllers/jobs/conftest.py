"""A Job's world: the embedded server with the Job controller, and pods that end as a test says."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.batch import JOBS
from shoal.api.core import PODS
from shoal.kube import NotFound
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster

TEMPLATE: dict[str, Any] = {
    "spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]},
}


class JobWorld:
    """One Job at a time, and what happens to its pods."""

    def __init__(self, cluster: Cluster) -> None:
        self.cluster = cluster

    async def make(self, name: str = "work", **spec: Any) -> dict[str, Any]:
        """Creates a Job."""
        body = {"metadata": {"name": name}, "spec": {"template": TEMPLATE, **spec}}
        return (await self.cluster.make(JOBS, body)).content

    async def job(self, name: str = "work") -> dict[str, Any]:
        """A Job as the server has it."""
        found = await self.cluster.read(JOBS, name)
        assert found is not None
        return found

    async def pods(self, name: str = "work", *, phase: str = "") -> list[dict[str, Any]]:
        """The pods of a Job, or those in a phase, that are not on their way out."""
        found = await self.cluster.all(PODS, labels=f"job-name={name}")
        return [
            pod
            for pod in found
            if "deletionTimestamp" not in pod["metadata"] and phase in ("", pod["status"].get("phase"))
        ]

    async def pending(self, count: int, name: str = "work") -> list[dict[str, Any]]:
        """The Job's waiting pods, as soon as there are so many."""

        async def there() -> list[dict[str, Any]]:
            found = await self.pods(name, phase="Pending")
            return found if len(found) == count else []

        found: list[dict[str, Any]] = await until(there, within=5)
        return found

    async def end(self, pod: dict[str, Any], phase: str, *, code: int = 0, **status: Any) -> None:
        """Lets a pod end, as a node would say it."""
        ended = {"terminated": {"exitCode": code, "finishedAt": status.pop("at", "2026-01-01T00:00:00Z")}}
        containers = [{"name": "main", "image": "busybox", "imageID": "", "ready": False, "restartCount": 0}]
        containers[0]["state"] = ended
        new = {"phase": phase, "containerStatuses": containers, **status}
        await self.cluster.set_status(PODS, pod["metadata"]["name"], new)

    async def vanish(self, pod: dict[str, Any]) -> None:
        """Takes a pod away at once, as a node does when its containers have stopped."""
        try:
            await self.cluster.client.delete(PODS, pod["metadata"]["name"], "default", grace_seconds=0)
        except NotFound:
            return

    async def gone(self, name: str = "work") -> None:
        """Plays the node for all pods that are on their way out."""
        for pod in await self.cluster.all(PODS, labels=f"job-name={name}"):
            if "deletionTimestamp" in pod["metadata"]:
                await self.vanish(pod)

    async def status(self, name: str = "work", **wanted: Any) -> dict[str, Any]:
        """The Job's status, as soon as these fields are so; None means absent."""

        async def so() -> dict[str, Any] | None:
            status = (await self.job(name)).get("status", {})
            return status if all(status.get(key) == value for key, value in wanted.items()) else None

        try:
            found: dict[str, Any] = await until(so, within=5)
        except TimeoutError:
            raise AssertionError(f"wanted {wanted}, got {(await self.job(name)).get('status')}") from None
        return found

    async def condition(self, type_: str, name: str = "work") -> dict[str, Any]:
        """A condition of the Job, as soon as it holds."""

        async def holds() -> dict[str, Any] | None:
            for condition in (await self.job(name)).get("status", {}).get("conditions", ()):
                if condition["type"] == type_ and condition["status"] == "True":
                    return dict(condition)
            return None

        try:
            found: dict[str, Any] = await until(holds, within=5)
        except TimeoutError:
            raise AssertionError(f"no {type_}: {(await self.job(name)).get('status')}") from None
        return found


@pytest.fixture
def jobs(cluster: Cluster) -> JobWorld:
    """Jobs on a server of their own."""
    return JobWorld(cluster)
