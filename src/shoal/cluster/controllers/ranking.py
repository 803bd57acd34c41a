"""Which of a set's pods to give up first when there are too many.

The least is lost with a pod that has no node, then one that is pending, then one that is not ready, then one that its
owner has said is cheap (``controller.kubernetes.io/pod-deletion-cost``), then one on a node that has many of its kind,
then the one that has been ready for the shortest time, has restarted most often, or is youngest. Times are compared by
their order of magnitude; pods of the same one go in the order of their uids, which is as good as chance, so that a set
does not lose all pods of one age at once.
"""

from __future__ import annotations

import functools
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from shoal.api.core import PENDING, RUNNING, Pod, is_ready, pod_condition

DELETION_COST = "controller.kubernetes.io/pod-deletion-cost"
_PHASES = {PENDING: 0, "Unknown": 1, RUNNING: 2}
_COST = re.compile(r"-[0-9]+|0|[1-9][0-9]*")
_MICROSECOND = timedelta(microseconds=1)


def first_to_go(pods: Sequence[Pod], *, related_on_node: Mapping[str, int], now: datetime) -> list[Pod]:
    """The pods, those to give up first at the front; ``related_on_node`` counts active pods of the kind by node."""
    worths = [_Worth.of(pod, related_on_node) for pod in pods]
    worths.sort(key=functools.cmp_to_key(lambda one, other: _compared(one, other, now)))
    return [worth.pod for worth in worths]


@dataclass(frozen=True, slots=True)
class _Worth:
    """What of a pod decides about its place; in the order in which it does."""

    pod: Pod
    standing: tuple[float, ...]
    ready_since: datetime | None
    is_ready: bool
    restarts: tuple[int, int]
    created: datetime | None

    @classmethod
    def of(cls, pod: Pod, related_on_node: Mapping[str, int]) -> _Worth:
        ready = is_ready(pod)
        condition = pod_condition(pod, "Ready")
        standing = (
            bool(pod.spec.node_name),
            _PHASES.get(pod.status.phase, 0),
            ready,
            deletion_cost(pod),
            -related_on_node.get(pod.spec.node_name, 0),
        )
        return cls(
            pod=pod,
            standing=standing,
            ready_since=condition.last_transition_time if condition is not None else None,
            is_ready=ready,
            restarts=_restarts(pod),
            created=pod.metadata.creation_timestamp,
        )


def deletion_cost(pod: Pod) -> int:
    """What the annotation says of a pod's worth; one that is no number of 32 bits counts as none."""
    text = pod.metadata.annotations.get(DELETION_COST, "0")
    if not _COST.fullmatch(text):
        return 0
    cost = int(text)
    return cost if -(2**31) <= cost < 2**31 else 0


def _compared(one: _Worth, other: _Worth, now: datetime) -> int:
    """Below zero where the first goes before the other."""
    if one.standing != other.standing:
        return -1 if one.standing < other.standing else 1
    if one.is_ready and one.ready_since != other.ready_since:
        return _younger_first(one, one.ready_since, other, other.ready_since, now)
    if one.restarts != other.restarts:
        return -1 if one.restarts > other.restarts else 1
    if one.created != other.created:
        return _younger_first(one, one.created, other, other.created, now)
    return 0


def _younger_first(
    one: _Worth, since: datetime | None, other: _Worth, other_since: datetime | None, now: datetime
) -> int:
    if since is None or other_since is None:
        return -1 if since is None else 1
    difference = _magnitude(now - since) - _magnitude(now - other_since)
    if difference != 0:
        return difference
    uid, other_uid = one.pod.metadata.uid, other.pod.metadata.uid
    return (uid > other_uid) - (uid < other_uid)


def _magnitude(age: timedelta) -> int:
    """The power of two of an age; what lies in the future is the youngest."""
    nanoseconds = age // _MICROSECOND * 1000
    return int(math.log2(nanoseconds)) if nanoseconds > 0 else -1


def _restarts(pod: Pod) -> tuple[int, int]:
    """The most restarts of any container, and of any sidecar."""
    sidecars = {container.name for container in pod.spec.init_containers if container.restart_policy == "Always"}
    return (
        max((status.restart_count for status in pod.status.container_statuses), default=0),
        max(
            (status.restart_count for status in pod.status.init_container_statuses if status.name in sidecars),
            default=0,
        ),
    )
