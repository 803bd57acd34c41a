"""When a pod that is ready will have been so for long enough to count as available."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime

from shoal.api.core import Pod, pod_condition


def seconds_until_available(pods: Iterable[Pod], *, min_ready_seconds: int, now: datetime) -> float | None:
    """When the next ready pod will have been so for long enough; None where no such moment is ahead."""
    if min_ready_seconds <= 0:
        return None
    waiting = []
    for pod in pods:
        condition = pod_condition(pod, "Ready")
        if condition is None or condition.status != "True" or condition.last_transition_time is None:
            continue
        left = min_ready_seconds - (now - condition.last_transition_time).total_seconds()
        if left > 0:
            waiting.append(left)
    return min(waiting, default=None)
