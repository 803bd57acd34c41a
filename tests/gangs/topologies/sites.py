"""Topologies and sets that ask for them, in few words."""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.grove import ClusterTopologyBinding

KEYS = {
    "zone": "topology.kubernetes.io/zone",
    "block": "example.com/block",
    "rack": "example.com/rack",
    "host": "kubernetes.io/hostname",
}


def a_binding_body(name: str = "site", *domains: str, bound: dict[str, str] | None = None) -> dict[str, Any]:
    """A ClusterTopologyBinding with these domains, or all; ``bound`` are topologies that others look after."""
    entries = [
        {"schedulerName": scheduler, "topologyReference": reference} for scheduler, reference in (bound or {}).items()
    ]
    spec = {
        "levels": [{"domain": domain, "key": KEYS[domain]} for domain in domains or KEYS],
        **({"schedulerTopologyBindings": entries} if entries else {}),
    }
    return {"metadata": {"name": name}, "spec": spec}


def a_binding(name: str = "site", *domains: str, bound: dict[str, str] | None = None) -> ClusterTopologyBinding:
    return msgspec.convert(a_binding_body(name, *domains, bound=bound), ClusterTopologyBinding)


def within(required: str = "", preferred: str = "", *, name: str = "site") -> dict[str, Any]:
    """A topologyConstraint."""
    pack = {key: value for key, value in (("required", required), ("preferred", preferred)) if value}
    return {"pack": pack, **({"topologyName": name} if name else {})}
