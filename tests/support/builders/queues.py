"""KAI's queues for tests, as manifests and as values of the typed API."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from shoal.api.scheduling_run_ai import Queue

Json = dict[str, Any]
RESOURCES = ("gpu", "cpu", "memory")
UNLIMITED = -1


def queue_manifest(
    name: str = "team",
    parent: str = "",
    *,
    quota: float | Mapping[str, float] = 0,
    limit: float | Mapping[str, float] = UNLIMITED,
    weight: float | Mapping[str, float] = 1,
    labels: Mapping[str, str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """A queue as it is written in JSON; a plain number stands for each of GPUs, processors and memory."""
    resources = {
        resource: {
            "quota": _of(resource, quota, 0),
            "limit": _of(resource, limit, UNLIMITED),
            "overQuotaWeight": _of(resource, weight, 1),
        }
        for resource in RESOURCES
    }
    place = {"parentQueue": parent} if parent else {}
    return {
        "metadata": {"name": name, **({"labels": dict(labels)} if labels else {}), **(metadata or {})},
        "spec": {**place, "resources": resources, **spec},
        **({"status": dict(status)} if status else {}),
    }


def a_queue(name: str = "team", parent: str = "", **given: Any) -> Queue:
    """The same queue as the typed API reads it."""
    return msgspec.convert(queue_manifest(name, parent, **given), Queue)


def _of(resource: str, given: float | Mapping[str, float], otherwise: float) -> float:
    return given.get(resource, otherwise) if isinstance(given, Mapping) else given
