"""All rules for a TrainJob, put together."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from shoal.api.trainer import RuntimeReference, TrainingRuntimeSpec, TrainJob, names
from shoal.kube.admission import FieldProblem, invalid
from shoal.training.admission.rules.gangs import volcano_problems
from shoal.training.admission.rules.initializers import initializer_problems
from shoal.training.admission.rules.lengths import length_problems
from shoal.training.admission.rules.places import RUNTIME, shown
from shoal.training.admission.rules.policies import flux_problems, mpi_problems, xgboost_problems
from shoal.training.admission.rules.runtime_patches import change_problems, manager_problems, target_problems
from shoal.training.admission.rules.torch import torch_problems


@dataclass(frozen=True, kw_only=True)
class Surroundings:
    """What rules have to know of other objects."""

    missing_priority_classes: frozenset[str] = frozenset()
    """Of those that the runtime names."""
    active_jobs: tuple[str, ...] = ()
    """The TrainJob's replicated jobs that have pods."""


def train_job_problems(
    train_job: TrainJob,
    old: TrainJob | None,
    runtime: TrainingRuntimeSpec | None,
    around: Surroundings = Surroundings(),
) -> list[FieldProblem]:
    """What is wrong with a TrainJob or its change.

    ``runtime`` is what its runtime says; None where it is gone, and nothing is left to hold a TrainJob against.
    """
    return list(_problems(train_job, old, runtime, around))


def _problems(
    train_job: TrainJob, old: TrainJob | None, runtime: TrainingRuntimeSpec | None, around: Surroundings
) -> Iterator[FieldProblem]:
    if old is not None:
        yield from change_problems(train_job, old, around.active_jobs)
    yield from manager_problems(train_job)
    if runtime is None:
        return
    if old is None:
        yield from length_problems(train_job, runtime)
    yield from initializer_problems(train_job, runtime)
    yield from target_problems(train_job, runtime)
    yield from torch_problems(train_job, runtime)
    yield from mpi_problems(train_job, runtime)
    yield from xgboost_problems(train_job, runtime)
    yield from flux_problems(train_job, runtime)
    yield from volcano_problems(train_job, runtime, around.missing_priority_classes)


_RESOURCES = {
    names.CLUSTER_TRAINING_RUNTIME: ("clustertrainingruntimes", "clusterTrainingRuntime"),
    names.TRAINING_RUNTIME: ("trainingruntimes", "trainingRuntime"),
}
KNOWN_KINDS = frozenset(map(names.registry_key, _RESOURCES))
"""The kinds of runtimes that there are, by the key under which they are registered."""


_SHOWN = 10
"""So many runtimes are named to somebody who named none of them."""


def missing_runtime(train_job: TrainJob, present: Sequence[RuntimeReference] = ()) -> FieldProblem:
    """The runtime of a new TrainJob does not exist; ``present`` are those that do."""
    reference = train_job.spec.runtime_ref
    plural, kind = _RESOURCES[reference.kind]
    return invalid(
        RUNTIME,
        shown(reference),
        f'{plural}.{names.GROUP} "{reference.name}" not found: specified {kind} must be created before the TrainJob '
        f"is created{_hint(reference, present)}",
    )


def _hint(reference: RuntimeReference, present: Sequence[RuntimeReference]) -> str:
    """What may have been meant."""
    if other := next((one.kind for one in present if one.name == reference.name), ""):
        return f"; there is a {other} of that name: set spec.runtimeRef.kind"
    known = sorted(one.name for one in present if one.kind == reference.kind)
    if not known:
        return ""
    more = f" and {len(known) - _SHOWN} more" if len(known) > _SHOWN else ""
    return f"; there are {', '.join(known[:_SHOWN])}{more}"


def distinct(problems: Iterable[FieldProblem]) -> list[FieldProblem]:
    """Each problem once, since two rules may find the same fault."""
    return list({str(problem): problem for problem in problems}.values())
