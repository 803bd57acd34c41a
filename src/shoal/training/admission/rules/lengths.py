"""A TrainJob's name is a part of its pods' names, which have to do as host names."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from shoal.api.jobset import names as job_set_names
from shoal.api.meta import LABEL_LIMIT
from shoal.api.trainer import MLPolicy, TrainingRuntimeSpec, TrainJob, names
from shoal.kube.admission import FieldProblem, invalid
from shoal.training.framework.resources import ancestor_of

_SUFFIX: Final = len("-abcde")
"""What the Job controller adds to the name of a pod."""


def length_problems(train_job: TrainJob, runtime: TrainingRuntimeSpec) -> Iterator[FieldProblem]:
    """Whether the names of its pods would be too long, told once, of the longest."""
    name = train_job.metadata.name
    jobs = runtime.template.spec.get("replicatedJobs") or ()
    longest = max((_last_pod(train_job, one, runtime.ml_policy or MLPolicy()) for one in jobs), key=len, default="")
    excess = len(longest) + _SUFFIX - LABEL_LIMIT
    if excess > 0:
        yield invalid(
            "metadata.name",
            name,
            f"must be no more than {len(name) - excess} characters with this runtime: its last pod would be called "
            f"{longest} and {_SUFFIX} characters more, and {LABEL_LIMIT} are the most",
        )


def _last_pod(train_job: TrainJob, replicated_job: Mapping[str, Any], policy: MLPolicy) -> str:
    template, name = replicated_job.get("template") or {}, replicated_job.get("name", "")
    # With MPI the trainer is the launcher, of which there is one.
    trains = name == names.NODE if policy.mpi else ancestor_of(template) == names.TRAINER_STEP
    asked = train_job.spec.trainer.num_nodes if train_job.spec.trainer else None
    count = (template.get("spec") or {}).get("parallelism")
    if trains:
        count = policy.num_nodes if asked is None else asked
    job = job_set_names.job_name(train_job.metadata.name, name, max((replicated_job.get("replicas") or 1) - 1, 0))
    return job_set_names.pod_host_name(job, max((count or 1) - 1, 0))
