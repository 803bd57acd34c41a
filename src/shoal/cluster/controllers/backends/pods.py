"""What of a pod matters to the services that select it."""

from __future__ import annotations

from typing import Any

from shoal.api.core import Pod, Service, ServicePort, is_finished, is_ready
from shoal.kube.informer import Change

NO_ADDRESS = "None"
"""What a headless service has for a cluster address."""


def changes_endpoints(change: Change[Any]) -> bool:
    """Whether a pod's change can change any endpoints: one that has no address, and had none, is in none."""
    before: Pod | None = change.before
    after: Pod | None = change.after
    if before is None or after is None:
        return _has_address(change.latest)
    if not _has_address(before) and not _has_address(after):
        return False
    return _face(before) != _face(after)


def may_serve(pod: Pod, *, even_terminating: bool) -> bool:
    """Whether a pod belongs into endpoints at all, ready or not."""
    if is_finished(pod) or not _has_address(pod):
        return False
    return even_terminating or not pod.metadata.is_deleting


def host_name(pod: Pod, service: Service) -> str:
    """The name that a pod has below the service's own in DNS; empty where it has none."""
    return pod.spec.hostname if pod.spec.subdomain == service.metadata.name else ""


def target_port(pod: Pod, port: ServicePort) -> int | None:
    """Where a port of a service leads to in a pod; None where the pod has no port of the name that is asked for."""
    target = port.target_port
    if target is None:
        return port.port
    if isinstance(target, int):
        return target
    sidecars = (container for container in pod.spec.init_containers if container.restart_policy == "Always")
    for container in (*pod.spec.containers, *sidecars):
        for offered in container.ports:
            if offered.name == target and offered.protocol == port.protocol:
                return offered.container_port
    return None


def is_headless(service: Service) -> bool:
    """Whether a service has no address of its own."""
    return service.spec.cluster_ip in ("", NO_ADDRESS)


def _has_address(pod: Pod) -> bool:
    return bool(pod.status.pod_ips or pod.status.pod_ip)


def _face(pod: Pod) -> tuple[Any, ...]:
    """All of a pod that its endpoints show."""
    metadata, spec, status = pod.metadata, pod.spec, pod.status
    return (
        status.pod_ips,
        is_ready(pod),
        is_finished(pod),
        metadata.deletion_timestamp,
        metadata.labels,
        spec.node_name,
        spec.hostname,
        spec.subdomain,
    )
