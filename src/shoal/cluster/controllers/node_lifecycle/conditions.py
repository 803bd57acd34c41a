"""What is written of a node that has fallen silent: nothing is known of it any more."""

from __future__ import annotations

from datetime import datetime

import msgspec

from shoal.api.core import Node, NodeCondition

READY = "Ready"
UNKNOWN = "Unknown"

POSTED_BY_NODES = (READY, "MemoryPressure", "DiskPressure", "PIDPressure")
"""What a node says of itself. Whether its network works is said by others, and stays as they said it."""


def conditions_of_silence(node: Node, now: datetime) -> list[NodeCondition]:
    """A node's conditions with all that it used to say of itself unknown."""
    conditions = [_silenced(condition, now) for condition in node.status.conditions]
    said = {condition.type for condition in conditions}
    return conditions + [_never_said(node, name, now) for name in POSTED_BY_NODES if name not in said]


def _silenced(condition: NodeCondition, now: datetime) -> NodeCondition:
    if condition.type not in POSTED_BY_NODES or condition.status == UNKNOWN:
        return condition
    return msgspec.structs.replace(
        condition,
        status=UNKNOWN,
        reason="NodeStatusUnknown",
        message="Kubelet stopped posting node status.",
        last_transition_time=now,
    )


def _never_said(node: Node, name: str, now: datetime) -> NodeCondition:
    return NodeCondition(
        type=name,
        status=UNKNOWN,
        reason="NodeStatusNeverUpdated",
        message="Kubelet never posted node status.",
        last_heartbeat_time=node.metadata.creation_timestamp,
        last_transition_time=now,
    )
