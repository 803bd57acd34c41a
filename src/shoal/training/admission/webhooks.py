"""The webhooks of training, at the paths and under the names that Kubeflow Trainer's own have.

Who knows Trainer's configurations by name finds the same ones here: where both are installed, one replaces the other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import Any, Final, TypeAlias

import shoal.api.meta
from shoal.api.meta import Document
from shoal.api.trainer import (
    CLUSTER_TRAINING_RUNTIMES,
    TRAIN_JOBS,
    TRAINING_RUNTIMES,
    ClusterTrainingRuntime,
    TrainingRuntime,
    TrainingRuntimeSpec,
    TrainJob,
    names,
)
from shoal.kube.admission import (
    Change,
    Denied,
    FieldProblem,
    Finding,
    Operation,
    ServiceEndpoint,
    UrlEndpoint,
    Warn,
    Webhook,
    Webhooks,
    mutating_configuration,
    validating_configuration,
)
from shoal.kube.errors import Cause, Status, StatusDetails
from shoal.training.admission.lookups import Lookups
from shoal.training.admission.patch_times import with_patch_times
from shoal.training.admission.rules.gangs import priority_classes
from shoal.training.admission.runtimes import deprecation_warning, is_deprecated, runtime_problems
from shoal.training.admission.validation import (
    KNOWN_KINDS,
    Surroundings,
    distinct,
    missing_runtime,
    train_job_problems,
)

DEFAULTER: Final = "defaulter.trainer.kubeflow.org"
VALIDATOR: Final = "validator.trainer.kubeflow.org"
"""The two configurations: of what fills in, and of what checks."""

CHECKED: Final = {
    "matchExpressions": [
        {"key": names.VALIDATION_LABEL, "operator": "NotIn", "values": [names.VALIDATION_DISABLED]},
    ]
}
"""All runtimes but those that say that they need not be: such as come with Trainer, and may be there before us."""

_HAS_PATCHES: Final = {
    "name": "runtime-patches",
    "expression": "has(object.spec) && has(object.spec.runtimePatches)",
}
"""Only patches are stamped, and most TrainJobs have none: of those nobody need ask."""

PluginProblems: TypeAlias = Callable[[TrainJob | None, TrainJob, TrainingRuntimeSpec], Iterable[FieldProblem]]


def no_plugins(old: TrainJob | None, new: TrainJob, runtime: TrainingRuntimeSpec) -> Iterable[FieldProblem]:
    """Nobody else has anything to say."""
    return ()


def training_webhooks(
    lookups: Lookups,
    *,
    plugin_problems: PluginProblems = no_plugins,
    now: Callable[[], datetime] = shoal.api.meta.now,
) -> Webhooks:
    """All webhooks of training. ``plugin_problems`` is what plugins of third parties have to say of a TrainJob."""
    webhooks = Webhooks()

    @webhooks.mutating(
        TRAIN_JOBS.documents(),
        path="/mutate-trainer-kubeflow-org-v1alpha1-trainjob",
        name="defaulter.trainjob.trainer.kubeflow.org",
        match_conditions=(_HAS_PATCHES,),
    )
    def timed(change: Change[Document]) -> Document:
        before = change.old.content if change.old is not None else None
        return Document.of(with_patch_times(change.object.content, before, now()))

    @webhooks.validating(
        CLUSTER_TRAINING_RUNTIMES,
        path="/validate-trainer-kubeflow-org-v1alpha1-clustertrainingruntime",
        name="validator.clustertrainingruntime.trainer.kubeflow.org",
        object_selector=CHECKED,
    )
    def sound_cluster_runtime(change: Change[ClusterTrainingRuntime]) -> Iterator[Finding]:
        runtime = change.object
        if change.operation is Operation.CREATE and is_deprecated(runtime.metadata.labels):
            yield Warn(deprecation_warning(runtime.metadata.name))
        yield from refusals(runtime_problems(runtime.spec))

    @webhooks.validating(
        TRAINING_RUNTIMES,
        path="/validate-trainer-kubeflow-org-v1alpha1-trainingruntime",
        name="validator.trainingruntime.trainer.kubeflow.org",
        object_selector=CHECKED,
    )
    def sound_runtime(change: Change[TrainingRuntime]) -> Iterator[Finding]:
        if change.operation is Operation.CREATE:
            if is_deprecated(change.object.metadata.labels):
                yield Warn(deprecation_warning(change.object.metadata.name, kind=names.TRAINING_RUNTIME))
            yield from refusals(runtime_problems(change.object.spec))

    @webhooks.validating(
        TRAIN_JOBS,
        path="/validate-trainer-kubeflow-org-v1alpha1-trainjob",
        name="validator.trainjob.trainer.kubeflow.org",
    )
    async def sound_train_job(change: Change[TrainJob]) -> list[Finding]:
        return await _train_job_findings(change, lookups, plugin_problems)

    return webhooks


async def _train_job_findings(
    change: Change[TrainJob], lookups: Lookups, plugin_problems: PluginProblems
) -> list[Finding]:
    train_job, is_new = change.object, change.operation is Operation.CREATE
    reference = train_job.spec.runtime_ref
    if reference.key not in KNOWN_KINDS:
        return [Denied(names.unsupported_runtime_message(reference.key))]
    namespace, name = change.request.namespace, train_job.metadata.name
    found = await lookups.runtime(reference, namespace)
    if found is None and is_new:
        return list(refusals([missing_runtime(train_job, await lookups.runtimes(namespace))]))
    warnings: list[Finding] = []
    if found is not None and is_deprecated(found.metadata.labels):
        warnings.append(Warn(deprecation_warning(reference.name, kind=reference.kind, is_referenced=True)))
    # A runtime may be deleted while TrainJobs run by it: they go on by what they kept of it, and stay changeable.
    runtime = found.spec if found is not None else await lookups.snapshot(namespace, name)
    around = await _surroundings(change, runtime, lookups)
    problems = train_job_problems(train_job, change.old, runtime, around)
    if runtime is not None:
        problems += plugin_problems(change.old, train_job, runtime)
    return [*warnings, *refusals(problems)]


async def _surroundings(
    change: Change[TrainJob], runtime: TrainingRuntimeSpec | None, lookups: Lookups
) -> Surroundings:
    """Only what a rule will ask for is read."""
    old, new = change.old, change.object
    active: tuple[str, ...] = ()
    if old is not None and old.spec.runtime_patches != new.spec.runtime_patches:
        active = await lookups.active_jobs(change.request.namespace, new.metadata.name)
    named = priority_classes(runtime) if runtime is not None else []
    missing = frozenset([name for name in named if not await lookups.has_priority_class(name)])
    return Surroundings(missing_priority_classes=missing, active_jobs=active)


def refusals(problems: Iterable[FieldProblem]) -> Iterator[Denied]:
    """One refusal with all problems, forbidden and not invalid: so say Trainer's webhooks, and clients tell by it."""
    found = distinct(problems)
    if not found:
        return
    told = [str(problem) for problem in found]
    message = told[0] if len(told) == 1 else f"[{', '.join(told)}]"
    causes = [Cause(reason=each.reason.cause, message=each.words, field=each.path) for each in found]
    denied = Denied(message)
    status = Status(message=message, reason=denied.reason, code=denied.code, details=StatusDetails(causes=causes))
    yield Denied(message, status=status)


def webhook_configurations(
    webhooks: Iterable[Webhook], endpoint: ServiceEndpoint | UrlEndpoint, *, authorities: bytes = b""
) -> list[dict[str, Any]]:
    """The two objects by which an API server learns of these webhooks."""
    known = list(webhooks)
    return [
        mutating_configuration(DEFAULTER, known, endpoint, authorities=authorities),
        validating_configuration(VALIDATOR, known, endpoint, authorities=authorities),
    ]
