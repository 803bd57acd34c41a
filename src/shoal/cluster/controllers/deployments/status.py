"""How far a rollout has come, and what is told of it.

A rollout makes progress whenever a pod of the new version is made or becomes ready, or an old one goes. Where that does
not happen for ``progressDeadlineSeconds`` the Deployment says so, and goes on trying.
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timedelta

import msgspec

from shoal.api.apps import Deployment, DeploymentCondition, DeploymentStatus, ReplicaSet
from shoal.api.core import REPLICA_FAILURE
from shoal.api.meta import ConditionStatus
from shoal.cluster.controllers.deployments.sizes import max_unavailable

AVAILABLE, PROGRESSING = "Available", "Progressing"
NEW_SET_AVAILABLE = "NewReplicaSetAvailable"
TIMED_OUT = "ProgressDeadlineExceeded"
PAUSED, RESUMED = "DeploymentPaused", "DeploymentResumed"
_NO_LIMIT = 2**31 - 1
"""The largest number of the wire's type: how a limit says that it is none."""

Conditions = list[DeploymentCondition]


def counted(
    deployment: Deployment, told: Conditions, new: ReplicaSet | None, old: Sequence[ReplicaSet], now: datetime
) -> DeploymentStatus:
    """The status that follows from the ReplicaSets alone; ``told`` are the conditions so far."""
    sets = [*old, new] if new is not None else list(old)
    available = sum(one.status.available_replicas for one in sets)
    enough = available >= deployment.spec.replicas - max_unavailable(deployment)
    condition = (
        _condition(AVAILABLE, "True", "MinimumReplicasAvailable", "Deployment has minimum availability.", now)
        if enough
        else _condition(
            AVAILABLE, "False", "MinimumReplicasUnavailable", "Deployment does not have minimum availability.", now
        )
    )
    return DeploymentStatus(
        observed_generation=deployment.metadata.generation,
        replicas=sum(one.status.replicas for one in sets),
        updated_replicas=new.status.replicas if new is not None else 0,
        ready_replicas=sum(one.status.ready_replicas for one in sets),
        available_replicas=available,
        unavailable_replicas=max(0, sum(one.spec.replicas for one in sets) - available),
        terminating_replicas=_terminating(sets),
        conditions=with_condition(told, condition),
        collision_count=deployment.status.collision_count,
    )


def rolled_out(
    deployment: Deployment, told: Conditions, new: ReplicaSet | None, old: Sequence[ReplicaSet], now: datetime
) -> DeploymentStatus:
    """The status of a Deployment that is being rolled out, or has been."""
    status = counted(deployment, told, new, old, now)
    conditions = _with_progress(deployment, told, status, new, now)
    failure = _failure(new, old)
    conditions = _without(conditions, REPLICA_FAILURE) if failure is None else with_condition(conditions, failure)
    return msgspec.structs.replace(status, conditions=conditions)


def is_complete(deployment: Deployment, status: DeploymentStatus) -> bool:
    """Whether all pods that there are to be are of the newest version and available, and there are no others."""
    wanted = deployment.spec.replicas
    return (
        status.updated_replicas == status.replicas == status.available_replicas == wanted
        and status.observed_generation >= deployment.metadata.generation
    )


def paused_or_resumed(deployment: Deployment, told: Conditions, now: datetime) -> Conditions:
    """The conditions with a pause, or its end, told: the time of a pause does not count against the deadline."""
    progress = condition_of(told, PROGRESSING)
    if not has_deadline(deployment) or (progress is not None and progress.reason == TIMED_OUT):
        return told
    is_told = progress is not None and progress.reason == PAUSED
    if deployment.spec.paused and not is_told:
        return with_condition(told, _condition(PROGRESSING, "Unknown", PAUSED, "Deployment is paused", now))
    if not deployment.spec.paused and is_told:
        return with_condition(told, _condition(PROGRESSING, "Unknown", RESUMED, "Deployment is resumed", now))
    return told


def found_set(deployment: Deployment, told: Conditions, name: str, now: datetime) -> Conditions:
    """The conditions of a Deployment that has a ReplicaSet and never said how far it is."""
    if not has_deadline(deployment) or condition_of(told, PROGRESSING) is not None:
        return told
    message = f'Found new replica set "{name}"'
    return with_condition(told, _condition(PROGRESSING, "True", "FoundNewReplicaSet", message, now))


def created_set(deployment: Deployment, told: Conditions, name: str, now: datetime) -> Conditions:
    """The conditions after a ReplicaSet was made: a rollout begins."""
    if not has_deadline(deployment):
        return told
    message = f'Created new replica set "{name}"'
    return with_condition(told, _condition(PROGRESSING, "True", "NewReplicaSetCreated", message, now))


def refused_set(deployment: Deployment, told: Conditions, problem: str, now: datetime) -> Conditions:
    """The conditions after the server refused a ReplicaSet."""
    if not has_deadline(deployment):
        return told
    return with_condition(told, _condition(PROGRESSING, "False", "ReplicaSetCreateError", problem, now))


