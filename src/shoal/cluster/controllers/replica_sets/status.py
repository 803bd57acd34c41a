"""What is told of a set of equal pods: how many there are, and how far they have come."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Any, TypeVar

import msgspec

from shoal.api.apps import ReplicaSetStatus
from shoal.api.core import (
    REPLICA_FAILURE,
    Pod,
    ReplicaCondition,
    ReplicationControllerStatus,
    is_available,
    is_ready,
)
from shoal.cluster.controllers.availability import seconds_until_available
from shoal.kube import ApiError

S = TypeVar("S", ReplicaSetStatus, ReplicationControllerStatus)


def wanted_status(
    owner: Any,
    before: S,
    active: Sequence[Pod],
    *,
    failure: ReplicaCondition | None,
    now: datetime,
) -> S:
    """The status of an owner with these pods; ``failure`` is what kept it from its size, if anything did.

    A failure that is told already stays as it was told first.
    """
    labels = ((owner.spec.template.get("metadata") or {}).get("labels") or {}).items()
    ready = [pod for pod in active if is_ready(pod)]
    seconds = owner.spec.min_ready_seconds
    return msgspec.structs.replace(
        before,
        replicas=len(active),
        fully_labeled_replicas=sum(labels <= pod.metadata.labels.items() for pod in active),
        ready_replicas=len(ready),
        available_replicas=sum(is_available(pod, min_ready_seconds=seconds, now=now) for pod in ready),
        observed_generation=owner.metadata.generation,
        conditions=_conditions(before.conditions, failure),
    )


def failure_condition(error: Exception, *, surplus: int, now: datetime) -> ReplicaCondition:
    """Tells that pods could not be made, or deleted where there was a surplus of them, and in whose words why."""
    words = error.message if isinstance(error, ApiError) else str(error)
    return ReplicaCondition(
        type=REPLICA_FAILURE,
        status="True",
        last_transition_time=now.replace(microsecond=0),
        reason="FailedDelete" if surplus > 0 else "FailedCreate",
        message=f"unable to delete pods: {words}" if surplus > 0 else words,
    )


def next_look(status: Any, active: Iterable[Pod], *, min_ready_seconds: int, now: datetime) -> float | None:
    """The seconds until the next of the ready pods has been so for long enough; None where none is waited for."""
    if min_ready_seconds <= 0 or status.ready_replicas == status.available_replicas:
        return None
    until = seconds_until_available(active, min_ready_seconds=min_ready_seconds, now=now)
    return float(min_ready_seconds) if until is None else until


def _conditions(before: list[ReplicaCondition], failure: ReplicaCondition | None) -> list[ReplicaCondition]:
    told = any(condition.type == REPLICA_FAILURE for condition in before)
    if failure is not None:
        return before if told else [*before, failure]
    return [condition for condition in before if condition.type != REPLICA_FAILURE] if told else before
