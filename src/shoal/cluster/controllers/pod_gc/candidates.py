"""Which pods are to be removed, as pure rules."""

from __future__ import annotations

import heapq
from collections.abc import Iterable
from datetime import UTC, datetime

from shoal.api.core import FAILED, PENDING, RUNNING, Node, Pod, is_finished, is_node_ready

OUT_OF_SERVICE = "node.kubernetes.io/out-of-service"
"""Taint: a person says that the node is off, and that nothing runs on it any more."""

_LONG_AGO = datetime.min.replace(tzinfo=UTC)


def has_ended(pod: Pod) -> bool:
    """Whether a pod has run to its end; a phase that nobody knows counts as one."""
    return pod.status.phase not in (PENDING, RUNNING, "Unknown")


def surplus(ended: Iterable[Pod], count: int) -> list[Pod]:
    """The ``count`` pods to remove first: those that were evicted, then the oldest."""
    return heapq.nsmallest(count, ended, key=_worth)


def cannot_end(pod: Pod, node: Node | None) -> bool:
    """Whether a pod is to go and no node will ever say that it has: it has none, or one that is out of service."""
    if not pod.metadata.is_deleting:
        return False
    return not pod.spec.node_name or (node is not None and is_out_of_service(node))


def is_out_of_service(node: Node) -> bool:
    """Whether a node is off for good, as far as its pods are concerned."""
    return not is_node_ready(node) and any(taint.key == OUT_OF_SERVICE for taint in node.spec.taints)


def is_removed(pod: Pod) -> bool:
    """Whether all has been done to a pod that can be: what still holds it is a finalizer of somebody else's."""
    metadata = pod.metadata
    return is_finished(pod) and metadata.is_deleting and metadata.deletion_grace_period_seconds == 0


def _worth(pod: Pod) -> tuple[bool, datetime, str]:
    was_evicted = pod.status.phase == FAILED and pod.status.reason == "Evicted"
    return (not was_evicted, pod.metadata.creation_timestamp or _LONG_AGO, pod.metadata.name)
