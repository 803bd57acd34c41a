"""How a simulated node presents itself: the annotations and the status that its agent sets, once."""

from __future__ import annotations

import uuid
from datetime import datetime
from typing import Any

from shoal.api.core import AGENT_SOCKET, LEASE, Node, NodeStatus
from shoal.api.meta import ResourceList, format_time
from shoal.cluster.node.kubelet.whereabouts import agent_addresses, daemon_endpoints
from shoal.cluster.node.simulated.pools import PODS_PER_NODE

LEASE_NAME = "shoal-simulated"
"""The one Lease, in kube-node-lease, that vouches for all simulated nodes."""

KUBELET_VERSION = "v1.36.4+simulated"
DEFAULT_RESOURCES: ResourceList = {"cpu": "32", "memory": "256Gi", "pods": PODS_PER_NODE}
_UUIDS = uuid.UUID("6b1f4a0e-7c3d-4f52-9a55-0d9a6e0f5a31")

_CONDITIONS = (
    ("MemoryPressure", "False", "KubeletHasSufficientMemory", "kubelet has sufficient memory available"),
    ("DiskPressure", "False", "KubeletHasNoDiskPressure", "kubelet has no disk pressure"),
    ("PIDPressure", "False", "KubeletHasSufficientPID", "kubelet has sufficient PID available"),
    ("Ready", "True", "KubeletReady", "kubelet is posting ready status"),
)


def node_annotations(socket: str) -> dict[str, str]:
    """Where the agent is found, and which lease vouches for the node."""
    return {AGENT_SOCKET: socket, LEASE: LEASE_NAME}


def internal_ip(status: NodeStatus) -> str:
    """The address by which a node is known; empty where it has none."""
    return next((one.address for one in status.addresses if one.type == "InternalIP"), "")


def new_status(
    name: str, resources: ResourceList, address: str, now: datetime, *, port: int | None = None
) -> dict[str, Any]:
    """The whole status of a node that is registered by its agent."""
    return {
        "capacity": dict(resources),
        "allocatable": dict(resources),
        "conditions": [_condition(*one, now) for one in _CONDITIONS],
        "addresses": [*_addresses(name, address), *agent_addresses(port)],
        "nodeInfo": _machine(name),
        "daemonEndpoints": daemon_endpoints(port),
    }


def node_patch(node: Node, *, socket: str, address: str, now: datetime, port: int | None = None) -> dict[str, Any]:
    """What differs from how a node is to present itself, as a strategic merge patch; empty where nothing does."""
    patch: dict[str, Any] = {}
    held = node.metadata.annotations
    annotations = {key: value for key, value in node_annotations(socket).items() if held.get(key) != value}
    if annotations:
        patch["metadata"] = {"annotations": annotations}
    if status := _status_patch(node, address, now, port):
        patch["status"] = status
    return patch


def silence_patch(node: Node) -> dict[str, Any]:
    """What makes a node that nobody vouches for any more; empty where nobody does."""
    return {"metadata": {"annotations": {LEASE: None}}} if LEASE in node.metadata.annotations else {}


def _status_patch(node: Node, address: str, now: datetime, port: int | None) -> dict[str, Any]:
    name, status = node.metadata.name, node.status
    patch: dict[str, Any] = {}
    if not status.capacity:
        patch["capacity"] = dict(status.allocatable or DEFAULT_RESOURCES)
    if not status.allocatable:
        patch["allocatable"] = dict(status.capacity or DEFAULT_RESOURCES)
    if not internal_ip(status):
        patch["addresses"] = _addresses(name, address)
    if status.node_info is None or status.node_info.kubelet_version != KUBELET_VERSION:
        patch["nodeInfo"] = _machine(name)
    endpoints = daemon_endpoints(port)
    if status.daemon_endpoints.kubelet_endpoint.port != endpoints["kubeletEndpoint"]["Port"]:
        patch["daemonEndpoints"] = endpoints
        patch["addresses"] = [*patch.get("addresses", ()), *agent_addresses(port)]
    known = {condition.type: condition for condition in status.conditions}
    conditions = []
    for kind, wanted, reason, message in _CONDITIONS:
        seen = known.get(kind)
        if seen is None or (seen.status, seen.reason, seen.message) != (wanted, reason, message):
            conditions.append(_condition(kind, wanted, reason, message, now))
            if seen is not None and seen.status == wanted and seen.last_transition_time is not None:
                conditions[-1]["lastTransitionTime"] = format_time(seen.last_transition_time)
    if conditions:
        patch["conditions"] = conditions
    return patch


def _condition(kind: str, status: str, reason: str, message: str, now: datetime) -> dict[str, str]:
    moment = format_time(now)
    entry = {"type": kind, "status": status, "reason": reason, "message": message}
    return entry | {"lastHeartbeatTime": moment, "lastTransitionTime": moment}


def _addresses(name: str, address: str) -> list[dict[str, str]]:
    return [{"type": "InternalIP", "address": address}, {"type": "Hostname", "address": name}]


def _machine(name: str) -> dict[str, str]:
    identity = str(uuid.uuid5(_UUIDS, name))
    return {
        "architecture": "amd64",
        "bootID": identity,
        "containerRuntimeVersion": "simulated://1.0",
        "kernelVersion": "simulated",
        "kubeProxyVersion": "",
        "kubeletVersion": KUBELET_VERSION,
        "machineID": identity.replace("-", ""),
        "operatingSystem": "linux",
        "osImage": "Shoal simulated node",
        "systemUUID": identity,
    }
