"""The taints that a node's conditions call for.

``NoSchedule`` follows the conditions at once. ``NoExecute``, which drives pods away, is for nodes that are not ready or
out of reach, one of the two at a time, and waits until the node's zone lets it (see ``zones``).
"""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import msgspec

from shoal.api.core import Node, Taint, node_condition
from shoal.cluster.controllers.node_lifecycle.conditions import READY
from shoal.cluster.placement import NO_EXECUTE, NO_SCHEDULE

NOT_READY = "node.kubernetes.io/not-ready"
UNREACHABLE = "node.kubernetes.io/unreachable"
UNSCHEDULABLE = "node.kubernetes.io/unschedulable"

_BY_CONDITION = {
    (READY, "False"): NOT_READY,
    (READY, "Unknown"): UNREACHABLE,
    ("MemoryPressure", "True"): "node.kubernetes.io/memory-pressure",
    ("DiskPressure", "True"): "node.kubernetes.io/disk-pressure",
    ("PIDPressure", "True"): "node.kubernetes.io/pid-pressure",
    ("NetworkUnavailable", "True"): "node.kubernetes.io/network-unavailable",
}
_OURS = {(key, NO_SCHEDULE) for key in (*_BY_CONDITION.values(), UNSCHEDULABLE)}
_DRIVING_AWAY = {(NOT_READY, NO_EXECUTE), (UNREACHABLE, NO_EXECUTE)}


def wanted_taints(node: Node, *, drives_away: bool, now: datetime) -> list[Taint]:
    """A node's taints as they should be; those of others stay as and where they are.

    ``drives_away`` says whether a node that is not ready is to lose its pods.
    """
    wanted = _keeping_away(node)
    reason = reason_to_drive_away(node)
    if drives_away and reason is not None:
        wanted.append((reason, NO_EXECUTE))
    kept = [
        taint for taint in node.spec.taints if _place(taint) not in _OURS | _DRIVING_AWAY or _place(taint) in wanted
    ]
    there = {_place(taint) for taint in kept}
    added = [Taint(key=key, effect=effect, time_added=now) for key, effect in wanted if (key, effect) not in there]
    return kept + added


def reason_to_drive_away(node: Node) -> str | None:
    """The key of the taint that a node's state calls for; None where it is ready, or nothing is known of it yet."""
    ready = node_condition(node, READY)
    return None if ready is None else _BY_CONDITION.get((READY, ready.status))


def is_driving_away(node: Node) -> bool:
    """Whether a node loses its pods for not being ready or being out of reach."""
    return any(_place(taint) in _DRIVING_AWAY for taint in node.spec.taints)


def driving_away(taints: Sequence[Taint]) -> list[Taint]:
    """The taints that pods must tolerate to stay."""
    return [taint for taint in taints if taint.effect == NO_EXECUTE]


def plain(taints: Sequence[Taint]) -> list[dict[str, object]]:
    """Taints as the wire has them."""
    return [msgspec.to_builtins(taint) for taint in taints]


def _keeping_away(node: Node) -> list[tuple[str, str]]:
    found = [(condition.type, condition.status) for condition in node.status.conditions]
    keys = [_BY_CONDITION[each] for each in found if each in _BY_CONDITION]
    if node.spec.unschedulable:
        keys.append(UNSCHEDULABLE)
    return [(key, NO_SCHEDULE) for key in dict.fromkeys(keys)]


def _place(taint: Taint) -> tuple[str, str]:
    return (taint.key, taint.effect)
