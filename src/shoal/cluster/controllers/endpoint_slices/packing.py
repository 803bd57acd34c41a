"""How endpoints are spread over slices: few writes come before few slices.

A slice that holds what it should is left alone, even half empty. What goes or changes is taken out of, or changed in,
the slice where it is; what is new goes into slices that are written anyway, the fullest first; then into one slice
that has room for all the rest; then into new slices. A slice that would be deleted is used again before a new one is
made. A service without any endpoint has one empty slice.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.api.core import HEADLESS, SERVICES, ObjectReference, Service
from shoal.api.discovery_k8s_io import MANAGED_BY, SERVICE_NAME, Endpoint, EndpointSlice
from shoal.api.meta import ObjectMeta, is_owned_by, owner_reference
from shoal.cluster.controllers.backends import is_headless
from shoal.cluster.controllers.endpoint_slices.backends_of_service import Identity, Ports, Wanted, identity, in_order
from shoal.cluster.controllers.endpoint_slices.hints import add_hints
from shoal.cluster.controllers.endpoint_slices.plan import Plan
from shoal.cluster.controllers.endpoint_slices.zones import ZoneShares

_RESERVED = (SERVICE_NAME, MANAGED_BY, HEADLESS)


def plan_slices(
    service: Service,
    wanted: Wanted,
    existing: Sequence[EndpointSlice],
    address_type: str,
    *,
    limit: int,
    manager: str,
    zone_shares: ZoneShares = None,
) -> Plan:
    """What is to be done to a service's slices of one address type."""
    labels = slice_labels(service, manager)
    plan = Plan()
    by_ports: dict[Ports, list[EndpointSlice]] = {}
    for each in existing:
        if is_owned_by(each.metadata, service.metadata.uid):
            by_ports.setdefault(in_order(each.ports or ()), []).append(each)
        else:
            plan.delete.append(each)
    for ports, endpoints in wanted.endpoints.items():
        fresh = _new_slice(service, labels, address_type, ports)
        _pack(plan, by_ports.get(ports, ()), endpoints, fresh, labels, limit)
    for ports, together in by_ports.items():
        if ports not in wanted.endpoints:
            plan.delete += together
    if len(existing) == len(plan.delete) and not plan.create:
        _keep_one(plan, _new_slice(service, labels, address_type, ()))
    add_hints(plan, existing, service, zone_shares)
    # A slice of an earlier service of the same name is the garbage collector's.
    return plan.recycled(lambda going: is_owned_by(going.metadata, service.metadata.uid))


def slice_labels(service: Service, manager: str) -> dict[str, str]:
    """The labels of a service's slices: its own, and those by which the slices are known."""
    labels = {key: value for key, value in service.metadata.labels.items() if key not in _RESERVED}
    if is_headless(service):
        labels[HEADLESS] = ""
    return labels | {SERVICE_NAME: service.metadata.name, MANAGED_BY: manager}


def differs(endpoint: Endpoint, found: Endpoint) -> bool:
    """Whether an endpoint has to be written though the same one is there; hints are another's business."""
    return (
        endpoint.node_name != found.node_name
        or endpoint.zone != found.zone
        or endpoint.conditions != found.conditions
        or (endpoint.target_ref != found.target_ref and _plain(endpoint.target_ref) != _plain(found.target_ref))
    )


def _plain(reference: ObjectReference | None) -> ObjectReference | None:
    """A reference without the version of what it names, which changes all the time and says nothing."""
    return reference and msgspec.structs.replace(reference, resource_version="")


def _pack(
    plan: Plan,
    existing: Sequence[EndpointSlice],
    wanted: dict[Identity, Endpoint],
    fresh: EndpointSlice,
    labels: dict[str, str],
    limit: int,
) -> None:
    """Plans the slices of one set of ports."""
    left = dict(wanted)
    changed: list[tuple[EndpointSlice, list[Endpoint]]] = []
    unchanged: list[EndpointSlice] = []
    for each in existing:
        kept, is_changed = _kept(each, left)
        if is_changed and not kept:
            plan.delete.append(each)
        elif is_changed or each.metadata.labels != labels:
            changed.append((each, kept))
        else:
            unchanged.append(each)
    rest = list(left.values())
    for _, kept in sorted(changed, key=lambda entry: -len(entry[1])):
        _fill(kept, rest, limit)
    while rest:
        roomy = _with_room_for(len(rest), unchanged, limit)
        if roomy is not None:
            changed.append((roomy, [*(roomy.endpoints or ()), *rest]))
            break
        endpoints: list[Endpoint] = []
        _fill(endpoints, rest, limit)
        plan.create.append(msgspec.structs.replace(fresh, endpoints=endpoints))
    for each, kept in changed:
        metadata = msgspec.structs.replace(each.metadata, labels=labels)
        plan.update.append((each, msgspec.structs.replace(each, metadata=metadata, endpoints=kept)))


def _kept(each: EndpointSlice, left: dict[Identity, Endpoint]) -> tuple[list[Endpoint], bool]:
    """What stays in a slice, taken out of what is left to be placed, and whether that is a change."""
    kept: list[Endpoint] = []
    is_changed = False
    for found in each.endpoints or ():
        endpoint = left.pop(identity(found), None)
        if endpoint is None:
            is_changed = True
            continue
        kept.append(endpoint)
        is_changed = is_changed or differs(endpoint, found)
    return kept, is_changed


def _fill(endpoints: list[Endpoint], rest: list[Endpoint], limit: int) -> None:
    room = max(0, limit - len(endpoints))
    endpoints += rest[:room]
    del rest[:room]


def _with_room_for(count: int, slices: Sequence[EndpointSlice], limit: int) -> EndpointSlice | None:
    """The slice that is fullest once so many endpoints are in it too; as many as fill a slice get one of their own."""
    roomy = [each for each in slices if count + len(each.endpoints or ()) <= limit] if count < limit else []
    return max(roomy, key=lambda each: len(each.endpoints or ()), default=None)


def _keep_one(plan: Plan, placeholder: EndpointSlice) -> None:
    """Makes sure of one empty slice, or finds that the only one there is it already."""
    if len(plan.delete) == 1:
        only = plan.delete[0]
        if not only.endpoints and not only.ports and only.metadata.labels == placeholder.metadata.labels:
            plan.delete.clear()
            return
    plan.create.append(placeholder)


def _new_slice(service: Service, labels: dict[str, str], address_type: str, ports: Ports) -> EndpointSlice:
    return EndpointSlice(
        metadata=ObjectMeta(
            generate_name=f"{service.metadata.name}-",
            namespace=service.metadata.namespace,
            labels=labels,
            owner_references=[owner_reference(service, SERVICES)],
        ),
        address_type=address_type,
        ports=list(ports) or None,
    )
