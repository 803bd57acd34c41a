"""A topology laid over nodes: which domain of each level a node belongs to, and which domain holds which."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from shoal.scheduler.model.cluster import Topology
from shoal.scheduler.model.nodes import Nodes
from shoal.scheduler.model.resources import Mask
from shoal.scheduler.session.labels import Column, LabelIndex

ROOT: Final = -1
"""The level above all levels: one domain, with every node that has all labels of the topology."""

Counts = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False)
class Level:
    """The domains of one level, numbered in the order of their names."""

    of_node: Counts
    """[nodes] the domain of each node; meaningless where the node is no member of the topology."""
    parents: Counts
    """[domains] the domain around each, of the level above."""
    values: tuple[str, ...]
    """[domains] the value of the level's label."""

    def __len__(self) -> int:
        return len(self.parents)


class Domains:
    """The domains of a topology, level by level."""

    def __init__(self, nodes: Nodes, topology: Topology) -> None:
        labels = LabelIndex(nodes)
        columns = [labels.column(label) for label in topology.levels]
        self.is_member: Mask = np.ones(len(nodes), dtype=np.bool_)
        """[nodes] those that have all labels of the topology."""
        for column in columns:
            self.is_member &= column.is_present
        self.levels: list[Level] = []
        around = np.zeros(len(nodes), dtype=np.int64)
        for column in columns:
            self.levels.append(_level(column, around, self.is_member))
            around = self.levels[-1].of_node

    def name(self, level: int, domain: int) -> str:
        """The values of all labels down to a domain, joined by dots."""
        parts: list[str] = []
        while level > ROOT:
            parts.append(self.levels[level].values[domain])
            domain, level = int(self.levels[level].parents[domain]), level - 1
        return ".".join(reversed(parts)) or "the cluster"

    def of_node(self, level: int) -> Counts:
        """[nodes] the domain of each node."""
        return self.levels[level].of_node if level > ROOT else np.zeros(len(self.is_member), dtype=np.int64)

    def count(self, level: int) -> int:
        """How many domains a level has."""
        return len(self.levels[level]) if level > ROOT else 1

    def sums(self, amounts: NDArray[np.float64], deepest: int) -> list[NDArray[np.float64]]:
        """By level from the root down to the deepest, [kinds, domains] the amounts [kinds, nodes] of each together.

        Nodes that are no members of the topology must have no amounts.
        """
        sums = [_added(self.of_node(deepest), amounts, self.count(deepest))]
        for level in range(deepest, ROOT, -1):
            sums.append(_added(self.levels[level].parents, sums[-1], self.count(level - 1)))
        return sums[::-1]


def domains_of(nodes: Nodes, topology: Topology) -> Domains:
    """The domains of a topology, made once for as long as there are these nodes."""
    made = _MADE.setdefault(nodes, {})
    found = made.get(topology)
    if found is None:
        found = made[topology] = Domains(nodes, topology)
    return found


def forget(nodes: Nodes) -> None:
    """Makes domains anew when they are next asked for: labels of these nodes have changed."""
    _MADE.pop(nodes, None)


_MADE: Final[WeakKeyDictionary[Nodes, dict[Topology, Domains]]] = WeakKeyDictionary()
"""Goes with the nodes it was made from; what it holds can be made again at any time."""


def _level(column: Column, around: Counts, is_member: Mask) -> Level:
    """Numbers each pair of a domain and a value in it."""
    width = len(column.values) + 1
    pairs, numbers = np.unique((around * width + column.codes)[is_member], return_inverse=True)
    of_node = np.zeros(len(is_member), dtype=np.int64)
    of_node[is_member] = numbers
    values: Sequence[int] = (pairs % width).tolist()
    return Level(of_node, pairs // width, tuple(column.values[value] for value in values))


def _added(places: Counts, amounts: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """[kinds, size] the amounts [kinds, …] that go to each place."""
    if not size:
        return np.zeros((len(amounts), 0))
    return np.array([np.bincount(places, weights=kind, minlength=size) for kind in amounts])
