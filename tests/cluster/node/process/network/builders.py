"""Services, slices and pods, as small as a test needs them."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.core.pod_details import PodDetails
from shoal.cluster.node.process.network.balance import Backend
from shoal.cluster.node.process.network.catalogue import Catalogue
from shoal.cluster.node.process.network.views import ProxiedService, ServingSlice
from shoal.kube import Change
from tests.support.builders.pods import pod_manifest

HTTP = {"name": "http", "port": 80, "protocol": "TCP"}
API = Backend("127.0.0.1", 7443, is_on_machine=True)
MACHINE = {("default", "kubernetes"): API}
"""Where the API server answers."""


def a_service(name: str, address: str = "None", *, namespace: str = "default", **spec: Any) -> ProxiedService:
    """A service, headless if it has no address."""
    given: dict[str, Any] = {"type": "ClusterIP", "clusterIP": address, "clusterIPs": [address], "ports": [HTTP]}
    return msgspec.convert({"metadata": {"name": name, "namespace": namespace}, "spec": given | spec}, ProxiedService)


def an_external(name: str, target: str) -> ProxiedService:
    """A service that is another name."""
    return msgspec.convert(
        {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"type": "ExternalName", "externalName": target},
        },
        ProxiedService,
    )


def an_endpoint(
    address: str, hostname: str | None = None, *, node: str = "local", **conditions: bool
) -> dict[str, Any]:
    """An endpoint, ready unless something else is said."""
    return {
        "addresses": [address],
        "hostname": hostname,
        "nodeName": node,
        "conditions": {"ready": True, "serving": True, "terminating": False} | conditions,
    }


def a_slice(
    service: str,
    *endpoints: dict[str, Any],
    name: str = "",
    namespace: str = "default",
    ports: list[dict[str, Any]] | None = None,
) -> ServingSlice:
    """A slice of a service."""
    return msgspec.convert(
        {
            "metadata": {
                "name": name or f"{service}-abc",
                "namespace": namespace,
                "labels": {"kubernetes.io/service-name": service},
            },
            "addressType": "IPv4",
            "endpoints": list(endpoints),
            "ports": [HTTP] if ports is None else ports,
        },
        ServingSlice,
    )


def a_pod_at(name: str, address: str, *, namespace: str = "default", phase: str = "Running") -> PodDetails:
    """A pod with an address."""
    return msgspec.convert(pod_manifest(name, namespace=namespace, phase=phase, status={"podIP": address}), PodDetails)


def a_catalogue(*found: ProxiedService | ServingSlice | PodDetails) -> Catalogue:
    """A catalogue of these."""
    catalogue = Catalogue()
    for one in found:
        put(catalogue, one)
    return catalogue


def put(catalogue: Catalogue, found: ProxiedService | ServingSlice | PodDetails) -> None:
    """Tells a catalogue of something that is new, or has changed."""
    if isinstance(found, ProxiedService):
        catalogue.service_changed(Change(None, found))
    elif isinstance(found, ServingSlice):
        catalogue.slice_changed(Change(None, found))
    else:
        catalogue.pod_changed(Change(None, found))


def remove(catalogue: Catalogue, found: ProxiedService | ServingSlice | PodDetails) -> None:
    """Tells a catalogue that something is gone."""
    if isinstance(found, ProxiedService):
        catalogue.service_changed(Change(found, None))
    elif isinstance(found, ServingSlice):
        catalogue.slice_changed(Change(found, None))
    else:
        catalogue.pod_changed(Change(found, None))
