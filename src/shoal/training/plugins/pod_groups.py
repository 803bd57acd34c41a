"""What all kinds of gangs have in common: an object that is written while the TrainJob is suspended, and then left."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from shoal.api import kai_names
from shoal.api.meta import Document, Resource
from shoal.api.trainer import PodGroupPolicy, TrainJob
from shoal.training.framework import Gang, Info, PodSet, Wanted


def group(
    resource: Resource[Any], name: str, body: Mapping[str, Any], train_job: TrainJob, *, unserved: str,
    initial: Mapping[str, Any] | None = None,
) -> Wanted:  # fmt: skip
    """A PodGroup. One that is there is kept unless the TrainJob is suspended: its pods are counted by it."""

    def is_kept(seen: Document) -> bool:
        return not train_job.spec.suspend

    return Wanted(
        resource=resource.documents(), name=name, make=lambda: body, is_kept=is_kept, unserved=unserved, initial=initial
    )


def wants_gang_by_queue(info: Info, train_job: TrainJob) -> bool:
    """Whether a TrainJob names a queue, and its runtime no kind of gang."""
    policy = info.pod_group_policy
    return (policy is None or policy == PodGroupPolicy()) and bool(train_job.metadata.labels.get(kai_names.QUEUE))


def named_scheduler(info: Info) -> str:
    """The scheduler that the templates of a TrainJob's pods name; empty where they name none."""
    return next((pods.scheduler for pods in info.pod_sets if pods.scheduler), "")


def with_marks(
    info: Info,
    gang: Gang,
    *,
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
) -> Info:
    """The pods of a gang with what their scheduler knows it by."""

    def mark(pods: PodSet) -> PodSet:
        if not gang.has(pods):
            return pods
        return replace(
            pods,
            labels={**pods.labels, **(labels or {})},
            annotations={**pods.annotations, **(annotations or {})},
        )

    return info.with_pod_sets(mark)
