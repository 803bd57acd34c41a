"""What the zones of all nodes are to pods of one kind, as arrays that are brought up to date row by row."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from shoal.scheduler.model.nodes import Nodes
from shoal.scheduler.model.resources import Mask
from shoal.scheduler.numa.aligning import alignment
from shoal.scheduler.numa.demands import Demand
from shoal.scheduler.numa.ledger import Ledger
from shoal.scheduler.numa.topologies import NodeTopology

POINTS: Final = 100.0
"""For a pod that is on one zone; on two it is half of it, and so on."""


class ZoneField:
    """Where such pods can be aligned, now or later, and on how few zones."""

    def __init__(
        self,
        demand: Demand,
        nodes: Nodes,
        rows: Mapping[int, tuple[NodeTopology, frozenset[str]]],
        spans: NDArray[np.float64],
        ledger: Ledger,
    ) -> None:
        """``rows``: those whose zones matter, with what is aligned there. ``spans``: [nodes] the zones of others."""
        self._demand = demand
        self._changes = nodes.changes
        self._rows = rows
        self._ledger = ledger
        self._seen = -1
        self.fits: Mask = np.ones(len(nodes), dtype=np.bool_)
        """[nodes] whether the node would take such a pod once those are gone that are ending there."""
        self.is_free: Mask = np.ones(len(nodes), dtype=np.bool_)
        """[nodes] whether it would take it now."""
        self.points: NDArray[np.float64] = POINTS / spans
        """[nodes]"""

    def refresh(self) -> None:
        """Takes in what has changed on nodes since."""
        if self._seen == len(self._changes):
            return
        rows = self._rows if self._seen < 0 else set(self._changes[self._seen :]) & self._rows.keys()
        self._seen = len(self._changes)
        for row in rows:
            self._compute(row)

    def rooms(self, most: NDArray[np.int64]) -> NDArray[np.int64]:
        """[nodes] how many such pods are aligned one after the other, up to so many."""
        counts = most.copy()
        for row, (topology, names) in self._rows.items():
            if not topology.policy.refuses:
                continue
            left, count = [dict(zone) for zone in self._ledger.room(row).later], 0
            while count < most[row] and (drawn := alignment(topology, self._demand, names, left)) is not None:
                count += 1
                if not drawn:
                    count = int(most[row])
                for zone, amounts in drawn.items():
                    for name, nano in amounts.items():
                        left[zone][name] -= nano
            counts[row] = count
        return counts

    def _compute(self, row: int) -> None:
        topology, names = self._rows[row]
        room = self._ledger.room(row)
        drawn = later = alignment(topology, self._demand, names, room.later)
        if room.now is not room.later and later is not None:
            drawn = alignment(topology, self._demand, names, room.now)
        refuses = topology.policy.refuses
        self.fits[row] = later is not None or not refuses
        self.is_free[row] = drawn is not None or not refuses
        best = later if drawn is None else drawn
        self.points[row] = 0.0 if best is None else POINTS / max(1, len(best))
