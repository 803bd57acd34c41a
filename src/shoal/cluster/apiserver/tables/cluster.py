"""How nodes, namespaces and the plain things that every cluster has are printed."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.tables.ages import UNKNOWN, age
from shoal.cluster.apiserver.tables.printer import (
    AGE,
    NAME,
    Cells,
    Printer,
    Printers,
    boolean,
    column,
    metadata_of,
    number,
    part_of,
    wide,
)
from shoal.cluster.apiserver.tables.wording import NONE

_ROLE_PREFIX = "node-role.kubernetes.io/"
_ROLE_LABEL = "kubernetes.io/role"


def name_and_age(value: Object, now: datetime) -> list[Any]:
    """The row of a kind of which there is nothing else to say."""
    metadata = metadata_of(value)
    return [metadata.get("name") or "", age(metadata.get("creationTimestamp"), now)]


def _between_name_and_age(cell: Callable[[Object], Any]) -> Cells:
    """The row of a kind that has one cell of its own."""

    def row(value: Object, now: datetime) -> list[Any]:
        metadata = metadata_of(value)
        return [metadata.get("name") or "", cell(value), age(metadata.get("creationTimestamp"), now)]

    return row


def _node(value: Object, now: datetime) -> list[Any]:
    metadata, status = metadata_of(value), part_of(value, "status")
    about = part_of(status, "nodeInfo")
    kernel = about.get("kernelVersion") or UNKNOWN
    if architecture := about.get("architecture"):
        kernel += f" ({architecture})"
    return [
        metadata.get("name") or "",
        _node_status(value, status),
        ",".join(sorted(_roles(metadata.get("labels") or {}))) or NONE,
        age(metadata.get("creationTimestamp"), now),
        about.get("kubeletVersion") or "",
        _node_address(status, "InternalIP"),
        _node_address(status, "ExternalIP"),
        about.get("osImage") or UNKNOWN,
        kernel,
        about.get("containerRuntimeVersion") or UNKNOWN,
    ]


def _node_status(node: Object, status: Object) -> str:
    text = "Unknown"
    for condition in status.get("conditions") or ():
        if condition.get("type") == "Ready":
            text = "Ready" if condition.get("status") == "True" else "NotReady"
    return f"{text},SchedulingDisabled" if part_of(node, "spec").get("unschedulable") else text


def _roles(labels: dict[str, str]) -> set[str]:
    roles = {key.removeprefix(_ROLE_PREFIX) for key in labels if key.startswith(_ROLE_PREFIX)}
    return (roles | {labels.get(_ROLE_LABEL, "")}) - {""}


def _node_address(status: Object, kind: str) -> str:
    addresses = status.get("addresses") or ()
    return next((address.get("address") or "" for address in addresses if address.get("type") == kind), NONE)


def _component_status(value: Object, _now: datetime) -> list[Any]:
    name = metadata_of(value).get("name") or ""
    for condition in value.get("conditions") or ():
        if condition.get("type") == "Healthy":
            state = "Healthy" if condition.get("status") == "True" else "Unhealthy"
            return [name, state, condition.get("message") or "", condition.get("error") or ""]
    return [name, "Unknown", "", ""]


def _secret(value: Object, now: datetime) -> list[Any]:
    name, old = name_and_age(value, now)
    return [name, value.get("type") or "", len(value.get("data") or ()), old]


def _quota(value: Object, now: datetime) -> list[Any]:
    name, old = name_and_age(value, now)
    status = part_of(value, "status")
    used = status.get("used") or {}
    requests: list[str] = []
    limits: list[str] = []
    for resource, hard in sorted((status.get("hard") or {}).items()):
        shown = limits if resource.startswith("limits.") else requests
        shown.append(f"{resource}: {used.get(resource, '0')}/{hard}")
    return [name, ", ".join(requests), ", ".join(limits), old]


def _priority_class(value: Object, now: datetime) -> list[Any]:
    name, old = name_and_age(value, now)
    policy = value.get("preemptionPolicy") or ""
    return [name, value.get("value") or 0, value.get("globalDefault") or False, old, policy]


PRINTERS: Printers = {
    ("", "Node"): Printer(
        [
            NAME,
            column("Status", "Whether the node is ready, and whether pods may come."),
            column("Roles", "What the node is for."),
            AGE,
            column("Version", "Version of its kubelet."),
            wide("Internal-IP", "Its address within the cluster."),
            wide("External-IP", "Its address from outside."),
            wide("OS-Image", "Its operating system."),
            wide("Kernel-Version", "Its kernel."),
            wide("Container-Runtime", "What runs its containers."),
        ],
        _node,
    ),
    ("", "Namespace"): Printer(
        [NAME, column("Status", "Whether it is in use or being emptied."), AGE],
        _between_name_and_age(lambda value: part_of(value, "status").get("phase") or ""),
    ),
    ("", "ConfigMap"): Printer(
        [NAME, column("Data", "How many entries it has."), AGE],
        _between_name_and_age(lambda value: len(value.get("data") or ()) + len(value.get("binaryData") or ())),
    ),
    ("", "Secret"): Printer(
        [NAME, column("Type", "What it is a secret for."), column("Data", "How many entries it has."), AGE], _secret
    ),
    ("", "ServiceAccount"): Printer([NAME, AGE], name_and_age),
    ("", "ResourceQuota"): Printer(
        [
            NAME,
            column("Request", "What is used of the quota, but for limits."),
            column("Limit", "What is used of the quota for limits."),
            AGE,
        ],
        _quota,
    ),
    ("", "ComponentStatus"): Printer(
        [
            NAME,
            column("Status", "Whether it is healthy."),
            column("Message", "What it says of its health."),
            column("Error", "What went wrong."),
        ],
        _component_status,
    ),
    ("coordination.k8s.io", "Lease"): Printer(
        [NAME, column("Holder", "Who holds it."), AGE],
        _between_name_and_age(lambda value: part_of(value, "spec").get("holderIdentity") or ""),
    ),
    ("scheduling.k8s.io", "PriorityClass"): Printer(
        [
            NAME,
            number("Value", "The priority; more goes first."),
            boolean("Global-Default", "Whether pods that name no class get it."),
            AGE,
            column("PreemptionPolicy", "Whether pods of it may drive others out."),
        ],
        _priority_class,
    ),
    ("scheduling.k8s.io", "Workload"): Printer([NAME, AGE], name_and_age),
    ("node.k8s.io", "RuntimeClass"): Printer(
        [NAME, column("Handler", "What runs its pods, by the node's configuration."), AGE],
        _between_name_and_age(lambda value: value.get("handler") or ""),
    ),
}
