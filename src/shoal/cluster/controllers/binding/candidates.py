"""Finds the emptiest node for a pod without looking at all nodes each time.

Pods of one shape share a heap of the nodes that they fit on, ordered by how full each would be. Placing a pod only
makes a node fuller, so an entry of the heap may be too good but never too bad: it is put right when it comes to the
top. What makes a node emptier, or changes it, is in the picture's log, and read before each search.

A heap costs memory and time to build. Where more shapes than that are in use at once, the others take the emptiest of
the first few nodes that will do, beginning where the last search ended.
"""

from __future__ import annotations

import heapq
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from shoal.cluster.controllers.binding.demand import Load, Shape
from shoal.cluster.controllers.binding.filters import VolumesJudge, has_room, reason_of_standing
from shoal.cluster.controllers.binding.picture import NodeState, Picture

_NUMBER_BITS = 24
_NUMBERS = (1 << _NUMBER_BITS) - 1
HEAPS = 256
"""So many shapes have a heap."""
_IN_USE = 16 * HEAPS
"""A heap that was not asked for in so many choices may make room for another."""
_SAMPLE = 32
"""So many nodes that will do are compared where there is no heap."""


@dataclass(frozen=True, slots=True)
class Choice:
    """Where a pod goes, or that it cannot go anywhere; ``is_personal`` where another of its shape still might."""

    node: NodeState | None
    is_personal: bool = False


class Candidates:
    """Chooses nodes in one picture."""

    def __init__(self, picture: Picture, *, heaps: int = HEAPS) -> None:
        self._picture = picture
        self._heaps: OrderedDict[Shape, _Heap] = OrderedDict()
        self._limit = heaps
        self._choices = 0
        self._next = 0

    def choose(
        self, load: Load, *, only: frozenset[str] | None = None, by_volumes: VolumesJudge | None = None
    ) -> Choice:
        """The emptiest node that will have the pod; ``only`` names the nodes that come into question, if not all."""
        picture = self._picture
        accepts: Callable[[NodeState], bool] | None = None
        matters = picture.neighbours.matter_to(load)
        if matters:
            by_peers = picture.reason_by_peers(load)
            accepts = lambda state: not by_peers(state.labels) and not (by_volumes and by_volumes(state))  # noqa: E731
        elif by_volumes is not None:
            judge = by_volumes
            accepts = lambda state: not judge(state)  # noqa: E731
        if load.shape.pinned is not None:
            only = load.shape.pinned if only is None else only & load.shape.pinned
        if only is not None:
            return Choice(self._best_of(load.shape, only, accepts), is_personal=matters and not load.peers)
        heap = self._heap(load.shape)
        node, has_refused = heap.best(accepts) if heap is not None else self._sampled(load.shape, accepts)
        return Choice(node, is_personal=has_refused and matters and not load.peers)

    def _best_of(
        self, shape: Shape, names: frozenset[str], accepts: Callable[[NodeState], bool] | None
    ) -> NodeState | None:
        states = [state for name in sorted(names) if (state := self._picture.node(name)) is not None]
        fitting = [
            state
            for state in states
            if not reason_of_standing(shape, state) and has_room(shape, state) and (accepts is None or accepts(state))
        ]
        return min(fitting, key=lambda state: state.badness(shape.cpu, shape.memory), default=None)

    def _sampled(self, shape: Shape, accepts: Callable[[NodeState], bool] | None) -> tuple[NodeState | None, bool]:
        nodes = self._picture.nodes
        fitting: list[NodeState] = []
        has_refused = False
        start = self._next
        for offset in range(len(nodes)):
            state = nodes[(start + offset) % len(nodes)]
            if reason_of_standing(shape, state) or not has_room(shape, state):
                continue
            if accepts is not None and not accepts(state):
                has_refused = True
                continue
            fitting.append(state)
            if len(fitting) == _SAMPLE:
                self._next = state.number + 1
                break
        best = min(fitting, key=lambda state: state.badness(shape.cpu, shape.memory), default=None)
        return best, has_refused

    def _heap(self, shape: Shape) -> _Heap | None:
        self._choices += 1
        heap = self._heaps.get(shape)
        if heap is None:
            if len(self._heaps) >= self._limit:
                oldest = next(iter(self._heaps.values()), None)
                if oldest is None or self._choices - oldest.used < _IN_USE:
                    return None
                self._heaps.popitem(last=False)
            heap = self._heaps[shape] = _Heap(self._picture, shape)
        else:
            self._heaps.move_to_end(shape)
        heap.used = self._choices
        return heap


class _Heap:
    """The nodes that pods of one shape fit on; an entry is how full the node would be, and its number."""

    def __init__(self, picture: Picture, shape: Shape) -> None:
        self._picture = picture
        self._shape = shape
        self._entries: list[int] = []
        self._read = -1
        self.used = 0

    def best(self, accepts: Callable[[NodeState], bool] | None) -> tuple[NodeState | None, bool]:
        """The emptiest node that is accepted, and whether others were refused on the way."""
        self._catch_up()
        entries, nodes, shape = self._entries, self._picture.nodes, self._shape
        refused: list[int] = []
        chosen = None
        while entries:
            entry = entries[0]
            state = nodes[entry & _NUMBERS]
            if reason_of_standing(shape, state) or not has_room(shape, state):
                heapq.heappop(entries)
                continue
            now = state.badness(shape.cpu, shape.memory) << _NUMBER_BITS | state.number
            if now > entry:
                heapq.heapreplace(entries, now)
                continue
            if accepts is None or accepts(state):
                chosen = state
                break
            refused.append(heapq.heappop(entries))
        for entry in refused:
            heapq.heappush(entries, entry)
        return chosen, bool(refused)

    def _catch_up(self) -> None:
        log = self._picture.improved
        if self._read == log.end:
            return
        numbers = log.since(self._read) if self._read >= 0 else None
        self._read = log.end
        nodes = self._picture.nodes
        if numbers is None or len(self._entries) + len(numbers) > 2 * len(nodes) + 64:
            self._entries = [entry for state in nodes if (entry := self._entry(state)) is not None]
            heapq.heapify(self._entries)
            return
        for number in numbers:
            entry = self._entry(nodes[number])
            if entry is not None:
                heapq.heappush(self._entries, entry)

    def _entry(self, state: NodeState) -> int | None:
        shape = self._shape
        if state.node is None or reason_of_standing(shape, state) or not has_room(shape, state):
            return None
        return state.badness(shape.cpu, shape.memory) << _NUMBER_BITS | state.number
