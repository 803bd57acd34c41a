"""Which nodes a DaemonSet's pods are for: by name, selector, affinity and the taints that they put up with."""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from shoal.api.apps import DaemonSet
from shoal.api.core import Node, Toleration
from shoal.cluster.placement import NO_EXECUTE, NO_SCHEDULE, NodeRequirements, untolerated

_NODE_PROBLEMS = (
    ("node.kubernetes.io/not-ready", NO_EXECUTE),
    ("node.kubernetes.io/unreachable", NO_EXECUTE),
    ("node.kubernetes.io/disk-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/memory-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/pid-pressure", NO_SCHEDULE),
    ("node.kubernetes.io/unschedulable", NO_SCHEDULE),
)
_NETWORK_UNAVAILABLE = ("node.kubernetes.io/network-unavailable", NO_SCHEDULE)


class Verdict(enum.Enum):
    """What a node means to a DaemonSet."""

    RUN = "run"
    """It is to have a pod."""
    STAY = "stay"
    """It gets none, and one that is there may stay."""
    LEAVE = "leave"
    """One that is there must go."""


class Eligibility:
    """The verdict of one DaemonSet on any node, ready to be asked of thousands."""

    def __init__(self, daemon_set: DaemonSet) -> None:
        spec = daemon_set.spec.template.get("spec") or {}
        self._node_name = spec.get("nodeName") or ""
        self._requirements = NodeRequirements.of(spec.get("nodeSelector") or {}, spec.get("affinity"))
        self._takes_any = self._requirements.is_everything
        self._tolerations = msgspec.convert(daemon_tolerations(spec), list[Toleration])

    def verdict(self, node: Node) -> Verdict:
        """Whether the node is to have a pod, or may keep one."""
        if self._node_name and self._node_name != node.metadata.name:
            return Verdict.LEAVE
        if not self._takes_any and not self._requirements.matches(node):
            return Verdict.LEAVE
        taints = node.spec.taints
        if not taints:
            return Verdict.RUN
        against = untolerated(taints, self._tolerations)
        if not against:
            return Verdict.RUN
        drives_away = any(taint.effect == NO_EXECUTE for taint in against)
        return Verdict.LEAVE if drives_away else Verdict.STAY


def daemon_tolerations(spec: Mapping[str, Any]) -> Sequence[dict[str, Any]]:
    """A pod spec's tolerations, with those that let a daemon stay on a node in trouble."""
    tolerations: list[dict[str, Any]] = list(spec.get("tolerations") or ())
    problems = (*_NODE_PROBLEMS, _NETWORK_UNAVAILABLE) if spec.get("hostNetwork") else _NODE_PROBLEMS
    for key, effect in problems:
        wanted = {"key": key, "operator": "Exists", "effect": effect}
        same = [index for index, found in enumerate(tolerations) if _is_like(found, wanted)]
        for index in same:
            tolerations[index] = wanted  # one that ends after some seconds is not enough
        if not same:
            tolerations.append(wanted)
    return tolerations


def _is_like(toleration: Mapping[str, Any], wanted: Mapping[str, Any]) -> bool:
    return all(toleration.get(field, "") == wanted.get(field, "") for field in ("key", "operator", "value", "effect"))
