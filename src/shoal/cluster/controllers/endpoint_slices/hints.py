"""From where an endpoint is best used: from nearby, or from the zone that it was given to.

A service asks for the first by ``trafficDistribution``, for the second by an annotation, which comes first.
"""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from shoal.api.core import Service
from shoal.api.discovery_k8s_io import Endpoint, EndpointHints, EndpointSlice, ForNode, ForZone
from shoal.cluster.controllers.endpoint_slices.plan import Plan
from shoal.cluster.controllers.endpoint_slices.zones import NoHints, ZoneShares, shared_out

_MODES = ("service.kubernetes.io/topology-aware-hints", "service.kubernetes.io/topology-mode")

_SAME_NODE = "PreferSameNode"
_CLOSE = frozenset({"PreferClose", "PreferSameZone", _SAME_NODE})


def shares_out_zones(service: Service) -> bool:
    """Whether a service asks that its endpoints be shared out among the zones; the older annotation comes first."""
    annotations = service.metadata.annotations
    mode = next((annotations[name] for name in _MODES if name in annotations), "")
    return mode in ("Auto", "auto")


def add_hints(plan: Plan, existing: Sequence[EndpointSlice], service: Service, zone_shares: ZoneShares) -> None:
    """Gives the endpoints of a plan their hints, and plans the change of slices that have others."""
    touched = {each.metadata.name for each, _ in plan.update} | {each.metadata.name for each in plan.delete}
    untouched = [each for each in existing if each.metadata.name not in touched]
    distribution = service.spec.traffic_distribution
    if shares_out_zones(service):
        distribution = None
        try:
            changing = [*plan.create, *(after for _, after in plan.update)]
            hinted, others = shared_out(changing, untouched, zone_shares)
            plan.create = hinted[: len(plan.create)]
            plan.update = [
                (before, after) for (before, _), after in zip(plan.update, hinted[len(plan.create) :], strict=True)
            ]
            plan.update += others
            return
        except NoHints as problem:
            plan.hint_problem = str(problem)
    plan.create = [with_hints(each, distribution) for each in plan.create]
    plan.update = [(before, with_hints(after, distribution)) for before, after in plan.update]
    for each in untouched:
        if (changed := with_hints(each, distribution)) is not each:
            plan.update.append((each, changed))


def with_hints(found: EndpointSlice, distribution: str | None) -> EndpointSlice:
    """A slice whose endpoints have the hints they should; the very same where they do."""
    endpoints = found.endpoints or []
    hinted = [_hinted(endpoint, distribution) for endpoint in endpoints]
    if all(new is old for new, old in zip(hinted, endpoints, strict=True)):
        return found
    return msgspec.structs.replace(found, endpoints=hinted)


def _hinted(endpoint: Endpoint, distribution: str | None) -> Endpoint:
    if distribution not in _CLOSE:
        hints = None
    elif not endpoint.conditions.ready:
        return endpoint
    else:
        zones = [ForZone(name=endpoint.zone)] if endpoint.zone is not None else []
        wants_node = distribution == _SAME_NODE and endpoint.node_name is not None
        nodes = [ForNode(name=endpoint.node_name)] if wants_node and endpoint.node_name is not None else []
        hints = EndpointHints(for_zones=zones, for_nodes=nodes) if zones or nodes else None
    return endpoint if endpoint.hints == hints else msgspec.structs.replace(endpoint, hints=hints)
