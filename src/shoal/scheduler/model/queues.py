"""Queues as they are written down: who shares what with whom. What each has at the moment is kept in ``shares``."""

from __future__ import annotations

from dataclasses import dataclass

from shoal.api.kai_names import DEFAULT_QUEUE_PRIORITY
from shoal.scheduler.model.amounts import NONE, WITHOUT_LIMIT, Amounts


@dataclass(frozen=True, slots=True, kw_only=True)
class Queue:
    """One queue. Its name is that of the object; ``title`` is for people."""

    name: str
    parent: str = ""
    title: str = ""
    priority: int = DEFAULT_QUEUE_PRIORITY
    created: float = 0.0
    uid: str = ""
    quota: Amounts = NONE
    """What it is entitled to, whatever others do."""
    limit: Amounts = WITHOUT_LIMIT
    """What it may never exceed."""
    weight: Amounts = NONE
    """Its part of what is left over when all quotas are served."""
    usage: Amounts = NONE
    """What part of the cluster it has used lately, 0 to 1; 0 where nobody counts."""
    preempt_min_runtime: float | None = None
    reclaim_min_runtime: float | None = None
