"""Figures of gangs, in few words."""

from __future__ import annotations

from typing import Any


def figures(gpus: float = 0, *, cpu: str = "", kept: bool = False, waiting: float = 0) -> dict[str, Any]:
    """The status of a gang that holds GPUs (``kept``: for good) and CPU, and waits for more GPUs."""
    held = {**({"nvidia.com/gpu": str(gpus)} if gpus else {}), **({"cpu": cpu} if cpu else {})}
    asked = {**held, **({"nvidia.com/gpu": str(gpus + waiting)} if waiting else {})}
    status = {"allocated": held, "requested": asked, **({"allocatedNonPreemptible": held} if kept else {})}
    return {"resourcesStatus": status}
