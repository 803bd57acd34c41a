"""Which node is best for a task: all nodes at once, as arrays.

Tasks that are alike (the same request, the same constraints) share a `Field`: for every node whether they fit, now or
later, and its score. A field is brought up to date row by row as nodes change, so that placing one task of thousands
that are alike costs a look at what changed and one search for the highest score.

Each source of points owns a power of ten, so that a lesser one never outweighs a greater one; among equals the first
by name wins.
"""

from __future__ import annotations

from typing import Final

import numpy as np
from numpy.typing import NDArray

from shoal.scheduler.model.nodes import Nodes
from shoal.scheduler.model.resources import CPU, GPU, PODS, Mask, Vector, widened
from shoal.scheduler.model.tasks import Constraints, Request
from shoal.scheduler.numa import ZoneField
from shoal.scheduler.session.filters import Filters
from shoal.scheduler.session.gpus import fitting_groups, has_room
from shoal.scheduler.session.settings import Settings, Strategy

NOMINATED: Final = 10_000_000.0
POD_AFFINITY: Final = 1_000_000.0
SHARED_GPU: Final = 10_000.0
AVAILABLE: Final = 1_000.0
CPU_ONLY: Final = 10.0
DENSITY: Final = 9.0

_ONE_BY_ONE: Final = 4
"""Up to so many rows are brought up to date without arrays, which cost as much for one row as for hundreds."""
_FEW: Final = 8
"""Up to this part of the rows is brought up to date by themselves; beyond it, all at once is cheaper."""


