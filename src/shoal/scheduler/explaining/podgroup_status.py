"""What is written into a PodGroup's status of why it does not start."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Final

import msgspec

from shoal.api.scheduling_run_ai import SchedulingCondition, UnschedulableDetails, UnschedulableReason
from shoal.scheduler.explaining.reasons import BACKED_OFF, NOT_READY, causes
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.session.session import Session

TYPE: Final = "UnschedulableOnNodePool"
REASON: Final = "Unschedulable"
DEFAULT_NODE_POOL: Final = "default"


def conditions(
    session: Session, job: Job, *, node_pool: str = "", names_pool: bool = False
) -> SchedulingCondition | None:
    """Why a job did not start in this node pool; None where nothing is to be said: it did, or was not tried.

    ``names_pool``: the message begins with the pool, as for jobs that give up after one attempt in each.
    To be asked before the session is closed.
    """
    if job.allocated:
        return None
    found = [cause for cause in causes(session, job) if cause.reason not in (NOT_READY, BACKED_OFF)]
    if not found:
        return None
    pool = node_pool or DEFAULT_NODE_POOL
    message = found[0].message if len(found) == 1 else "; ".join(sorted(cause.message for cause in found))
    return SchedulingCondition(
        type=TYPE,
        node_pool=pool,
        status="True",
        reason=REASON,
        message=f"node pool {pool}: {message}" if names_pool else message,
        reasons=[
            UnschedulableReason(
                reason=cause.reason,
                message=cause.message,
                details=None if cause.details is None else UnschedulableDetails(queue_details=cause.details),
            )
            for cause in found
        ],
    )


def next_conditions(
    before: Sequence[SchedulingCondition], condition: SchedulingCondition, now: datetime
) -> list[SchedulingCondition] | None:
    """The list with this condition as its last, one for each node pool; None where it says so already.

    Figures alone are no news: as long as type, pool, reason, status and message stay, nothing is to be written.
    """
    last = before[-1] if before else None
    if last is not None and _says(last) == _says(condition):
        return None
    number = _transition(last)
    made = msgspec.structs.replace(condition, transition_id=str(number + 1), last_transition_time=now)
    return [*(one for one in before if one.node_pool != condition.node_pool), made]


def without_condition(before: Sequence[SchedulingCondition], node_pool: str = "") -> list[SchedulingCondition] | None:
    """The list without what was said of a node pool; None where nothing was."""
    pool = node_pool or DEFAULT_NODE_POOL
    left = [one for one in before if one.node_pool != pool or one.type != TYPE]
    return None if len(left) == len(before) else left


def _says(condition: SchedulingCondition) -> tuple[str, ...]:
    return condition.type, condition.node_pool, condition.reason, condition.message, condition.status


def _transition(last: SchedulingCondition | None) -> int:
    text = last.transition_id if last is not None else ""
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0
