"""Pods and courses of containers in a test's words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.cluster.node.process.pods.course import Course, End, Run

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def running(attempt: int = 0, *, since: float = 60, **more: Any) -> Course:
    """A container that runs, and did so often before."""
    given = {"is_started": True, "is_ready": True, "crashes": attempt, **more}
    return Course(run=Run(attempt=attempt, started=NOW - seconds(since)), **given)


def ended(code: int, attempt: int = 0, *, ago: float = 0, lasted: float = 1, **more: Any) -> Course:
    """A container that has ended."""
    at = NOW - seconds(ago)
    end = End(at=at, exit_code=code, reason="Error" if code else "Completed")
    run = Run(attempt=attempt, started=at - seconds(lasted), end=end)
    return Course(run=run, **{"crashes": attempt, **more})
