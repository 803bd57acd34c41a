"""What may not change in a JobSet: its Jobs, but for where pods go while it is suspended, and who manages it.

Queueing systems suspend a JobSet, write node selectors, tolerations, gates and labels into it, and let it go on.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

import msgspec

from shoal.api.jobset import JobSet
from shoal.kube.admission import FieldProblem, immutable
from shoal.training.jobset.admission.sameness import canonical, first_difference

_METADATA: Final = ("labels", "annotations")
_SPEC: Final = ("nodeSelector", "tolerations", "schedulingGates")
_JOBS: Final = "spec.replicatedJobs"


def update_problems(new: JobSet, old: JobSet) -> Iterator[FieldProblem]:
    """What was changed and may not be."""
    is_suspended = old.spec.is_suspended or new.spec.is_suspended
    if place := _changed_place(new, old, leaves_placement_out=is_suspended):
        said = "field is immutable"
        if is_suspended:
            said += ": while suspended, pod templates may change in labels, annotations, nodeSelector, tolerations "
            said += "and schedulingGates alone"
        else:
            said += ": suspend the JobSet to change where its pods go, or make another one"
        yield FieldProblem(place, said)
    if new.spec.managed_by != old.spec.managed_by:
        yield immutable("spec.managedBy", new.spec.managed_by)


def _changed_place(new: JobSet, old: JobSet, *, leaves_placement_out: bool) -> str:
    """Where the Jobs of two JobSets first mean something else; most changes are of something else altogether."""
    if new.spec.replicated_jobs == old.spec.replicated_jobs:
        return ""
    wanted, known = (_jobs(each, leaves_placement_out=leaves_placement_out) for each in (new, old))
    return first_difference(wanted, known, _JOBS)


def _jobs(job_set: JobSet, *, leaves_placement_out: bool) -> list[Any]:
    jobs: list[Any] = msgspec.to_builtins(job_set.spec.replicated_jobs)
    if leaves_placement_out:
        jobs = [_without_placement(each) for each in jobs]
    return [canonical(each) for each in jobs]


def _without_placement(replicated_job: dict[str, Any]) -> dict[str, Any]:
    template = replicated_job.get("template") or {}
    spec = template.get("spec") or {}
    pods = spec.get("template") or {}
    bare = {
        **pods,
        "metadata": _without(pods.get("metadata") or {}, _METADATA),
        "spec": _without(pods.get("spec") or {}, _SPEC),
    }
    return {**replicated_job, "template": {**template, "spec": {**spec, "template": bare}}}


def _without(fields: dict[str, Any], names: tuple[str, ...]) -> dict[str, Any]:
    return {key: value for key, value in fields.items() if key not in names}
