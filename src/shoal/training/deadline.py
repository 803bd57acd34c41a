"""How long a TrainJob may run, and how long it is kept when it is over: moments worked out of what it says itself."""

from __future__ import annotations

from datetime import datetime, timedelta

from shoal.api.meta import find_condition
from shoal.api.trainer import TrainJob, TrainJobStatus, names
from shoal.training.status import has_ended


def deadline(train_job: TrainJob, status: TrainJobStatus) -> datetime | None:
    """When a TrainJob has run too long; None where it never does, waits, or is over.

    Time begins with the TrainJob, and anew each time that it is resumed.
    """
    seconds = train_job.spec.active_deadline_seconds
    if seconds is None or train_job.spec.suspend or has_ended(status):
        return None
    resumed = find_condition(status.conditions, names.SUSPENDED)
    is_resumed = resumed is not None and resumed.status == "False"
    begun = resumed.last_transition_time if resumed and is_resumed else train_job.metadata.creation_timestamp
    return None if begun is None else begun + timedelta(seconds=seconds)


def removal(train_job: TrainJob, status: TrainJobStatus) -> datetime | None:
    """When a TrainJob that is over is deleted; None where it is kept."""
    seconds, over = train_job.spec.ttl_seconds_after_finished, status.completion_time
    if seconds is None or over is None or not has_ended(status):
        return None
    return over + timedelta(seconds=seconds)


def seconds_until(moment: datetime, now: datetime) -> float:
    """How long to wait for a moment: at least a second, since times are told in whole ones."""
    return max(1.0, (moment - now).total_seconds())
