"""Kubeflow's distributed jobs: all replicas of all roles start together, unless a policy says how many."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Final

from shoal.api.scheduling_run_ai import SubGroup
from shoal.scheduler.grouper.base import flat_group
from shoal.scheduler.grouper.case import Case
from shoal.scheduler.grouper.fields import Json, Ungroupable, described, mapping, number, text
from shoal.scheduler.grouper.pods import GroupedPod
from shoal.scheduler.grouper.wanted import GroupWanted

REPLICA_TYPE: Final = "training.kubeflow.org/replica-type"
REPLICA_INDEX: Final = "training.kubeflow.org/replica-index"
JOB_ROLE: Final = "training.kubeflow.org/job-role"
"""Labels of Kubeflow's pods."""

LAUNCHER: Final = "Launcher"


def roles(specs: str, *, needed: Iterable[str] = ()) -> Callable[[Case], GroupWanted]:
    """The rule of a job whose roles are described under ``spec.<specs>``: a part for each role."""
    required = tuple(needed)

    def rule(case: Case) -> GroupWanted:
        replicas = replicas_by_role(case.top, specs, needed=required)
        group = flat_group(case)
        minimum = policy_minimum(case.top)
        if minimum is not None:
            # How a smaller minimum is divided among the roles nobody says: the job is one part.
            return replace(group, min_member=minimum)
        parts = tuple(SubGroup(name=role.lower(), min_member=count) for role, count in replicas.items())
        named = frozenset(part.name for part in parts)

        def part_of(pod: GroupedPod) -> str:
            role = role_of(pod)
            return role if role in named else ""

        return replace(group, min_member=sum(replicas.values()), sub_groups=parts, part_of=part_of)

    return rule


def mpi_job(case: Case) -> GroupWanted:
    """Launcher and workers; a launcher that is made when the workers are ready cannot be waited for before."""
    replicas = replicas_by_role(case.top, "mpiReplicaSpecs", needed=(LAUNCHER, "Worker"))
    said = policy_minimum(case.top)
    minimum = sum(replicas.values()) if said is None else said
    if text(case.top, "spec", "launcherCreationPolicy") == "WaitForWorkersReady" and not _has_launcher(case):
        minimum = max(0, minimum - replicas[LAUNCHER])
    return replace(flat_group(case), min_member=minimum)


def policy_minimum(job: Json) -> int | None:
    """How many pods the job's scheduling policy asks for; None where it asks for none."""
    return number(job, "spec", "runPolicy", "schedulingPolicy", "minAvailable")


def replicas_by_role(job: Json, specs: str, *, needed: Iterable[str] = ()) -> dict[str, int]:
    """How many pods each role has."""
    described_roles = mapping(job, "spec", specs)
    for role in needed:
        if role not in described_roles:
            raise Ungroupable(f"{described(job)} has no {role} in spec.{specs}: add one")
    if not described_roles:
        raise Ungroupable(f"{described(job)} has no roles in spec.{specs}: add one")
    return {role: _replicas(job, specs, role) for role in described_roles}


def role_of(pod: GroupedPod) -> str:
    """The role of a pod, in lower case as its label has it."""
    return pod.metadata.labels.get(REPLICA_TYPE, "")


def _replicas(job: Json, specs: str, role: str) -> int:
    replicas = number(job, "spec", specs, role, "replicas")
    if replicas is None:
        return 1  # Kubeflow's own default
    if replicas < 1:
        raise Ungroupable(f"{described(job)} has {replicas} in spec.{specs}.{role}.replicas: put 1 or more there")
    return replicas


def _has_launcher(case: Case) -> bool:
    return any(
        "launcher" in (pod.metadata.labels.get(JOB_ROLE), role_of(pod)) and not pod.metadata.is_deleting
        for pod in case.members
    )
