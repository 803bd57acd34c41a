"""Restarts in place: pods stay where they are, and an agent in each of them starts its worker again.

Each agent writes into an annotation of its pod which attempt the pod is in, and waits at a barrier. Once all pods are
in the same attempt, the JobSet's status says so, and the agents let their workers run. A pod that is ahead means that
something failed: the status then says which attempt is over, and the agents of the others follow.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from msgspec.structs import replace

from shoal.api.core import FAILED, PODS, Pod
from shoal.api.jobset import JobSet, names, reasons
from shoal.api.jobset.job_sets import IN_PLACE
from shoal.kube import ReconcileError
from shoal.training.jobset.conditions import Report


def is_restarted_in_place(job_set: JobSet) -> bool:
    """Whether a JobSet asks for this."""
    policy = job_set.spec.failure_policy
    return policy is not None and policy.restart_strategy == IN_PLACE


def after_attempts(report: Report, pods: Sequence[Pod]) -> Report:
    """The status after what the agents have written."""
    policy, status = report.job_set.spec.failure_policy, report.status
    most = policy.most_restarts if policy else 0
    found = attempts(pods)
    newest = max(found, default=0)
    uncounted = status.restarts - status.restarts_count_towards_max
    # A container that fails before its agent can speak is seen by its own counter alone.
    if _container_restarts(pods) > most or newest - uncounted > most:
        return report.failed(reasons.REACHED_MAX_RESTARTS, reasons.MAX_RESTARTS_MESSAGE)
    if len(found) == total_pods(report.job_set) and len(set(found)) == 1:
        return report.having(replace(status, current_in_place_restart_attempt=found[0]))
    # While the newest pod is being made again the others are no older than they were.
    known = status.previous_in_place_restart_attempt
    if newest == 0 or (known is not None and newest - 1 < known):
        return report
    return report.having(replace(status, previous_in_place_restart_attempt=newest - 1))


def attempts(pods: Iterable[Pod]) -> list[int]:
    """The attempts of those pods whose agents have spoken; failed ones may be there beside what replaced them."""
    found = []
    for pod in pods:
        said = pod.metadata.annotations.get(names.IN_PLACE_ATTEMPT)
        if said is None or pod.status.phase == FAILED:
            continue
        if not (said.isascii() and said.isdigit()):
            raise ReconcileError(
                f"{PODS.kind} {pod.metadata.namespace}/{pod.metadata.name}: annotation {names.IN_PLACE_ATTEMPT} is "
                f"{said!r} and must be a number of 0 or more: restart the pod"
            )
        found.append(int(said))
    return found


def total_pods(job_set: JobSet) -> int:
    """How many pods there are when all run."""
    return sum(each.count * int(each.job_spec.get("parallelism") or 1) for each in job_set.spec.replicated_jobs)


def _container_restarts(pods: Iterable[Pod]) -> int:
    return max(
        (
            container.restart_count
            for pod in pods
            for container in (*pod.status.init_container_statuses, *pod.status.container_statuses)
        ),
        default=0,
    )