def next_look(deployment: Deployment, status: DeploymentStatus, now: datetime) -> float | None:
    """The seconds until a rollout that makes no progress is late; None where it is over, or has no deadline."""
    progress = condition_of(status.conditions, PROGRESSING)
    if not has_deadline(deployment) or progress is None or progress.last_update_time is None:
        return None
    if is_complete(deployment, status) or progress.reason == TIMED_OUT:
        return None
    left = (progress.last_update_time + _deadline(deployment) - now).total_seconds()
    return max(left, 0.0) + 1.0


def has_deadline(deployment: Deployment) -> bool:
    """Whether a rollout has a time within which it must make progress."""
    return deployment.spec.progress_deadline_seconds not in (None, _NO_LIMIT)


def history_limit(deployment: Deployment) -> int | None:
    """How many old ReplicaSets are kept; None keeps all."""
    limit = deployment.spec.revision_history_limit
    return None if limit == _NO_LIMIT else limit


def condition_of(conditions: Conditions, type: str) -> DeploymentCondition | None:  # noqa: A002 - the wire's own word
    """What is told under a type."""
    return next((condition for condition in conditions if condition.type == type), None)


def with_condition(conditions: Conditions, new: DeploymentCondition) -> Conditions:
    """The conditions with one more, at the end; the same list where its status and reason are told already."""
    old = condition_of(conditions, new.type)
    if old is not None and old.status == new.status:
        if old.reason == new.reason:
            return conditions
        new = msgspec.structs.replace(new, last_transition_time=old.last_transition_time)
    return [*_without(conditions, new.type), new]


def _with_progress(
    deployment: Deployment, told: Conditions, status: DeploymentStatus, new: ReplicaSet | None, now: datetime
) -> Conditions:
    conditions = status.conditions
    if not has_deadline(deployment):
        return _without(conditions, PROGRESSING)
    before = condition_of(told, PROGRESSING)
    was_complete = before is not None and before.reason == NEW_SET_AVAILABLE
    if was_complete and status.replicas == status.updated_replicas:
        return conditions  # a rollout that is over: pods that come and go are not its business
    who = f'ReplicaSet "{new.metadata.name}"' if new is not None else f'Deployment "{deployment.metadata.name}"'
    if is_complete(deployment, status):
        message = f"{who} has successfully progressed."
        return with_condition(conditions, _condition(PROGRESSING, "True", NEW_SET_AVAILABLE, message, now))
    if _has_progressed(deployment.status, status):
        progress = _condition(PROGRESSING, "True", "ReplicaSetUpdated", f"{who} is progressing.", now)
        if before is not None and before.status == "True":
            progress = msgspec.structs.replace(progress, last_transition_time=before.last_transition_time)
        # Told anew even where the words are the same: the deadline runs from the last update.
        return [*_without(conditions, PROGRESSING), progress]
    if _is_late(deployment, before, now):
        message = f"{who} has timed out progressing."
        return with_condition(conditions, _condition(PROGRESSING, "False", TIMED_OUT, message, now))
    return conditions


def _has_progressed(before: DeploymentStatus, after: DeploymentStatus) -> bool:
    old_before = before.replicas - before.updated_replicas
    old_after = after.replicas - after.updated_replicas
    return (
        after.updated_replicas > before.updated_replicas
        or old_after < old_before
        or after.ready_replicas > before.ready_replicas
        or after.available_replicas > before.available_replicas
    )


def _is_late(deployment: Deployment, progress: DeploymentCondition | None, now: datetime) -> bool:
    if progress is None or progress.reason == NEW_SET_AVAILABLE:
        return False
    if progress.reason == TIMED_OUT:
        return True
    return progress.last_update_time is not None and progress.last_update_time + _deadline(deployment) < now


def _failure(new: ReplicaSet | None, old: Sequence[ReplicaSet]) -> DeploymentCondition | None:
    """What keeps a ReplicaSet from its size; the newest one's problem goes before those of the others."""
    for one in [new, *old] if new is not None else old:
        for condition in one.status.conditions:
            if condition.type == REPLICA_FAILURE:
                return DeploymentCondition(
                    type=condition.type,
                    status=condition.status,
                    last_update_time=condition.last_transition_time,
                    last_transition_time=condition.last_transition_time,
                    reason=condition.reason,
                    message=condition.message,
                )
    return None


def _terminating(sets: Sequence[ReplicaSet]) -> int | None:
    """The pods on their way out; unknown where a ReplicaSet that was looked at does not tell."""
    looked_at = [one.status for one in sets if one.status.observed_generation or one.status.terminating_replicas]
    if any(status.terminating_replicas is None for status in looked_at):
        return None
    return sum(status.terminating_replicas or 0 for status in looked_at)


def _deadline(deployment: Deployment) -> timedelta:
    return timedelta(seconds=deployment.spec.progress_deadline_seconds or 0)


def _without(conditions: Conditions, type: str) -> Conditions:  # noqa: A002
    return [condition for condition in conditions if condition.type != type]


def _condition(
    type: str,  # noqa: A002
    status: ConditionStatus,
    reason: str,
    message: str,
    now: datetime,
) -> DeploymentCondition:
    return DeploymentCondition(
        type=type, status=status, last_update_time=now, last_transition_time=now, reason=reason, message=message
    )
