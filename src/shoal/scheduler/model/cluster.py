"""Everything that a cycle decides upon."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from shoal.scheduler.model.amounts import NONE, Amounts
from shoal.scheduler.model.jobs import Job
from shoal.scheduler.model.nodes import UNKNOWN_GPU_MEMORY, Nodes
from shoal.scheduler.model.queues import Queue


@dataclass(frozen=True, slots=True)
class Topology:
    """Levels of nearness, widest first: the label of a node that names the domain of each."""

    name: str
    levels: tuple[str, ...]


@dataclass(slots=True, eq=False)
class Cluster:
    """The model. Jobs are those of this scheduler; pods of others are counted in ``nodes`` and ``foreign`` alone."""

    nodes: Nodes
    jobs: dict[tuple[str, str], Job] = field(default_factory=dict)
    queues: dict[str, Queue] = field(default_factory=dict)
    topologies: Mapping[str, Topology] = field(default_factory=dict)
    foreign: Amounts = NONE
    """What pods of other schedulers hold on ready nodes: not there to be shared."""

    @property
    def gpu_memory_range(self) -> tuple[int, int]:
        """The MiB of the smallest and of the largest GPU, among nodes that say it."""
        sizes = {node.gpu_memory for node in self.nodes.nodes if node.gpu_memory > UNKNOWN_GPU_MEMORY}
        return (min(sizes), max(sizes)) if sizes else (UNKNOWN_GPU_MEMORY, UNKNOWN_GPU_MEMORY)
