"""What a TrainJob may change of its runtime, and when."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from typing import Any, Final

import msgspec

from shoal.api.meta import dns1123_subdomain_problems
from shoal.api.trainer import JobSetSpecPatch, PodSpecPatch, TrainingRuntimeSpec, TrainJob, names
from shoal.kube.admission import FieldProblem, forbidden, invalid, required
from shoal.training.admission.rules.places import PATCHES, container_names, pod_specs

PROTECTED: Final = (names.DATASET_INITIALIZER, names.MODEL_INITIALIZER, names.NODE)
"""Containers whose environment a TrainJob sets in its own fields."""

_PATH = re.compile(r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+")


def manager_problems(train_job: TrainJob) -> Iterator[FieldProblem]:
    """A manager of patches is known by a domain and a path."""
    for index, patch in enumerate(train_job.spec.runtime_patches):
        path = f"{PATCHES}[{index}].manager"
        host, slash, rest = patch.manager.partition("/")
        if not patch.manager:
            yield required(path, 'name who makes the changes, such as "acme.io/foo"')
        elif not (slash and host and rest):
            yield invalid(path, patch.manager, 'must be a domain-prefixed path (such as "acme.io/foo")')
        else:
            for problem in dns1123_subdomain_problems(host):
                yield invalid(path, host, problem)
            if not _PATH.fullmatch(rest):
                yield invalid(path, rest, "must be a path of letters, digits and any of /-._~%!$&'()*+,;=:")


def target_problems(train_job: TrainJob, runtime: TrainingRuntimeSpec) -> Iterator[FieldProblem]:
    """A patch changes only what the runtime has: it adds neither jobs nor containers."""
    pods = pod_specs(runtime)
    for index, patch in enumerate(train_job.spec.runtime_patches):
        change = patch.training_runtime_spec.template if patch.training_runtime_spec else None
        path = f"{PATCHES}[{index}].trainingRuntimeSpec.template.spec.replicatedJobs"
        jobs = msgspec.convert(change.spec, JobSetSpecPatch).replicated_jobs if change is not None else []
        for place, job in enumerate(jobs):
            if job.name not in pods:
                yield invalid(
                    f"{path}[{place}].name",
                    job.name,
                    "must not have replicated job that doesn't exist in the runtime job template",
                )
                continue
            template = job.template.spec.template if job.template and job.template.spec else None
            if template is not None and template.spec is not None:
                where = f"{path}[{place}].template.spec.template.spec"
                yield from _container_problems(template.spec, pods[job.name], job.name, where)


def change_problems(train_job: TrainJob, old: TrainJob, active: Collection[str]) -> Iterator[FieldProblem]:
    """Patches change while nothing runs; ``active`` are the replicated jobs that still have pods."""
    if train_job.spec.runtime_patches == old.spec.runtime_patches:
        return
    if not (train_job.spec.suspend or old.spec.suspend):
        yield forbidden(
            PATCHES, "RuntimePatches can only be modified when the TrainJob is suspended before or after the update"
        )
        return
    for name in active:
        yield forbidden(
            PATCHES, f"RuntimePatches cannot be modified when the JobSet's ReplicatedJob {name} is still active"
        )


def _container_problems(patch: PodSpecPatch, pods: Mapping[str, Any], job: str, path: str) -> Iterator[FieldProblem]:
    known = container_names(pods)
    for index, container in enumerate(patch.init_containers):
        if container.name not in known:
            yield invalid(
                f"{path}.initContainers[{index}].name",
                container.name,
                f"must not have initContainer that doesn't exist in the runtime job {job}",
            )
    for index, container in enumerate(patch.containers):
        if container.name not in known:
            yield invalid(
                f"{path}.containers[{index}].name",
                container.name,
                f"must not have container that doesn't exist in the runtime job {job}",
            )
        elif container.env and container.name in PROTECTED:
            yield invalid(
                f"{path}.containers[{index}].env",
                [variable.get("name", "") for variable in container.env],
                f"must not have envs for the {', '.join(PROTECTED)} containers",
            )
