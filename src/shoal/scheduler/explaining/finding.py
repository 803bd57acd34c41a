"""Which job somebody means: by its PodGroup, one of its pods, or the workload that its pods belong to."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from shoal.api.core.pods import Pod
from shoal.api.kai_names import POD_GROUP
from shoal.scheduler.model.cluster import Cluster
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.tasks import Task

Key = tuple[str, str]
PodOf = Callable[[Key], Pod | None]
TaskOf = Callable[[Key], Task | None]

_SHORT_NAMES: Final[Mapping[str, str]] = {
    "pg": "podgroup",
    "po": "pod",
    "tj": "trainjob",
    "pcs": "podcliqueset",
    "pclq": "podclique",
    "pcsg": "podcliquescalinggroup",
}
_LABELS: Final[Mapping[str, tuple[str, ...]]] = {
    "job": ("batch.kubernetes.io/job-name", "job-name"),
    "jobset": ("jobset.sigs.k8s.io/jobset-name",),
    "trainjob": ("trainer.kubeflow.org/trainjob-name", "jobset.sigs.k8s.io/jobset-name"),
    "podgang": ("grove.io/podgang",),
    "podclique": ("grove.io/podclique",),
    "podcliquescalinggroup": ("grove.io/podcliquescalinggroup",),
    "podcliqueset": ("app.kubernetes.io/part-of",),
    "raycluster": ("ray.io/cluster",),
    "pytorchjob": ("training.kubeflow.org/job-name",),
    "leaderworkerset": ("leaderworkerset.sigs.k8s.io/name",),
}
"""By which labels of its pods a workload is known; others are known as the owners of their pods."""


@dataclass(frozen=True, slots=True, eq=False)
class Found:
    """The jobs that were meant; where there is none, why."""

    jobs: tuple[Job, ...] = ()
    message: str = ""


def kind_of(text: str) -> str:
    """A kind as people type it: in any case, in the plural, short or with its group."""
    word = text.lower().partition(".")[0]
    word = _SHORT_NAMES.get(word, word)
    return word[:-1] if word.endswith("s") and word[:-1] in {*_LABELS, "podgroup", "pod"} else word


def find(cluster: Cluster, kind: str, namespace: str, name: str, *, task_of: TaskOf, pod_of: PodOf) -> Found:
    """The jobs of an object. ``task_of`` and ``pod_of``: what is known of a pod, by namespace and name."""
    word = kind_of(kind)
    if word == "podgroup":
        job = cluster.jobs.get((namespace, name))
        return Found((job,)) if job else Found(message=f"there is no PodGroup {namespace}/{name} of this scheduler")
    if word == "pod":
        return _of_pod(cluster, (namespace, name), task_of, pod_of)
    jobs = tuple(_of_workload(cluster, word, namespace, name, pod_of))
    if jobs:
        return Found(jobs)
    return Found(
        message=f"no pod in namespace {namespace} that this scheduler knows belongs to {word} {name}: "
        "its pods do not exist yet, are not in a PodGroup yet, or are another scheduler's"
    )


def _of_pod(cluster: Cluster, key: Key, task_of: TaskOf, pod_of: PodOf) -> Found:
    where = "/".join(key)
    task, pod = task_of(key), pod_of(key)
    if task is None:
        return Found(message=f"there is no pod {where}, or it has ended")
    if cluster.jobs.get(task.job.key) is task.job:
        return Found((task.job,))
    if pod is not None and (group := pod.metadata.annotations.get(POD_GROUP)):
        return Found(message=f"PodGroup {group} of pod {where} does not exist: the pod waits for it")
    if pod is not None and pod.spec.scheduler_name:
        whose = pod.spec.scheduler_name
        return Found(message=f"pod {where} is not in a PodGroup yet, or not this scheduler's: it asks for {whose}")
    return Found(message=f"pod {where} is not in a PodGroup yet")


def _of_workload(cluster: Cluster, kind: str, namespace: str, name: str, pod_of: PodOf) -> Iterator[Job]:
    labels = _LABELS.get(kind, ())
    for job in cluster.jobs.values():
        if job.namespace != namespace:
            continue
        for task in job.tasks.values():
            if any(task.labels.get(label) == name for label in labels) or _is_owned(pod_of(task.key), kind, name):
                yield job
                break


def _is_owned(pod: Pod | None, kind: str, name: str) -> bool:
    if pod is None:
        return False
    return any(owner.kind.lower() == kind and owner.name == name for owner in pod.metadata.owner_references)
