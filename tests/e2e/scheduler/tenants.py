"""People who submit work to a running Shoal, each in a namespace of their own, and what becomes of it."""

from __future__ import annotations

import secrets
from typing import Any

from shoal.api import kai_names as names
from tests.support.builders.queues import queue_manifest
from tests.support.clusters.shoal_up import Shoal
from tests.support.waiting import wait_until

QUEUES = "/apis/scheduling.run.ai/v2/queues"


class Tenant:
    """Somebody with a namespace."""

    def __init__(self, shoal: Shoal) -> None:
        self._shoal = shoal
        self.namespace = f"tenant-{secrets.token_hex(4)}"
        self.create("/api/v1/namespaces", "v1", "Namespace", self.namespace)

    def create(self, path: str, version: str, kind: str, name: str, **body: Any) -> None:
        metadata = {"name": name} | body.pop("metadata", {})
        self._shoal.admin.request("POST", path, {"apiVersion": version, "kind": kind, "metadata": metadata, **body})

    def queue(self, name: str, *, gpus: int, parent: str = "") -> str:
        """A queue with so many GPUs of its own, which may borrow all others."""
        full_name = f"{self.namespace}-{name}"
        queue = queue_manifest(full_name, parent, quota={"cpu": -1, "memory": -1, "gpu": gpus})
        self.create(QUEUES, "scheduling.run.ai/v2", "Queue", full_name, spec=queue["spec"])
        return full_name

    def job(self, name: str, pods: int, *, gpus: int, queue: str = names.DEFAULT_QUEUE) -> None:
        """A Job whose pods start together: as many at once as it has."""
        limits = {"limits": {names.NVIDIA_GPU: str(gpus)}}
        template = {
            "metadata": {"labels": {names.QUEUE: queue}, "annotations": {"shoal.dev/sim-run-time": "1h"}},
            "spec": {
                "schedulerName": names.SCHEDULER,
                "restartPolicy": "Never",
                "containers": [{"name": "main", "image": "none", "resources": limits}],
            },
        }
        spec = {"parallelism": pods, "completions": pods, "template": template}
        metadata = {"annotations": {names.BATCH_MIN_MEMBER: str(pods)}}
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs"
        self.create(path, "batch/v1", "Job", name, spec=spec, metadata=metadata)

    def pod(self, name: str, *, annotations: dict[str, str], gpus: int = 0, scheduler: str = names.SCHEDULER) -> None:
        resources = {"limits": {names.NVIDIA_GPU: str(gpus)}} if gpus else {}
        spec = {"schedulerName": scheduler, "containers": [{"name": "main", "image": "none", "resources": resources}]}
        self.create(self._pods, "v1", "Pod", name, metadata={"annotations": annotations}, spec=spec)

    def delete_job(self, name: str) -> None:
        path = f"/apis/batch/v1/namespaces/{self.namespace}/jobs/{name}"
        self._shoal.admin.request("DELETE", path, {"propagationPolicy": "Background"})

    def leave(self) -> None:
        """Ends everything, so that the next one finds an empty cluster."""
        self._shoal.admin.request("DELETE", f"/api/v1/namespaces/{self.namespace}")
        wait_until(lambda: not self.pods(), "all pods to be gone", within=60)

    @property
    def _pods(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/pods"

    def pods(self, job: str = "") -> list[dict[str, Any]]:
        """All pods, or those of a Job."""
        chosen = f"?labelSelector=batch.kubernetes.io/job-name%3D{job}" if job else ""
        return self._shoal.objects(self._pods + chosen)

    def running(self, job: str = "") -> int:
        """How many pods run."""
        return sum(
            pod["status"].get("phase") == "Running" and "deletionTimestamp" not in pod["metadata"]
            for pod in self.pods(job)
        )

    def failed_bindings(self) -> list[str]:
        """What was said of pods that could not be bound."""
        events = self._shoal.objects(f"/api/v1/namespaces/{self.namespace}/events")
        return [event["message"] for event in events if event["reason"] == "FailedBinding"]

    def wait_for(self, job: str, running: int) -> None:
        """Waits until so many pods of a Job run."""
        wait_until(lambda: self.running(job) == running, f"{running} pods of {job} to run", within=60)
