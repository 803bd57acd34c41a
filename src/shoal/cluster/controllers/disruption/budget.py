"""How many pods a budget wants, has, and can spare: pure functions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shoal.api.core import Pod, is_ready
from shoal.api.meta import Condition, scaled_value, set_condition
from shoal.api.policy import (
    DISRUPTION_ALLOWED,
    INSUFFICIENT_PODS,
    SUFFICIENT_PODS,
    SYNC_FAILED,
    PodDisruptionBudget,
    PodDisruptionBudgetSpec,
    PodDisruptionBudgetStatus,
)

GONE_WITHIN = timedelta(minutes=2)
"""A pod whose eviction was granted this long ago and that is still there will not go any more."""


@dataclass(frozen=True, kw_only=True)
class Expected:
    """What a budget asks for."""

    pods: int
    healthy: int


@dataclass(frozen=True, kw_only=True)
class Disrupted:
    """The pods that are about to go: those that still count as gone, and those that stayed."""

    pods: Mapping[str, datetime]
    stayed: Sequence[Pod]
    look_again: datetime | None
    """When the next of them will have stayed too long."""


def needs_scale(spec: PodDisruptionBudgetSpec) -> bool:
    """Whether what is asked for depends on how many pods their controllers want, not just on how many there are."""
    return spec.max_unavailable is not None or isinstance(spec.min_available, str)


def expected(spec: PodDisruptionBudgetSpec, *, pods: int, scale: int) -> Expected:
    """How many pods there should be and how many of them healthy; raises InvalidPercentage."""
    if spec.max_unavailable is not None:
        missing = scaled_value(spec.max_unavailable, scale, round_up=True)
        return Expected(pods=scale, healthy=max(0, scale - missing))
    if isinstance(spec.min_available, str):
        return Expected(pods=scale, healthy=scaled_value(spec.min_available, scale, round_up=True))
    if spec.min_available is not None:
        return Expected(pods=pods, healthy=spec.min_available)
    return Expected(pods=0, healthy=0)


def disrupted(granted: Mapping[str, datetime], pods: Sequence[Pod], *, now: datetime) -> Disrupted:
    """Which of the granted evictions are still to be seen."""
    going: dict[str, datetime] = {}
    stayed = []
    look_again = None
    for pod in pods:
        since = granted.get(pod.metadata.name)
        if since is None or pod.metadata.is_deleting:
            continue
        until = since + GONE_WITHIN
        if until < now:
            stayed.append(pod)
        else:
            going[pod.metadata.name] = since
            look_again = until if look_again is None else min(look_again, until)
    return Disrupted(pods=going, stayed=stayed, look_again=look_again)


def healthy(pods: Sequence[Pod], going: Mapping[str, datetime], *, now: datetime) -> int:
    """How many pods are ready and will stay."""
    return sum(
        1
        for pod in pods
        if is_ready(pod)
        and not pod.metadata.is_deleting
        and not (pod.metadata.name in going and going[pod.metadata.name] + GONE_WITHIN > now)
    )


def budget_status(
    budget: PodDisruptionBudget, asked: Expected, pods: Sequence[Pod], going: Mapping[str, datetime], *, now: datetime
) -> PodDisruptionBudgetStatus:
    """The status of a budget."""
    current = healthy(pods, going, now=now)
    # A budget without pods spares none: the first ones may come before their count does.
    allowed = max(0, current - asked.healthy) if asked.pods > 0 else 0
    generation = budget.metadata.generation
    before = budget.status
    answer = Condition(
        type=DISRUPTION_ALLOWED,
        status="True" if allowed else "False",
        reason=SUFFICIENT_PODS if allowed else INSUFFICIENT_PODS,
        observed_generation=generation,
    )
    return PodDisruptionBudgetStatus(
        observed_generation=generation,
        disrupted_pods=dict(going),
        disruptions_allowed=allowed,
        current_healthy=current,
        desired_healthy=asked.healthy,
        expected_pods=asked.pods,
        conditions=set_condition(before.conditions, answer, now),
    )


def failed_status(budget: PodDisruptionBudget, problem: str, *, now: datetime) -> PodDisruptionBudgetStatus:
    """The status where nothing could be counted: as it was, but nobody may be evicted."""
    before = budget.status
    answer = Condition(
        type=DISRUPTION_ALLOWED,
        status="False",
        reason=SYNC_FAILED,
        message=problem,
        observed_generation=before.observed_generation,
    )
    return PodDisruptionBudgetStatus(
        observed_generation=before.observed_generation,
        disrupted_pods=before.disrupted_pods,
        disruptions_allowed=0,
        current_healthy=before.current_healthy,
        desired_healthy=before.desired_healthy,
        expected_pods=before.expected_pods,
        conditions=set_condition(before.conditions, answer, now),
    )
