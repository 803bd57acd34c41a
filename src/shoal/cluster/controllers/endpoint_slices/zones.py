"""Sharing out a service's endpoints among the zones, each by its share of the cluster's processors.

An endpoint serves its own zone unless that has more than its share; then some of them serve a zone that has less.
Slices whose hints are still fair are left alone. Where the shares are not known, or some zone would be overloaded,
there are no hints at all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import msgspec

from shoal.api.discovery_k8s_io import Endpoint, EndpointHints, EndpointSlice, ForZone

ZONE = "topology.kubernetes.io/zone"
OVERLOAD = 0.2
"""By how much an endpoint may be used above its share."""

ZoneShares = Mapping[str, float] | None
"""How much of the cluster's processors each zone has; None where that is not known."""


class NoHints(Exception):
    """Endpoints cannot be shared out; says why, in the words of Kubernetes' events."""


class _Allocation(NamedTuple):
    minimum: int
    maximum: int
    desired: float


def shared_out(
    changing: Sequence[EndpointSlice], unchanged: Sequence[EndpointSlice], shares: ZoneShares
) -> tuple[list[EndpointSlice], list[tuple[EndpointSlice, EndpointSlice]]]:
    """The slices that are written anyway with their hints, and those of the others that must be written too."""
    ready = sum(1 for each in (*changing, *unchanged) for endpoint in each.endpoints or () if _is_ready(endpoint))
    allocations = _allocations(shares, ready)
    given: Counter[str] = Counter()
    unfair: list[EndpointSlice] = []
    for each in unchanged:
        hints = _fair_hints(each, given, allocations)
        if hints is None:
            unfair.append(each)
        else:
            given += hints
    hinted = [_in_own_zone(each, given) for each in (*changing, *unfair)]
    giving, receiving = _moves(allocations, given)
    hinted = [_moved(each, giving, receiving) for each in hinted]
    if not given:
        raise NoHints("No hints allocated for zones")
    others = [(before, after) for before, after in zip(unfair, hinted[len(changing) :], strict=True) if before != after]
    return hinted[: len(changing)], others


def _allocations(shares: ZoneShares, ready: int) -> dict[str, _Allocation]:
    """How many endpoints each zone must have, may have, and should have."""
    if shares is None:
        raise NoHints("Insufficient Node information: allocatable CPU or zone not specified on one or more nodes")
    counts = f"({ready} endpoints, {len(shares)} zones)"
    if len(shares) > ready:
        raise NoHints(f"Insufficient number of endpoints {counts}")
    least = {zone: math.ceil(share * ready * (1 / (1 + OVERLOAD))) for zone, share in shares.items()}
    spare = ready - sum(least.values())
    if spare < 0:
        raise NoHints(
            "Unable to allocate minimum required endpoints to each zone without exceeding overload threshold " + counts
        )
    return {
        zone: _Allocation(least[zone], least[zone] + spare, max(share * ready, float(least[zone])))
        for zone, share in shares.items()
    }


def _fair_hints(
    found: EndpointSlice, given: Mapping[str, int], allocations: Mapping[str, _Allocation]
) -> Counter[str] | None:
    """The hints that a slice has by zone; None where one is missing, or some zone would have too many."""
    hints: Counter[str] = Counter()
    for endpoint in found.endpoints or ():
        if not _is_ready(endpoint):
            continue
        zones = endpoint.hints.for_zones if endpoint.hints is not None else []
        if not zones or any(zone.name not in allocations for zone in zones):
            return None
        hints.update(zone.name for zone in zones)
    too_many = any(count + given.get(zone, 0) > allocations[zone].maximum for zone, count in hints.items())
    return None if too_many else hints


def _in_own_zone(found: EndpointSlice, given: Counter[str]) -> EndpointSlice:
    endpoints = []
    for endpoint in found.endpoints or ():
        if not _is_ready(endpoint):
            endpoints.append(endpoint)
            continue
        if not endpoint.zone:
            raise NoHints("One or more endpoints do not have a zone specified")
        given[endpoint.zone] += 1
        endpoints.append(_for_zone(endpoint, endpoint.zone))
    return msgspec.structs.replace(found, endpoints=endpoints) if endpoints else found


def _moves(allocations: Mapping[str, _Allocation], given: Mapping[str, int]) -> tuple[Counter[str], Counter[str]]:
    """How many endpoints zones give away, and how many they get, until what is left is less than one."""
    over = {zone: given.get(zone, 0) - each.desired for zone, each in sorted(allocations.items())}
    under = {zone: -amount for zone, amount in over.items() if amount < 0}
    over = {zone: amount for zone, amount in over.items() if amount > 0}
    giving: Counter[str] = Counter()
    receiving: Counter[str] = Counter()
    while over and under:
        giver, receiver = max(over, key=over.__getitem__), max(under, key=under.__getitem__)
        to_give, to_get = over[giver], under[receiver]
        if max(to_give, to_get) < 1.0 or min(to_give, to_get) < 0.5:
            break
        giving[giver] += 1
        over[giver] -= 1
        receiving[receiver] += 1
        under[receiver] -= 1
    return giving, receiving


def _moved(found: EndpointSlice, giving: Counter[str], receiving: Counter[str]) -> EndpointSlice:
    endpoints = list(found.endpoints or ())
    for index, endpoint in enumerate(endpoints):
        if not _is_ready(endpoint) or giving[endpoint.zone or ""] <= 0:
            continue
        receiver = next((zone for zone, count in sorted(receiving.items()) if count > 0), None)
        if receiver is None:
            break
        endpoints[index] = _for_zone(endpoint, receiver)
        giving[endpoint.zone or ""] -= 1
        receiving[receiver] -= 1
    return msgspec.structs.replace(found, endpoints=endpoints) if endpoints else found


def _for_zone(endpoint: Endpoint, zone: str) -> Endpoint:
    return msgspec.structs.replace(endpoint, hints=EndpointHints(for_zones=[ForZone(name=zone)]))


def _is_ready(endpoint: Endpoint) -> bool:
    return bool(endpoint.conditions.ready)
