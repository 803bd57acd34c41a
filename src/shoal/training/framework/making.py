"""Making an ``Info`` of a TrainJob and its runtime: patches, resources, and pods by replicated job."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from shoal.api.meta import QuantityString
from shoal.api.trainer import MLPolicy, ResourcesPerNode, TrainingRuntimeSpec, TrainJob, names
from shoal.training.framework.info import Container, Info, PodSet, Seen, TrainerOverrides, nothing_seen
from shoal.training.framework.resources import ancestor_of, canonical, pod_requests, pod_spec_of
from shoal.training.framework.upserts import Json
from shoal.training.patches import patched_template


def make_info(train_job: TrainJob, runtime: TrainingRuntimeSpec, seen: Seen = nothing_seen) -> Info:
    """A runtime as it applies to a TrainJob, before any plugin."""
    template = patched_template(runtime.template, train_job.spec.runtime_patches)
    metadata = template.metadata
    trainer = train_job.spec.trainer
    resources = trainer.resources_per_node if trainer else None
    jobs = [_with_resources(one, resources, runtime.ml_policy) for one in template.spec.get("replicatedJobs") or ()]
    spec = {**template.spec, "replicatedJobs": jobs} if "replicatedJobs" in template.spec else template.spec
    return Info(
        runtime=train_job.spec.runtime_ref.name,
        labels=metadata.labels if metadata else {},
        annotations=metadata.annotations if metadata else {},
        spec=spec,
        pod_sets=tuple(_pod_set(one, runtime.ml_policy) for one in jobs),
        ml_policy=runtime.ml_policy,
        pod_group_policy=runtime.pod_group_policy,
        trainer=_overrides(train_job),
        seen=seen,
    )


def _overrides(train_job: TrainJob) -> TrainerOverrides:
    trainer = train_job.spec.trainer
    if trainer is None:
        return TrainerOverrides()
    return TrainerOverrides(
        image=trainer.image,
        command=None if trainer.command is None else tuple(trainer.command),
        args=None if trainer.args is None else tuple(trainer.args),
        env=tuple(trainer.env),
    )


def _pod_set(replicated_job: Json, policy: MLPolicy | None) -> PodSet:
    template = replicated_job.get("template") or {}
    ancestor = ancestor_of(template)
    pod_spec = pod_spec_of(template)
    replicas = replicated_job.get("replicas")
    return PodSet(
        name=replicated_job.get("name", ""),
        ancestor=ancestor,
        count=_count(template, ancestor, policy),
        # What has a part in a TrainJob has it once, whatever the template says.
        replicas=1 if ancestor in names.ANCESTOR_CONTAINERS or replicas is None else replicas,
        containers=tuple(map(Container.of, pod_spec.get("containers") or ())),
        init_containers=tuple(map(Container.of, pod_spec.get("initContainers") or ())),
        volumes=tuple(pod_spec.get("volumes") or ()),
        requests=pod_requests(pod_spec),
        depends_on={one["name"]: one.get("status", "") for one in replicated_job.get("dependsOn") or ()},
        scheduler=pod_spec.get("schedulerName") or "",
        priority_class=pod_spec.get("priorityClassName") or "",
    )


def _count(template: Json, ancestor: str, policy: MLPolicy | None) -> int:
    """How many pods a Job has: as the policy says for those that train, at least one.

    With MPI the trainer is the launcher, of which there is one; how many workers there are is for the plugin to say.
    """
    if ancestor == names.TRAINER_STEP and policy is not None and policy.mpi is None:
        count = policy.num_nodes
    else:
        count = (template.get("spec") or {}).get("parallelism")
    return max(1, 1 if count is None else count)


def _with_resources(replicated_job: Json, resources: ResourcesPerNode | None, policy: MLPolicy | None) -> Json:
    """A replicated job whose nodes ask for what the TrainJob says, over what the runtime says."""
    template = replicated_job.get("template") or {}
    is_node = ancestor_of(template) == names.TRAINER_STEP or (
        replicated_job.get("name") == names.NODE
        and policy is not None
        and policy.mpi is not None
        and policy.mpi.run_launcher_as_node
    )
    if resources is None or not is_node:
        return replicated_job
    job = template.get("spec") or {}
    pods = job.get("template") or {}
    pod_spec = pods.get("spec") or {}
    containers = [
        {**one, "resources": _merged(one.get("resources") or {}, resources)} if one.get("name") == names.NODE else one
        for one in pod_spec.get("containers") or ()
    ]
    pods = {**pods, "spec": {**pod_spec, "containers": containers}}
    return {**replicated_job, "template": {**template, "spec": {**job, "template": pods}}}


def _merged(runtime: Json, own: ResourcesPerNode) -> dict[str, Any]:
    """Amounts by name, the TrainJob's over the runtime's; claims as the TrainJob has them where it has any."""
    merged = dict(runtime)
    for kind, mine in (("requests", own.requests), ("limits", own.limits)):
        theirs: Mapping[str, QuantityString] = runtime.get(kind) or {}
        if mine or theirs:
            merged[kind] = {**theirs, **canonical(mine)}
    if own.claims:
        merged["claims"] = own.claims
    return merged
