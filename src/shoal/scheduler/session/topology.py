"""Pods that are to be near each other: which sets of nodes to try for a subgroup, the nearest and tightest first.

A subgroup asks for a level of a topology, required or preferred. Candidates are the domains of the preferred level,
then of each wider one up to the required level, or up to the whole topology where none is required. Domains without
room are left out. Of the rest, those that the subgroup would fill the most come first, so that large domains stay whole
for those who need them.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from dataclasses import dataclass
from typing import Final, overload

import numpy as np
from numpy.typing import NDArray

from shoal.scheduler.model.cluster import Topology
from shoal.scheduler.model.jobs import TopologyWish
from shoal.scheduler.model.nodes import Nodes
from shoal.scheduler.model.resources import CPU, GPU, PODS, Mask, Vector, widened
from shoal.scheduler.model.tasks import Request, Task
from shoal.scheduler.session.domains import ROOT, Domains, domains_of

LEVEL_STEPS: Final = 10
LEVEL_POINTS: Final = 100_000.0
"""What one step of nearness is worth among the points of a node."""

_NOT_THERE: Final = 1000.0
"""How full a domain would be that has nothing left of a resource."""
_MOST_DETAILS: Final = 5
_DIGITS: Final = 6
"""Portions of GPUs are sums of hundredths: rounding keeps them exact."""

_WORDS: Final = {CPU: "CPU cores", GPU: "GPUs"}

Rooms = Callable[[Request], NDArray[np.int64]]
"""[nodes] how many tasks of a request have room in what is free now or becomes free."""


@dataclass(frozen=True, slots=True)
class TopologyProblem:
    """Why no set of nodes will do."""

    message: str
    details: tuple[str, ...] = ()
    """The widest domains that could be tried, those with the most room first, and how far it goes."""
    is_misconfigured: bool = False
    """Whether the topology or a level of it does not exist: no eviction helps."""


class NodeSets(Sequence[Mask]):
    """Sets of nodes in the order in which they are to be tried, each made when it is looked at."""

    def __init__(self, domains: Domains, rows: Mask, chosen: NDArray[np.int64]) -> None:
        self._domains = domains
        self._rows = rows
        self._chosen = chosen
        """[sets, 2] the level and the domain of each."""

    def __len__(self) -> int:
        return len(self._chosen)

    @overload
    def __getitem__(self, index: int) -> Mask: ...
    @overload
    def __getitem__(self, index: slice) -> NodeSets: ...
    def __getitem__(self, index: int | slice) -> Mask | NodeSets:
        if isinstance(index, slice):
            return NodeSets(self._domains, self._rows, self._chosen[index])
        level, domain = self._chosen[index]
        mask: Mask = self._rows & (self._domains.of_node(int(level)) == domain)
        return mask

    @property
    def names(self) -> list[str]:
        """The name of each domain."""
        return [self._domains.name(level, domain) for level, domain in self._chosen.tolist()]


def node_sets(
    nodes: Nodes,
    topology: Topology | None,
    wish: TopologyWish,
    tasks: Sequence[Task],
    *,
    allowed: Mask,
    active_rows: Collection[int],
    fits: Rooms,
) -> Sequence[Mask] | TopologyProblem:
    """The sets of nodes to try for a subgroup's tasks, none with a node that is not allowed.

    ``active_rows``: where tasks of the subgroup are already; a required level binds the others to the same domains.
    """
    if not tasks or not wish.topology:
        return [allowed]
    if topology is None:
        return TopologyProblem(f"topology {wish.topology} does not exist", is_misconfigured=True)
    levels = _levels(topology, wish)
    if isinstance(levels, TopologyProblem):
        return levels
    deepest, widest = levels
    domains = domains_of(nodes, topology)
    rows = domains.is_member & allowed
    if wish.required and active_rows:
        of_node = domains.of_node(widest)
        held = [of_node[row] for row in active_rows if domains.is_member[row]]
        rows = rows & np.isin(of_node, held)
    demand = _Demand.of(tasks, nodes)
    survey = _Survey(domains, rows, demand, nodes, deepest)
    rooms = survey.rooms(demand, fits)
    chosen = []
    for level in range(deepest, widest - 1, -1):
        order = survey.in_order(level, (rooms[level] >= len(tasks)) & ~survey.is_repeated(level))
        chosen.append(np.column_stack([np.full(len(order), level), order]))
    found = np.concatenate(chosen)
    if not len(found):
        return _no_room(topology, wish, domains, widest, survey, rooms[widest], len(tasks))
    return NodeSets(domains, rows, found)


def level_scores(
    nodes: Nodes, topology: Topology | None, wish: TopologyWish, tasks: Sequence[Task], *, allowed: Mask
) -> NDArray[np.float64] | None:
    """[nodes] points by the domain of the preferred level; None where nothing is preferred.

    ``allowed``: the nodes that the subgroup was offered as a whole. The domain that is tightest has the fewest points.
    """
    if topology is None or wish.preferred not in topology.levels or not tasks:
        return None
    level = topology.levels.index(wish.preferred)
    domains = domains_of(nodes, topology)
    rows = domains.is_member & allowed
    if not rows.any():
        return np.zeros(len(nodes))
    survey = _Survey(domains, rows, _Demand.of(tasks, nodes), nodes, level)
    order = survey.in_order(level, survey.has_nodes(level))
    points = np.zeros(domains.count(level))
    points[order] = LEVEL_STEPS * np.arange(1, len(order) + 1) // max(1, len(order)) * LEVEL_POINTS
    scores: NDArray[np.float64] = np.where(rows, points[domains.of_node(level)], 0.0)
    return scores


@dataclass(frozen=True, slots=True, eq=False)
class _Demand:
    """What tasks need together."""

    requests: tuple[Request, ...]
    """The distinct ones."""
    total: Vector
    """[resources] pods not counted."""
    is_homogeneous: bool
    """Whether all or none ask for GPUs, and for each extended resource: then room is counted in tasks, node by node."""

    @staticmethod
    def of(tasks: Sequence[Task], nodes: Nodes) -> _Demand:
        counts: dict[Request, int] = {}
        for task in tasks:
            counts[task.request] = counts.get(task.request, 0) + 1
        width = nodes.idle.shape[1]
        requests = tuple(counts)
        vectors = np.array([widened(request.vector, width) for request in requests])
        vectors[:, GPU] = [
            request.gpu.whole + request.gpu.devices * request.gpu.portion + request.claimed_gpus for request in requests
        ]
        total: Vector = np.array(list(counts.values())) @ vectors
        total[PODS], total[GPU] = 0.0, round(total[GPU], _DIGITS)
        uses = vectors[:, PODS + 1 :] > 0
        wants_gpu = {request.wants_gpu for request in requests}
        return _Demand(requests, total, len(wants_gpu) == 1 and bool((uses == uses[0]).all()))


class _Survey:
    """What the domains of a topology have left, on these rows, and the order in which a demand would fill them."""

    def __init__(self, domains: Domains, rows: Mask, demand: _Demand, nodes: Nodes, deepest: int) -> None:
        self._domains = domains
        self._rows = rows
        self._asked = np.flatnonzero(demand.total > 0)
        self._total = demand.total[self._asked]
        self._resources = nodes.resources
        self._levels = range(ROOT, deepest + 1)
        free = [(nodes.idle[:, place] + nodes.releasing[:, place]) * rows for place in self._asked]
        sums = dict(zip(self._levels, domains.sums(np.array([rows, *free]), deepest), strict=True))
        self._counts = {level: found[0] for level, found in sums.items()}
        self._free = {level: found[1:] for level, found in sums.items()}
        """By level, [asked, domains]."""
        self._ratios = {level: self._ratio(level) for level in self._levels}

    def rooms(self, demand: _Demand, fits: Rooms) -> dict[int, NDArray[np.float64]]:
        """By level, [domains] how many of the tasks have room: all or none where they are not of one kind."""
        if not demand.is_homogeneous:
            return {
                level: np.where((self._ratios[level] <= 1) & self.has_nodes(level), np.inf, 0.0)
                for level in self._levels
            }
        # What there is room for of the largest of several requests is the least that there is room for of any.
        each = np.minimum.reduce([fits(request) for request in demand.requests]) * self._rows
        sums = self._domains.sums(each[np.newaxis], self._levels[-1])
        return {level: found[0] for level, found in zip(self._levels, sums, strict=True)}

    def has_nodes(self, level: int) -> Mask:
        """[domains] those that have any of the rows."""
        has: Mask = self._counts[level] > 0
        return has

    def is_repeated(self, level: int) -> Mask:
        """[domains] those whose nodes are all in one domain of the level below, which comes before them."""
        most = np.zeros(self._domains.count(level))
        if level < self._levels[-1]:
            np.maximum.at(most, self._domains.levels[level + 1].parents, self._counts[level + 1])
        repeated: Mask = self.has_nodes(level) & (most == self._counts[level])
        return repeated

    def in_order(self, level: int, among: Mask) -> NDArray[np.int64]:
        """The domains of a level: first as the domains around them, then the fullest first, then by name."""
        order = place = np.zeros(1, dtype=np.int64)
        for above in range(level + 1):
            order = np.lexsort((-self._ratios[above], place[self._domains.levels[above].parents]))
            place = np.empty(len(order), dtype=np.int64)
            place[order] = np.arange(len(order))
        return order[among[order]]

    def lacking(self, level: int, domain: int) -> str:
        """The resources that a domain has too little of."""
        names = {place: name for name, place in self._resources.known().items()}
        short = self._asked[self._free[level][:, domain] < self._total]
        return ", ".join(_WORDS.get(place, names[place]) for place in short.tolist())

    def _ratio(self, level: int) -> NDArray[np.float64]:
        """[domains] how full each would be of what it has least of: more than 1, and it has no room."""
        free = self._free[level]
        ratios = np.broadcast_to(np.where(self._asked == GPU, np.inf, _NOT_THERE)[:, np.newaxis], free.shape).copy()
        np.divide(self._total[:, np.newaxis], free, out=ratios, where=free > 0)
        fullest: NDArray[np.float64] = ratios.max(axis=0, initial=0.0)
        return fullest


def _levels(topology: Topology, wish: TopologyWish) -> tuple[int, int] | TopologyProblem:
    """The deepest and the widest level to try."""
    for kind, label in (("required", wish.required), ("preferred", wish.preferred)):
        if label and label not in topology.levels:
            message = f"topology {topology.name} has no level {label}, which is {kind}"
            return TopologyProblem(message, is_misconfigured=True)
    if not wish.required and not wish.preferred:
        message = f"topology {topology.name} is asked for, but no level of it"
        return TopologyProblem(message, is_misconfigured=True)
    widest = topology.levels.index(wish.required) if wish.required else ROOT
    deepest = topology.levels.index(wish.preferred) if wish.preferred else widest
    return max(deepest, widest), widest


def _no_room(
    topology: Topology,
    wish: TopologyWish,
    domains: Domains,
    level: int,
    survey: _Survey,
    rooms: NDArray[np.float64],
    needed: int,
) -> TopologyProblem:
    most = np.argsort(-rooms, kind="stable")
    best = most[survey.has_nodes(level)[most]][:_MOST_DETAILS].tolist()
    details = []
    for domain in best:
        name, short = domains.name(level, domain), survey.lacking(level, domain)
        details.append(
            f"{name} has room for {int(rooms[domain])} of {_pods(needed)}" + (f": not enough {short}" if short else "")
        )
    where = f"no domain of level {wish.required}" if wish.required else "no part of the cluster"
    return TopologyProblem(f"topology {topology.name}: {where} has room for {_pods(needed)} together", tuple(details))


def _pods(count: int) -> str:
    return "1 pod" if count == 1 else f"{count} pods"
