"""JobSets: what runs a TrainJob's pods, made of the runtime's template and all that plugins said of it.

A JobSet that runs is never touched: it is written while it, or its TrainJob, is suspended.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import msgspec

from shoal.api.jobset import JOB_SETS, JobSetStatus, reasons
from shoal.api.meta import Condition, Document, find_condition
from shoal.api.trainer import InitializerSource, JobStatus, TrainJob, names
from shoal.training.framework import Container, Info, Outcome, Plugin, PodSet, TrainerOverrides, Wanted
from shoal.training.framework.upserts import Json, upsert_env, upsert_mounts, upsert_volumes
from shoal.training.plugins.variables import variable

_ENDS = {reasons.COMPLETED: names.COMPLETE, reasons.FAILED: names.FAILED}
"""The conditions that end a JobSet, and what they mean for a TrainJob."""


class JobSets(Plugin):
    """Makes the JobSet, and tells from it what has come of the TrainJob."""

    name = "JobSet"
    kinds = (JOB_SETS.documents(),)
    runs = JOB_SETS.documents()

    def pre_build_sync(self, info: Info, train_job: TrainJob) -> Info:
        """The addresses of all pods."""
        name, subdomain = train_job.metadata.name, info.subdomain(train_job.metadata.name)
        return info.with_pod_sets(lambda one: replace(one, endpoints=tuple(_endpoints(one, name, subdomain))))

    def build(self, info: Info, train_job: TrainJob) -> Iterable[Wanted]:
        """The JobSet, of the TrainJob's name."""

        def is_kept(seen: Document) -> bool:
            return not train_job.spec.suspend and not (seen.content.get("spec") or {}).get("suspend")

        yield Wanted(
            resource=JOB_SETS.documents(),
            name=train_job.metadata.name,
            make=lambda: _job_set(info, train_job),
            is_kept=is_kept,
            unserved="install JobSet, or let Shoal keep JobSets",
            waits_for=info.waits_for,
        )

    def outcome(self, seen: Document) -> Outcome:
        """How its Jobs are, and how it ended."""
        status = msgspec.convert(seen.content.get("status") or {}, JobSetStatus)
        jobs = [
            JobStatus(
                name=one.name,
                ready=one.ready,
                succeeded=one.succeeded,
                failed=one.failed,
                active=one.active,
                suspended=one.suspended,
            )
            for one in status.replicated_jobs_status
        ]
        is_suspended = bool((seen.content.get("spec") or {}).get("suspend"))
        return Outcome(end=_end(status.conditions), jobs=tuple(jobs), is_suspended=is_suspended)


def _end(conditions: list[Condition]) -> Condition | None:
    """The condition that ends a TrainJob; when and why it came about stays as the JobSet says."""
    for theirs, ours in _ENDS.items():
        found = find_condition(conditions, theirs)
        if found is not None and found.status == "True":
            return msgspec.structs.replace(found, type=ours, observed_generation=0)
    return None


def _endpoints(pods: PodSet, train_job: str, subdomain: str) -> Iterator[str]:
    for replica in range(pods.replicas):
        for index in range(pods.count):
            yield names.pod_address(train_job, pods.name, replica, index, subdomain)


def _job_set(info: Info, train_job: TrainJob) -> dict[str, Any]:
    metadata = {"labels": dict(info.labels), "annotations": dict(info.annotations)}
    jobs = [
        _replicated_job(one, pods, info, train_job)
        for one, pods in zip(info.spec.get("replicatedJobs") or (), info.pod_sets, strict=True)
    ]
    spec = {**info.spec, "replicatedJobs": jobs, "suspend": train_job.spec.suspend}
    return {"metadata": {key: value for key, value in metadata.items() if value}, "spec": spec}


