"""The endpoints that a service's pods are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from shoal.api.core import ObjectReference, Pod, Service, is_ready
from shoal.api.discovery_k8s_io import IPV4, IPV6, Endpoint, EndpointConditions, EndpointPort
from shoal.cluster.controllers.backends import host_name, may_serve, parse_ip, printed_hash, target_port
from shoal.cluster.controllers.backends.printed import printed_pointer

Ports = tuple[EndpointPort, ...]
"""Ports in order: what slices of one service differ by."""
Identity = tuple[tuple[str, ...], str, str, str]

_CONDITIONS = {
    (ready, serving, terminating): EndpointConditions(ready=ready, serving=serving, terminating=terminating)
    for ready in (False, True)
    for serving in (False, True)
    for terminating in (False, True)
}


@dataclass(frozen=True)
class Wanted:
    """What is to be in a service's slices of one address type."""

    endpoints: dict[Ports, dict[Identity, Endpoint]] = field(default_factory=dict)
    nowhere: list[Pod] = field(default_factory=list)
    """Pods that are left out since their node is not known."""


def address_types(service: Service) -> list[str]:
    """The types of address that a service has slices for."""
    families = [family for family in (IPV4, IPV6) if family in service.spec.ip_families]
    if families:
        return families
    own = parse_ip(service.spec.cluster_ip)
    if own is None:
        return [IPV4, IPV6]
    return [IPV6] if own.is_v6 else [IPV4]


def wanted_endpoints(
    service: Service, pods: Iterable[Pod], address_type: str, zone_of: Callable[[str], str | None]
) -> Wanted:
    """The endpoints that pods are, by the ports they listen on.

    ``zone_of`` gives the zone of a node, the empty text where it has none, and None where there is no such node.
    """
    wanted = Wanted()
    ports_of = _PortsOf(service)
    for pod in pods:
        if not may_serve(pod, even_terminating=True):
            continue
        together = wanted.endpoints.setdefault(ports_of(pod), {})
        zone = zone_of(pod.spec.node_name)
        if zone is None and not service.spec.publish_not_ready_addresses:
            wanted.nowhere.append(pod)
            continue
        addresses = _addresses(pod, address_type)
        if addresses:
            endpoint = _endpoint(pod, service, addresses, zone or None)
            together[identity(endpoint)] = endpoint
    return wanted


def identity(endpoint: Endpoint) -> Identity:
    """What makes two endpoints the same one, whatever else has changed."""
    reference = endpoint.target_ref
    return (
        tuple(sorted(endpoint.addresses)),
        endpoint.hostname or "",
        reference.namespace if reference is not None else "",
        reference.name if reference is not None else "",
    )


def in_order(ports: Sequence[EndpointPort]) -> Ports:
    """Ports in the order in which slices have them."""
    return tuple(sorted(ports, key=_printed_hash)) if len(ports) > 1 else tuple(ports)


def _endpoint(pod: Pod, service: Service, addresses: list[str], zone: str | None) -> Endpoint:
    metadata = pod.metadata
    serving, terminating = is_ready(pod), metadata.is_deleting
    ready = service.spec.publish_not_ready_addresses or (serving and not terminating)
    return Endpoint(
        addresses=addresses,
        conditions=_CONDITIONS[ready, serving, terminating],
        hostname=host_name(pod, service) or None,
        target_ref=ObjectReference(kind="Pod", namespace=metadata.namespace, name=metadata.name, uid=metadata.uid),
        node_name=pod.spec.node_name or None,
        zone=zone,
    )


def _addresses(pod: Pod, address_type: str) -> list[str]:
    parsed = (parse_ip(entry.ip) for entry in pod.status.pod_ips)
    return [address.text for address in parsed if address is not None and address.is_v6 == (address_type == IPV6)]


class _PortsOf:
    """The ports of a service's pods; the same numbers are put in order once, not for each pod."""

    def __init__(self, service: Service) -> None:
        self._ports = service.spec.ports
        self._known: dict[tuple[int | None, ...], Ports] = {}

    def __call__(self, pod: Pod) -> Ports:
        numbers = tuple(target_port(pod, port) for port in self._ports)
        known = self._known.get(numbers)
        if known is None:
            known = self._known[numbers] = in_order(
                [
                    EndpointPort(name=port.name, protocol=port.protocol, port=number, app_protocol=port.app_protocol)
                    for port, number in zip(self._ports, numbers, strict=True)
                    if number is not None
                ]
            )
        return known


def _printed_hash(port: EndpointPort) -> int:
    name, protocol = printed_pointer("string", port.name), printed_pointer("v1.Protocol", port.protocol)
    number, app_protocol = printed_pointer("int32", port.port), printed_pointer("string", port.app_protocol)
    return printed_hash(
        f"(v1.EndpointPort){{Name:{name} Protocol:{protocol} Port:{number} AppProtocol:{app_protocol}}}"
    )
