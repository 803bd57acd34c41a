"""Pods of gangs, in few words."""

from __future__ import annotations

from typing import Any

from shoal.api.core import Pod
from tests.scheduler.builders import a_kai_pod, kai_pod_manifest

FRACTION = {"received-resource-type": "Fraction"}


def gang_pod_manifest(name: str = "p", gang: str = "gang", **given: Any) -> dict[str, Any]:
    """A pod of a gang."""
    return kai_pod_manifest(name, group=gang, **given)


def a_gang_pod(name: str = "p", gang: str = "gang", **given: Any) -> Pod:
    """The same pod as the typed API reads it from a server."""
    return a_kai_pod(name, group=gang, **{"phase": "Pending", **given})


def scheduled(phase: str = "Pending") -> dict[str, Any]:
    return {"phase": phase, "conditions": [{"type": "PodScheduled", "status": "True"}]}
