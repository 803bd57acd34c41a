"""The pod that holds a shared device: its name, its body, and what is known from it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from shoal.api import kai_names as names
from shoal.api.core.pods import Pod, Toleration
from shoal.scheduler.binding.settings import ReservationSettings

PREFIX = "gpu-reservation-"
CONTAINER = "resource-reservation"
_DO_NOT_DISRUPT = "karpenter.sh/do-not-disrupt"
_ONE_GPU = {names.NVIDIA_GPU: "1"}


def reservation_name(node: str, group: str) -> str:
    """The same for everyone who wants this device, so that two cannot be made."""
    return PREFIX + hashlib.sha256(f"{node}/{group}".encode()).digest()[:8].hex()


def reservation_body(
    node: str, group: str, tolerations: Sequence[Toleration], settings: ReservationSettings
) -> dict[str, Any]:
    """The pod that takes one whole GPU of a node for a group.

    It goes where it is told, past every scheduler, and tolerates what the first pod of its group does.
    """
    container = {
        "name": CONTAINER,
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        **({"command": list(settings.command)} if settings.command else {}),
        "env": [
            {"name": "POD_NAME", "valueFrom": {"fieldRef": {"fieldPath": "metadata.name"}}},
            {"name": "POD_NAMESPACE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
        ],
        "resources": {kind: {**_beside(settings.resources.get(kind)), **_ONE_GPU} for kind in ("requests", "limits")},
    }
    return {
        "metadata": {
            "name": reservation_name(node, group),
            "namespace": settings.namespace,
            "labels": {"app": settings.app_label, names.GPU_GROUP: group},
            "annotations": {_DO_NOT_DISRUPT: "true"},
        },
        "spec": {
            "nodeName": node,
            "serviceAccountName": settings.account,
            **({"runtimeClassName": settings.runtime_class} if settings.runtime_class else {}),
            "tolerations": [msgspec.to_builtins(toleration) for toleration in tolerations],
            "terminationGracePeriodSeconds": 0,
            "containers": [container],
        },
    }


def device_of(reservation: Pod) -> str:
    """The device that a reservation holds; empty until its program has said so."""
    return reservation.metadata.annotations.get(names.RESERVED_GPU_INDEX, "")


def deadline_of(reservation: Pod, *, timeout: float, now: datetime) -> datetime:
    """When a reservation's device must be known."""
    return (reservation.metadata.creation_timestamp or now) + timedelta(seconds=timeout)


def _beside(resources: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: amount for name, amount in (resources or {}).items() if name != names.NVIDIA_GPU}
