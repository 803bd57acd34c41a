"""JobSets and their Jobs in few words, as plain values and as typed objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any

import msgspec

from shoal.api.batch import Job
from shoal.api.jobset import JobSet, JobSetStatus, ReplicatedJobStatus, names
from shoal.training.jobset.admission.defaults import defaulted
from shoal.training.jobset.conditions import Report
from shoal.training.jobset.jobs import wanted_job

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
UID = "0a1b"


def a_pod_template(**spec: Any) -> dict[str, Any]:
    return {"spec": {"containers": [{"name": "main", "image": "busybox"}], **spec}}


def a_replicated_job(
    name: str = "workers",
    replicas: int = 1,
    *,
    depends_on: Mapping[str, str] | None = None,
    pods: Mapping[str, Any] | None = None,
    group: str = "",
    annotations: Mapping[str, str] | None = None,
    **spec: Any,
) -> dict[str, Any]:
    """A replicated job; ``spec`` are fields of its Jobs, ``depends_on`` maps names to what they must have reached."""
    found: dict[str, Any] = {
        "name": name,
        "replicas": replicas,
        "template": {"spec": {"template": dict(pods) if pods is not None else a_pod_template(), **spec}},
    }
    if annotations:
        found["template"]["metadata"] = {"annotations": dict(annotations)}
    if group:
        found["groupName"] = group
    if depends_on:
        found["dependsOn"] = [{"name": each, "status": status} for each, status in depends_on.items()]
    return found


def a_job_set(
    *replicated_jobs: Mapping[str, Any], name: str = "train", annotations: Mapping[str, str] | None = None, **spec: Any
) -> dict[str, Any]:
    """A JobSet as plain values."""
    metadata: dict[str, Any] = {"name": name, "namespace": "default"}
    if annotations:
        metadata["annotations"] = dict(annotations)
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": metadata,
        "spec": {"replicatedJobs": list(replicated_jobs) or [a_replicated_job()], **spec},
    }


def typed(body: Mapping[str, Any], *, status: JobSetStatus | None = None) -> JobSet:
    """A JobSet as the server has it, with its defaults."""
    found = msgspec.convert({**body, "metadata": {**body["metadata"], "uid": UID}}, JobSet)
    return defaulted(msgspec.structs.replace(found, status=status or JobSetStatus()))


def a_typed_set(*replicated_jobs: Mapping[str, Any], status: JobSetStatus | None = None, **fields: Any) -> JobSet:
    return typed(a_job_set(*replicated_jobs, **fields), status=status)


def a_report(job_set: JobSet) -> Report:
    return Report(job_set=job_set, status=job_set.status, now=NOW)


def a_job(
    job_set: JobSet,
    replicated_job: str = "",
    index: int = 0,
    *,
    end: str = "",
    reason: str = "",
    message: str = "",
    at: datetime = NOW,
    restarts_single_jobs: bool = False,
    labels: Mapping[str, str | None] | None = None,
    suspend: bool | None = None,
    is_deleting: bool = False,
    **status: Any,
) -> Job:
    """One of a JobSet's Jobs as the server has it; ``end`` is Complete or Failed."""
    wanted = {each.name: each for each in job_set.spec.replicated_jobs}
    chosen = wanted[replicated_job] if replicated_job else job_set.spec.replicated_jobs[0]
    body = wanted_job(job_set, chosen, index, restarts_single_jobs=restarts_single_jobs)
    for key, value in (labels or {}).items():
        body["metadata"]["labels"].pop(key, None)
        if value is not None:
            body["metadata"]["labels"][key] = value
    body["metadata"]["uid"] = f"uid of {body['metadata']['name']}"
    if is_deleting:
        body["metadata"]["deletionTimestamp"] = NOW.isoformat()
    if suspend is not None:
        body["spec"]["suspend"] = suspend
    if end:
        condition = {"type": end, "status": "True", "reason": reason, "message": message}
        status["conditions"] = [{**condition, "lastTransitionTime": at.isoformat()}]
    return msgspec.convert({**body, "status": status}, Job)


def a_status(name: str = "workers", **counts: Any) -> ReplicatedJobStatus:
    return ReplicatedJobStatus(name=name, **counts)


def restarted(times: int, *, counting: int | None = None, **fields: Any) -> JobSetStatus:
    """The status of a JobSet that was restarted so often."""
    return JobSetStatus(restarts=times, restarts_count_towards_max=times if counting is None else counting, **fields)


def said(conditions: Sequence[Any]) -> dict[str, tuple[str, str]]:
    """Conditions by type: status and reason."""
    return {each.type: (each.status, each.reason) for each in conditions}


OLD_ATTEMPT = {names.RESTART_ATTEMPT: "0"}