def _replicated_job(replicated_job: Json, pods: PodSet, info: Info, train_job: TrainJob) -> dict[str, Any]:
    template = replicated_job.get("template") or {}
    job = template.get("spec") or {}
    pod_template = job.get("template") or {}
    spec = _with_said(pod_template.get("spec") or {}, pods)
    source = _source(train_job, pods.ancestor)
    if source is not None:
        spec = _with_container(spec, pods.ancestor, lambda one: _initializer(one, source))
    if pods.ancestor == names.TRAINER_STEP:
        spec = _with_container(spec, names.NODE, lambda one: _trainer(one, info.trainer))
    if pods.ancestor == names.TRAINER_STEP or (_launcher_trains(info) and pods.name == names.NODE):
        spec = _with_container(spec, names.NODE, lambda one: _with_list(one, "env", upsert_env, info.trainer.env))
    pod_template = {**pod_template, **_with_marks(pod_template, pods), "spec": spec}
    job = {**job, "parallelism": pods.count, "completions": pods.count, "template": pod_template}
    result = {**replicated_job, "template": {**template, "spec": job}}
    return {**result, "replicas": 1} if pods.ancestor in names.ANCESTOR_CONTAINERS else result


def _launcher_trains(info: Info) -> bool:
    return info.policy.mpi is not None and info.policy.mpi.run_launcher_as_node


def _source(train_job: TrainJob, ancestor: str) -> InitializerSource | None:
    initializer = train_job.spec.initializer
    if initializer is None:
        return None
    return {names.DATASET_INITIALIZER: initializer.dataset, names.MODEL_INITIALIZER: initializer.model}.get(ancestor)


def _with_said(spec: Json, pods: PodSet) -> dict[str, Any]:
    """A pod with what plugins said of its volumes and containers, and of who schedules it."""
    result = dict(spec)
    if pods.volumes:
        result["volumes"] = list(upsert_volumes(spec.get("volumes") or (), pods.volumes))
    result["containers"] = list(_containers(spec.get("containers") or (), pods.containers))
    init_containers = list(_containers(spec.get("initContainers") or (), pods.init_containers))
    if init_containers:
        result["initContainers"] = init_containers
    if pods.scheduler:
        result["schedulerName"] = pods.scheduler
    return {**result, **pods.fields}


def _containers(present: Sequence[Json], said: Iterable[Container]) -> Iterator[dict[str, Any]]:
    """Containers with what was said of them; of those that are not there, only what was said."""
    by_name = {one.name: one for one in said}
    for container in present:
        words = by_name.pop(container.get("name", ""), None)
        yield dict(container) if words is None else _said(container, words)
    for words in by_name.values():
        yield _said({"name": words.name}, words)


def _said(container: Json, words: Container) -> dict[str, Any]:
    result = dict(container)
    if words.image:
        result["image"] = words.image
    if words.command:
        result["command"] = list(words.command)
    result = _with_list(result, "env", upsert_env, words.env)
    # Ports are as they were said: they were put in place of others when they were.
    result = {**result, "ports": list(words.ports)} if words.ports else result
    return _with_list(result, "volumeMounts", upsert_mounts, words.volume_mounts)


def _initializer(container: Json, source: InitializerSource) -> dict[str, Any]:
    uri = [] if source.storage_uri is None else [variable(names.STORAGE_URI, source.storage_uri)]
    result = _with_list(container, "env", upsert_env, [*uri, *source.env])
    if source.secret_ref is None:
        return result
    secret = {"secretRef": {"name": source.secret_ref.name}}
    return {**result, "envFrom": [*(container.get("envFrom") or ()), secret]}


def _trainer(container: Json, overrides: TrainerOverrides) -> dict[str, Any]:
    result = dict(container)
    if overrides.image is not None:
        result["image"] = overrides.image
    for field, words in (("command", overrides.command), ("args", overrides.args)):
        if words:
            result[field] = list(words)
        elif words is not None:
            result.pop(field, None)
    return result


def _with_container(spec: Json, name: str, change: Any) -> dict[str, Any]:
    containers = [change(one) if one.get("name") == name else one for one in spec.get("containers") or ()]
    return {**spec, "containers": containers}


def _with_list(container: Json, field: str, upsert: Any, new: Sequence[Json]) -> dict[str, Any]:
    return {**container, field: list(upsert(container.get(field) or (), new))} if new else dict(container)


def _with_marks(pod_template: Json, pods: PodSet) -> dict[str, Any]:
    """The labels and annotations that pods carry for their scheduler, over those of their template."""
    metadata: Mapping[str, Any] = pod_template.get("metadata") or {}
    marks = {
        kind: {**(metadata.get(kind) or {}), **said}
        for kind, said in (("labels", pods.labels), ("annotations", pods.annotations))
        if said
    }
    return {"metadata": {**metadata, **marks}} if marks else {}
