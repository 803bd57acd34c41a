"""How long a pod rests whose binding failed, so that one that no node takes does not starve the others.

A failed BindRequest stays: its status counts the failures, an annotation says when the last one was (its status has no
room for a time). Until that long has passed the scheduler passes the pod over. When it places the pod again it replaces
the request, and hands the count on in an annotation, so that a pod that keeps failing rests longer each time.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Final

from shoal.api.meta.time import InvalidTime, parse_time
from shoal.api.scheduling_run_ai import BindRequest

LONGEST: Final = 60.0
"""Seconds that a pod rests at most."""

FAILED_AT: Final = "shoal.dev/bind-failed-at"
"""Annotation of a BindRequest: when it last failed."""

FAILURES_BEFORE: Final = "shoal.dev/bind-failures"
"""Annotation of a BindRequest: how often requests for the same pod had failed when it was made."""

SUCCEEDED, FAILED = "Succeeded", "Failed"


def retry_after(failed_attempts: int) -> float:
    """Seconds that a pod rests after so many failures in a row: 2, 4, 8 … and never more than a minute."""
    if failed_attempts <= 0:
        return 0.0
    return min(LONGEST, 2.0 ** min(failed_attempts, 10))


def failures(request: BindRequest) -> int:
    """How often the pod of a request could not be bound, counting earlier requests."""
    return _failures_before(request) + (request.status.failed_attempts or 0)


def rests_until(request: BindRequest) -> datetime | None:
    """When the pod of a failed request may be tried again; None where nothing has failed."""
    if request.status.phase != FAILED:
        return None
    failed_at = _time(request.metadata.annotations.get(FAILED_AT, "")) or request.metadata.creation_timestamp
    return None if failed_at is None else failed_at + timedelta(seconds=retry_after(failures(request)))


def is_given_up(request: BindRequest) -> bool:
    """Whether the binder is done with a failed request: the scheduler is to place the pod anew."""
    status, limit = request.status, request.spec.backoff_limit
    return status.phase == FAILED and (limit is None or (status.failed_attempts or 0) >= limit)


def carried_failures(failed: BindRequest) -> dict[str, str]:
    """The annotations of the request that replaces a failed one."""
    count = failures(failed)
    return {FAILURES_BEFORE: str(count)} if count else {}


def _failures_before(request: BindRequest) -> int:
    text = request.metadata.annotations.get(FAILURES_BEFORE, "")
    return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else 0


def _time(text: str) -> datetime | None:
    try:
        return parse_time(text) if text else None
    except InvalidTime:
        return None
