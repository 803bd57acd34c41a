"""Pods and courses of containers in a test's words."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from shoal.api.core.pod_details import PodDetails
from shoal.cluster.node.process.pods.course import Course, End, Run

NOW = datetime(2026, 1, 1, 12, 0, 0, tzinfo=UTC)


def seconds(count: float) -> timedelta:
    return timedelta(seconds=count)


def a_pod(
    *containers: str | dict[str, Any],
    init: tuple[str | dict[str, Any], ...] = (),
    metadata: dict[str, Any] | None = None,
    status: dict[str, Any] | None = None,
    **spec: Any,
) -> PodDetails:
    """A pod; containers are names, or fields with a name. A name with a star is a sidecar's."""

    def listed(given: tuple[str | dict[str, Any], ...]) -> list[dict[str, Any]]:
        return [_container(one) if isinstance(one, str) else one for one in given]

    content = {
        "metadata": {"name": "web", "namespace": "team", "uid": "u-1", "generation": 1, **(metadata or {})},
        "spec": {"containers": listed(containers or ("main",)), "initContainers": listed(init), **spec},
        "status": status or {},
    }
    return msgspec.convert(content, PodDetails)


def _container(name: str) -> dict[str, Any]:
    return {"name": name.removesuffix("*"), "image": "busybox"} | ({"restartPolicy": "Always"} if "*" in name else {})


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
