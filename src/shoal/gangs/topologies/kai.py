"""KAI's own word for a cluster's topology: a Topology, whose levels cannot change once they are said."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from shoal.api.grove import ClusterTopologyBinding
from shoal.api.kai_scheduler import TOPOLOGIES
from shoal.gangs.topologies.scheduler import TopologyScheduler


def wanted_topology(binding: ClusterTopologyBinding) -> dict[str, Any]:
    """The Topology of a binding."""
    levels = [{"nodeLabel": level.key} for level in binding.spec.levels]
    return {"metadata": {"name": binding.metadata.name}, "spec": {"levels": levels}}


def keys_of(topology: Mapping[str, Any]) -> list[str]:
    """The node labels of a Topology's levels. Aliases are nobody's business but their user's."""
    levels: Sequence[Mapping[str, Any]] = (topology.get("spec") or {}).get("levels") or ()
    return [str(level.get("nodeLabel", "")) for level in levels]


KAI = TopologyScheduler(name="kai-scheduler", resource=TOPOLOGIES.documents(), wanted=wanted_topology, keys_of=keys_of)
