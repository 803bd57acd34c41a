"""PodGangs in few words, as plain values and as typed objects."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.api.grove import names
from shoal.api.scheduler_grove_io import PodGang

UID = "6c1e5d2a-0000-4000-8000-000000000001"


def a_group(
    name: str = "web-0-workers", minimum: int = 2, *, pods: int | Sequence[str] = 0, **packed: str
) -> dict[str, Any]:
    """A group of a gang that names so many pods, or these.

    ``packed`` is ``required`` or ``preferred`` with the key of a node label.
    """
    named = [f"{name}-{index}" for index in range(pods)] if isinstance(pods, int) else pods
    references = [{"namespace": "default", "name": pod} for pod in named]
    return {"name": name, "minReplicas": minimum, "podReferences": references, **constrained(**packed)}


def constrained(**packed: str) -> dict[str, Any]:
    return {"topologyConstraint": {"packConstraint": packed}} if packed else {}


def a_gang_body(
    *groups: dict[str, Any],
    name: str = "web-0",
    backend: str = "kai",
    labels: Mapping[str, str] | None = None,
    annotations: Mapping[str, str] | None = None,
    parts: Sequence[dict[str, Any]] = (),
    **spec: Any,
) -> dict[str, Any]:
    """A PodGang of the set ``web`` as the controller of gangs makes it."""
    ours = {
        names.MANAGED_BY_LABEL: names.MANAGER,
        names.PART_OF_LABEL: "web",
        names.SET_REPLICA_LABEL: "0",
        names.SCHEDULER_BACKEND_LABEL: backend,
    }
    return {
        "apiVersion": "scheduler.grove.io/v1alpha1",
        "kind": "PodGang",
        "metadata": {
            "name": name,
            "namespace": "default",
            "labels": {**ours, **(labels or {})},
            **({"annotations": dict(annotations)} if annotations else {}),
        },
        "spec": {
            "podgroups": list(groups) or [a_group()],
            **({"topologyConstraintGroupConfigs": list(parts)} if parts else {}),
            **spec,
        },
    }


def a_gang(
    *groups: dict[str, Any],
    metadata: Mapping[str, Any] | None = None,
    status: Mapping[str, Any] | None = None,
    **fields: Any,
) -> PodGang:
    """A PodGang as controllers read it."""
    body = a_gang_body(*groups, **fields)
    identity = {**body["metadata"], "uid": UID, **(metadata or {})}
    return msgspec.convert({**body, "metadata": identity, "status": status or {}}, PodGang)
