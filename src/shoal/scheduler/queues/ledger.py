"""What the gangs of each queue hold and wait for, kept as they change.

A change of one gang moves the figures of its queue by the difference, so that it costs the same whether the queue has
ten gangs or ten thousand.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from shoal.api.scheduling_run_ai import PodGroup
from shoal.kube import Change
from shoal.scheduler.resource_lists import Amounts, add_to, amounts_of


@dataclass(slots=True)
class Use:
    """Figures of one queue, or of several together."""

    allocated: Amounts = field(default_factory=dict)
    allocated_non_preemptible: Amounts = field(default_factory=dict)
    requested: Amounts = field(default_factory=dict)

    def add(self, other: Use, times: int = 1) -> None:
        """Adds other figures; ``times=-1`` takes them away."""
        add_to(self.allocated, other.allocated, times)
        add_to(self.allocated_non_preemptible, other.allocated_non_preemptible, times)
        add_to(self.requested, other.requested, times)


class Ledger:
    """The figures of each queue's own gangs."""

    def __init__(self) -> None:
        self._own: dict[str, Use] = {}
        self._gangs: dict[str, int] = {}

    def record(self, change: Change[PodGroup]) -> None:
        """Takes up what happened to a gang."""
        if change.before is not None:
            self._move(change.before, -1)
        if change.after is not None:
            self._move(change.after, 1)

    def total(self, queues: Iterable[str]) -> Use:
        """The figures of these queues together."""
        total = Use()
        for queue in queues:
            if (own := self._own.get(queue)) is not None:
                total.add(own)
        return total

    def __len__(self) -> int:
        return len(self._own)

    def _move(self, group: PodGroup, times: int) -> None:
        queue = group.spec.queue
        if not queue:
            return
        self._own.setdefault(queue, Use()).add(_use_of(group), times)
        self._gangs[queue] = self._gangs.get(queue, 0) + times
        if not self._gangs[queue]:
            del self._gangs[queue], self._own[queue]


def _use_of(group: PodGroup) -> Use:
    status = group.status.resources_status
    return Use(amounts_of(status.allocated), amounts_of(status.allocated_non_preemptible), amounts_of(status.requested))
