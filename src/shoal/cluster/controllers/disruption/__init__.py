"""Keeps the status of PodDisruptionBudgets, from which the API server decides whether a pod may be evicted.

It also withdraws the announcement of a pod's end (the DisruptionTarget condition) where the end did not come.
"""

from __future__ import annotations

from datetime import timedelta

from shoal.cluster.controllers.disruption.controller import add_budgets
from shoal.cluster.controllers.disruption.stale_targets import STALE_AFTER, add_stale_targets
from shoal.kube import Manager


def add_disruption(manager: Manager, *, stale_after: timedelta = STALE_AFTER) -> None:
    """Adds both; ``stale_after`` is how long an announced end may take to come."""
    add_budgets(manager)
    add_stale_targets(manager, stale_after=stale_after)


__all__ = ["add_disruption"]
