"""The child Jobs of a JobSet: what they and their pods are labelled with, and what is added to the pods."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from shoal.api.jobset import JobSet, ReplicatedJob, names
from shoal.training.jobset.buckets import job_restarts
from shoal.training.jobset.claims import mounted_volumes

_Body = dict[str, Any]

_PLACEMENT: Final = (names.EXCLUSIVE_TOPOLOGY, names.NODE_SELECTOR_STRATEGY)


def missing_jobs(
    job_set: JobSet, replicated_job: ReplicatedJob, there: Collection[str], *, restarts_single_jobs: bool
) -> Iterator[_Body]:
    """The Jobs of a replicated job whose names are not there, as they are made in this attempt."""
    for index in range(replicated_job.count):
        if names.job_name(job_set.metadata.name, replicated_job.name, index) not in there:
            yield wanted_job(job_set, replicated_job, index, restarts_single_jobs=restarts_single_jobs)


def wanted_job(job_set: JobSet, replicated_job: ReplicatedJob, index: int, *, restarts_single_jobs: bool) -> _Body:
    """One Job. Its owner is written in by who makes it."""
    labels = identity(job_set, replicated_job, index, restarts_single_jobs=restarts_single_jobs)
    annotations = {**labels, **_placement(job_set, replicated_job)}
    name = names.job_name(job_set.metadata.name, replicated_job.name, index)
    own = replicated_job.template.get("metadata") or {}
    all_annotations = {**(own.get("annotations") or {}), **annotations}
    metadata = {
        "name": name,
        "namespace": job_set.metadata.namespace,
        "labels": {**(own.get("labels") or {}), **labels},
        "annotations": all_annotations,
    }
    template = _pod_template(job_set, replicated_job, labels, annotations)
    if all(key in all_annotations for key in _PLACEMENT):
        template["spec"] = _on_labelled_nodes(template["spec"], job_set.metadata.namespace, name)
    spec = {
        **replicated_job.job_spec,
        "suspend": job_set.spec.is_suspended,
        "template": template,
    }
    return {"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": spec}


def identity(
    job_set: JobSet, replicated_job: ReplicatedJob, index: int, *, restarts_single_jobs: bool
) -> dict[str, str]:
    """What a Job and its pods are labelled, and annotated, with."""
    before = _replicas_before(job_set, replicated_job)
    before_in_group = _replicas_before(job_set, replicated_job, group=replicated_job.group)
    in_group = sum(each.count for each in job_set.spec.replicated_jobs if each.group == replicated_job.group)
    name = names.job_name(job_set.metadata.name, replicated_job.name, index)
    found = {
        names.JOB_SET_NAME: job_set.metadata.name,
        names.JOB_SET_UID: job_set.metadata.uid,
        names.REPLICATED_JOB_NAME: replicated_job.name,
        names.RESTART_ATTEMPT: str(job_set.status.restarts),
        names.REPLICATED_JOB_REPLICAS: str(replicated_job.count),
        names.GLOBAL_REPLICAS: str(job_set.spec.total),
        names.JOB_INDEX: str(index),
        names.JOB_KEY: names.job_key(job_set.metadata.namespace, name),
        names.JOB_GLOBAL_INDEX: str(before + index),
        names.GROUP_NAME: replicated_job.group,
        names.GROUP_REPLICAS: str(in_group),
        names.JOB_GROUP_INDEX: str(before_in_group + index),
    }
    if restarts_single_jobs:
        restarts = job_restarts(job_set).get(replicated_job.name, [])
        found[names.JOB_RESTART_ATTEMPT] = str(restarts[index] if index < len(restarts) else 0)
    if job_set.spec.coordinator is not None:
        found[names.COORDINATOR] = coordinator_of(job_set, job_set.metadata.name)
    return found


def coordinator_of(job_set: JobSet, name: str) -> str:
    """Where the coordinator of a JobSet of this name is found; empty where it has none."""
    coordinator = job_set.spec.coordinator
    if coordinator is None:
        return ""
    subdomain = (job_set.spec.network and job_set.spec.network.subdomain) or name
    job_index, pod_index = coordinator.job_index or 0, coordinator.pod_index or 0
    return names.coordinator_address(name, coordinator.replicated_job, job_index, pod_index, subdomain)


def _replicas_before(job_set: JobSet, replicated_job: ReplicatedJob, *, group: str = "") -> int:
    """How many Jobs, of a group or of all, come before those of a replicated job."""
    before = 0
    for each in job_set.spec.replicated_jobs:
        if each.name == replicated_job.name:
            break
        if group in ("", each.group):
            before += each.count
    return before


def _placement(job_set: JobSet, replicated_job: ReplicatedJob) -> dict[str, str]:
    """Annotations that ask for exclusive placement: the replicated job's own, or else the JobSet's."""
    found: dict[str, str] = {}
    own = (replicated_job.template.get("metadata") or {}).get("annotations") or {}
    for said in (job_set.metadata.annotations, own):
        if names.EXCLUSIVE_TOPOLOGY in said:
            found |= {key: said[key] for key in _PLACEMENT if key in said}
    return found


def _pod_template(
    job_set: JobSet,
    replicated_job: ReplicatedJob,
    labels: Mapping[str, str],
    annotations: Mapping[str, str],
) -> _Body:
    template = replicated_job.pod_template
    own = template.get("metadata") or {}
    metadata = {
        **own,
        "labels": {**(own.get("labels") or {}), **labels},
        "annotations": {**(own.get("annotations") or {}), **annotations},
    }
    spec = dict(template.get("spec") or {})
    if job_set.has_dns:
        spec["subdomain"] = job_set.subdomain
    if volumes := mounted_volumes(job_set, spec):
        spec["volumes"] = [*(spec.get("volumes") or []), *volumes]
    return {**template, "metadata": metadata, "spec": spec}


def _on_labelled_nodes(spec: Mapping[str, Any], namespace: str, job: str) -> _Body:
    """Pods that go where nodes were labelled and tainted for their Job beforehand."""
    selected = {names.NAMESPACED_JOB: names.namespaced_job(namespace, job)}
    toleration = {"key": names.NO_SCHEDULE_TAINT, "operator": "Exists", "effect": "NoSchedule"}
    return {
        **spec,
        "nodeSelector": {**(spec.get("nodeSelector") or {}), **selected},
        "tolerations": [*(spec.get("tolerations") or []), toleration],
    }
