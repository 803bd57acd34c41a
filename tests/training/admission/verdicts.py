"""TrainJobs and runtimes in few words, and what admission says of them."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.trainer import TrainingRuntimeSpec, TrainJob, names
from shoal.training.admission import Surroundings, runtime_problems, train_job_problems


def a_train_job(runtime: str = "torch-distributed", /, **spec: Any) -> TrainJob:
    """A TrainJob of a ClusterTrainingRuntime, with these fields as the wire says them."""
    body = {
        "metadata": {"name": "job", "namespace": "team"},
        "spec": {"runtimeRef": {"name": runtime}, **spec},
    }
    return msgspec.convert(body, TrainJob)


def a_container(name: str = "node", **more: Any) -> dict[str, Any]:
    return {"name": name, "image": "i", **more}


def a_job(name: str = "node", *containers: dict[str, Any], ancestor: str = "", **pod_spec: Any) -> dict[str, Any]:
    """A replicated job; with no containers, one that has the job's name."""
    pods = {"containers": list(containers) or [a_container(name)], **pod_spec}
    template: dict[str, Any] = {"spec": {"template": {"spec": pods}}}
    if ancestor:
        template["metadata"] = {"labels": {names.ANCESTOR_LABEL: ancestor}}
    return {"name": name, "template": template}


TRAINER = a_job(ancestor="trainer")
MOUNT = {"name": "initializer", "mountPath": "/workspace"}


def an_initializer(name: str, *, mounts: tuple[Any, ...] = (MOUNT,)) -> dict[str, Any]:
    return a_job(name, a_container(name, volumeMounts=list(mounts)), ancestor=name)


def a_runtime(
    *jobs: dict[str, Any], annotations: dict[str, str] | None = None, gang: Any = None, **policy: Any
) -> TrainingRuntimeSpec:
    """A runtime of these replicated jobs, or of the nodes alone, with this policy."""
    body: dict[str, Any] = {"template": {"spec": {"replicatedJobs": list(jobs) or [TRAINER]}}}
    if policy:
        body["mlPolicy"] = policy
    if annotations is not None:
        body["template"]["metadata"] = {"annotations": annotations}
    if gang is not None:
        body["podGroupPolicy"] = gang
    return msgspec.convert(body, TrainingRuntimeSpec)


def a_patch(*jobs: dict[str, Any], manager: str = "acme.io/tuner", **metadata: Any) -> dict[str, Any]:
    """A runtimePatch of these replicated jobs."""
    template: dict[str, Any] = {"spec": {"replicatedJobs": list(jobs)}}
    if metadata:
        template["metadata"] = metadata
    return {"manager": manager, "trainingRuntimeSpec": {"template": template}}


def a_job_patch(name: str, **pod_spec: Any) -> dict[str, Any]:
    return {"name": name, "template": {"spec": {"template": {"spec": pod_spec}}}}


def problems(
    train_job: TrainJob,
    runtime: TrainingRuntimeSpec | None,
    *,
    old: TrainJob | None = None,
    around: Surroundings = Surroundings(),
) -> list[str]:
    """What is wrong with a TrainJob, as users read it."""
    return [str(problem) for problem in train_job_problems(train_job, old, runtime, around)]


def problems_of_runtime(runtime: TrainingRuntimeSpec) -> list[str]:
    """What is wrong with a runtime, as users read it."""
    return [str(problem) for problem in runtime_problems(runtime)]


Case = tuple[TrainJob, TrainingRuntimeSpec, list[str]]
"""A TrainJob, the runtime that it names, and what is wrong with it."""

REFERENCE = '{"apiGroup":"trainer.kubeflow.org","kind":"ClusterTrainingRuntime","name":"torch-distributed"}'


def unfit(message: str) -> str:
    """The runtime does not fit."""
    return f"spec.runtimeRef: Invalid value: {REFERENCE}: {message}"


def env(*variables: str) -> dict[str, Any]:
    return {"env": [{"name": name, "value": "secret"} for name in variables]}
