"""The rule: with which zones of a node the kubelet's Topology Manager would align a pod, if with any.

What runs at the same time is aligned one after the other, each with what those before it left. What runs before is
aligned by itself and leaves everything behind. Within the zones that are chosen the first are drawn from first.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import combinations
from typing import Final

from shoal.scheduler.numa.demands import Demand, Unit
from shoal.scheduler.numa.topologies import NodeTopology, Policy
from shoal.scheduler.resource_lists import Amounts

Free = Sequence[Mapping[str, int]]
"""What is free of each zone, in the order of the zones; may be less than nothing."""
Drawn = dict[int, Amounts]
"""What is taken of zones, by their places."""

_CORE: Final = 1000
"""A core weighs as much as a thousand of anything else where zones are compared by all that they cover."""


def alignment(topology: NodeTopology, demand: Demand, names: Iterable[str], free: Free) -> Drawn | None:
    """What a pod would take of zones of which so much is free; None where they cannot be chosen as the policy wants.

    ``names``: the resources that the node reports by zone, less those that are to be ignored.
    """
    aligned = {name for name in names if demand.is_aligned(name)}
    together, before = demand.units(topology.scope)
    left = [dict(zone) for zone in free]
    drawn: Drawn = {}
    for unit in together:
        asked = _asked(unit, aligned)
        zones = _chosen(topology, asked, left)
        if zones is None:
            return None
        _draw(asked, zones, left, drawn)
    if any(_chosen(topology, _asked(unit, aligned), free) is None for unit in before):
        return None
    return drawn


def _asked(unit: Unit, aligned: set[str]) -> Amounts:
    return {name: nano for name, nano in unit if nano > 0 and name in aligned}


def _chosen(topology: NodeTopology, asked: Amounts, free: Free) -> Sequence[int] | None:
    """The zones that one unit would be on."""
    if not asked:
        return ()
    if topology.policy is Policy.BEST_EFFORT:
        return _greedy(asked, free)
    if topology.policy is Policy.SINGLE_NUMA_NODE:
        return _lowest(asked, free, 1)
    count = _common_width(topology, asked)
    return None if count is None else _lowest(asked, free, count)


def _common_width(topology: NodeTopology, asked: Amounts) -> int | None:
    """On how many zones each resource has to be; None where they differ, or where no number of zones is enough.

    Only on as few as it could be on an empty node: the kubelet prefers no other choice, and takes no other.
    """
    widths = set()
    for name, nano in asked.items():
        sums = topology.most.get(name, ())
        widths.add(next((count for count, most in enumerate(sums, 1) if most >= nano), None))
    return widths.pop() if len(widths) == 1 else None


def _lowest(asked: Amounts, free: Free, count: int) -> Sequence[int] | None:
    """The first zones, so many of them, that have all of it together."""
    for zones in combinations(range(len(free)), count):
        if all(sum(free[zone].get(name, 0) for zone in zones) >= nano for name, nano in asked.items()):
            return zones
    return None


def _greedy(asked: Amounts, free: Free) -> Sequence[int] | None:
    """Zone after zone, the one next that has most of what is still lacking."""
    lacking, zones = dict(asked), list[int]()
    while lacking:
        others = [zone for zone in range(len(free)) if zone not in zones]
        best = max(others, key=lambda zone: _cover(lacking, free[zone]), default=None)
        if best is None or _cover(lacking, free[best]) <= 0:
            return None
        zones.append(best)
        less = {name: nano - free[best].get(name, 0) for name, nano in lacking.items()}
        lacking = {name: nano for name, nano in less.items() if nano > 0}
    return zones


def _cover(lacking: Mapping[str, int], free: Mapping[str, int]) -> int:
    return sum(min(nano, free.get(name, 0)) * (_CORE if name == "cpu" else 1) for name, nano in lacking.items())


def _draw(asked: Amounts, zones: Sequence[int], left: list[Amounts], drawn: Drawn) -> None:
    for name, nano in asked.items():
        lacking = nano
        for zone in zones:
            taken = min(lacking, left[zone].get(name, 0))
            if taken > 0:
                lacking -= taken
                left[zone][name] -= taken
                own = drawn.setdefault(zone, {})
                own[name] = own.get(name, 0) + taken
