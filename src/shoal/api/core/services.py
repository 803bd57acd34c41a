"""Services, and the endpoints behind them in their older form."""

from __future__ import annotations

import msgspec

from shoal.api.core.references import ObjectReference
from shoal.api.meta import IntOrString, Object, Resource, Wire

HEADLESS = "service.kubernetes.io/headless"
"""Label of endpoints: their service has no address of its own."""

LAST_CHANGE_TRIGGER_TIME = "endpoints.kubernetes.io/last-change-trigger-time"
"""Annotation of endpoints: when the change happened that they were written for."""

OVER_CAPACITY = "endpoints.kubernetes.io/over-capacity"
"""Annotation of Endpoints: there are more addresses than they can hold."""


class ServicePort(Wire, frozen=True, kw_only=True):
    """A port of a service, and where it leads to."""

    port: int = 0
    name: str = ""
    protocol: str = "TCP"
    app_protocol: str | None = None
    target_port: IntOrString | None = None
    node_port: int = 0


class ServiceSpec(Wire, frozen=True, kw_only=True):
    """What a service is to be."""

    type: str = "ClusterIP"
    selector: dict[str, str] = {}
    ports: list[ServicePort] = []
    cluster_ip: str = msgspec.field(default="", name="clusterIP")
    cluster_ips: list[str] = msgspec.field(default_factory=list, name="clusterIPs")
    ip_families: list[str] = []
    publish_not_ready_addresses: bool = False
    external_name: str = ""
    traffic_distribution: str | None = None
    allocate_load_balancer_node_ports: bool | None = None


class Service(Object, frozen=True, kw_only=True):
    """One address for the pods that a selector chooses."""

    spec: ServiceSpec = ServiceSpec()


class EndpointAddress(Wire, frozen=True, kw_only=True):
    """One backend of a service, in the older form."""

    ip: str
    hostname: str = ""
    node_name: str | None = None
    target_ref: ObjectReference | None = None


class EndpointsPort(Wire, frozen=True, kw_only=True):
    """A port that all addresses of a subset listen on."""

    port: int
    name: str = ""
    protocol: str = "TCP"
    app_protocol: str | None = None


class EndpointSubset(Wire, frozen=True, kw_only=True):
    """Addresses that share their ports."""

    addresses: list[EndpointAddress] = []
    not_ready_addresses: list[EndpointAddress] = []
    ports: list[EndpointsPort] = []


class Endpoints(Object, frozen=True, kw_only=True):
    """All backends of a service in one object."""

    subsets: list[EndpointSubset] = []


SERVICES = Resource(type=Service, group="", version="v1", kind="Service", plural="services")
ENDPOINTS = Resource(type=Endpoints, group="", version="v1", kind="Endpoints", plural="endpoints")
