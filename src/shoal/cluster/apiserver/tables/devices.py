"""How devices and the claims on them are printed."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.tables.ages import age
from shoal.cluster.apiserver.tables.cluster import name_and_age
from shoal.cluster.apiserver.tables.printer import AGE, NAME, Printer, Printers, column, metadata_of, part_of


def _claim(value: Object, now: datetime) -> list[Any]:
    metadata, status = metadata_of(value), part_of(value, "status")
    is_deleted = bool(metadata.get("deletionTimestamp"))
    states = ["deleted"] if is_deleted else []
    if status.get("allocation") is not None:
        states.append("allocated")
        if status.get("reservedFor"):
            states.append("reserved")
    elif not is_deleted:
        states.append("pending")
    return [metadata.get("name") or "", ",".join(states), age(metadata.get("creationTimestamp"), now)]


def _slice(value: Object, now: datetime) -> list[Any]:
    metadata, spec = metadata_of(value), part_of(value, "spec")
    return [
        metadata.get("name") or "",
        spec.get("nodeName") or "",
        spec.get("driver") or "",
        part_of(spec, "pool").get("name") or "",
        age(metadata.get("creationTimestamp"), now),
    ]


PRINTERS: Printers = {
    ("resource.k8s.io", "DeviceClass"): Printer([NAME, AGE], name_and_age),
    ("resource.k8s.io", "ResourceClaimTemplate"): Printer([NAME, AGE], name_and_age),
    ("resource.k8s.io", "ResourceClaim"): Printer(
        [NAME, column("State", "Whether it has its devices, and whether they are in use."), AGE], _claim
    ),
    ("resource.k8s.io", "ResourceSlice"): Printer(
        [
            NAME,
            column("Node", "The node that has the devices."),
            column("Driver", "The driver that serves them."),
            column("Pool", "The pool that they are part of."),
            AGE,
        ],
        _slice,
    ),
}