class Field:
    """What all nodes are to tasks of one kind."""

    def __init__(
        self,
        request: Request,
        constraints: Constraints,
        nodes: Nodes,
        filters: Filters,
        settings: Settings,
        zones: ZoneField | None = None,
    ) -> None:
        self.zones = zones
        """What the NUMA zones of nodes are to tasks of this kind, where they are anything to them."""
        self._nodes = nodes
        self._request = request
        vector = widened(request.vector, nodes.idle.shape[1])
        self._asked = np.flatnonzero(vector > 0)
        self._vector: Vector = vector[self._asked]
        self.static: Mask = np.ones(len(nodes), dtype=np.bool_)
        if settings.has("predicates"):
            self.static = filters.static_mask(constraints, request)
        self._needs: list[tuple[int, float]] = list(zip(self._asked.tolist(), self._vector.tolist(), strict=True))
        self._is_shared = request.is_shared
        self._takes_idle_now = request.is_best_effort
        self._fixed = self._fixed_points(constraints, settings)
        self._scored, self._strategy = (
            (GPU, settings.gpu_strategy) if request.wants_gpu else (CPU, settings.cpu_strategy)
        )
        self._largest = float(nodes.allocatable[:, self._scored].max(initial=0.0)) or 1.0
        if not settings.has("nodeplacement"):
            self._strategy = Strategy.NONE
        self._availability = AVAILABLE if settings.has("nodeavailability") else 0.0
        self._sharing = SHARED_GPU if settings.has("gpusharingorder") else 0.0
        self.fits: Mask = np.zeros(len(nodes), dtype=np.bool_)
        """[nodes] whether a task can be placed there, now or later."""
        self.is_free: Mask = np.zeros(len(nodes), dtype=np.bool_)
        """[nodes] whether a task can be placed there now."""
        self.score: NDArray[np.float64] = np.full(len(nodes), -np.inf)
        """[nodes] the points of those that fit; of others, minus infinity."""
        self._seen = -1

    def refresh(self) -> None:
        """Takes in what has changed on nodes since."""
        changes = self._nodes.changes
        if self._seen == len(changes):
            return
        rows = changes[self._seen :] if self._seen >= 0 else None
        self._seen = len(changes)
        if self.zones is not None:
            self.zones.refresh()
        if rows is None:
            self._compute(slice(None))
            return
        distinct = set(rows)
        if len(distinct) <= _ONE_BY_ONE:
            for row in distinct:
                self._compute_one(row)
        elif len(distinct) * _FEW > len(self._nodes):
            self._compute(slice(None))
        else:
            self._compute(np.array(list(distinct), dtype=np.intp))

    def best(self, allowed: Mask | None, more: NDArray[np.float64] | None = None) -> int:
        """The best of these rows, given more points; -1 where no node will do."""
        score = self.score if more is None else self.score + more
        if allowed is not None:
            score = np.where(allowed, score, -np.inf)
        row = int(score.argmax()) if len(score) else -1
        return row if row >= 0 and score[row] > -np.inf else -1

    def room_now(self, row: int) -> int:
        """How many tasks fit on a node one after the other as it is now."""
        return int((self._nodes.idle[row, self._asked] // self._vector).min()) if len(self._asked) else 1

    def room_later(self, row: int) -> int:
        """How many tasks fit on a node one after the other, those that end being gone."""
        free = self._nodes.idle[row, self._asked] + self._nodes.releasing[row, self._asked]
        return int((free // self._vector).min()) if len(self._asked) else 1

    def rooms(self) -> NDArray[np.int64]:
        """[nodes] how many tasks have room in what is free now or becomes free."""
        free = self._nodes.idle[:, self._asked] + self._nodes.releasing[:, self._asked]
        counts = (free // self._vector).min(axis=1) if len(self._asked) else np.full(len(free), np.inf)
        if self._is_shared:
            whole = self._nodes.idle[:, GPU] + self._nodes.releasing[:, GPU]
            shared = np.array(
                [len(fitting_groups(self._request, node)) for node in self._nodes.nodes], dtype=np.float64
            )
            devices = self._request.gpu.devices
            each = np.maximum(
                1,
                self._nodes.gpu_memory
                // np.maximum(1, [self._request.memory_on(node.gpu_memory) for node in self._nodes.nodes]),
            )
            counts = np.minimum(counts, (whole * each + shared) // devices)
        clipped: NDArray[np.int64] = np.clip(counts, 0, 1_000_000).astype(np.int64)
        return clipped

    def _fixed_points(self, constraints: Constraints, settings: Settings) -> NDArray[np.float64]:
        nodes = self._nodes
        points = np.zeros(len(nodes))
        if constraints.nominated_node in nodes.index and settings.has("nominatednode"):
            points[nodes.index[constraints.nominated_node]] += NOMINATED
        if not self._request.wants_gpu and settings.has("resourcetype"):
            has_gpu = (nodes.allocatable[:, GPU] > 0) | np.array([n.has_mig or n.has_claimed_gpus for n in nodes.nodes])
            points[~has_gpu] += CPU_ONLY
        return points

    def _compute(self, rows: slice | NDArray[np.intp]) -> None:
        nodes = self._nodes
        idle, releasing = nodes.idle[rows], nodes.releasing[rows]
        later = idle + releasing
        fits: Mask = np.asarray(self.static[rows]) & (later[:, PODS] > 0)
        fits &= (later[:, self._asked] >= self._vector).all(axis=1)
        is_free: Mask = idle[:, PODS] > 0
        if not self._takes_idle_now:
            is_free = np.asarray((idle[:, self._asked] >= self._vector).all(axis=1))
        score = self._fixed[rows] + self._density(rows, later)
        if self._is_shared:
            indices = np.arange(len(nodes))[rows]
            for place in np.flatnonzero(fits):
                fits[place], is_free[place], points = self._share(int(indices[place]), bool(is_free[place]))
                score[place] += points
        if self.zones is not None:
            fits &= self.zones.fits[rows]
            is_free &= self.zones.is_free[rows]
            score += self.zones.points[rows]
        is_free &= fits
        score += self._availability * is_free
        self.fits[rows], self.is_free[rows] = fits, is_free
        self.score[rows] = np.where(fits, score, -np.inf)

    def _compute_one(self, row: int) -> None:
        """The same for one row, in plain numbers."""
        nodes = self._nodes
        idle: list[float] = nodes.idle[row].tolist()
        releasing: list[float] = nodes.releasing[row].tolist()
        fits = bool(self.static[row]) and idle[PODS] + releasing[PODS] > 0
        is_free = True
        for place, amount in self._needs:
            fits = fits and idle[place] + releasing[place] >= amount
            is_free = is_free and idle[place] >= amount
        if self._takes_idle_now:
            is_free = idle[PODS] > 0
        points = 0.0
        if fits and self._is_shared:
            fits, is_free, points = self._share(row, is_free)
        if self.zones is not None:
            fits = fits and bool(self.zones.fits[row])
            is_free = is_free and bool(self.zones.is_free[row])
            points += float(self.zones.points[row])
        is_free = is_free and fits
        self.fits[row], self.is_free[row] = fits, is_free
        if fits:
            density = self._density_of(row, idle[self._scored] + releasing[self._scored])
            self.score[row] = float(self._fixed[row]) + density + points + self._availability * is_free
        else:
            self.score[row] = -np.inf

    def _share(self, row: int, is_free: bool) -> tuple[bool, bool, float]:
        nodes, request = self._nodes, self._request
        node, idle = nodes.nodes[row], nodes.idle[row]
        groups = len(fitting_groups(request, node))
        later = idle + nodes.releasing[row]
        fits = has_room(request, node, later, groups)
        # One more device to share takes the place of a reservation pod besides that of the pod.
        if later[PODS] < 1 + max(0, request.gpu.devices - groups):
            fits = False
        return fits, is_free and has_room(request, node, idle, groups), self._sharing if groups else 0.0

    def _density(self, rows: slice | NDArray[np.intp], free: NDArray[np.float64]) -> NDArray[np.float64]:
        """Points for being full, or for being empty. Only their order matters, as no other source has as few points."""
        total = self._nodes.allocatable[rows, self._scored]
        amount = free[:, self._scored]
        if self._strategy is Strategy.BINPACK:
            return np.where(total > 0, DENSITY * (1 - amount / self._largest), 0.0)
        if self._strategy is Strategy.SPREAD:
            return np.divide(amount, total, out=np.zeros(len(amount)), where=total > 0)
        return np.zeros(len(amount))

    def _density_of(self, row: int, amount: float) -> float:
        total = float(self._nodes.allocatable[row, self._scored])
        if total <= 0:
            return 0.0
        if self._strategy is Strategy.BINPACK:
            return DENSITY * (1 - amount / self._largest)
        return amount / total if self._strategy is Strategy.SPREAD else 0.0
