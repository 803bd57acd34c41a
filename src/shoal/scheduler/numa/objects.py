"""topology.node.k8s.io: what the agents of nodes (NFD, the Resource Topology Exporter) report of their NUMA zones."""

from __future__ import annotations

from shoal.api.meta import Object, QuantityString, Resource, Wire


class ZoneResource(Wire, frozen=True, kw_only=True):
    """One resource of a zone."""

    name: str = ""
    capacity: QuantityString = "0"
    allocatable: QuantityString = "0"
    available: QuantityString = "0"


class ReportedZone(Wire, frozen=True, kw_only=True):
    """A part of a node: a NUMA node, or something larger or smaller."""

    name: str = ""
    type: str = ""
    parent: str = ""
    resources: list[ZoneResource] = []


class Attribute(Wire, frozen=True, kw_only=True):
    """Something that is said of a node in a word."""

    name: str = ""
    value: str = ""


class NodeResourceTopology(Object, frozen=True, kw_only=True):
    """The zones of the node of the same name. It has no spec and no status."""

    topology_policies: list[str] = []
    """Policy and scope in one word: older agents say it here, newer ones by attributes."""
    attributes: list[Attribute] = []
    zones: list[ReportedZone] = []


NODE_RESOURCE_TOPOLOGIES = Resource(
    type=NodeResourceTopology,
    group="topology.node.k8s.io",
    version="v1alpha2",
    kind="NodeResourceTopology",
    plural="noderesourcetopologies",
    namespaced=False,
)
