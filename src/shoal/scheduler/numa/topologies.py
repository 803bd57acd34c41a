"""A node's zones, and how its Topology Manager aligns pods with them.

Only NUMA nodes are zones here: the Topology Manager knows nothing larger or smaller. They come in the order of their
numbers, since of two choices that are as good the kubelet takes the one with the lower numbers.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from itertools import accumulate
from typing import Final

from shoal.scheduler.numa.objects import NodeResourceTopology, ReportedZone
from shoal.scheduler.resource_lists import Amounts, amounts_of

_NUMA_NODE: Final = "Node"
_POLICY: Final = "topologyManagerPolicy"
_SCOPE: Final = "topologyManagerScope"
_NUMBER: Final = re.compile(r"[0-9]+\Z")


class Policy(StrEnum):
    """What a node's Topology Manager does with pods that it cannot align."""

    NONE = "none"
    BEST_EFFORT = "best-effort"
    """It takes them all the same."""
    RESTRICTED = "restricted"
    """It refuses them, unless each resource is on as few zones as it could ever be, and on the same ones."""
    SINGLE_NUMA_NODE = "single-numa-node"
    """It refuses them, unless one zone has all of it."""

    @property
    def refuses(self) -> bool:
        """Whether pods may be refused for it."""
        return self in (Policy.RESTRICTED, Policy.SINGLE_NUMA_NODE)


class Scope(StrEnum):
    """What is aligned as one."""

    CONTAINER = "container"
    POD = "pod"


_OLD_NAMES: Final[Mapping[str, tuple[Policy, Scope]]] = {
    "SingleNUMANodeContainerLevel": (Policy.SINGLE_NUMA_NODE, Scope.CONTAINER),
    "SingleNUMANodePodLevel": (Policy.SINGLE_NUMA_NODE, Scope.POD),
    "Restricted": (Policy.RESTRICTED, Scope.CONTAINER),
    "RestrictedContainerLevel": (Policy.RESTRICTED, Scope.CONTAINER),
    "RestrictedPodLevel": (Policy.RESTRICTED, Scope.POD),
    "BestEffort": (Policy.BEST_EFFORT, Scope.CONTAINER),
    "BestEffortContainerLevel": (Policy.BEST_EFFORT, Scope.CONTAINER),
    "BestEffortPodLevel": (Policy.BEST_EFFORT, Scope.POD),
}


@dataclass(frozen=True, slots=True)
class Zone:
    """One NUMA node of a node."""

    name: str
    allocatable: Amounts
    available: Amounts
    """What is free of it, as the node's agent last said."""


@dataclass(frozen=True, slots=True)
class NodeTopology:
    """A node's zones, in the order of their numbers."""

    policy: Policy
    scope: Scope
    zones: tuple[Zone, ...]
    resources: frozenset[str]
    """Those that are reported by zone: no others are aligned."""
    most: Mapping[str, tuple[int, ...]]
    """By resource: what the largest zone has, the two largest, and so on."""


def topology_of(found: NodeResourceTopology) -> NodeTopology | None:
    """The zones of a node; None where it reports no NUMA node."""
    reported = [zone for zone in found.zones if zone.type == _NUMA_NODE]
    if not reported:
        return None
    policy, scope = _policy_of(found)
    return a_topology(policy, scope, [_zone(zone) for zone in reported])


def a_topology(policy: Policy, scope: Scope, zones: list[Zone]) -> NodeTopology:
    """These zones, in their order."""
    names = frozenset(name for zone in zones for name in (*zone.allocatable, *zone.available))
    return NodeTopology(
        policy,
        scope,
        tuple(sorted(zones, key=lambda zone: _rank(zone.name))),
        names,
        {
            name: tuple(accumulate(sorted((zone.allocatable.get(name, 0) for zone in zones), reverse=True)))
            for name in names
        },
    )


def _zone(zone: ReportedZone) -> Zone:
    return Zone(
        zone.name,
        amounts_of({one.name: one.allocatable for one in zone.resources}),
        amounts_of({one.name: one.available for one in zone.resources}),
    )


def _rank(name: str) -> tuple[bool, int, str]:
    """``node-10`` comes after ``node-2``, and what has no number after all that have one."""
    number = _NUMBER.search(name)
    return number is None, int(number.group()) if number is not None else 0, name


def _policy_of(found: NodeResourceTopology) -> tuple[Policy, Scope]:
    said = {attribute.name: attribute.value for attribute in found.attributes}
    if policy := said.get(_POLICY):
        known = policy in set(Policy)
        is_pod = said.get(_SCOPE) == Scope.POD
        return Policy(policy) if known else Policy.NONE, Scope.POD if is_pod else Scope.CONTAINER
    old = found.topology_policies[0] if found.topology_policies else ""
    return _OLD_NAMES.get(old, (Policy.NONE, Scope.CONTAINER))
