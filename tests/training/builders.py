"""TrainJobs, runtimes and patches of them for tests, in few words."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from shoal.api.jobset import JOB_SETS
from shoal.api.trainer import TrainingRuntimeSpec, TrainJob, names
from shoal.training.framework import Info, Seen, Wanted
from shoal.training.framework.info import nothing_seen
from shoal.training.plugins import load_framework

UID = "0c5d3f9a-1111-4222-8333-944455556666"
INDEX = {"fieldRef": {"fieldPath": "metadata.annotations['batch.kubernetes.io/job-completion-index']"}}


def a_train_job(name: str = "demo", *, labels: dict[str, str] | None = None, **spec: Any) -> TrainJob:
    """A TrainJob of namespace ``team``; ``runtime`` names a ClusterTrainingRuntime."""
    reference = {"name": spec.pop("runtime", "torch-distributed")}
    metadata = {"name": name, "namespace": "team", "uid": UID, "generation": 1, "labels": labels or {}}
    return msgspec.convert({"metadata": metadata, "spec": {"runtimeRef": reference, **spec}}, TrainJob)


def a_container(name: str = "node", **fields: Any) -> dict[str, Any]:
    """A container of a runtime."""
    return {"name": name, "image": "runtime:1", **fields}


def a_job(
    name: str = "node", *containers: dict[str, Any], ancestor: str | None = None, pod: Any = None, **fields: Any
) -> dict[str, Any]:
    """A replicated job; ``ancestor`` is what it does for a TrainJob, and ``job`` are fields of its Jobs."""
    spec = {"containers": list(containers) or [a_container()], **(pod or {})}
    labels = {"metadata": {"labels": {names.ANCESTOR_LABEL: ancestor}}} if ancestor else {}
    job = {**fields.pop("job", {}), "template": {"spec": spec}}
    return {"name": name, **fields, "template": {**labels, "spec": job}}


def a_trainer(*containers: dict[str, Any], **fields: Any) -> dict[str, Any]:
    """The replicated job that trains."""
    return a_job("node", *containers, ancestor="trainer", **fields)


def an_initializer(kind: str, *, mounts: Sequence[dict[str, Any]] = (), **fields: Any) -> dict[str, Any]:
    """A replicated job that fetches a dataset or a model."""
    name = f"{kind}-initializer"
    mounted = {"volumeMounts": list(mounts)} if mounts else {}
    return a_job(name, a_container(name, **mounted), ancestor=name, **fields)


def a_runtime(
    *jobs: dict[str, Any], ml: Any = None, gang: Any = None, metadata: Any = None, **spec: Any
) -> TrainingRuntimeSpec:
    """A runtime's specification; ``ml`` and ``gang`` are its policies, ``spec`` more of its JobSet's."""
    template = {"spec": {**spec, "replicatedJobs": list(jobs) or [a_trainer()]}}
    body = {"template": {**template, **({"metadata": metadata} if metadata else {})}}
    if ml is not None:
        body["mlPolicy"] = ml
    if gang is not None:
        body["podGroupPolicy"] = gang
    return msgspec.convert(body, TrainingRuntimeSpec)


def a_patch(*jobs: dict[str, Any], manager: str = "acme.io/tuner", **metadata: Any) -> dict[str, Any]:
    """A runtimePatch of these replicated jobs, and of the metadata of their JobSet."""
    template: dict[str, Any] = {"spec": {"replicatedJobs": list(jobs)}} if jobs else {}
    if metadata:
        template["metadata"] = metadata
    return {"manager": manager, "trainingRuntimeSpec": {"template": template}}


def a_job_patch(name: str, **pod_spec: Any) -> dict[str, Any]:
    """What a patch says of a replicated job: fields of its pods."""
    return {"name": name, "template": {"spec": {"template": {"spec": pod_spec}}}}


def info_of(train_job: TrainJob, runtime: TrainingRuntimeSpec) -> Info:
    """What all plugins make of it."""
    return load_framework().info(train_job, runtime)


def objects_of(train_job: TrainJob, runtime: TrainingRuntimeSpec, seen: Seen = nothing_seen) -> dict[str, Any]:
    """All objects that are wanted, by kind and name."""
    wanted: list[Wanted] = load_framework().objects(train_job, runtime, seen)
    return {f"{one.resource.kind}/{one.name}": msgspec.to_builtins(one.make()) for one in wanted}


def job_set_of(train_job: TrainJob, runtime: TrainingRuntimeSpec) -> dict[str, Any]:
    """The JobSet that is wanted."""
    body: dict[str, Any] = objects_of(train_job, runtime)[f"{JOB_SETS.kind}/{train_job.metadata.name}"]
    return body


def container_of(job_set: dict[str, Any], job: str = "node", name: str = "node") -> dict[str, Any]:
    """A container of a JobSet."""
    [found] = [one for one in pod_of(job_set, job)["containers"] if one["name"] == name]
    container: dict[str, Any] = found
    return container


def pod_of(job_set: dict[str, Any], job: str = "node") -> dict[str, Any]:
    """The pods of a replicated job of a JobSet."""
    spec: dict[str, Any] = template_of(job_set, job)["spec"]
    return spec


def template_of(job_set: dict[str, Any], job: str = "node") -> dict[str, Any]:
    """The pod template of a replicated job of a JobSet."""
    template: dict[str, Any] = replicated_job(job_set, job)["template"]["spec"]["template"]
    return template


def replicated_job(job_set: dict[str, Any], name: str = "node") -> dict[str, Any]:
    """A replicated job of a JobSet."""
    [found] = [one for one in job_set["spec"]["replicatedJobs"] if one["name"] == name]
    job: dict[str, Any] = found
    return job


def env_of(container: dict[str, Any]) -> list[tuple[str, Any]]:
    """Variables in order, each with its value or where that comes from."""
    return [(one["name"], one.get("value", one.get("valueFrom"))) for one in container.get("env", [])]
