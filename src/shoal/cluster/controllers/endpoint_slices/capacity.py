"""How much of the cluster's processors each zone has, kept while nodes come and go.

Summing up ten thousand nodes for each look at a service would cost more than all the rest of it.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from shoal.api.core import Node, is_node_ready
from shoal.api.meta import parse_quantity
from shoal.cluster.controllers.endpoint_slices.zones import ZONE, ZoneShares
from shoal.kube import Change

_NOT_FOR_PODS = ("node-role.kubernetes.io/control-plane", "node-role.kubernetes.io/master")


class _Part(NamedTuple):
    """What a node adds to its zone."""

    zone: str
    processors: int

    @property
    def is_known(self) -> bool:
        return bool(self.zone and self.processors)


class ZoneCapacity:
    """Told of every change of nodes; says which share of the processors each zone has."""

    def __init__(self) -> None:
        self._parts: dict[str, _Part] = {}
        self._by_zone: Counter[str] = Counter()
        self._unknown = 0

    def node_changed(self, change: Change[Node]) -> None:
        """Takes a node as it is now."""
        name = change.latest.metadata.name
        before = self._parts.pop(name, None)
        if before is not None:
            self._count(before, -1)
        after = _part_of(change.after) if change.after is not None else None
        if after is not None:
            self._parts[name] = after
            self._count(after, 1)

    @property
    def shares(self) -> ZoneShares:
        """What the nodes that are ready say; None where one of them says nothing, or all are in one zone."""
        if self._unknown or len(self._by_zone) < 2:
            return None
        total = self._by_zone.total()
        return {zone: processors / total for zone, processors in self._by_zone.items()}

    def _count(self, part: _Part, by: int) -> None:
        if not part.is_known:
            self._unknown += by
            return
        self._by_zone[part.zone] += by * part.processors
        if not self._by_zone[part.zone]:
            del self._by_zone[part.zone]


def _part_of(node: Node) -> _Part | None:
    """What a node adds; None where its processors are not for pods, or not now."""
    labels = node.metadata.labels
    if any(name in labels for name in _NOT_FOR_PODS) or not is_node_ready(node):
        return None
    return _Part(labels.get(ZONE, ""), parse_quantity(node.status.allocatable.get("cpu", 0)).milli_value())
