"""The table of rules, and how a pod's rule is found in it."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from shoal.scheduler.grouper.case import Case
from shoal.scheduler.grouper.fields import group_kind
from shoal.scheduler.grouper.kinds.grove import pod_clique_set, pod_gang_beside
from shoal.scheduler.grouper.kinds.jobset import job_set
from shoal.scheduler.grouper.kinds.karta import karta
from shoal.scheduler.grouper.kinds.knative import knative_service
from shoal.scheduler.grouper.kinds.kubeflow import mpi_job, roles
from shoal.scheduler.grouper.kinds.leader_worker_set import leader_worker_set
from shoal.scheduler.grouper.kinds.pytorch import pytorch_job
from shoal.scheduler.grouper.kinds.ray import ray, ray_cluster_beside
from shoal.scheduler.grouper.kinds.reference import Reference
from shoal.scheduler.grouper.kinds.simple import (
    anything,
    azure_ml_job,
    cron_job,
    deployment,
    job,
    notebook,
    runai_job,
    spot_request,
)
from shoal.scheduler.grouper.wanted import GroupWanted

Rule = Callable[[Case], GroupWanted]
GroupKind = tuple[str, str]

RULES: Final[Mapping[GroupKind, Rule]] = {
    ("", "Pod"): anything,
    ("apps", "Deployment"): deployment,
    ("apps", "ReplicaSet"): anything,
    ("apps", "StatefulSet"): anything,
    ("batch", "CronJob"): cron_job,
    ("batch", "Job"): job,
    ("amlarc.azureml.com", "AmlJob"): azure_ml_job,
    ("egx.nvidia.io", "SPOTRequest"): spot_request,
    ("grove.io", "PodCliqueSet"): pod_clique_set,
    ("grove.io", "PodGangSet"): pod_clique_set,
    ("jobset.x-k8s.io", "JobSet"): job_set,
    ("kubeflow.org", "JAXJob"): roles("jaxReplicaSpecs", needed=("Worker",)),
    ("kubeflow.org", "MPIJob"): mpi_job,
    ("kubeflow.org", "Notebook"): notebook,
    ("kubeflow.org", "PyTorchJob"): pytorch_job,
    ("kubeflow.org", "ScheduledWorkflow"): anything,
    ("kubeflow.org", "TFJob"): roles("tfReplicaSpecs"),
    ("kubeflow.org", "XGBoostJob"): roles("xgbReplicaSpecs", needed=("Master", "Worker")),
    ("kubevirt.io", "VirtualMachine"): anything,
    ("kubevirt.io", "VirtualMachineInstance"): anything,
    ("leaderworkerset.x-k8s.io", "LeaderWorkerSet"): leader_worker_set,
    ("machinelearning.seldon.io", "SeldonDeployment"): anything,
    ("ray.io", "RayCluster"): ray,
    ("ray.io", "RayJob"): ray,
    ("ray.io", "RayService"): ray,
    ("run.ai", "RunaiJob"): runai_job,
    ("serving.knative.dev", "Service"): knative_service,
    ("sparkoperator.k8s.io", "SparkApplication"): anything,
    ("tekton.dev", "PipelineRun"): anything,
    ("tekton.dev", "TaskRun"): anything,
    ("workspace.devfile.io", "DevWorkspace"): anything,
}
"""By group and kind of the topmost owner; every other kind is grouped as a definition says, or as ``anything``."""

SKIPPED: Final = frozenset(
    {
        ("argoproj.io", "Workflow"),
        ("nvidia.com", "DynamoGraphDeployment"),
        ("run.ai", "DistributedInferenceWorkload"),
        ("run.ai", "DistributedWorkload"),
        ("run.ai", "InferenceWorkload"),
        ("run.ai", "InteractiveWorkload"),
        ("run.ai", "TrainingWorkload"),
        ("trainer.kubeflow.org", "TrainJob"),
    }
)
"""Kinds that hold several workloads, or wrap one: the next owner below is grouped, and inherits what they say."""

_BESIDE: Final[Mapping[GroupKind, Callable[[Case], Reference | None]]] = {
    ("grove.io", "PodCliqueSet"): pod_gang_beside,
    ("grove.io", "PodGangSet"): pod_gang_beside,
    ("ray.io", "RayJob"): ray_cluster_beside,
    ("ray.io", "RayService"): ray_cluster_beside,
}

_BETWEEN: Final = frozenset(
    {
        ("grove.io", "PodClique"),
        ("grove.io", "PodCliqueScalingGroup"),
        ("scheduler.grove.io", "PodGang"),
        ("serving.knative.dev", "Configuration"),
        ("serving.knative.dev", "Revision"),
    }
)
"""Kinds that lie between a pod and its topmost owner, or beside them."""

KNOWN_KINDS: Final = frozenset({*RULES, *SKIPPED, *_BETWEEN} - {("", "Pod")})
"""The kinds that are worth a watch of their own."""

READ_WHOLE: Final = frozenset(
    kind
    for kind in KNOWN_KINDS
    if kind[0] in ("amlarc.azureml.com", "jobset.x-k8s.io", "leaderworkerset.x-k8s.io", "ray.io", "scheduler.grove.io")
    or (kind[0] == "kubeflow.org" and kind[1].endswith("Job"))
)
"""The kinds of which a rule reads more than the metadata."""


def subject(case: Case) -> Case:
    """The case with the owner on top that the group is made for."""
    while case.owners and group_kind(case.top) in SKIPPED:
        case = case.below_top()
    return case


def beside(case: Case) -> Reference | None:
    """The object that the rule of a ``subject`` wants to see beside its owners."""
    find = _BESIDE.get(group_kind(case.top))
    return None if find is None else find(case)


def wanted_group(case: Case) -> GroupWanted:
    """The group of a pod, by the rule of its ``subject``; raises Ungroupable where there can be none."""
    case = subject(case)
    if rule := RULES.get(group_kind(case.top)):
        return rule(case)
    definition = case.facts.definitions.get((case.top["apiVersion"], case.top["kind"]))
    return anything(case) if definition is None else karta(case, definition)
