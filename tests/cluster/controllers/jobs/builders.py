"""Jobs and pods as values, for rules that need no server."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from itertools import count
from typing import Any

import msgspec

from shoal.api.batch import COMPLETION_INDEX, INDEX_FAILURE_COUNT, TRACKING_FINALIZER, Job
from shoal.api.core import Pod

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


def a_pod(
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
    **fields: Any,
) -> Pod:
    """A pod; times are seconds from noon."""
    number = next(_numbers)
    annotations = {COMPLETION_INDEX: str(index)} if index is not None else {}
    if failures is not None:
        annotations[INDEX_FAILURE_COUNT] = str(failures)
    metadata: dict[str, Any] = {
        "name": f"work-{number}",
        "namespace": "default",
        "uid": f"uid-{number}",
        "annotations": annotations,
        "finalizers": [TRACKING_FINALIZER] if tracked else [],
        "creationTimestamp": _at(created),
    }
    if deleted:
        metadata["deletionTimestamp"] = _at(0)
    status: dict[str, Any] = {"phase": phase}
    if ended is not None or code is not None:
        terminated = {"exitCode": code or 0, "finishedAt": _at(ended or 0)}
        status["containerStatuses"] = [{"name": "main", "state": {"terminated": terminated}}]
    if conditions:
        status["conditions"] = [
            {"type": kind, "status": value, "lastTransitionTime": _at(0)} for kind, value in conditions.items()
        ]
    node = {"nodeName": fields["node"]} if "node" in fields else {}
    return msgspec.convert({"metadata": metadata, "spec": node, "status": status}, Pod)


def _at(seconds: float) -> str:
    return (NOON + timedelta(seconds=seconds)).isoformat()
