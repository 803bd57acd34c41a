"""Whether schedulers' own topologies say the same as a ClusterTopologyBinding, and what its status says of that."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from shoal.api.grove import (
    SCHEDULER_TOPOLOGY_DRIFT,
    ClusterTopologyBinding,
    ClusterTopologyBindingStatus,
    SchedulerTopologyStatus,
)
from shoal.api.meta import Condition, ConditionStatus, Document, set_condition
from shoal.gangs.topologies.scheduler import TopologyScheduler

IN_SYNC, DRIFT, NOT_FOUND = "InSync", "Drift", "TopologyNotFound"
"""Reasons of the condition."""


@dataclass(frozen=True, kw_only=True)
class Finding:
    """What was found of one scheduler's topology; ``problem`` is empty where it says the same."""

    scheduler: TopologyScheduler
    reference: str
    problem: str = ""
    is_missing: bool = False
    generation: int = 0

    @property
    def status(self) -> SchedulerTopologyStatus:
        """What the binding's status says of it."""
        return SchedulerTopologyStatus(
            scheduler_name=self.scheduler.name,
            topology_reference=self.reference,
            in_sync=not self.problem,
            scheduler_backend_topology_observed_generation=self.generation or None,
            message=self.problem,
        )


def bound_reference(binding: ClusterTopologyBinding, scheduler: TopologyScheduler) -> str | None:
    """The topology that someone else looks after for a scheduler, if the binding names one."""
    entries = binding.spec.scheduler_topology_bindings
    return next((entry.topology_reference for entry in entries if entry.scheduler_name == scheduler.name), None)


def compared(
    binding: ClusterTopologyBinding, scheduler: TopologyScheduler, reference: str, live: Document | None
) -> Finding:
    """Whether a topology has the binding's levels, in their order."""
    kind = scheduler.resource.kind
    if live is None:
        problem = f"{kind} {reference} does not exist"
        return Finding(scheduler=scheduler, reference=reference, problem=problem, is_missing=True)
    wanted, found = [level.key for level in binding.spec.levels], list(scheduler.keys_of(live.content))
    problem = ""
    if wanted != found:
        problem = f"{kind} {reference} has the levels [{', '.join(found)}], not [{', '.join(wanted)}]"
    return Finding(scheduler=scheduler, reference=reference, problem=problem, generation=live.metadata.generation)


def status_of(
    binding: ClusterTopologyBinding, findings: Sequence[Finding], now: datetime
) -> ClusterTopologyBindingStatus:
    """The binding's status after all schedulers were looked at; conditions of others stay."""
    return ClusterTopologyBindingStatus(
        observed_generation=binding.metadata.generation,
        conditions=set_condition(binding.status.conditions, _condition(binding, findings), now),
        scheduler_topology_statuses=[finding.status for finding in findings],
    )


def _condition(binding: ClusterTopologyBinding, findings: Sequence[Finding]) -> Condition:
    wrong = [finding for finding in findings if finding.problem]
    status: ConditionStatus
    if not wrong:
        status, reason = "False", IN_SYNC
    elif all(finding.is_missing for finding in wrong):
        status, reason = "Unknown", NOT_FOUND
    else:
        status, reason = "True", DRIFT
    return Condition(
        type=SCHEDULER_TOPOLOGY_DRIFT,
        status=status,
        reason=reason,
        message="; ".join(f"{finding.scheduler.name}: {finding.problem}" for finding in wrong)
        or "every scheduler's topology has the same levels",
        observed_generation=binding.metadata.generation,
    )
