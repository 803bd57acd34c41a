"""Slices that say what Endpoints say which somebody wrote by hand: one for each subset and type of address."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain

from shoal.api.core import ENDPOINTS, LAST_CHANGE_TRIGGER_TIME, EndpointAddress, Endpoints, EndpointSubset
from shoal.api.discovery_k8s_io import (
    IPV4,
    IPV6,
    MANAGED_BY,
    SERVICE_NAME,
    SKIP_MIRROR,
    Endpoint,
    EndpointConditions,
    EndpointPort,
    EndpointSlice,
)
from shoal.api.meta import LAST_APPLIED, ObjectMeta, owner_reference
from shoal.cluster.controllers.backends import parse_ip, repack
from shoal.cluster.controllers.endpoint_slices.backends_of_service import Identity, Ports, identity, in_order
from shoal.cluster.controllers.endpoint_slices.packing import differs
from shoal.cluster.controllers.endpoint_slices.plan import Plan

_LEADER = "control-plane.alpha.kubernetes.io/leader"
_Group = tuple[str, Ports]


@dataclass
class Skipped:
    """Addresses that are not mirrored: those that are none, and those that are too many."""

    invalid: int = 0
    surplus: int = 0


def is_to_be_mirrored(endpoints: Endpoints) -> bool:
    """Whether Endpoints are addresses at all, and nobody has asked to leave them alone."""
    metadata = endpoints.metadata
    return metadata.labels.get(SKIP_MIRROR) != "true" and _LEADER not in metadata.annotations


def plan_mirror(
    endpoints: Endpoints, existing: Sequence[EndpointSlice], *, limit: int, manager: str
) -> tuple[Plan, Skipped]:
    """What is to be done to the slices that mirror Endpoints, and what is left out."""
    wanted, skipped = _wanted(endpoints, limit)
    by_group: dict[_Group, list[EndpointSlice]] = {}
    for each in existing:
        by_group.setdefault((each.address_type, in_order(each.ports or ())), []).append(each)
    plan = Plan()
    for group, found in by_group.items():
        plan.delete += found[1:] if wanted.get(group) else found
    for group, together in wanted.items():
        if not together:
            continue
        new = _mirror(endpoints, group, list(together.values()), manager)
        first = by_group.get(group, [None])[0]
        if first is None:
            plan.create.append(new)
        elif not _says_the_same(first, new, together):
            plan.update.append((first, new))
    return plan.recycled(), skipped


def _wanted(endpoints: Endpoints, limit: int) -> tuple[dict[_Group, dict[Identity, Endpoint]], Skipped]:
    wanted: dict[_Group, dict[Identity, Endpoint]] = {}
    skipped = Skipped()
    for subset in repack(endpoints.subsets):
        ports = _ports(subset)
        taken = 0
        invalid = 0
        addresses = chain(
            ((address, True) for address in subset.addresses),
            ((address, False) for address in subset.not_ready_addresses),
        )
        for address, is_ready in addresses:
            if taken >= limit:
                break
            parsed = parse_ip(address.ip)
            if parsed is None:
                invalid += 1
                continue
            taken += 1
            endpoint = _endpoint(address, parsed.text, is_ready)
            wanted.setdefault((IPV6 if parsed.is_v6 else IPV4, ports), {})[identity(endpoint)] = endpoint
        skipped.invalid += invalid
        skipped.surplus += len(subset.addresses) + len(subset.not_ready_addresses) - taken - invalid
    return wanted, skipped


def _ports(subset: EndpointSubset) -> Ports:
    return in_order(
        [
            EndpointPort(name=port.name, protocol=port.protocol, port=port.port, app_protocol=port.app_protocol)
            for port in subset.ports
        ]
    )


def _endpoint(address: EndpointAddress, ip: str, is_ready: bool) -> Endpoint:
    return Endpoint(
        addresses=[ip],
        conditions=EndpointConditions(ready=is_ready),
        hostname=address.hostname or None,
        node_name=address.node_name,
        target_ref=address.target_ref,
    )


def _mirror(endpoints: Endpoints, group: _Group, together: list[Endpoint], manager: str) -> EndpointSlice:
    address_type, ports = group
    metadata = endpoints.metadata
    return EndpointSlice(
        metadata=ObjectMeta(
            generate_name=f"{metadata.name}-",
            namespace=metadata.namespace,
            labels=metadata.labels | {SERVICE_NAME: metadata.name, MANAGED_BY: manager},
            annotations={
                key: value
                for key, value in metadata.annotations.items()
                if key not in (LAST_CHANGE_TRIGGER_TIME, LAST_APPLIED)
            },
            owner_references=[owner_reference(endpoints, ENDPOINTS)],
        ),
        address_type=address_type,
        endpoints=together,
        ports=list(ports) or None,
    )


def _says_the_same(found: EndpointSlice, new: EndpointSlice, together: dict[Identity, Endpoint]) -> bool:
    if (
        found.metadata.labels != new.metadata.labels
        or found.metadata.annotations != new.metadata.annotations
        or found.metadata.owner_references != new.metadata.owner_references
        or len(found.endpoints or ()) != len(together)
    ):
        return False
    return all(
        (endpoint := together.get(identity(known))) is not None and not differs(endpoint, known)
        for known in found.endpoints or ()
    )
