"""Pods for KAI's scheduler, as kubectl reads them."""

from __future__ import annotations

from typing import Any

from shoal.api import kai_names as names
from tests.support.builders.pods import pod_manifest


def a_kai_pod(name: str, *, gpus: int = 0, scheduler: str = names.SCHEDULER, **given: Any) -> dict[str, Any]:
    """A pod with so many whole GPUs."""
    limits = {names.NVIDIA_GPU: gpus} if gpus else None
    container = {"name": "main", "image": "busybox"}
    pod = pod_manifest(name, containers=[container], limits=limits, scheduler=scheduler, **given)
    return {"apiVersion": "v1", "kind": "Pod", **pod}
