"""What is read of services and of the addresses behind them: no more than names and the proxy need.

There may be a hundred thousand endpoints in a cluster, most of them of pods on other nodes, and each is held here.
"""

from __future__ import annotations

import msgspec

from shoal.api.core import SERVICES, Service
from shoal.api.core.services import ServiceSpec
from shoal.api.discovery_k8s_io import ENDPOINT_SLICES, EndpointConditions, EndpointPort
from shoal.api.meta import Wire


class ClientIpConfig(Wire, frozen=True, kw_only=True):
    """For how many seconds a client keeps its backend."""

    timeout_seconds: int = 10800


class AffinityConfig(Wire, frozen=True, kw_only=True):
    """How clients keep their backends."""

    client_ip: ClientIpConfig = msgspec.field(default=ClientIpConfig(), name="clientIP")


class ProxiedServiceSpec(ServiceSpec, frozen=True, kw_only=True):
    """What a service is to be, with what a proxy must know of it."""

    session_affinity: str = "None"
    session_affinity_config: AffinityConfig = AffinityConfig()
    internal_traffic_policy: str = "Cluster"
    load_balancer_class: str | None = None


class BalancerPort(Wire, frozen=True, kw_only=True):
    """A port of a load balancer, and why it is not listened on."""

    port: int
    protocol: str = "TCP"
    error: str | None = None


class BalancerIngress(Wire, frozen=True, kw_only=True):
    """Where a load balancer answers."""

    ip: str = ""
    hostname: str = ""
    ip_mode: str | None = None
    ports: list[BalancerPort] | None = None


class BalancerStatus(Wire, frozen=True, kw_only=True):
    """Where a load balancer answers, once it does."""

    ingress: list[BalancerIngress] | None = None


class ProxiedServiceStatus(Wire, frozen=True, kw_only=True):
    """How a service is."""

    load_balancer: BalancerStatus = BalancerStatus()


class ProxiedService(Service, frozen=True, kw_only=True):
    """A service as a proxy sees it."""

    spec: ProxiedServiceSpec = ProxiedServiceSpec()
    status: ProxiedServiceStatus = ProxiedServiceStatus()


class SliceMetadata(Wire, frozen=True, kw_only=True):
    """What is needed of a slice's metadata; the service is named by a label."""

    name: str = ""
    namespace: str = ""
    uid: str = ""
    resource_version: str = ""
    labels: dict[str, str] = {}


class ServingEndpoint(Wire, frozen=True, kw_only=True):
    """One backend of a service."""

    addresses: list[str] = []
    conditions: EndpointConditions = EndpointConditions()
    hostname: str | None = None
    node_name: str | None = None


class ServingSlice(Wire, frozen=True, kw_only=True):
    """Some of the backends of a service."""

    metadata: SliceMetadata = SliceMetadata()
    endpoints: list[ServingEndpoint] | None = None
    ports: list[EndpointPort] | None = None


PROXIED_SERVICES = SERVICES.view(ProxiedService)
SERVING_SLICES = ENDPOINT_SLICES.view(ServingSlice)


def is_headless(service: Service) -> bool:
    """Whether a service has names for its backends alone, and no address of its own."""
    return service.spec.cluster_ip == "None"


def cluster_addresses(service: Service) -> list[str]:
    """A service's own addresses."""
    spec = service.spec
    if spec.type == "ExternalName":
        return []
    return [one for one in (spec.cluster_ips or [spec.cluster_ip]) if one and one != "None"]


def is_ready(endpoint: ServingEndpoint) -> bool:
    """Whether an endpoint takes what is new; one of which nothing is known does."""
    return endpoint.conditions.ready is not False
