"""What a TrainJob may ask of runtimes for MPI, XGBoost and Flux."""

from __future__ import annotations

from collections.abc import Iterator

from shoal.api.trainer import TrainingRuntimeSpec, TrainJob, names
from shoal.kube.admission import FieldProblem, forbidden, invalid, required
from shoal.training.admission.rules.places import (
    ENVIRONMENT,
    NODES,
    container_names,
    pod_specs,
    reserved_variables,
    unfit_runtime,
)


def mpi_problems(train_job: TrainJob, runtime: TrainingRuntimeSpec) -> Iterator[FieldProblem]:
    """A launcher that trains too needs other nodes to launch on, and what mpirun reads is for the runtime to say."""
    if runtime.ml_policy is None or runtime.ml_policy.mpi is None:
        return
    trainer = train_job.spec.trainer
    nodes = trainer.num_nodes if trainer is not None else None
    if runtime.ml_policy.mpi.run_launcher_as_node and nodes is not None and nodes >= 2:
        pods = pod_specs(runtime)
        if names.LAUNCHER not in pods or names.NODE not in pods:
            yield invalid(
                NODES,
                nodes,
                "must have 1 when MPI trainingRuntime with enabled runLauncherAsNode does not have either launcher "
                "and node",
            )
    yield from reserved_variables(train_job, names.OPENMPI_ENVIRONMENT)


def xgboost_problems(train_job: TrainJob, runtime: TrainingRuntimeSpec) -> Iterator[FieldProblem]:
    """What XGBoost's workers read is for the runtime to say."""
    if runtime.ml_policy is None or runtime.ml_policy.xgboost is None or train_job.spec.trainer is None:
        return
    for index, variable in enumerate(train_job.spec.trainer.env):
        if (name := variable.get("name", "")) in names.XGBOOST_ENVIRONMENT:
            yield forbidden(f"{ENVIRONMENT}[{index}]", f"{name} is reserved for the XGBoost runtime")


def flux_problems(train_job: TrainJob, runtime: TrainingRuntimeSpec) -> Iterator[FieldProblem]:
    """Flux's brokers know each other by number, and its installer's name is taken."""
    if runtime.ml_policy is None or runtime.ml_policy.flux is None:
        return
    trainer = train_job.spec.trainer
    if trainer is None or trainer.num_nodes is None:
        yield required(NODES, "a Flux runtime needs to know its nodes beforehand: say how many")
    if names.FLUX_INSTALLER in container_names(pod_specs(runtime).get(names.NODE, {}), "initContainers"):
        yield unfit_runtime(train_job, f"InitContainer '{names.FLUX_INSTALLER}' is reserved")
