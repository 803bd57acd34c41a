"""How fast nodes that are not ready may lose their pods, zone by zone.

One node that fails is its own fault; when many fail at once it is rather the network's, or ours, and driving their pods
away would make things worse. So nodes of a zone take turns: ten seconds apart as long as most are well, a hundred where
more than half of a large zone is not, and none in a small one. Where no node of the whole cluster is ready it is surely
ours: nothing is driven away then, and what was begun is taken back.
"""

from __future__ import annotations

import enum
import time
from collections.abc import Callable
from dataclasses import dataclass, field

from shoal.api.core import Node, is_node_ready
from shoal.kube import Change

EXCLUDED = "node.kubernetes.io/exclude-disruption"
"""Label: the node does not count when the health of its zone is judged."""


class ZoneState(enum.Enum):
    """How a zone is as a whole."""

    NORMAL = "Normal"
    PARTIAL_DISRUPTION = "PartialDisruption"
    FULL_DISRUPTION = "FullDisruption"


class Outlook(enum.Enum):
    """What became of the cluster as a whole since it was judged last."""

    AS_BEFORE = "as before"
    ALL_LOST = "all lost"
    RECOVERING = "recovering"


@dataclass(frozen=True, kw_only=True)
class EvictionLimits:
    """How fast, in nodes a second; the defaults are those of Kubernetes."""

    rate: float = 0.1
    reduced_rate: float = 0.01
    """In a large zone that is partly disrupted; in a small one it is zero."""
    large_zone: int = 50
    """A zone with more nodes than this is large."""
    unhealthy_share: float = 0.55
    """From this share of nodes on that are not ready, and three, a zone is partly disrupted."""


def zone_of(node: Node) -> str:
    """What names a node's zone within its region; empty where neither is known."""
    labels = node.metadata.labels
    zone = labels.get("failure-domain.beta.kubernetes.io/zone", labels.get("topology.kubernetes.io/zone", ""))
    region = labels.get("failure-domain.beta.kubernetes.io/region", labels.get("topology.kubernetes.io/region", ""))
    return f"{region}:\0:{zone}" if region or zone else ""


def zone_state(*, ready: int, unready: int, unhealthy_share: float) -> ZoneState:
    """How a zone with so many nodes is."""
    if unready and not ready:
        return ZoneState.FULL_DISRUPTION
    if unready > 2 and unready / (unready + ready) >= unhealthy_share:
        return ZoneState.PARTIAL_DISRUPTION
    return ZoneState.NORMAL


def rate_of(state: ZoneState, *, size: int, limits: EvictionLimits) -> float:
    """How many nodes a second may lose their pods in a zone of that size and state."""
    if state is ZoneState.PARTIAL_DISRUPTION:
        return limits.reduced_rate if size > limits.large_zone else 0.0
    return limits.rate


@dataclass
class _Zone:
    rate: float
    next_turn: float
    ready: int = 0
    unready: int = 0
    line: dict[str, None] = field(default_factory=dict)


class Zones:
    """Told of every change of nodes; has those that are to lose their pods wait for their turn."""

    def __init__(self, limits: EvictionLimits, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._limits = limits
        self._clock = clock
        self._zones: dict[str, _Zone] = {}
        self._counted: dict[str, tuple[str, bool]] = {}
        self._waits_in: dict[str, str] = {}
        self._turns: set[str] = set()
        self._is_stale = False
        self.all_lost = False
        """Whether no node of the cluster was ready when it was judged last."""

    def node_changed(self, change: Change[Node]) -> bool:
        """Counts a node in its zone; says whether that changes the picture."""
        node, name = change.after, change.latest.metadata.name
        counts = node is not None and EXCLUDED not in node.metadata.labels
        now = (zone_of(node), is_node_ready(node)) if node is not None and counts else None
        if node is None:
            self.leave_line(name)
        before = self._counted.get(name)
        if now == before:
            return False
        self._is_stale = True
        if before is not None:
            self._count(*before, -1)
            del self._counted[name]
        if now is not None:
            self._count(*now, 1)
            self._counted[name] = now
        return True

    def judge(self) -> Outlook:
        """Sets the pace of each zone by how its nodes are now."""
        if not self._is_stale:
            return Outlook.AS_BEFORE
        self._is_stale = False
        for name in [name for name, zone in self._zones.items() if not (zone.ready or zone.unready or zone.line)]:
            del self._zones[name]
        limits = self._limits
        states = {
            name: zone_state(ready=zone.ready, unready=zone.unready, unhealthy_share=limits.unhealthy_share)
            for name, zone in self._zones.items()
        }
        was_lost, self.all_lost = self.all_lost, _all_lost(states)
        for name, zone in self._zones.items():
            rate = rate_of(states[name], size=zone.ready + zone.unready, limits=limits)
            self._set_pace(zone, 0.0 if self.all_lost else rate)
        if self.all_lost == was_lost:
            return Outlook.AS_BEFORE
        return Outlook.ALL_LOST if self.all_lost else Outlook.RECOVERING

    def may_lose_pods(self, node: Node) -> bool:
        """Whether it is a node's turn; if not it stands in line from now on."""
        name, zone = node.metadata.name, zone_of(node)
        if name in self._turns:
            return True
        if self._waits_in.get(name) != zone:
            self.leave_line(name)
            self._waits_in[name] = zone
            self._zone(zone).line[name] = None
        return False

    def leave_line(self, name: str) -> None:
        """A node has recovered, is gone, or has had its turn."""
        self._turns.discard(name)
        zone = self._waits_in.pop(name, None)
        if zone is not None:
            del self._zones[zone].line[name]

    def next_turn_in(self) -> float | None:
        """Seconds until the next node has its turn; None where none waits that ever will, as things are."""
        turns = [zone.next_turn for zone in self._zones.values() if zone.line and zone.rate > 0]
        return max(0.0, min(turns) - self._clock()) if turns else None

    def take_turns(self) -> list[str]:
        """The nodes whose turn it is now, at most one for each zone."""
        now = self._clock()
        found = []
        for zone in self._zones.values():
            if zone.line and zone.rate > 0 and zone.next_turn <= now:
                name = next(iter(zone.line))
                del zone.line[name], self._waits_in[name]
                zone.next_turn = now + 1 / zone.rate
                self._turns.add(name)
                found.append(name)
        return found

    def _count(self, zone: str, is_ready: bool, by: int) -> None:
        counted = self._zone(zone)
        if is_ready:
            counted.ready += by
        else:
            counted.unready += by

    def _zone(self, name: str) -> _Zone:
        zone = self._zones.get(name)
        if zone is None:
            zone = self._zones[name] = _Zone(self._limits.rate, self._clock())
        return zone

    def _set_pace(self, zone: _Zone, rate: float) -> None:
        if rate == zone.rate:
            return
        now = self._clock()
        # Who had to wait at the old pace waits at the new one: a change of pace is nobody's turn.
        waits = zone.rate <= 0 or zone.next_turn > now
        zone.rate = rate
        zone.next_turn = now + 1 / rate if waits and rate > 0 else now


def _all_lost(states: dict[str, ZoneState]) -> bool:
    return bool(states) and all(state is ZoneState.FULL_DISRUPTION for state in states.values())
