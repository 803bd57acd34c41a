"""Jobs and pods as values, for rules that need no server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import msgspec

from shoal.api.batch import COMPLETION_INDEX, INDEX_FAILURE_COUNT, TRACKING_FINALIZER, Job
from shoal.api.core import Pod
from shoal.api.meta import format_time
from tests.support.builders.pods import a_condition, a_pod

NOON = datetime(2026, 7, 9, 12, 0, tzinfo=UTC)
_numbers = count()


def a_job(*, status: dict[str, Any] | None = None, deleted: bool = False, **spec: Any) -> Job:
    """A Job with fields of its spec as the wire has them."""
    metadata = {"name": "work", "namespace": "default", "uid": "job", "generation": 1}
    if deleted:
        metadata["deletionTimestamp"] = NOON.isoformat()
    if spec.get("completionMode") == "Indexed":
        spec.setdefault("completions", 3)
    body = {"metadata": metadata, "spec": spec, "status": {"startTime": NOON.isoformat(), **(status or {})}}
    return msgspec.convert(body, Job)


def a_job_pod(
    phase: str = "Pending",
    *,
    index: int | str | None = None,
    ended: float | None = None,
    code: int | None = None,
    conditions: dict[str, str] | None = None,
    deleted: bool = False,
    tracked: bool = True,
    failures: int | None = None,
    created: float = 0,
    node: str = "",
) -> Pod:
    """A pod of the Job; times are seconds from noon."""
    number = next(_numbers)
    annotations = {COMPLETION_INDEX: index, INDEX_FAILURE_COUNT: failures}
    status: dict[str, Any] = {}
    if ended is not None or code is not None:
        terminated = {"exitCode": code or 0, "finishedAt": format_time(_at(ended or 0))}
        status["containerStatuses"] = [{"name": "main", "state": {"terminated": terminated}}]
    return a_pod(
        f"work-{number}",
        namespace="default",
        uid=f"uid-{number}",
        annotations={key: str(value) for key, value in annotations.items() if value is not None},
        metadata={"finalizers": [TRACKING_FINALIZER] if tracked else []},
        created=_at(created),
        deleted=NOON if deleted else None,
        node=node,
        phase=phase,
        conditions=[a_condition(kind, value, since=NOON) for kind, value in (conditions or {}).items()],
        status=status,
    )


def _at(seconds: float) -> datetime:
    return NOON + timedelta(seconds=seconds)
