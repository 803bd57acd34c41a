"""The same names for files: where pods have no network of their own there is nobody to ask, and /etc/hosts must do."""

from __future__ import annotations

from collections.abc import Iterable

from shoal.api.core import Pod, Service
from shoal.api.core.pods import is_finished
from shoal.api.discovery_k8s_io import SERVICE_NAME
from shoal.cluster.node.process.layout import CLUSTER_DOMAIN
from shoal.cluster.node.process.network.views import ServingSlice, is_ready
from shoal.kube import Key
from shoal.kube.store import key_of


def host_entries(
    services: Iterable[Service], slices: Iterable[ServingSlice], pods: Iterable[Pod], *, namespace: str
) -> list[tuple[str, list[str]]]:
    """Addresses with the names that stand for them in a pod of this namespace, always in the same order.

    Nothing listens on the addresses of services here: their names stand for what is ready behind them, whose ports
    are as they are there.
    """
    known = {key_of(service): service for service in services if service.spec.type != "ExternalName"}
    found: dict[tuple[str, str, str], None] = {}
    for one in slices:
        owner = Key(one.metadata.namespace, one.metadata.labels.get(SERVICE_NAME, ""))
        service = known.get(owner)
        if service is None:
            continue
        for endpoint in one.endpoints or ():
            if is_ready(endpoint) or service.spec.publish_not_ready_addresses:
                for address in endpoint.addresses:
                    found[owner.namespace, owner.name, address] = None
                    if endpoint.hostname:
                        found[owner.namespace, f"{endpoint.hostname}.{owner.name}", address] = None
    for pod in pods:
        if key_of(pod) not in known and pod.status.pod_ip and not is_finished(pod):
            found[pod.metadata.namespace, pod.metadata.name, pod.status.pod_ip] = None
    return [(address, _names(name, of, namespace)) for of, name, address in sorted(found)]


def _names(name: str, of: str, namespace: str) -> list[str]:
    """All names that a search list would make of a short one; the longest is first, as that is the true one."""
    full = [f"{name}.{of}.svc.{CLUSTER_DOMAIN}", f"{name}.{of}.svc", f"{name}.{of}"]
    return [*full, name] if of == namespace else full
