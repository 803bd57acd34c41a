"""Queues and gangs with figures, in few words."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.scheduling_run_ai import PodGroup, Queue

FREE = {"quota": 0, "limit": -1, "overQuotaWeight": 1}


def a_queue(name: str, parent: str = "", *, labels: dict[str, str] | None = None, **quotas: float) -> dict[str, Any]:
    """A queue with these quotas, and none of what is not named."""
    resources = {resource: {**FREE, "quota": quotas.get(resource, 0)} for resource in ("gpu", "cpu", "memory")}
    spec = {"resources": resources, **({"parentQueue": parent} if parent else {})}
    return {"metadata": {"name": name, "labels": labels or {}}, "spec": spec}


def a_gang(name: str, queue: str) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"queue": queue, "minMember": 1}}


def figures(gpus: float = 0, *, cpu: str = "", kept: bool = False, waiting: float = 0) -> dict[str, Any]:
    """The status of a gang that holds GPUs (``kept``: for good) and CPU, and waits for more GPUs."""
    held = {**({"nvidia.com/gpu": str(gpus)} if gpus else {}), **({"cpu": cpu} if cpu else {})}
    asked = {**held, **({"nvidia.com/gpu": str(gpus + waiting)} if waiting else {})}
    status = {"allocated": held, "requested": asked, **({"allocatedNonPreemptible": held} if kept else {})}
    return {"resourcesStatus": status}


def typed_queue(body: dict[str, Any], **status: Any) -> Queue:
    return msgspec.convert({**body, "status": status}, Queue)


def typed_gang(name: str, queue: str, status: dict[str, Any]) -> PodGroup:
    return msgspec.convert({**a_gang(name, queue), "status": status}, PodGroup)
