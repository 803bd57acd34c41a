"""What a clique tells of its pods."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final

import msgspec

from shoal.api.core import FAILED, ContainerStatus, Pod, is_ready, pod_condition
from shoal.api.grove import (
    CLIQUE_SCHEDULED,
    MIN_AVAILABLE_BREACHED,
    PODS_GATED,
    LastError,
    PodClique,
    PodCliqueStatus,
    PodCliqueUpdate,
    names,
)
from shoal.api.meta import Condition, find_condition, set_condition
from shoal.gangs.cliques.gates import Gating
from shoal.gangs.cliques.membership import is_standalone
from shoal.gangs.cliques.rolling import is_open

ALL_LOST: Final = "AllScheduledReplicasLost"
"""Reason of the event that tells that no pod of a clique has a node any more."""


@dataclass(frozen=True, kw_only=True)
class Reached:
    """What a reconcile has come to, beside the pods."""

    update: PodCliqueUpdate | None
    """The update that the clique is in, or had last; none for a clique of a scaling group."""
    generation_hash: str
    """The set's templates, where the clique was made from them; else empty."""
    gating: Gating
    errors: list[LastError]


@dataclass(frozen=True, kw_only=True)
class Counts:
    """How many pods there are of each sort. Those on their way out count, but for ``staying``."""

    staying: int
    ready: int
    gated: int
    scheduled: int
    updated: int
    failing: int
    """Not ready, and worse than just slow."""


def wanted_status(clique: PodClique, pods: Sequence[Pod], reached: Reached, now: datetime) -> PodCliqueStatus:
    """The status of a clique with these pods. While something goes wrong it does not claim the new generation."""
    before = clique.status
    counts = count(pods, _target(clique, reached.update))
    observed = before.observed_generation if reached.errors else clique.metadata.generation
    status = msgspec.structs.replace(
        before,
        observed_generation=observed,
        replicas=counts.staying,
        ready_replicas=counts.ready,
        schedule_gated_replicas=counts.gated,
        scheduled_replicas=counts.scheduled,
        updated_replicas=counts.updated,
        hpa_pod_selector=_selector(clique) if is_standalone(clique) else "",
        update_progress=reached.update,
        last_errors=reached.errors,
    )
    status = _with_current_hashes(clique, status, reached)
    if observed is None:
        return status
    return msgspec.structs.replace(status, conditions=_conditions(clique, counts, reached, now))


def count(pods: Sequence[Pod], target: str) -> Counts:
    """Sorts pods; those whose template has the target's hash are updated."""
    scheduled = gated = 0
    for pod in pods:
        condition = pod_condition(pod, "PodScheduled")
        if condition is not None:
            scheduled += condition.status == "True"
            gated += condition.status == "False" and condition.reason == "SchedulingGated"
    return Counts(
        staying=sum(not pod.metadata.is_deleting for pod in pods),
        ready=sum(map(is_ready, pods)),
        gated=gated,
        scheduled=scheduled,
        updated=sum(pod.metadata.labels.get(names.TEMPLATE_HASH_LABEL) == target for pod in pods),
        failing=sum(is_failing(pod) for pod in pods),
    )


def is_failing(pod: Pod) -> bool:
    """Whether a pod is worse than just slow: pulling an image or passing a start-up probe is fine.

    It has failed for good, a container of it ended badly before or runs without becoming ready, or it is cut off.
    """
    if is_ready(pod):
        return False
    containers = pod.status.container_statuses
    return (
        pod.status.phase == FAILED
        or any(map(_has_crashed, (*containers, *pod.status.init_container_statuses)))
        or any(container.started and not container.ready for container in containers)
        or _is_cut_off(pod)
    )


def has_lost_all(before: PodCliqueStatus, after: PodCliqueStatus) -> bool:
    """Whether the last pods with a node are gone."""
    return before.scheduled_replicas > 0 and after.scheduled_replicas == 0


def is_urgent(before: PodCliqueStatus, after: PodCliqueStatus, *, minimum: int, has_followers: bool) -> bool:
    """Whether others wait for a change of status; ``has_followers`` says whether any do until its pods have nodes.

    They wait for enough pods, not for each of them, so that a clique of a thousand pods is not written a thousand times
    while it starts. Pods that were made and are still gated are nobody's signal either: what a start goes through is
    told once it lasts.
    """
    if before.last_errors or after.last_errors:
        return True  # what went wrong, and each change until it goes well again
    if before.observed_generation is None:
        return after.ready_replicas >= minimum or (has_followers and after.scheduled_replicas >= minimum)
    return _signals(before, minimum) != _signals(after, minimum)


