"""What a scaling group says of itself."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime

import msgspec

from shoal.api.grove import (
    GANG_TERMINATION_IN_PROGRESS,
    MIN_AVAILABLE_BREACHED,
    PodCliqueScalingGroup,
    PodCliqueScalingGroupStatus,
    PodCliqueSet,
    names,
)
from shoal.api.meta import Condition, remove_condition, set_condition
from shoal.gangs.groups.replicas import GroupReplica
from shoal.gangs.groups.rolling import Step
from shoal.gangs.last_errors import last_errors
from shoal.gangs.termination import was_ever_healthy
from shoal.gangs.updates import has_seen_templates


def status_of(
    pcs: PodCliqueSet,
    group: PodCliqueScalingGroup,
    replicas: Sequence[GroupReplica],
    step: Step,
    errors: Iterable[Exception],
    now: datetime,
) -> PodCliqueScalingGroupStatus:
    """The group's status; conditions of others are kept."""
    before = group.status
    told = last_errors(before.last_errors, errors, now)
    return msgspec.structs.replace(
        before,
        observed_generation=before.observed_generation if told else group.metadata.generation,
        conditions=conditions_of(group, replicas, step, now),
        last_errors=told,
        replicas=group.spec.replicas,
        scheduled_replicas=sum(replica.is_scheduled for replica in replicas),
        available_replicas=sum(replica.is_available for replica in replicas),
        updated_replicas=sum(replica.is_updated for replica in replicas),
        selector=selector_of(pcs, group),
        current_pod_clique_set_generation_hash=current_hash(pcs, group, replicas, step),
        update_progress=step.progress,
    )


def conditions_of(
    group: PodCliqueScalingGroup, replicas: Sequence[GroupReplica], step: Step, now: datetime
) -> list[Condition]:
    """Whether too few replicas are well; once that is not so, a termination of the gang is over as well."""
    breached = _breached(group, replicas, step)
    if breached.status != "False" and not was_ever_healthy(group):
        # Whatever was said meanwhile, it was never well: the time tells those that may not tear it down.
        breached = msgspec.structs.replace(breached, last_transition_time=group.metadata.creation_timestamp)
    conditions = set_condition(group.status.conditions, breached, now)
    return remove_condition(conditions, GANG_TERMINATION_IN_PROGRESS) if breached.status == "False" else conditions


def current_hash(pcs: PodCliqueSet, group: PodCliqueScalingGroup, replicas: Sequence[GroupReplica], step: Step) -> str:
    """The set's templates that all replicas have: it moves once all have arrived and none is being replaced."""
    before = group.status.current_pod_clique_set_generation_hash
    if not has_seen_templates(pcs) or step.is_running:
        return before
    if all(replica.has_arrived for replica in replicas):
        return pcs.status.current_generation_hash
    if before == pcs.status.current_generation_hash and any(replica.is_old for replica in replicas):
        return ""  # a replica was made from templates that the set had only for a moment
    return before


def selector_of(pcs: PodCliqueSet, group: PodCliqueScalingGroup) -> str:
    """Selects the pods of the group, for autoscalers."""
    labels = {**names.default_labels(pcs.metadata.name), names.SCALING_GROUP_LABEL: group.metadata.name}
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items()))


def healthy_count(replicas: Sequence[GroupReplica]) -> int:
    """How many replicas are well."""
    return sum(replica.is_healthy for replica in replicas)


def _breached(group: PodCliqueScalingGroup, replicas: Sequence[GroupReplica], step: Step) -> Condition:
    generation = group.metadata.generation
    if step.is_running:
        return Condition(
            type=MIN_AVAILABLE_BREACHED,
            status="Unknown",
            observed_generation=generation,
            reason="UpdateInProgress",
            message="Replicas are being replaced",
        )
    healthy, minimum = healthy_count(replicas), group.spec.minimum
    is_breached = healthy < minimum
    return Condition(
        type=MIN_AVAILABLE_BREACHED,
        status="True" if is_breached else "False",
        observed_generation=generation,
        reason=f"{'Insufficient' if is_breached else 'Sufficient'}AvailablePodCliqueScalingGroupReplicas",
        message=f"{healthy} replicas are well, and at least {minimum} must be",
    )
