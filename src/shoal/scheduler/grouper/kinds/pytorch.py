"""PyTorchJobs: a master and workers, of which an elastic job needs only some, and which may be cut into segments."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Final

from shoal.api import kai_names
from shoal.api.scheduling_run_ai import SubGroup
from shoal.scheduler.grouper.base import flat_group
from shoal.scheduler.grouper.case import Case
from shoal.scheduler.grouper.fields import Json, Ungroupable, annotations_of, described, mapping, number, whole
from shoal.scheduler.grouper.kinds.kubeflow import REPLICA_INDEX, policy_minimum, replicas_by_role, role_of
from shoal.scheduler.grouper.pods import GroupedPod
from shoal.scheduler.grouper.segments import check_segments, segment_constraint, segments
from shoal.scheduler.grouper.wanted import GroupWanted

_SPECS: Final = "pytorchReplicaSpecs"
_MASTER, _WORKER = "master", "worker"


def pytorch_job(case: Case) -> GroupWanted:
    """All replicas, or as many as the elastic or the scheduling policy asks for; parts for master and workers."""
    job = case.top
    elastic, policy = number(job, "spec", "elasticPolicy", "minReplicas"), policy_minimum(job)
    said = elastic if policy is None else policy
    replicas = _replicas(job, is_checked=policy is None)
    minimum = sum(replicas.values()) if said is None else said
    masters = replicas.get(_MASTER, 0)
    parts = [SubGroup(name=_MASTER, min_member=masters)] if masters else []
    size = 0
    if _WORKER in replicas:
        # A job that is scaled to no workers has nothing to cut.
        size = _segment_size(case) if replicas[_WORKER] else 0
        if size:
            parts += _segmented(case, size, workers=replicas[_WORKER], minimum=max(0, minimum - masters))
        else:
            parts.append(SubGroup(name=_WORKER, min_member=max(0, minimum - masters)))
    part_of = _part_of(replicas, size)
    return replace(flat_group(case), min_member=minimum, sub_groups=tuple(parts), part_of=part_of)


def _replicas(job: Json, *, is_checked: bool) -> dict[str, int]:
    """The pods of each role by its label; where a policy says the minimum, roles may be empty."""
    if is_checked:
        return {role.lower(): count for role, count in replicas_by_role(job, _SPECS).items()}
    found = {role: number(job, "spec", _SPECS, role, "replicas") for role in mapping(job, "spec", _SPECS)}
    return {role.lower(): 1 if count is None else count for role, count in found.items()}


def _segmented(case: Case, size: int, *, workers: int, minimum: int) -> list[SubGroup]:
    """The workers in segments; those beyond the job's minimum may come later, and so need no pod."""
    count = -(-workers // size)
    check_segments(count, described(case.top))
    mandatory = min(count, -(-minimum // size))
    rest = workers - (count - 1) * size
    ends_in_rest = mandatory == count
    sizes = ((mandatory - ends_in_rest, size), (int(ends_in_rest), rest), (count - mandatory, 0))
    constraint = segment_constraint(
        case.pod.metadata.annotations, _template_annotations(case.top), whole=annotations_of(case.top)
    )
    return [SubGroup(name=_WORKER, min_sub_group=count), *segments(_WORKER, sizes, _WORKER, constraint)]


def _segment_size(case: Case) -> int:
    """How many workers are a segment; 0 where they are not cut."""
    own, template = case.pod.metadata.annotations, _template_annotations(case.top)
    said = own.get(kai_names.SEGMENT_SIZE) or template.get(kai_names.SEGMENT_SIZE)
    where = f"annotation {kai_names.SEGMENT_SIZE} of the workers of {described(case.top)}"
    return whole(said, where, least=1) if said else 0


def _template_annotations(job: Json) -> dict[str, str]:
    return dict(mapping(job, "spec", _SPECS, "Worker", "template", "metadata", "annotations"))


def _part_of(replicas: dict[str, int], size: int) -> Callable[[GroupedPod], str]:
    """The part of each pod: its role, or its segment by its number; a number beyond the last segment is in none."""

    def part_of(pod: GroupedPod) -> str:
        role = role_of(pod)
        if role == _WORKER and size:
            index = _index_of(pod)
            return f"{_WORKER}-{index // size}" if index // size <= (replicas[_WORKER] - 1) // size else ""
        # Masters that there are none of are no part; workers may still come.
        parts = (_WORKER, _MASTER) if replicas.get(_MASTER) else (_WORKER,)
        return role if role in replicas and role in parts else ""

    return part_of


def _index_of(pod: GroupedPod) -> int:
    where = f"pod {pod.metadata.namespace}/{pod.metadata.name}"
    if REPLICA_INDEX not in pod.metadata.labels:
        raise Ungroupable(f"{where} has no label {REPLICA_INDEX}: its segment is not known without one")
    return whole(pod.metadata.labels[REPLICA_INDEX], f"label {REPLICA_INDEX} of {where}", least=0)
