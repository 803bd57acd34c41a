"""The rules for TrainingRuntimes and ClusterTrainingRuntimes."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from shoal.api.trainer import TrainingRuntimeSpec, names
from shoal.kube.admission import FieldProblem, invalid
from shoal.training.framework.resources import ancestor_of, pod_spec_of

_JOBS: Final = "spec.template.spec.replicatedJobs"


def runtime_problems(runtime: TrainingRuntimeSpec) -> Iterator[FieldProblem]:
    """A replicated job that has a part in a TrainJob has it once, and has the container in which it plays it."""
    for index, job in enumerate(runtime.template.spec.get("replicatedJobs") or ()):
        template = job.get("template") or {}
        ancestor = ancestor_of(template)
        if ancestor not in names.ANCESTOR_CONTAINERS:
            continue
        replicas = job.get("replicas", 1)
        if replicas != 1:
            yield invalid(f"{_JOBS}[{index}].replicas", replicas, "always must be 1")
        containers = [container.get("name") for container in pod_spec_of(template).get("containers") or ()]
        if names.ANCESTOR_CONTAINERS[ancestor] not in containers:
            yield invalid(
                f"{_JOBS}[{index}].template.spec.template.spec.containers",
                containers,
                f"must contain the required container for the ancestor: {ancestor}",
            )


def is_deprecated(labels: dict[str, str]) -> bool:
    """Whether a runtime is going to be removed."""
    return labels.get(names.SUPPORT_LABEL) == names.DEPRECATED


def deprecation_warning(
    runtime: str, *, kind: str = names.CLUSTER_TRAINING_RUNTIME, is_referenced: bool = False
) -> str:
    """What is told to whoever makes a runtime that is going to be removed, or names one."""
    subject = f'{"Referenced " if is_referenced else ""}{kind} "{runtime}" is deprecated'
    if kind != names.CLUSTER_TRAINING_RUNTIME:
        return f"{subject}: use another one"  # when it goes is for its namespace to decide
    return (
        f"{subject} and will be removed in a future release of Kubeflow Trainer. See runtime deprecation policy: "
        f"{names.DEPRECATION_POLICY}"
    )
