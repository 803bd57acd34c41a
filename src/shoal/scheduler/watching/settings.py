"""Whose pods a scheduler schedules, and on which nodes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from shoal.api import kai_names as names
from shoal.scheduler.session.filters import FilterSettings

_STUCK_AFTER: Final = 120.0


@dataclass(frozen=True, slots=True, kw_only=True)
class MirrorSettings:
    """Whose pods are scheduled here."""

    scheduler_names: frozenset[str] = frozenset({names.SCHEDULER})
    grouped: frozenset[str] = frozenset({names.SCHEDULER})
    """The schedulers whose pods wait until the grouper has said where they belong."""
    beside: frozenset[str] = frozenset()
    """The schedulers of which another one takes the pods that belong to no Workload."""
    node_pool_key: str = names.NODE_POOL
    node_pool: str = ""
    """"" means: what has no such label."""
    stuck_after: float = _STUCK_AFTER
    full_hierarchy: bool = True
    default_queue: str = names.DEFAULT_QUEUE
    queue_key: str = names.QUEUE
    mig_label: str = names.MIG_WORKER
    filters: FilterSettings = FilterSettings()
    reads_zones: bool = False
    """Whether the NUMA zones of nodes are looked at, and what pods ask of them."""

    def is_of_pool(self, labels: Mapping[str, str]) -> bool:
        """Whether something with these labels belongs to the nodes that this scheduler looks after."""
        value = labels.get(self.node_pool_key)
        return value == self.node_pool if self.node_pool else value is None
