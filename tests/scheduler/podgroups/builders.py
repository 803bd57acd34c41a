"""Pods of gangs, in few words."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.core import Pod

FRACTION = {"received-resource-type": "Fraction"}


def a_pod(
    name: str = "p",
    gang: str = "gang",
    *,
    requests: dict[str, Any] | None = None,
    annotations: dict[str, str] | None = None,
    node: str = "",
) -> dict[str, Any]:
    """A pod of a gang that asks for this."""
    grouped = {"pod-group-name": gang} if gang else {}
    asked = requests or {}
    limits = {resource: amount for resource, amount in asked.items() if "/" in resource}
    container = {"name": "c", "image": "busybox", "resources": {"requests": asked, "limits": limits}}
    return {
        "metadata": {"name": name, "annotations": {**grouped, **(annotations or {})}},
        "spec": {"containers": [container], "schedulerName": "kai-scheduler", **({"nodeName": node} if node else {})},
    }


def scheduled(phase: str = "Pending") -> dict[str, Any]:
    return {"phase": phase, "conditions": [{"type": "PodScheduled", "status": "True"}]}


def typed(body: dict[str, Any], status: dict[str, Any] | None = None, *, uid: str = "") -> Pod:
    metadata = {"namespace": "default", "uid": uid or body["metadata"]["name"], **body["metadata"]}
    return msgspec.convert({**body, "metadata": metadata, "status": status or {"phase": "Pending"}}, Pod)
