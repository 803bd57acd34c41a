"""What admission says of TrainJobs and runtimes."""

from __future__ import annotations

from typing import Any

from shoal.api.trainer import TrainingRuntimeSpec, TrainJob
from shoal.training.admission import Surroundings, runtime_problems, train_job_problems
from tests.training.builders import a_trainer

TRAINER = a_trainer()
MOUNT = {"name": "initializer", "mountPath": "/workspace"}


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
