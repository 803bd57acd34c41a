"""What the Endpoints of a service should say."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime

import msgspec

from shoal.api.core import (
    HEADLESS,
    LAST_CHANGE_TRIGGER_TIME,
    OVER_CAPACITY,
    EndpointAddress,
    Endpoints,
    EndpointsPort,
    EndpointSubset,
    ObjectReference,
    Pod,
    Service,
    is_ready,
)
from shoal.api.meta import ObjectMeta, format_time
from shoal.cluster.controllers.backends import (
    host_name,
    is_headless,
    may_serve,
    pack,
    parse_ip,
    repack,
    target_port,
)
from shoal.cluster.controllers.backends.pods import NO_ADDRESS
from shoal.cluster.controllers.backends.subsets import Offer

CAPACITY = 1000
"""Addresses that Endpoints hold at most."""

MANAGED_BY, MANAGER = "endpoints.kubernetes.io/managed-by", "endpoint-controller"
_TRUNCATED = "truncated"


def wanted_endpoints(
    service: Service, pods: Iterable[Pod], current: Endpoints | None, moment: datetime | None
) -> Endpoints | None:
    """The Endpoints of a service as they should be; None where they are so already.

    ``moment`` is when the change happened that they are written for. What others have annotated stays.
    """
    all_subsets = pack(_offers(service, pods))
    subsets = within_capacity(all_subsets, CAPACITY)
    is_truncated = subsets is not all_subsets
    labels = {key: value for key, value in service.metadata.labels.items() if key != HEADLESS}
    if is_headless(service):
        labels[HEADLESS] = ""
    labels[MANAGED_BY] = MANAGER
    if current is not None and (
        current.metadata.labels == labels
        and (current.metadata.annotations.get(OVER_CAPACITY) == (_TRUNCATED if is_truncated else None))
        and _is_same(current.subsets, subsets)
    ):
        return None
    known = current.metadata if current is not None else ObjectMeta()
    annotations = {
        key: value for key, value in known.annotations.items() if key not in (LAST_CHANGE_TRIGGER_TIME, OVER_CAPACITY)
    }
    if moment is not None:
        annotations[LAST_CHANGE_TRIGGER_TIME] = format_time(moment)
    if is_truncated:
        annotations[OVER_CAPACITY] = _TRUNCATED
    metadata = msgspec.structs.replace(
        known,
        name=service.metadata.name,
        namespace=service.metadata.namespace,
        labels=labels,
        annotations=annotations,
    )
    return Endpoints(metadata=metadata, subsets=subsets)


def within_capacity(subsets: list[EndpointSubset], capacity: int) -> list[EndpointSubset]:
    """The subsets with no more addresses than fit, ready ones first; the very same where all fit.

    Each subset loses its share, rounded in favour of those in front.
    """
    ready = sum(len(subset.addresses) for subset in subsets)
    not_ready = sum(len(subset.not_ready_addresses) for subset in subsets)
    if ready + not_ready <= capacity:
        return subsets
    cuts_ready = ready > capacity
    room = capacity if cuts_ready else capacity - ready
    total = ready if cuts_ready else not_ready
    left = room
    kept = []
    for subset in subsets:
        count = len(subset.addresses if cuts_ready else subset.not_ready_addresses)
        share = min(math.ceil(count / total * room), left)
        left -= min(share, count)
        kept.append(
            msgspec.structs.replace(subset, addresses=subset.addresses[:share], not_ready_addresses=[])
            if cuts_ready
            else msgspec.structs.replace(subset, not_ready_addresses=subset.not_ready_addresses[:share])
        )
    return kept


def _offers(service: Service, pods: Iterable[Pod]) -> Iterator[Offer]:
    spec = service.spec
    is_portless = not spec.ports
    if is_portless and spec.cluster_ip != NO_ADDRESS:
        return
    known: dict[tuple[int | None, ...], list[EndpointsPort]] = {}
    for pod in pods:
        if not may_serve(pod, even_terminating=spec.publish_not_ready_addresses):
            continue
        address = _address(service, pod)
        if address is None:
            continue
        numbers = tuple(target_port(pod, port) for port in spec.ports)
        ports = known.get(numbers)
        if ports is None:
            ports = known[numbers] = _ports(service, numbers)
        if ports or is_portless:
            yield address, ports, spec.publish_not_ready_addresses or is_ready(pod)


def _ports(service: Service, numbers: Sequence[int | None]) -> list[EndpointsPort]:
    return [
        EndpointsPort(name=port.name, port=number, protocol=port.protocol, app_protocol=port.app_protocol)
        for port, number in zip(service.spec.ports, numbers, strict=True)
        if number is not None
    ]


def _address(service: Service, pod: Pod) -> EndpointAddress | None:
    wants_v6 = _is_v6(service, pod)
    parsed = (parse_ip(entry.ip) for entry in pod.status.pod_ips)
    ip = next((address.text for address in parsed if address is not None and address.is_v6 == wants_v6), None)
    if ip is None:
        return None
    metadata = pod.metadata
    return EndpointAddress(
        ip=ip,
        hostname=host_name(pod, service),
        node_name=pod.spec.node_name or None,
        target_ref=ObjectReference(kind="Pod", namespace=metadata.namespace, name=metadata.name, uid=metadata.uid),
    )


def _is_v6(service: Service, pod: Pod) -> bool:
    if service.spec.ip_families:
        return service.spec.ip_families[0] == "IPv6"
    own = parse_ip(service.spec.cluster_ip) or parse_ip(pod.status.pod_ip)
    return own is not None and own.is_v6


def _is_same(current: list[EndpointSubset], subsets: list[EndpointSubset]) -> bool:
    if current == subsets:
        return True
    plain = [_without_versions(subset) for subset in current]
    # Another writer may have put the same into another order.
    return plain == subsets or repack(plain) == subsets


def _without_versions(subset: EndpointSubset) -> EndpointSubset:
    """The versions of pods that addresses were once written with say nothing."""
    return msgspec.structs.replace(
        subset,
        addresses=[_without_version(address) for address in subset.addresses],
        not_ready_addresses=[_without_version(address) for address in subset.not_ready_addresses],
    )


def _without_version(address: EndpointAddress) -> EndpointAddress:
    reference = address.target_ref
    if reference is None or not reference.resource_version:
        return address
    return msgspec.structs.replace(address, target_ref=msgspec.structs.replace(reference, resource_version=""))
