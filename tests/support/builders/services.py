"""Services and pods for tests of what stands behind a service."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from shoal.api.core import PODS, Pod, Service
from shoal.api.meta import format_time
from tests.support.builders.pods import a_condition, a_pod, pod_manifest

START = datetime(2026, 1, 1, tzinfo=UTC)


def a_service(name: str = "web", *, ports: list[dict[str, Any]] | None = None, **spec: Any) -> Service:
    """A service as the server shows it."""
    metadata = {"name": name, "namespace": "default", "uid": f"uid-{name}", "creationTimestamp": format_time(START)}
    labels = spec.pop("labels", {})
    given = {"selector": {"app": "web"}, "clusterIP": "10.0.0.1", "ipFamilies": ["IPv4"]} | spec
    chosen = [{"port": 80, "targetPort": 8080, "protocol": "TCP"}] if ports is None else ports
    content = {"metadata": metadata | {"labels": labels}, "spec": given | {"ports": chosen}}
    return msgspec.convert(content, Service)


def a_backend(
    name: str,
    ip: str | list[str] = "",
    *,
    ready: bool = True,
    ready_since: int = 0,
    going: bool = False,
    phase: str = "Running",
    ports: Mapping[str, int] | None = None,
    **given: Any,
) -> Pod:
    """A pod behind a service, which a node has taken and reported of; without an address it has not reported yet."""
    ips = [ip] if isinstance(ip, str) else ip
    status = ready_status(ips, ready=ready, since=START + timedelta(seconds=ready_since))
    named = [{"name": key, "containerPort": port} for key, port in (ports or {}).items()]
    defaults = {"namespace": "default", "uid": f"uid-{name}", "labels": {"app": "web"}, "node": "node-1"}
    return a_pod(
        name,
        containers=[{"name": "main", "ports": named}],
        deleted=START if going else None,
        status=status | {"phase": phase},
        **(defaults | given),
    )


def ready_status(ips: list[str], *, ready: bool = True, since: datetime = START) -> dict[str, Any]:
    """What a node reports of a pod that runs."""
    found = [ip for ip in ips if ip]
    return {
        "phase": "Running",
        "podIP": found[0] if found else "",
        "podIPs": [{"ip": ip} for ip in found],
        "conditions": [a_condition("Ready", ready, since=since)],
    }


async def make_pod(cluster: Any, name: str, ip: str, *, ready: bool = True, **given: Any) -> None:
    """A pod on the test's server that runs on a node."""
    defaults = {"labels": {"app": "web"}, "node": "node-1"}
    await cluster.make(PODS, pod_manifest(name, **(defaults | given)))
    if ip:
        await cluster.set_status(PODS, name, ready_status([ip], ready=ready))
