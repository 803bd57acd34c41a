"""What is free of every node's zones, by what tasks hold there: nothing is counted that a statement could forget.

The holds of a node say all: a hold that is taken back takes its zones back. So what is free is counted from the holds
of a row when somebody asks, and kept until the row changes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple

from shoal.scheduler.model.nodes import Hold, Nodes
from shoal.scheduler.model.statuses import Status
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.numa.placements import Zones
from shoal.scheduler.numa.topologies import NodeTopology
from shoal.scheduler.resource_lists import Amounts


class Room(NamedTuple):
    """What is free of a node's zones, in their order."""

    later: list[Amounts]
    """Once those are gone that are ending."""
    now: list[Amounts]
    """With those that are ending still there; the very same where nobody is."""


class Ledger:
    """All nodes that have zones."""

    def __init__(
        self,
        nodes: Nodes,
        topologies: Mapping[int, NodeTopology],
        zones_of: Callable[[Task], Zones],
        *,
        reconstructs: bool,
    ) -> None:
        """``topologies``: by row. ``zones_of``: those of a task that has its place from an earlier cycle."""
        self._nodes = nodes
        self._topologies = topologies
        self._zones_of = zones_of
        self._places = {
            row: {zone.name: place for place, zone in enumerate(one.zones)} for row, one in topologies.items()
        }
        self._rooms: dict[int, Room] = {}
        self._seen = 0
        self._reported: dict[int, list[Amounts]] = {}
        """What zones would have without the pods that are there, where the node's word of what is free is taken."""
        if not reconstructs:
            for row, topology in topologies.items():
                empty = [dict(zone.available) for zone in topology.zones]
                for hold in nodes.nodes[row].holds.values():
                    self._count(empty, hold, 1)
                self._reported[row] = empty

    def room(self, row: int) -> Room:
        """What is free on a node that has zones."""
        self._catch_up()
        found = self._rooms.get(row)
        if found is None:
            found = self._rooms[row] = self._counted(row)
        return found

    def zones(self, hold: Hold) -> Zones:
        """The zones of a task, as far as they are known, and its node has them."""
        zones = self._zones_of(hold.task) if hold.zones is None else hold.zones
        places = self._places[hold.node]
        # Of a node as it was once: half of what a pod has would be worse than nothing.
        return zones if all(name in places for name, _ in zones) else ()

    def _catch_up(self) -> None:
        changes = self._nodes.changes
        if self._seen != len(changes):
            for row in changes[self._seen :]:
                self._rooms.pop(row, None)
            self._seen = len(changes)

    def _counted(self, row: int) -> Room:
        empty = self._reported.get(row)
        if empty is None:
            empty = [zone.allocatable for zone in self._topologies[row].zones]
        later, ending = [dict(zone) for zone in empty], list[Hold]()
        for hold in self._nodes.nodes[row].holds.values():
            if hold.status is Status.RELEASING:
                ending.append(hold)
            else:
                self._count(later, hold, -1)
        if not ending:
            return Room(later, later)
        now = [dict(zone) for zone in later]
        for hold in ending:
            self._count(now, hold, -1)
        return Room(later, now)

    def _count(self, free: list[Amounts], hold: Hold, by: int) -> None:
        for name, amounts in self.zones(hold):
            zone = free[self._places[hold.node][name]]
            for resource, nano in amounts:
                zone[resource] = zone.get(resource, 0) + by * nano
