"""What a TrainJob needs for its pods to be scheduled together by Volcano."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from shoal.api.trainer import TrainingRuntimeSpec, TrainJob, names
from shoal.kube.admission import FieldProblem
from shoal.training.admission.rules.places import pod_specs, unfit_runtime
from shoal.training.patches import patched_template


def volcano_problems(
    train_job: TrainJob, runtime: TrainingRuntimeSpec, missing: Collection[str]
) -> Iterator[FieldProblem]:
    """The queue has a name, and so has the priority; ``missing`` are priority classes that do not exist."""
    if not _uses_volcano(runtime):
        return
    metadata = patched_template(runtime.template, train_job.spec.runtime_patches).metadata
    if metadata is not None and metadata.annotations.get(names.VOLCANO_QUEUE_ANNOTATION) == "":
        yield unfit_runtime(
            train_job, f"Volcano queue name must not be empty: see annotation {names.VOLCANO_QUEUE_ANNOTATION}"
        )
    for name in priority_classes(runtime):
        if name in missing:
            yield unfit_runtime(train_job, f'PriorityClass "{name}" doesn\'t exist')


def priority_classes(runtime: TrainingRuntimeSpec) -> list[str]:
    """The priority classes that must exist for Volcano: the system's own always do."""
    if not _uses_volcano(runtime):
        return []
    named = [pod_spec.get("priorityClassName") or "" for pod_spec in pod_specs(runtime).values()]
    return list(dict.fromkeys(name for name in named if name and name not in names.SYSTEM_PRIORITY_CLASSES))


def _uses_volcano(runtime: TrainingRuntimeSpec) -> bool:
    return runtime.pod_group_policy is not None and runtime.pod_group_policy.volcano is not None
