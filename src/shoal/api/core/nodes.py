"""Nodes, as far as controllers, schedulers and node agents read them."""

from __future__ import annotations

from datetime import datetime

import msgspec

from shoal.api.meta import Object, Resource, ResourceList, Wire


class Taint(Wire, frozen=True, kw_only=True):
    """What keeps pods that do not tolerate it away."""

    key: str = ""
    value: str = ""
    effect: str = ""
    time_added: datetime | None = None


class NodeSpec(Wire, frozen=True, kw_only=True):
    """What a node is to be."""

    unschedulable: bool = False
    taints: list[Taint] = []


class NodeCondition(Wire, frozen=True, kw_only=True):
    """One thing that is known of a node."""

    type: str = ""
    status: str
    """Without a default, since what equals it would not be written."""
    last_heartbeat_time: datetime | None = None
    last_transition_time: datetime | None = None
    reason: str = ""
    message: str = ""


class NodeAddress(Wire, frozen=True, kw_only=True):
    """One name or address of a node."""

    type: str = ""
    address: str = ""


class NodeSystemInfo(Wire, frozen=True, kw_only=True):
    """What runs a node."""

    kubelet_version: str = ""


class DaemonEndpoint(Wire, frozen=True, kw_only=True):
    """Where something listens on a node."""

    port: int = msgspec.field(default=0, name="Port")


class NodeDaemonEndpoints(Wire, frozen=True, kw_only=True):
    """Where a node's own servers listen."""

    kubelet_endpoint: DaemonEndpoint = DaemonEndpoint()


class NodeStatus(Wire, frozen=True, kw_only=True):
    """How a node is, and what it has."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: list[NodeCondition] = []
    addresses: list[NodeAddress] = []
    phase: str = ""
    node_info: NodeSystemInfo | None = None
    daemon_endpoints: NodeDaemonEndpoints = NodeDaemonEndpoints()


class Node(Object, frozen=True, kw_only=True):
    """A machine that pods run on."""

    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


NODES = Resource(type=Node, group="", version="v1", kind="Node", plural="nodes", namespaced=False)

AGENT_SOCKET = "shoal.dev/agent-socket"
"""Annotation: the Unix socket on which the node's agent serves the kubelet's API."""

LOOPBACK_ADDRESS = "Loopback"
"""A type of address: where, on this machine itself, the node's agent serves the kubelet's API.

Only nodes of this machine have one. Their other addresses are in networks of their own, where nobody can dial them.
"""

LEASE = "shoal.dev/lease"
"""Annotation: the Lease in kube-node-lease that vouches for the node, where that is not the one of the node's name."""


def node_condition(node: Node, type: str) -> NodeCondition | None:  # noqa: A002 - the wire's own word
    """What is known of a node under this type."""
    return next((condition for condition in node.status.conditions if condition.type == type), None)


def is_node_ready(node: Node) -> bool:
    """Whether the node says that it can run pods."""
    condition = node_condition(node, "Ready")
    return condition is not None and condition.status == "True"
