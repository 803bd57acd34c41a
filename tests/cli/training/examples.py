"""TrainJobs, JobSets and pods in the states that a person may meet them in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from shoal.api.core import PODS, ContainerStatus, Pod
from shoal.api.core.pods import PodCondition, PodSpec, PodStatus
from shoal.api.jobset import JOB_SETS, JobSet
from shoal.api.meta import ObjectMeta
from shoal.api.trainer import TRAIN_JOBS, TrainJob

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)


def a_job(name: str = "llama", *, namespace: str = "research", **status: Any) -> TrainJob:
    metadata = {"name": name, "namespace": namespace, "creationTimestamp": "2026-01-01T11:00:00Z"}
    body = {"metadata": metadata, "spec": {"runtimeRef": {"name": "torch-distributed"}}, "status": status}
    return TRAIN_JOBS.decode(msgspec.json.encode(body))


def is_(kind: str, status: str = "True", *, reason: str = "r", message: str = "m") -> dict[str, Any]:
    since = "2026-01-01T11:30:00Z"
    return {"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": since}


def jobs(name: str, **counts: int) -> dict[str, Any]:
    return {"name": name, "ready": 0, "succeeded": 0, "failed": 0, "active": 0, "suspended": 0} | counts


def last_error(message: str) -> dict[str, Any]:
    return {"time": "2026-01-01T11:30:00Z", "message": message}


def a_pod(
    job: str,
    index: int = 0,
    *,
    uid: str = "",
    age: int = 0,
    status: ContainerStatus | None = None,
    condition: PodCondition | None = None,
    node: str = "n1",
) -> Pod:
    labels = {"jobset.sigs.k8s.io/replicatedjob-name": job, "batch.kubernetes.io/job-completion-index": str(index)}
    uid = uid or f"{job}-{index}"
    metadata = ObjectMeta(
        name=f"{job}-{index}-{uid}", uid=uid, labels=labels, creation_timestamp=BEGIN - timedelta(seconds=age)
    )
    found = PodStatus(container_statuses=[status] if status else [], conditions=[condition] if condition else [])
    return Pod(metadata=metadata, spec=PodSpec(node_name=node), status=found)


def a_pod_that(*, index: int = 0, job: str = "node", restarts: int = 0, **states: Any) -> Pod:
    """A pod whose one container has ``state`` and ``lastState`` as the wire has them."""
    status = {"name": "node" if job == "launcher" else job, "restartCount": restarts, **states}
    whole = PODS.decode(msgspec.json.encode({"metadata": {}, "status": {"containerStatuses": [status]}}))
    return a_pod(job, index, status=whole.status.container_statuses[0])


def a_pod_without_room(index: int = 0, *, reason: str = "Unschedulable", message: str = "no GPUs are free") -> Pod:
    condition = PodCondition(type="PodScheduled", status="False", reason=reason, message=message)
    return a_pod("node", index, condition=condition, node="")


def a_job_set(**pods: int) -> JobSet:
    """With so many pods in each of its replicated jobs."""
    replicated = [
        {"name": name.replace("_", "-"), "template": {"spec": {"parallelism": count, "completions": count}}}
        for name, count in pods.items()
    ]
    return JOB_SETS.decode(msgspec.json.encode({"metadata": {"name": "x"}, "spec": {"replicatedJobs": replicated}}))
