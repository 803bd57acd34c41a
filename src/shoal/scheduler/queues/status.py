"""What a queue's status should say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from datetime import datetime
from typing import Final

import msgspec

from shoal.api.scheduling_run_ai import Queue, QueueCondition, QueueStatus
from shoal.scheduler.queues.ledger import Use
from shoal.scheduler.queues.quotas import Figures, held, quota_of
from shoal.scheduler.queues.tree import Orphaned
from shoal.scheduler.resource_lists import rewritten

ORPHAN: Final = "Orphan"
OVER_QUOTA: Final = "OverQuota"

_WORDS: Final = ("GPUs", "CPU cores", "bytes of memory")


def queue_status(
    queue: Queue, *, children: Iterable[str], use: Use, orphaned: Orphaned | None, now: datetime
) -> QueueStatus:
    """The status of a queue with these queues below it, and this use of all of them together.

    A condition appears when it first holds, and says False afterwards: what never was over quota says nothing of it.
    """
    before = queue.status
    lost = (orphaned.reason, orphaned.message) if orphaned is not None else None
    beyond = ", ".join(_beyond(held(use.allocated), quota_of(queue.spec)))
    over = ("AllocatedOverQuota", f"holds {beyond}") if beyond else None
    conditions = before.conditions
    conditions = _with(conditions, ORPHAN, lost, ("ParentFound", "the way up leads to a root"), now)
    conditions = _with(conditions, OVER_QUOTA, over, ("WithinQuota", "holds no more than its quota"), now)
    return QueueStatus(
        conditions=conditions,
        child_queues=sorted(children),
        allocated=rewritten(before.allocated, use.allocated),
        allocated_non_preemptible=rewritten(before.allocated_non_preemptible, use.allocated_non_preemptible),
        requested=rewritten(before.requested, use.requested),
    )


def _beyond(allocated: Figures, quota: Figures) -> Iterator[str]:
    for amount, limit, word in zip(allocated, quota, _WORDS, strict=True):
        if amount > limit + 1e-9:
            yield f"{amount:.10g} {word} of a quota of {limit:.10g}"


def _with(
    conditions: list[QueueCondition],
    type_: str,
    why: tuple[str, str] | None,
    otherwise: tuple[str, str],
    now: datetime,
) -> list[QueueCondition]:
    """The conditions with this one as it is now; ``why`` says that it holds, and why."""
    old = next((condition for condition in conditions if condition.type == type_), None)
    if old is None and why is None:
        return conditions
    status = "False" if why is None else "True"
    reason, message = why or otherwise
    changed = old.last_transition_time if old is not None and old.status == status else None
    new = QueueCondition(type=type_, status=status, reason=reason, message=message, last_transition_time=changed or now)
    if old is None:
        return [*conditions, new]
    new = msgspec.structs.replace(new, last_probe_time=old.last_probe_time)
    return [new if condition is old else condition for condition in conditions]
