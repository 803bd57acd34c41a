"""The zones of all nodes during one cycle: what they are to pods that wait, and what those get that are placed."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from shoal.scheduler.model.nodes import Hold, Nodes
from shoal.scheduler.model.tasks import Task
from shoal.scheduler.numa.aligning import alignment
from shoal.scheduler.numa.demands import Demand, is_device
from shoal.scheduler.numa.ledger import Ledger
from shoal.scheduler.numa.placements import Zones
from shoal.scheduler.numa.settings import NumaSettings
from shoal.scheduler.numa.topologies import NodeTopology, Policy
from shoal.scheduler.numa.zone_field import ZoneField


class NumaTable:
    """Made for a session, before it begins."""

    def __init__(
        self,
        nodes: Nodes,
        topologies: Mapping[str, NodeTopology],
        settings: NumaSettings,
        zones_of: Callable[[Task], Zones],
    ) -> None:
        """``topologies``: by the names of nodes. ``zones_of``: those of a task that had its place before."""
        self._nodes = nodes
        known = {nodes.index[name]: one for name, one in topologies.items() if name in nodes.index}
        self._rows = {
            row: (one, one.resources - settings.ignored) for row, one in known.items() if one.policy is not Policy.NONE
        }
        self._devices = {row: frozenset(filter(is_device, names)) for row, (_, names) in self._rows.items()}
        self._any_devices = frozenset[str]().union(*self._devices.values())
        self._spans = np.full(len(nodes), float(max((len(one.zones) for one in known.values()), default=1)))
        for row, one in known.items():
            self._spans[row] = len(one.zones)
        self._ledger = Ledger(
            nodes,
            {row: topology for row, (topology, _) in self._rows.items()},
            zones_of,
            reconstructs=settings.reconstructs,
        )
        self._is_of_use = bool(known)
        self._fields: dict[Demand, ZoneField] = {}

    def field(self, demand: Demand | None) -> ZoneField | None:
        """What all zones are to pods of one kind, up to date; None where they are nothing to them."""
        if demand is None or not self._is_of_use or not demand.concerns(self._any_devices):
            return None
        found = self._fields.get(demand)
        if found is None:
            rows = {row: one for row, one in self._rows.items() if demand.concerns(self._devices[row])}
            found = self._fields[demand] = ZoneField(demand, self._nodes, rows, self._spans, self._ledger)
        found.refresh()
        return found

    def zones(self, demand: Demand | None, row: int, *, is_promise: bool) -> Zones:
        """The zones that a pod is expected on, if it is placed there next; none where that cannot be told."""
        if demand is None or row not in self._rows or not demand.concerns(self._devices[row]):
            return ()
        topology, names = self._rows[row]
        room = self._ledger.room(row)
        drawn = None if is_promise else alignment(topology, demand, names, room.now)
        if drawn is None:
            drawn = alignment(topology, demand, names, room.later) or {}
        return tuple((topology.zones[zone].name, tuple(sorted(own.items()))) for zone, own in sorted(drawn.items()))

    def is_there(self, hold: Hold) -> bool:
        """Whether a task that was given its zones has taken nothing of them that somebody else still has."""
        return self._has(hold, is_given=True)

    def may_stay(self, hold: Hold) -> bool:
        """Whether nobody else was promised the zones of a task that was to leave them."""
        return self._has(hold, is_given=False)

    def _has(self, hold: Hold, *, is_given: bool) -> bool:
        if hold.node not in self._rows or not self._rows[hold.node][0].policy.refuses:
            return True
        room = self._ledger.room(hold.node)
        zones = self._rows[hold.node][0].zones
        free = {zone.name: left for zone, left in zip(zones, room.now if is_given else room.later, strict=True)}
        return all(
            free[name].get(resource, 0) >= (0 if is_given else nano)
            for name, own in self._ledger.zones(hold)
            for resource, nano in own
        )
