"""policy: how many pods of a kind may be missing at once by somebody's decision."""

from __future__ import annotations

from datetime import datetime

from shoal.api.meta import Condition, IntOrString, LabelSelector, Object, Resource, Wire

DISRUPTION_ALLOWED = "DisruptionAllowed"
"""The condition that says whether a pod may be evicted now."""

SUFFICIENT_PODS, INSUFFICIENT_PODS, SYNC_FAILED = "SufficientPods", "InsufficientPods", "SyncFailed"
"""Its reasons."""


class PodDisruptionBudgetSpec(Wire, frozen=True, kw_only=True):
    """How many of the selected pods must be there, or may be missing: a number or a share of what is wanted."""

    min_available: IntOrString | None = None
    max_unavailable: IntOrString | None = None
    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Wire, frozen=True, kw_only=True):
    """How many are there, and how many may be taken."""

    observed_generation: int = 0
    disrupted_pods: dict[str, datetime] = {}
    """When the eviction of a pod was granted, by its name; until the pod is seen to go it counts as gone."""
    disruptions_allowed: int = 0
    current_healthy: int = 0
    desired_healthy: int = 0
    expected_pods: int = 0
    conditions: list[Condition] = []


class PodDisruptionBudget(Object, frozen=True, kw_only=True):
    """Keeps evictions from taking too many pods at once."""

    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


POD_DISRUPTION_BUDGETS = Resource(
    type=PodDisruptionBudget,
    group="policy",
    version="v1",
    kind="PodDisruptionBudget",
    plural="poddisruptionbudgets",
)
