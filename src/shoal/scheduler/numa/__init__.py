"""NUMA zones of nodes: which pods the kubelet's Topology Manager would align there, and with which zones.

``topology_of`` reads what a node says of its zones, ``demand_of`` what a pod asks of them; ``alignment`` is the rule.
``NumaTable`` answers for all nodes at once, with all that was placed so far. All of it is opt-in: the plugin ``numa``.
"""

from shoal.scheduler.numa.aligning import alignment
from shoal.scheduler.numa.demands import Demand, demand_of
from shoal.scheduler.numa.objects import NODE_RESOURCE_TOPOLOGIES, NodeResourceTopology
from shoal.scheduler.numa.placements import Zones, noted_zones, read_zones, written_zones, zones_text
from shoal.scheduler.numa.settings import NumaSettings
from shoal.scheduler.numa.table import NumaTable
from shoal.scheduler.numa.topologies import NodeTopology, Policy, Scope, Zone, topology_of
from shoal.scheduler.numa.zone_field import ZoneField

__all__ = [
    "NODE_RESOURCE_TOPOLOGIES",
    "Demand",
    "NodeResourceTopology",
    "NodeTopology",
    "NumaSettings",
    "NumaTable",
    "Policy",
    "Scope",
    "Zone",
    "ZoneField",
    "Zones",
    "alignment",
    "demand_of",
    "noted_zones",
    "read_zones",
    "topology_of",
    "written_zones",
    "zones_text",
]
