"""TrainJobs, JobSets and pods in the states that a person may meet them in."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from shoal.api.core import Pod
from shoal.api.jobset import JOB_SETS, JobSet
from shoal.api.trainer import TRAIN_JOBS, TrainJob
from tests.support.builders.pods import a_pod

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


def a_pod_of(job: str, index: int = 0, *, uid: str = "", age: int = 0, node: str = "n1", **given: Any) -> Pod:
    """A pod of a replicated job, by its number; ``age`` in seconds."""
    uid = uid or f"{job}-{index}"
    return a_pod(
        f"{job}-{index}-{uid}",
        uid=uid,
        labels={"jobset.sigs.k8s.io/replicatedjob-name": job, "batch.kubernetes.io/job-completion-index": str(index)},
        created=BEGIN - timedelta(seconds=age),
        node=node,
        **given,
    )


def a_pod_that(*, index: int = 0, job: str = "node", uid: str = "", restarts: int = 0, **states: Any) -> Pod:
    """A pod whose one container has ``state`` and ``lastState`` as the wire has them."""
    status = {"name": "node" if job == "launcher" else job, "restartCount": restarts, **states}
    return a_pod_of(job, index, uid=uid, status={"containerStatuses": [status]})


def a_pod_without_room(index: int = 0, *, reason: str = "Unschedulable", message: str = "no GPUs are free") -> Pod:
    condition = {"type": "PodScheduled", "status": "False", "reason": reason, "message": message}
    return a_pod_of("node", index, conditions=[condition], node="")


def a_job_set(**pods: int) -> JobSet:
    """With so many pods in each of its replicated jobs."""
    replicated = [
        {"name": name.replace("_", "-"), "template": {"spec": {"parallelism": count, "completions": count}}}
        for name, count in pods.items()
    ]
    return JOB_SETS.decode(msgspec.json.encode({"metadata": {"name": "x"}, "spec": {"replicatedJobs": replicated}}))
