"""The discovery.k8s.io group: EndpointSlices, the addresses behind a service in pieces of a hundred."""

from __future__ import annotations

from shoal.api.core import ObjectReference
from shoal.api.meta import Object, Resource, Wire

SERVICE_NAME = "kubernetes.io/service-name"
"""Label: the service whose addresses a slice has."""

MANAGED_BY = "endpointslice.kubernetes.io/managed-by"
"""Label: who keeps a slice."""

SKIP_MIRROR = "endpointslice.kubernetes.io/skip-mirror"
"""Label of Endpoints: ``true`` where no slices are to be made of them."""

IPV4, IPV6 = "IPv4", "IPv6"
"""The types of address that controllers write; a service's families have the same names."""


class EndpointConditions(Wire, frozen=True, kw_only=True):
    """What may be sent to an endpoint; None means that nothing is known."""

    ready: bool | None = None
    serving: bool | None = None
    terminating: bool | None = None


class ForZone(Wire, frozen=True, kw_only=True):
    """A zone that should use an endpoint."""

    name: str


class ForNode(Wire, frozen=True, kw_only=True):
    """A node that should use an endpoint."""

    name: str


class EndpointHints(Wire, frozen=True, kw_only=True):
    """From where an endpoint is best used."""

    for_zones: list[ForZone] = []
    for_nodes: list[ForNode] = []


class Endpoint(Wire, frozen=True, kw_only=True):
    """One backend of a service."""

    addresses: list[str]
    conditions: EndpointConditions = EndpointConditions()
    hostname: str | None = None
    target_ref: ObjectReference | None = None
    node_name: str | None = None
    zone: str | None = None
    hints: EndpointHints | None = None


class EndpointPort(Wire, frozen=True, kw_only=True):
    """A port that all endpoints of a slice listen on."""

    name: str | None = None
    protocol: str | None = None
    port: int | None = None
    app_protocol: str | None = None


class EndpointSlice(Object, frozen=True, kw_only=True):
    """Some of the backends of a service: those of one type of address and one set of ports."""

    address_type: str = ""
    endpoints: list[Endpoint] | None = None
    ports: list[EndpointPort] | None = None


ENDPOINT_SLICES = Resource(
    type=EndpointSlice, group="discovery.k8s.io", version="v1", kind="EndpointSlice", plural="endpointslices"
)
