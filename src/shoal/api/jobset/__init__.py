"""jobset.x-k8s.io: JobSets, several kinds of Jobs that run, succeed, fail and restart as one.

``names`` has every label and generated name, ``reasons`` what conditions and events say. ``JobSetSpec`` also stands in
the kinds that embed a JobSet's specification, and its schema with it.
"""

from shoal.api.jobset import job_sets
from shoal.api.jobset.job_sets import (
    JOB_SETS,
    ClaimRetention,
    Coordinator,
    DependsOn,
    FailurePolicy,
    FailureRule,
    JobSet,
    JobSetSpec,
    JobSetStatus,
    Network,
    ReplicatedJob,
    ReplicatedJobStatus,
    StartupPolicy,
    SuccessPolicy,
    VolumeClaimPolicy,
)
from shoal.api.jobset.names import GROUP
from shoal.api.jobset.templates import JobSpecShape, JobTemplateShape

DEFINITIONS = (job_sets.DEFINITION,)

__all__ = [
    "DEFINITIONS",
    "GROUP",
    "JOB_SETS",
    "ClaimRetention",
    "Coordinator",
    "DependsOn",
    "FailurePolicy",
    "FailureRule",
    "JobSet",
    "JobSetSpec",
    "JobSetStatus",
    "JobSpecShape",
    "JobTemplateShape",
    "Network",
    "ReplicatedJob",
    "ReplicatedJobStatus",
    "StartupPolicy",
    "SuccessPolicy",
    "VolumeClaimPolicy",
]
