"""How long to wait before a failed pod is replaced: ten seconds, twice as long for each failure in a row, up to ten
minutes, counted from when the last of them ended.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from shoal.api.core import ContainerStatus, Pod, pod_condition

FIRST, LONGEST = 10.0, 600.0
"""Seconds."""
_EPOCH = datetime(1, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Streak:
    """How many pods of a Job failed since the last one that succeeded, and when the last of these ended."""

    failures: int = 0
    last: datetime | None = None

    def after(self, succeeded: Sequence[Pod], failed: Sequence[Pod]) -> Streak:
        """The streak with pods that ended since."""
        ends = sorted(map(finished_at, failed))
        if not succeeded:
            return Streak(self.failures + len(ends), ends[-1]) if ends else self
        latest_success = max(map(finished_at, succeeded))
        since = [end for end in ends if end > latest_success]
        return Streak(len(since), since[-1] if since else None)

    def wait(self, now: datetime) -> float:
        """Seconds until the next pod may be made."""
        if not self.failures or self.last is None:
            return 0.0
        # The exponent is bounded before it is used: a streak may be as long as it likes.
        pause = min(FIRST * 2.0 ** min(self.failures - 1, 10), LONGEST)
        return max(0.0, pause - (now - self.last).total_seconds())


def finished_at(pod: Pod) -> datetime:
    """When a pod ended, as well as it can be told: by its containers, its readiness, its deletion, or its beginning."""
    ended = _containers_ended(pod)
    if ended is not None:
        return ended
    ready = pod_condition(pod, "Ready")
    if ready is not None and ready.status == "False" and ready.last_transition_time is not None:
        return ready.last_transition_time
    metadata = pod.metadata
    if metadata.deletion_timestamp is not None:
        return metadata.deletion_timestamp - timedelta(seconds=metadata.deletion_grace_period_seconds or 0)
    return metadata.creation_timestamp or _EPOCH


def _containers_ended(pod: Pod) -> datetime | None:
    """When the last container ended, sidecars included; None while one has not."""
    sidecars = {container.name for container in pod.spec.init_containers if container.restart_policy == "Always"}
    later = [status for status in pod.status.init_container_statuses if status.name in sidecars]
    ends = [_ended(status) for status in [*pod.status.container_statuses, *later]]
    known = [end for end in ends if end is not None]
    return max(known) if known and len(known) == len(ends) else None


def _ended(status: ContainerStatus) -> datetime | None:
    return status.state.terminated.finished_at if status.state.terminated else None
