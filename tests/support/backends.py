"""Services and pods for tests of what stands behind a service."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from shoal.api.core import PODS, Pod, Service
from shoal.api.meta import format_time

START = datetime(2026, 1, 1, tzinfo=UTC)


def a_service(name: str = "web", *, ports: list[dict[str, Any]] | None = None, **spec: Any) -> Service:
    """A service as the server shows it."""
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": format_time(START)}
    labels = spec.pop("labels", {})
    given = {"selector": {"app": "web"}, "clusterIP": "10.0.0.1", "ipFamilies": ["IPv4"]} | spec
    chosen = [{"port": 80, "targetPort": 8080, "protocol": "TCP"}] if ports is None else ports
    content = {"metadata": metadata | {"labels": labels}, "spec": given | {"ports": chosen}}
    return msgspec.convert(content, Service)


def a_pod(
    name: str,
    ip: str | list[str] = "",
    *,
    node: str = "node-1",
    ready: bool = True,
    ready_since: int = 0,
    going: bool = False,
    phase: str = "Running",
    ports: Mapping[str, int] | None = None,
    **spec: Any,
) -> Pod:
    """A pod that a node has taken and reported of; without an address it has not reported yet."""
    ips = [ip] if isinstance(ip, str) else ip
    metadata: dict[str, Any] = {
        "name": name, "namespace": "default", "uid": f"uid-{name}", "labels": spec.pop("labels", {"app": "web"}),
    }  # fmt: skip
    if going:
        metadata["deletionTimestamp"] = format_time(START)
    containers = [
        {"name": "main", "ports": [{"name": key, "containerPort": port} for key, port in (ports or {}).items()]}
    ]
    content = {
        "metadata": metadata,
        "spec": {"nodeName": node, "containers": containers} | spec,
        "status": ready_status(ips, ready=ready, since=START + timedelta(seconds=ready_since)) | {"phase": phase},
    }
    return msgspec.convert(content, Pod)


def ready_status(ips: list[str], *, ready: bool = True, since: datetime = START) -> dict[str, Any]:
    """What a node reports of a pod that runs."""
    condition = {"type": "Ready", "status": "True" if ready else "False", "lastTransitionTime": format_time(since)}
    found = [ip for ip in ips if ip]
    return {
        "phase": "Running",
        "podIP": found[0] if found else "",
        "podIPs": [{"ip": ip} for ip in found],
        "conditions": [condition],
    }


async def make_pod(cluster: Any, name: str, ip: str, *, ready: bool = True, node: str = "node-1", **more: Any) -> None:
    """A pod on the test's server that runs on a node."""
    labels = more.pop("labels", {"app": "web"})
    ports = [{"name": key, "containerPort": port} for key, port in more.pop("ports", {}).items()]
    container = {"name": "main", "image": "none", "ports": ports}
    body = {"metadata": {"name": name, "labels": labels}, "spec": {"nodeName": node, "containers": [container]} | more}
    await cluster.make(PODS, body)
    if ip:
        await cluster.set_status(PODS, name, ready_status([ip], ready=ready))