def _signals(status: PodCliqueStatus, minimum: int) -> tuple[object, ...]:
    answers = [find_condition(status.conditions, name) for name in (CLIQUE_SCHEDULED, MIN_AVAILABLE_BREACHED)]
    return (
        status.ready_replicas >= minimum,
        status.scheduled_replicas >= minimum,
        status.scheduled_replicas == 0,
        status.update_progress,
        status.current_pod_template_hash,
        status.current_pod_clique_set_generation_hash,
        *(answer and (answer.status, answer.reason) for answer in answers),
    )


def _target(clique: PodClique, update: PodCliqueUpdate | None) -> str:
    if update is not None and update.pod_template_hash:
        return update.pod_template_hash
    return clique.metadata.labels.get(names.TEMPLATE_HASH_LABEL) or clique.status.current_pod_template_hash


def _with_current_hashes(clique: PodClique, status: PodCliqueStatus, reached: Reached) -> PodCliqueStatus:
    """What all pods have moves only when no update runs and all pods have arrived."""
    update = reached.update
    if is_open(update) or status.updated_replicas != status.replicas:
        return status
    if update is not None:
        template, generation = update.pod_template_hash, update.pod_clique_set_generation_hash
    elif reached.generation_hash:
        template, generation = clique.metadata.labels.get(names.TEMPLATE_HASH_LABEL, ""), reached.generation_hash
    else:
        return status
    return msgspec.structs.replace(
        status, current_pod_template_hash=template, current_pod_clique_set_generation_hash=generation
    )


def _selector(clique: PodClique) -> str:
    labels = {
        names.MANAGED_BY_LABEL: names.MANAGER,
        names.PART_OF_LABEL: clique.metadata.labels.get(names.PART_OF_LABEL, ""),
        names.CLIQUE_LABEL: clique.metadata.name,
    }
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def _conditions(clique: PodClique, counts: Counts, reached: Reached, now: datetime) -> list[Condition]:
    conditions = clique.status.conditions
    scheduled = _scheduled(clique, counts)
    if scheduled.status == "False" and find_condition(conditions, CLIQUE_SCHEDULED) is None:
        # It was never scheduled, which others tell by the time: since it was made, however late it is told.
        scheduled = msgspec.structs.replace(scheduled, last_transition_time=clique.metadata.creation_timestamp)
    gated = Condition(
        type=PODS_GATED,
        status="True" if reached.gating.is_holding else "False",
        reason=reached.gating.reason,
        message=reached.gating.message,
    )
    for condition in (scheduled, _breached(clique, counts, reached.update), gated):
        conditions = set_condition(conditions, condition, now)
    return conditions


def _scheduled(clique: PodClique, counts: Counts) -> Condition:
    minimum = clique.spec.minimum
    is_enough = counts.scheduled >= minimum
    return Condition(
        type=CLIQUE_SCHEDULED,
        status="True" if is_enough else "False",
        reason="SufficientScheduledPods" if is_enough else "InsufficientScheduledPods",
        message=f"{counts.scheduled} pods have a node, {minimum} are needed",
    )


def _breached(clique: PodClique, counts: Counts, update: PodCliqueUpdate | None) -> Condition:
    minimum = clique.spec.minimum
    well = counts.scheduled - counts.failing
    if is_open(update):
        status, reason, message = "Unknown", "UpdateInProgress", "pods are being replaced by an update"
    elif counts.scheduled < minimum:
        status, reason = "True", "ScheduledReplicasBelowMinAvailable"
        message = f"{counts.scheduled} pods have a node, {minimum} are needed"
    elif well < minimum:
        status, reason = "True", "InsufficientReadyPods"
        message = f"{well} pods are ready or starting, {minimum} are needed"
    else:
        status, reason, message = "False", "SufficientReadyPods", "enough pods are ready or starting"
    return msgspec.convert(
        {"type": MIN_AVAILABLE_BREACHED, "status": status, "reason": reason, "message": message}, Condition
    )


def _is_cut_off(pod: Pod) -> bool:
    """Whether a pod's node has fallen silent: others say that the pod is not ready, and its containers know nothing."""
    containers = pod.status.container_statuses
    return bool(containers) and all(one.ready for one in containers) and not pod.spec.readiness_gates


def _has_crashed(container: ContainerStatus) -> bool:
    ended = container.last_state.terminated
    return ended is not None and ended.exit_code != 0
