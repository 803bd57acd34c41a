"""Cliques, scaling groups and replicas as controllers see them, in few words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.api.grove import (
    CLIQUE_SCHEDULED,
    MIN_AVAILABLE_BREACHED,
    PodClique,
    PodCliqueScalingGroup,
    PodCliqueScalingGroupSpec,
    PodCliqueScalingGroupStatus,
    PodCliqueSpec,
    PodCliqueStatus,
    names,
)
from shoal.api.meta import Condition, ConditionStatus, ObjectMeta

NOW = datetime(2026, 3, 1, 12, 0, 0, tzinfo=UTC)
MADE = NOW - timedelta(days=1)


def ago(**length: float) -> datetime:
    return NOW - timedelta(**length)


def a_condition(name: str, status: ConditionStatus, since: datetime = MADE) -> Condition:
    return Condition(type=name, status=status, last_transition_time=since, reason="ToldByTest")


def scheduled(status: ConditionStatus = "True", since: datetime = MADE) -> Condition:
    return a_condition(CLIQUE_SCHEDULED, status, since)


def breached(status: ConditionStatus = "True", since: datetime = MADE) -> Condition:
    return a_condition(MIN_AVAILABLE_BREACHED, status, since)


WELL = (scheduled("True"), breached("False"))


def a_clique(
    name: str = "web-0-workers",
    *,
    template_hash: str = "",
    current_hash: str | None = None,
    generation_hash: str = "",
    minimum: int = 2,
    replicas: int | None = None,
    ready: int | None = None,
    updated: int | None = None,
    on_nodes: int | None = None,
    conditions: Sequence[Condition] = (),
    labels: Mapping[str, str] | None = None,
    deleting: bool = False,
    made: datetime = MADE,
) -> PodClique:
    """A clique with all of its pods ready and of one template, unless something else is said."""
    ready = minimum if ready is None else ready
    return PodClique(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            creation_timestamp=made,
            deletion_timestamp=NOW if deleting else None,
            labels={names.TEMPLATE_HASH_LABEL: template_hash, **(labels or {})},
        ),
        spec=PodCliqueSpec(replicas=minimum if replicas is None else replicas, min_available=minimum),
        status=PodCliqueStatus(
            replicas=minimum,
            ready_replicas=ready,
            updated_replicas=minimum if updated is None else updated,
            scheduled_replicas=ready if on_nodes is None else on_nodes,
            current_pod_template_hash=template_hash if current_hash is None else current_hash,
            current_pod_clique_set_generation_hash=generation_hash,
            conditions=list(conditions),
        ),
    )


def a_group(
    name: str = "web-0-group",
    *,
    replicas: int = 1,
    minimum: int = 1,
    available: int | None = None,
    generation_hash: str = "",
    conditions: Sequence[Condition] = (),
    deleting: bool = False,
    made: datetime = MADE,
    **status: Any,
) -> PodCliqueScalingGroup:
    """A scaling group with all of its replicas available, unless something else is said."""
    return PodCliqueScalingGroup(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            generation=1,
            creation_timestamp=made,
            deletion_timestamp=NOW if deleting else None,
        ),
        spec=PodCliqueScalingGroupSpec(replicas=replicas, min_available=minimum),
        status=PodCliqueScalingGroupStatus(
            available_replicas=replicas if available is None else available,
            current_pod_clique_set_generation_hash=generation_hash,
            conditions=list(conditions),
            **status,
        ),
    )
