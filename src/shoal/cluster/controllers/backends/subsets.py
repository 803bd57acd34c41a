"""Addresses and ports in the one layout that Endpoints have: addresses that share all of their ports, in order.

An address is known by its IP and the uid of what it belongs to. One that is ready and not ready at once counts as not
ready.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence

from shoal.api.core import EndpointAddress, EndpointsPort, EndpointSubset
from shoal.cluster.controllers.backends.printed import printed_hash, printed_pointer

Offer = tuple[EndpointAddress, Sequence[EndpointsPort], bool]
"""An address, the ports it listens on (none at all is allowed), and whether it is ready."""
_Identity = tuple[str, str]


def repack(subsets: Iterable[EndpointSubset]) -> list[EndpointSubset]:
    """Subsets in the common layout, however they were written."""
    return pack(
        (address, subset.ports, is_ready)
        for subset in subsets
        for addresses, is_ready in ((subset.addresses, True), (subset.not_ready_addresses, False))
        for address in addresses
    )


def pack(offers: Iterable[Offer]) -> list[EndpointSubset]:
    """The fewest subsets that hold what is offered."""
    known: dict[_Identity, EndpointAddress] = {}
    by_port: dict[EndpointsPort | None, dict[_Identity, bool]] = {}
    for address, ports, is_ready in offers:
        identity = (address.ip, address.target_ref.uid if address.target_ref is not None else "")
        known.setdefault(identity, address)
        for port in ports or (None,):
            addresses = by_port.setdefault(port, {})
            addresses[identity] = is_ready and addresses.get(identity, True)
    ports_of: dict[frozenset[tuple[_Identity, bool]], list[EndpointsPort]] = {}
    for port, addresses in by_port.items():
        ports_together = ports_of.setdefault(frozenset(addresses.items()), [])
        if port is not None and port.port > 0:
            ports_together.append(port)
    subsets = [_subset(group, known.__getitem__, ports) for group, ports in ports_of.items()]
    return sorted(subsets, key=lambda subset: printed_hash(_printed_subset(subset))) if len(subsets) > 1 else subsets


def _subset(
    group: Iterable[tuple[_Identity, bool]],
    address_of: Callable[[_Identity], EndpointAddress],
    ports: list[EndpointsPort],
) -> EndpointSubset:
    ready: list[EndpointAddress] = []
    not_ready: list[EndpointAddress] = []
    for identity, is_ready in group:
        (ready if is_ready else not_ready).append(address_of(identity))
    return EndpointSubset(
        addresses=sorted(ready, key=_order),
        not_ready_addresses=sorted(not_ready, key=_order),
        ports=sorted(ports, key=lambda port: printed_hash("(v1.EndpointPort)" + _printed_port(port))),
    )


def _order(address: EndpointAddress) -> tuple[str, bool, str]:
    reference = address.target_ref
    return (address.ip, reference is not None, reference.uid if reference is not None else "")


def _printed_subset(subset: EndpointSubset) -> str:
    ready = _printed_list("EndpointAddress", [_printed_address(address) for address in subset.addresses])
    not_ready = _printed_list("EndpointAddress", [_printed_address(address) for address in subset.not_ready_addresses])
    ports = _printed_list("EndpointPort", [_printed_port(port) for port in subset.ports])
    return f"(v1.EndpointSubset){{Addresses:{ready} NotReadyAddresses:{not_ready} Ports:{ports}}}"


def _printed_list(type_name: str, items: Sequence[str]) -> str:
    return f"([]v1.{type_name}){'[' + ' '.join(items) + ']' if items else '<nil>'}"


def _printed_address(address: EndpointAddress) -> str:
    reference = address.target_ref
    printed = reference and (
        f"{{Kind:(string){reference.kind} Namespace:(string){reference.namespace} Name:(string){reference.name} "
        f"UID:(types.UID){reference.uid} APIVersion:(string){reference.api_version} "
        f"ResourceVersion:(string){reference.resource_version} FieldPath:(string){reference.field_path}}}"
    )
    return (
        f"{{IP:(string){address.ip} Hostname:(string){address.hostname} "
        f"NodeName:{printed_pointer('string', address.node_name)} "
        f"TargetRef:{printed_pointer('v1.ObjectReference', printed)}}}"
    )


def _printed_port(port: EndpointsPort) -> str:
    return (
        f"{{Name:(string){port.name} Port:(int32){port.port} Protocol:(v1.Protocol){port.protocol} "
        f"AppProtocol:{printed_pointer('string', port.app_protocol)}}}"
    )
