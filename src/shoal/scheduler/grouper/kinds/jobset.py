"""JobSets: a part for each replicated job, and in it a part for each of its Jobs."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Final

from shoal.api import kai_names
from shoal.api.scheduling_run_ai import SubGroup, TopologyConstraint
from shoal.scheduler.grouper.base import flat_group
from shoal.scheduler.grouper.case import Case
from shoal.scheduler.grouper.fields import (
    Json,
    Ungroupable,
    annotations_of,
    count,
    described,
    mapping,
    number,
    text,
    whole,
)
from shoal.scheduler.grouper.pods import GroupedPod
from shoal.scheduler.grouper.wanted import GroupWanted, annotated_constraint

REPLICATED_JOB: Final = "jobset.sigs.k8s.io/replicatedjob-name"
JOB_INDEX: Final = "jobset.sigs.k8s.io/job-index"
"""Labels of a JobSet's pods."""

_JOBS: Final = ("spec", "replicatedJobs")


def job_set(case: Case) -> GroupWanted:
    """All replicated jobs start together; where they start in order, the first that can."""
    jobs = count(case.top, *_JOBS)
    if not jobs:
        raise Ungroupable(f"{described(case.top)} has no replicatedJobs in its spec: add one")
    by_job = {parts[0].name: parts for index in range(jobs) if (parts := _parts(case.top, index))}

    def part_of(pod: GroupedPod) -> str:
        labels, where = pod.metadata.labels, f"pod {pod.metadata.namespace}/{pod.metadata.name}"
        for label in (REPLICATED_JOB, JOB_INDEX):
            if not labels.get(label):
                raise Ungroupable(f"{where} of {described(case.top)} has no label {label}: it is in no part without it")
        job, index = labels[REPLICATED_JOB], whole(labels[JOB_INDEX], f"label {JOB_INDEX} of {where}", least=0)
        # The first of a job's parts is the job itself.
        if index + 1 >= len(by_job.get(job, ())):
            raise Ungroupable(f"{where} is of {job!r} {index}, which {described(case.top)} does not have (any more)")
        return _replica(job, index)

    minimum = _least_jobs(case.top, len(by_job))
    parts = tuple(part for of_job in by_job.values() for part in of_job)
    return replace(flat_group(case), min_member=None, min_sub_group=minimum, sub_groups=parts, part_of=part_of)


def _least_jobs(job_set: Json, jobs: int) -> int:
    said = annotations_of(job_set).get(kai_names.BATCH_MIN_MEMBER)
    if said is not None:
        where = f"annotation {kai_names.BATCH_MIN_MEMBER} of {described(job_set)}"
        return min(jobs, whole(said, where, least=1))
    return 1 if text(job_set, "spec", "startupPolicy", "startupPolicyOrder") == "InOrder" else jobs


def _parts(job_set: Json, index: int) -> tuple[SubGroup, ...]:
    """A replicated job, and its replicas."""
    path = (*_JOBS, index)
    name = text(job_set, *path, "name")
    if not name:
        raise Ungroupable(f"{described(job_set)} has a replicated job without a name: name it")
    replicas = number(job_set, *path, "replicas")
    annotations = dict(mapping(job_set, *path, "template", "metadata", "annotations"))
    placement = annotated_constraint(annotations)
    is_placed = (
        placement and placement.topology and (placement.required_topology_level or placement.preferred_topology_level)
    )
    return _replicas(
        name,
        1 if replicas is None else replicas,
        _least_pods(job_set, index, annotations),
        placement if is_placed else None,
    )


@lru_cache(maxsize=1024)
def _replicas(name: str, replicas: int, minimum: int, placement: TopologyConstraint | None) -> tuple[SubGroup, ...]:
    """One part and those in it, and nothing for a job without Jobs; the same for each pod of the JobSet."""
    if replicas < 1:
        return ()
    leaves = (
        SubGroup(name=_replica(name, index), parent=name, min_member=minimum, topology_constraint=placement)
        for index in range(replicas)
    )
    return (SubGroup(name=name, min_sub_group=replicas), *leaves)


def _least_pods(job_set: Json, index: int, annotations: dict[str, str]) -> int:
    said = annotations.get(kai_names.BATCH_MIN_MEMBER)
    if said:
        where = f"annotation {kai_names.BATCH_MIN_MEMBER} of a replicated job of {described(job_set)}"
        return whole(said, where, least=1)
    parallelism = number(job_set, *_JOBS, index, "template", "spec", "parallelism")
    return 1 if parallelism is None else parallelism


def _replica(job: str, index: int) -> str:
    return f"{job}-replica-{index}"
