"""Conditions that controllers set on pods which run elsewhere: written one by one, beside those of the pod's node.

A pod's conditions are a map by type for a strategic patch, so a controller and a node's agent never overwrite each
other's. The patch carries the uid that was seen: a pod that has taken the name since is left alone.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec

from shoal.api.core import Pod, PodCondition, pod_condition

DISRUPTION_TARGET = "DisruptionTarget"


def disruption_target(pod: Pod, *, reason: str, message: str, now: datetime) -> PodCondition | None:
    """Says on a pod that the cluster, not its program, ends it; None where the pod says so already."""
    known = pod_condition(pod, DISRUPTION_TARGET)
    if known is not None and (known.status, known.reason, known.message) == ("True", reason, message):
        return None
    return PodCondition(
        type=DISRUPTION_TARGET,
        status="True",
        observed_generation=pod.metadata.generation,
        last_transition_time=known.last_transition_time if known is not None and known.status == "True" else now,
        reason=reason,
        message=message,
    )


def status_patch(pod: Pod, *conditions: PodCondition, **fields: Any) -> dict[str, Any]:
    """The strategic patch that sets conditions, and other fields, of this very pod's status."""
    status = dict(fields)
    if conditions:
        status["conditions"] = [msgspec.to_builtins(condition) for condition in conditions]
    return {"metadata": {"uid": pod.metadata.uid}, "status": status}
