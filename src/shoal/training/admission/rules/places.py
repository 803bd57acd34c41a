"""Where in a TrainJob something stands, and what of its runtime rules look at."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

from shoal.api.trainer import RuntimeReference, TrainingRuntimeSpec, TrainJob
from shoal.kube.admission import FieldProblem, invalid
from shoal.training.framework.resources import pod_spec_of

RUNTIME: Final = "spec.runtimeRef"
RUNTIME_NAME: Final = f"{RUNTIME}.name"
PATCHES: Final = "spec.runtimePatches"
TRAINER: Final = "spec.trainer"
ENVIRONMENT: Final = f"{TRAINER}.env"
NODES: Final = f"{TRAINER}.numNodes"
PROCESSES: Final = f"{TRAINER}.numProcPerNode"
RESOURCES: Final = f"{TRAINER}.resourcesPerNode"
ARGUMENTS: Final = f"{TRAINER}.args"


def shown(reference: RuntimeReference) -> dict[str, str]:
    """A reference with all that it says, to be shown."""
    return {"apiGroup": reference.api_group, "kind": reference.kind, "name": reference.name}


def unfit_runtime(train_job: TrainJob, message: str) -> FieldProblem:
    """The runtime lacks what the TrainJob needs of it."""
    return invalid(RUNTIME, shown(train_job.spec.runtime_ref), message)


def pod_specs(runtime: TrainingRuntimeSpec) -> dict[str, Mapping[str, Any]]:
    """The pods of each of a runtime's replicated jobs, by its name."""
    jobs = runtime.template.spec.get("replicatedJobs") or ()
    return {job.get("name", ""): pod_spec_of(job.get("template") or {}) for job in jobs}


def container_names(pod_spec: Mapping[str, Any], *fields: str) -> set[str]:
    """The names of containers: of all, or of those in these fields."""
    chosen = fields or ("initContainers", "containers")
    return {container.get("name", "") for field in chosen for container in pod_spec.get(field) or ()}


def reserved_variables(train_job: TrainJob, reserved: Collection[str]) -> Iterator[FieldProblem]:
    """A TrainJob sets no variable that its runtime sets. Values are not shown: they may be secret."""
    trainer = train_job.spec.trainer
    found = sorted({variable.get("name", "") for variable in (trainer.env if trainer else ())} & set(reserved))
    if found:
        yield invalid(ENVIRONMENT, found, f"must not have reserved envs, invalid envs configured: [{' '.join(found)}]")
