"""Nodes for tests, as manifests and as values of the typed API."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from shoal.api.core import Node

Json = dict[str, Any]
HOSTNAME = "kubernetes.io/hostname"
ZONE = "topology.kubernetes.io/zone"


def node_manifest(
    name: str = "node-1",
    *,
    labels: Mapping[str, str] | None = None,
    zone: str = "",
    annotations: Mapping[str, str] | None = None,
    metadata: Mapping[str, Any] | None = None,
    allocatable: Mapping[str, Any] | None = None,
    gpus: int = 0,
    ready: bool | str | None = True,
    conditions: Mapping[str, str] | None = None,
    taints: Iterable[str | Mapping[str, Any]] = (),
    cordoned: bool = False,
    status: Mapping[str, Any] | None = None,
    **spec: Any,
) -> Json:
    """A node as it is written in JSON: ready, with 8 processors, 64 GiB and room for 110 pods, and what is given.

    A taint is a key, with the effect NoSchedule, or its fields. ``conditions`` are statuses by type; ``ready`` is
    the status of Ready, and None leaves it out. Other keywords are fields of the spec.
    """
    room = {"cpu": "8", "memory": "64Gi", "pods": "110"} if allocatable is None else dict(allocatable)
    amounts = {key: str(value) for key, value in room.items()} | ({"nvidia.com/gpu": str(gpus)} if gpus else {})
    reported = ({} if ready is None else {"Ready": str(ready)}) | dict(conditions or {})
    body = {"unschedulable": cordoned, "taints": [_taint(one) for one in taints]}
    return {
        "metadata": {
            "name": name,
            "labels": {HOSTNAME: name, **({ZONE: zone} if zone else {}), **(labels or {})},
            **({"annotations": dict(annotations)} if annotations else {}),
            **(metadata or {}),
        },
        "spec": {key: value for key, value in body.items() if value} | spec,
        "status": {
            "capacity": amounts,
            "allocatable": amounts,
            "conditions": [{"type": kind, "status": value} for kind, value in reported.items()],
            **(status or {}),
        },
    }


def a_node(name: str = "node-1", **given: Any) -> Node:
    """The same node as the typed API reads it."""
    return msgspec.convert(node_manifest(name, **given), Node)


def _taint(given: str | Mapping[str, Any]) -> Json:
    return {"key": given, "effect": "NoSchedule"} if isinstance(given, str) else dict(given)
