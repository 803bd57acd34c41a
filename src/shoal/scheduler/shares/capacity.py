"""Whether a queue and its ancestors may take on more: within limits always, what cannot be evicted within quota."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Final

from shoal.api.kai_names import NVIDIA_GPU
from shoal.api.meta.quantity import Quantity, ResourceList
from shoal.api.scheduling_run_ai import QueueDetails
from shoal.scheduler.model.amounts import NONE, UNLIMITED, Amounts
from shoal.scheduler.shares.tree import QueueTree, Share

_WORDS: Final = (("CPU cores", 1000.0), ("GB of memory", 10.0**9), ("GPUs", 1.0))
"""By place in amounts: how people call the resource, and how much of it is one."""


class Bound(Enum):
    """What would be exceeded."""

    LIMIT = "OverLimit"
    QUOTA = "NonPreemptibleOverQuota"


@dataclass(frozen=True, slots=True)
class Excess:
    """The first queue on the way up that would have too much, with its figures at that moment."""

    bound: Bound
    queue: str
    title: str
    resource: int
    """The place in amounts."""
    requested: Amounts
    is_preemptible: bool
    quota: Amounts
    limit: Amounts
    allocated: Amounts
    allocated_non_preemptible: Amounts
    queue_request: Amounts

    @property
    def reason(self) -> str:
        """The reason in one word, as PodGroups carry it."""
        return self.bound.value

    def message(self) -> str:
        """What is exceeded, where, by how much, and what helps."""
        words, unit = _WORDS[self.resource]
        asked = _shown(self.requested[self.resource], unit)
        if self.bound is Bound.LIMIT:
            limit, held = _shown(self.limit[self.resource], unit), _shown(self.allocated[self.resource], unit)
            return (
                f"queue {self.title} is at its limit: it may hold {limit} {words}, holds {held}, "
                f"and the workload asks for {asked}"
            )
        quota = _shown(self.quota[self.resource], unit)
        held = _shown(self.allocated_non_preemptible[self.resource], unit)
        return (
            f"a non-preemptible workload must fit the quota of queue {self.title}: it asks for {asked} {words}, "
            f"the quota is {quota}, and non-preemptible workloads hold {held} of it already; "
            "a preemptible workload may go beyond the quota"
        )

    def details(self) -> QueueDetails:
        """The figures, as PodGroups carry them; what has no limit is left out."""
        return QueueDetails(
            name=self.queue,
            queue_requested_resources=resource_list(self.queue_request),
            queue_deserved_resources=resource_list(self.quota),
            queue_allocated_resources=resource_list(self.allocated),
            queue_allocated_non_preemptible_resources=resource_list(self.allocated_non_preemptible),
            queue_resource_limits=resource_list(self.limit),
            pod_group_requested_resources=resource_list(self.requested),
            pod_group_requested_non_preemptible_resources=resource_list(
                NONE if self.is_preemptible else self.requested
            ),
        )


def over_capacity(tree: QueueTree, queue_name: str, amounts: Amounts, *, is_preemptible: bool) -> Excess | None:
    """What stands against it: a limit anywhere above or, if it cannot be evicted, a quota anywhere above."""
    excess = over_limit(tree, queue_name, amounts, is_preemptible=is_preemptible)
    return excess if excess or is_preemptible else over_quota(tree, queue_name, amounts)


def over_limit(tree: QueueTree, queue_name: str, amounts: Amounts, *, is_preemptible: bool = True) -> Excess | None:
    """The first queue on the way up whose limit would be exceeded in a resource that is asked for."""
    for share in tree[queue_name].path:
        held, limit = share.allocated, share.queue.limit
        for resource in (0, 1, 2):
            if amounts[resource] and _sum(held, amounts, resource) > limit[resource]:
                return _excess(Bound.LIMIT, share, resource, amounts, is_preemptible)
    return None


def over_quota(tree: QueueTree, queue_name: str, amounts: Amounts) -> Excess | None:
    """The first queue on the way up whose quota is too small for these and all else that cannot be evicted."""
    for share in tree[queue_name].path:
        held, quota = share.allocated_non_preemptible, share.queue.quota
        for resource in (0, 1, 2):
            if amounts[resource] and _sum(held, amounts, resource) > quota[resource]:
                return _excess(Bound.QUOTA, share, resource, amounts, is_preemptible=False)
    return None


def resource_list(amounts: Amounts) -> ResourceList:
    """Amounts as Kubernetes writes them; what has no limit is left out."""
    cpu, memory, gpu = amounts
    made: ResourceList = {}
    if cpu != UNLIMITED:
        made["cpu"] = str(Quantity.of_milli(round(cpu)))
    if memory != UNLIMITED:
        made["memory"] = str(Quantity.of(round(memory)))
    if gpu != UNLIMITED:
        made[NVIDIA_GPU] = str(Quantity.of_milli(round(gpu * 1000)))
    return made


def _sum(held: Amounts, amounts: Amounts, resource: int) -> float:
    return round(held[resource] + amounts[resource], 6)


def _excess(bound: Bound, share: Share, resource: int, amounts: Amounts, is_preemptible: bool) -> Excess:
    queue = share.queue
    return Excess(
        bound=bound,
        queue=queue.name,
        title=queue.title or queue.name,
        resource=resource,
        requested=amounts,
        is_preemptible=is_preemptible,
        quota=queue.quota,
        limit=queue.limit,
        allocated=share.allocated,
        allocated_non_preemptible=share.allocated_non_preemptible,
        queue_request=share.request,
    )


def _shown(amount: float, unit: float) -> str:
    return f"{amount / unit:.3f}".rstrip("0").rstrip(".")
