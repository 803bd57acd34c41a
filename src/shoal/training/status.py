"""What a TrainJob's status says, as pure functions from what it said before and what is seen.

While a TrainJob runs it has no condition: clients take that to mean that it runs. So there are Suspended, Complete and
Failed, and no others.
"""

from __future__ import annotations

from datetime import datetime

import msgspec

from shoal.api.meta import Condition, Document, find_condition, is_true, remove_condition, set_condition
from shoal.api.trainer import LastError, TrainJob, TrainJobStatus, names
from shoal.training.framework import Outcome
from shoal.training.patience import patience_with_counters

_LONGEST_MESSAGE = 32768


def observed_status(
    train_job: TrainJob, *, is_supported: bool, seen: Document | None, outcome: Outcome, now: datetime
) -> TrainJobStatus:
    """The status by what is there: whether its runtime's kind is known, and how the object is that runs its pods."""
    status = train_job.status
    status = _without_unsupported(status) if is_supported else _with_unsupported(train_job, status, now)
    status = _with_suspension(train_job, status, now)
    return status if seen is None else _with_outcome(train_job, status, seen, outcome, now)


def has_ended(status: TrainJobStatus) -> bool:
    """Whether a TrainJob is over."""
    return is_true(status.conditions, names.COMPLETE) or is_true(status.conditions, names.FAILED)


def has_failed_by(status: TrainJobStatus, reason: str) -> bool:
    """Whether a TrainJob has failed, and for this reason."""
    failed = find_condition(status.conditions, names.FAILED)
    return failed is not None and failed.status == "True" and failed.reason == reason


def patience_with(before: TrainJobStatus, after: TrainJobStatus) -> float:
    """Seconds for which a change of the status can wait: none but where it says how Jobs are, and nothing else."""
    if before == after or before != msgspec.structs.replace(
        after, jobs_status=before.jobs_status, start_time=before.start_time
    ):
        return 0.0
    return patience_with_counters(before.jobs_status, after.jobs_status)


def _with_unsupported(train_job: TrainJob, status: TrainJobStatus, now: datetime) -> TrainJobStatus:
    """Failed, since nobody knows the kind of its runtime; a TrainJob that is over stays as it is."""
    if has_ended(status) and not has_failed_by(status, names.UNSUPPORTED_RUNTIME_REASON):
        return status
    message = names.unsupported_runtime_message(train_job.spec.runtime_ref.key)
    return _with(train_job, status, names.FAILED, "True", names.UNSUPPORTED_RUNTIME_REASON, message, now)


def with_deadline_exceeded(train_job: TrainJob, status: TrainJobStatus, now: datetime) -> TrainJobStatus:
    """Failed, since it has run too long."""
    reason, message = names.DEADLINE_REASON, names.DEADLINE_MESSAGE
    status = _with(train_job, status, names.FAILED, "True", reason, message, now)
    return msgspec.structs.replace(status, completion_time=status.completion_time or now)


def with_error(status: TrainJobStatus, message: str, now: datetime) -> TrainJobStatus:
    """With what keeps its objects from being made, since when that is so; an empty message is nothing."""
    if not message:
        return msgspec.structs.replace(status, last_error=None)
    known, said = status.last_error, message[:_LONGEST_MESSAGE]
    if known is not None and known.message == said:
        return status
    return msgspec.structs.replace(status, last_error=LastError(time=now, message=said))


def _without_unsupported(status: TrainJobStatus) -> TrainJobStatus:
    """Without the failure that nobody knows the kind of its runtime, which somebody does; other failures stay."""
    if not has_failed_by(status, names.UNSUPPORTED_RUNTIME_REASON):
        return status
    return msgspec.structs.replace(status, conditions=remove_condition(status.conditions, names.FAILED))


def _with_suspension(train_job: TrainJob, status: TrainJobStatus, now: datetime) -> TrainJobStatus:
    """Suspended as it is asked for; one that was never suspended says nothing of it."""
    if train_job.spec.suspend:
        reason, message = names.SUSPENDED_REASON, names.SUSPENDED_MESSAGE
        return _with(train_job, status, names.SUSPENDED, "True", reason, message, now)
    if is_true(status.conditions, names.SUSPENDED):
        reason, message = names.RESUMED_REASON, names.RESUMED_MESSAGE
        return _with(train_job, status, names.SUSPENDED, "False", reason, message, now)
    return status


def _with_outcome(
    train_job: TrainJob, status: TrainJobStatus, seen: Document, outcome: Outcome, now: datetime
) -> TrainJobStatus:
    """How its Jobs are, when they began, and how they ended. What ended by its deadline stays so."""
    if outcome.jobs:
        status = msgspec.structs.replace(status, jobs_status=list(outcome.jobs))
        if not outcome.is_suspended and status.start_time is None:
            status = msgspec.structs.replace(status, start_time=_begun(status, seen) or now)
    if outcome.end is None or has_ended(status):
        return status
    end = msgspec.structs.replace(outcome.end, observed_generation=train_job.metadata.generation)
    conditions = set_condition(status.conditions, end, now)
    over = status.completion_time or end.last_transition_time or now
    return msgspec.structs.replace(status, conditions=conditions, completion_time=over)


def _begun(status: TrainJobStatus, seen: Document) -> datetime | None:
    """When a TrainJob was first allowed to run: when it was resumed, or else when what runs it was made."""
    resumed = find_condition(status.conditions, names.SUSPENDED)
    return resumed.last_transition_time if resumed is not None else seen.metadata.creation_timestamp


def _with(
    train_job: TrainJob, status: TrainJobStatus, name: str, answer: str, reason: str, message: str, now: datetime
) -> TrainJobStatus:
    condition = msgspec.convert(
        {
            "type": name,
            "status": answer,
            "reason": reason,
            "message": message,
            "observedGeneration": train_job.metadata.generation,
        },
        Condition,
    )
    return msgspec.structs.replace(status, conditions=set_condition(status.conditions, condition, now))
