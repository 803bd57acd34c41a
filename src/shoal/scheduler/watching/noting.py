"""What was seen since the model last caught up: of each thing the latest only."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from shoal.api.core import nodes as wire_nodes
from shoal.api.core.pods import Pod
from shoal.api.scheduling_run_ai import BindRequest
from shoal.scheduler.model.cluster import Topology
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.queues import Queue
from shoal.scheduler.numa import NodeTopology
from shoal.scheduler.watching.groups import GangKey, Seat
from shoal.scheduler.watching.needs import ObjectKey


@dataclass(slots=True)
class Noted:
    """What changed; None: it is gone."""

    pods: dict[tuple[str, str], Pod | None] = field(default_factory=dict)
    nodes: dict[str, wire_nodes.Node | None] = field(default_factory=dict)
    gangs: dict[GangKey, Callable[[], Job] | None] = field(default_factory=dict)
    seats: dict[GangKey, Seat | None] = field(default_factory=dict)
    """Where those are who name this; None: in the gang of that name. Who changes one notes its pods once more."""
    queues: dict[str, Queue | None] = field(default_factory=dict)
    requests: dict[tuple[str, str], BindRequest | None] = field(default_factory=dict)
    topologies: dict[str, Topology | None] = field(default_factory=dict)
    objects: dict[ObjectKey, Any | None] = field(default_factory=dict)
    """What pods need: ConfigMaps, claims, volumes, devices; and the namespaces that they are in."""
    zones: dict[str, NodeTopology | None] = field(default_factory=dict)
    """The NUMA zones of nodes."""
    tellers: dict[str, Callable[[], None]] = field(default_factory=dict)
    """Those who note something more when the model is about to catch up: what is cheaper to find out once for many."""

    def __bool__(self) -> bool:
        return bool(
            self.pods
            or self.nodes
            or self.gangs
            or self.seats
            or self.queues
            or self.requests
            or self.topologies
            or self.objects
            or self.zones
            or self.tellers
        )
