"""What a runtime must have for a dataset or a model to be fetched."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.trainer import TrainingRuntimeSpec, TrainJob, names
from shoal.kube.admission import FieldProblem
from shoal.training.admission.rules.places import container_names, pod_specs, unfit_runtime


def initializer_problems(train_job: TrainJob, runtime: TrainingRuntimeSpec) -> Iterator[FieldProblem]:
    """Each initializer has a job and a container of its name, which mounts the volume that nodes will find it on."""
    initializer = train_job.spec.initializer
    if initializer is None:
        return
    if initializer.dataset is not None:
        yield from _unfit(train_job, runtime, names.DATASET_INITIALIZER, "datasetConfig")
    if initializer.model is not None:
        yield from _unfit(train_job, runtime, names.MODEL_INITIALIZER, "modelConfig")


def _unfit(train_job: TrainJob, runtime: TrainingRuntimeSpec, name: str, config: str) -> Iterator[FieldProblem]:
    pod_spec = pod_specs(runtime).get(name)
    if pod_spec is None:
        yield unfit_runtime(train_job, f"must have {name} job when trainJob is configured with input {config}")
        return
    if name not in container_names(pod_spec):
        yield unfit_runtime(train_job, f"must have container with name - {name} in the {name} job")
        return
    mounts = {
        mount.get("name")
        for container in pod_spec.get("containers") or ()
        if container.get("name") == name
        for mount in container.get("volumeMounts") or ()
    }
    if names.INITIALIZER_VOLUME not in mounts:
        yield unfit_runtime(
            train_job,
            f"must have volumeMount with name - {names.INITIALIZER_VOLUME} in container {name} of the {name} job",
        )
