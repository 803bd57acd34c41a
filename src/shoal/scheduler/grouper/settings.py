"""How the grouper works; every field has the value that suits a cluster."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.api import kai_names


@dataclass(frozen=True, kw_only=True)
class GrouperSettings:
    """What the flags and the configuration decide for the grouper."""

    scheduler_names: frozenset[str] = frozenset({kai_names.SCHEDULER})
    """The pods that ask for one of these schedulers are grouped."""
    queue_label: str = kai_names.QUEUE
    node_pool_label: str = kai_names.NODE_POOL
    gangs_of_knative: bool = True
    """Whether the pods of a Knative revision start together (gangScheduleKnative), or each by itself."""
    reads_definitions: bool = True
    """Whether kinds that no rule knows are grouped by the Karta definitions of the cluster (genericKartaFallback)."""
    defaults_name: str = ""
    """The ConfigMap of default priorities by kind; there is none where this is empty."""
    defaults_namespace: str = ""
    workers: int = 10
    """How many groups are worked on at once (maxConcurrentReconciles)."""
