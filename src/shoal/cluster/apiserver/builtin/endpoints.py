"""Endpoints and EndpointSlice: addresses that traffic may go to, and ports with names."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.addresses import (
    address_problems,
    address_warnings,
    endpoint_address_problems,
    is_ipv6,
    legacy_address_problems,
)
from shoal.cluster.apiserver.builtin.names import (
    label_problems,
    label_value_problems,
    qualified_name_problems,
    subdomain_problems,
)
from shoal.cluster.apiserver.builtin.selectors import labels_problems
from shoal.cluster.apiserver.builtin.values import named, port_number, required_one_of
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, duplicate, immutable, invalid, required, too_many

PROTOCOLS = ("SCTP", "TCP", "UDP")
MAX_ADDRESSES = 100
MAX_PORTS = 20000
MAX_ENDPOINTS = 1000
MAX_HINTS = 8
MAX_TOPOLOGY = 16

_DEPRECATED = "v1 Endpoints is deprecated in v1.33+; use discovery.k8s.io/v1 EndpointSlice"


def default_endpoints(new: Object) -> None:
    """Ports are TCP where nothing is said."""
    for subset in new.get("subsets") or ():
        for port in subset.get("ports") or ():
            port.setdefault("protocol", "TCP")


def endpoints_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with Endpoints."""
    problems: list[FieldProblem] = []
    for index, subset in enumerate(new.get("subsets") or ()):
        here = f"subsets[{index}]"
        if not subset.get("addresses") and not subset.get("notReadyAddresses"):
            problems.append(required(here, "must specify `addresses` or `notReadyAddresses`"))
        for part in ("addresses", "notReadyAddresses"):
            for place, address in enumerate(subset.get(part) or ()):
                problems += _address_problems(address, f"{here}.{part}[{place}]")
        ports = subset.get("ports") or ()
        for place, port in enumerate(ports):
            path = f"{here}.ports[{place}]"
            if name := port.get("name"):
                problems += named(f"{path}.name", name, label_problems)
            elif len(ports) > 1:
                problems.append(required(f"{path}.name"))
            problems += port_number(f"{path}.port", port.get("port", 0))
            problems += required_one_of(f"{path}.protocol", port.get("protocol"), PROTOCOLS)
            if port.get("appProtocol") is not None:
                problems += named(f"{path}.appProtocol", port["appProtocol"], qualified_name_problems)
    return problems


def validate_endpoints_update(new: Object, old: Object) -> list[FieldProblem]:
    """What was stored may stay, whatever it is."""
    return [] if new.get("subsets") == old.get("subsets") else endpoints_problems(new)


def endpoints_warnings(new: Object) -> list[str]:
    """What a client is told of addresses that are not well written."""
    if (new["metadata"].get("labels") or {}).get("endpoints.kubernetes.io/managed-by") == "endpoint-controller":
        return [_DEPRECATED]
    told = [_DEPRECATED]
    for index, subset in enumerate(new.get("subsets") or ()):
        for part in ("addresses", "notReadyAddresses"):
            for place, address in enumerate(subset.get(part) or ()):
                told += address_warnings(f"subsets[{index}].{part}[{place}].ip", address.get("ip", ""))
    return told


def default_slice(new: Object) -> None:
    """Ports have the empty name and are TCP where nothing is said."""
    for port in new.get("ports") or ():
        port.setdefault("name", "")
        port.setdefault("protocol", "TCP")


def prepare_slice(new: Object) -> None:
    """Drops what only the beta version had."""
    for endpoint in new.get("endpoints") or ():
        endpoint.pop("deprecatedTopology", None)


def prepare_slice_update(new: Object, old: Object) -> None:
    """The same for a change; what was stored may stay."""
    if new.get("endpoints") != old.get("endpoints"):
        prepare_slice(new)


def slice_problems(new: Object, old: Object | None = None) -> list[FieldProblem]:
    """What is wrong with an EndpointSlice."""
    kind = new.get("addressType", "")
    problems = required_one_of("addressType", kind, ("FQDN", "IPv4", "IPv6"))
    problems += _slice_port_problems(new.get("ports") or ())
    if old is None or old.get("endpoints") != new.get("endpoints"):
        problems += _slice_endpoint_problems(new.get("endpoints") or (), kind)
    return problems


def validate_slice_update(new: Object, old: Object) -> list[FieldProblem]:
    """The same for a change: the type of its addresses stays."""
    problems = slice_problems(new, old)
    if new.get("addressType") != old.get("addressType"):
        problems.append(immutable("addressType", new.get("addressType", "")))
    return problems


def slice_warnings(new: Object) -> list[str]:
    """What a client is told of a slice that is taken."""
    told = []
    if new.get("addressType") == "FQDN":
        told.append("spec.addressType: FQDN endpoints are deprecated")
    manager = (new["metadata"].get("labels") or {}).get("endpointslice.kubernetes.io/managed-by")
    if manager in ("endpointslice-controller.k8s.io", "endpointslicemirroring-controller.k8s.io"):
        return told
    for index, endpoint in enumerate(new.get("endpoints") or ()):
        for place, address in enumerate(endpoint.get("addresses") or ()):
            told += address_warnings(f"endpoints[{index}].addresses[{place}]", address)
    return told


def _address_problems(address: dict[str, Any], path: str) -> list[FieldProblem]:
    value = address.get("ip", "")
    problems = legacy_address_problems(f"{path}.ip", value)
    if host := address.get("hostname"):
        problems += named(f"{path}.hostname", host, label_problems)
    if (node := address.get("nodeName")) is not None:
        problems += named(f"{path}.nodeName", node, subdomain_problems)
    return problems + endpoint_address_problems(f"{path}.ip", value)


def _slice_port_problems(ports: Any) -> list[FieldProblem]:
    if len(ports) > MAX_PORTS:
        return [too_many("ports", len(ports), MAX_PORTS)]
    problems: list[FieldProblem] = []
    names: set[str] = set()
    for index, port in enumerate(ports):
        here, name = f"ports[{index}]", port.get("name", "")
        if name:
            problems += named(f"{here}.name", name, label_problems)
        if name in names:
            problems.append(duplicate(f"{here}.name", name))
        names.add(name)
        problems += required_one_of(f"{here}.protocol", port.get("protocol"), PROTOCOLS)
        if port.get("appProtocol") is not None:
            problems += named(f"{here}.appProtocol", port["appProtocol"], qualified_name_problems)
    return problems


def _slice_endpoint_problems(endpoints: Any, kind: str) -> list[FieldProblem]:
    if len(endpoints) > MAX_ENDPOINTS:
        return [too_many("endpoints", len(endpoints), MAX_ENDPOINTS)]
    problems: list[FieldProblem] = []
    for index, endpoint in enumerate(endpoints):
        here, addresses = f"endpoints[{index}]", endpoint.get("addresses") or ()
        if not addresses:
            problems.append(required(f"{here}.addresses", "must contain at least 1 address"))
        elif len(addresses) > MAX_ADDRESSES:
            problems.append(too_many(f"{here}.addresses", len(addresses), MAX_ADDRESSES))
        for place, address in enumerate(addresses):
            problems += _slice_address_problems(address, kind, f"{here}.addresses", place)
        if (node := endpoint.get("nodeName")) is not None:
            problems += named(f"{here}.nodeName", node, subdomain_problems)
        topology = endpoint.get("deprecatedTopology") or {}
        if len(topology) > MAX_TOPOLOGY:
            problems.append(too_many(f"{here}.deprecatedTopology", len(topology), MAX_TOPOLOGY))
        problems += labels_problems(topology, f"{here}.deprecatedTopology")
        if (host := endpoint.get("hostname")) is not None:
            problems += named(f"{here}.hostname", host, label_problems)
        problems += _hint_problems(endpoint.get("hints") or {}, f"{here}.hints")
    return problems


def _slice_address_problems(address: str, kind: str, path: str, place: int) -> list[FieldProblem]:
    here = f"{path}[{place}]"
    if kind == "FQDN":
        return _domain_problems(here, address)
    if kind not in ("IPv4", "IPv6"):
        return []
    rule = address_problems if kind == "IPv6" else legacy_address_problems
    if problems := rule(here, address):
        return problems
    if is_ipv6(address) != (kind == "IPv6"):
        problems.append(invalid(path, address, f"must be an {kind} address"))
    return problems + endpoint_address_problems(here, address)


def _domain_problems(path: str, name: str) -> list[FieldProblem]:
    if not name:
        return [required(path)]
    name = name.removesuffix(".")
    if found := subdomain_problems(name):
        return [invalid(path, name, ",".join(found))]
    if "." not in name:
        return [invalid(path, name, "should be a domain with at least two segments separated by dots")]
    for part in name.split("."):
        if found := label_problems(part):
            return [invalid(path, part, ",".join(found))]
    return []


def _hint_problems(hints: dict[str, Any], path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for field, rule in (("forZones", label_value_problems), ("forNodes", subdomain_problems)):
        given = hints.get(field) or ()
        if len(given) > MAX_HINTS:
            return [*problems, too_many(f"{path}.{field}", len(given), MAX_HINTS)]
        seen: set[str] = set()
        for index, hint in enumerate(given):
            here, name = f"{path}.{field}[{index}].name", hint.get("name", "")
            if name in seen:
                problems.append(duplicate(here, name))
            seen.add(name)
            problems += named(here, name, rule)
    return problems


RULES = {
    ("", "Endpoints"): Rules(
        name_problems=subdomain_problems,
        defaults=default_endpoints,
        validate_create=endpoints_problems,
        validate_update=validate_endpoints_update,
        warnings=endpoints_warnings,
        has_generation=False,
        create_on_update=True,
    ),
    ("discovery.k8s.io", "EndpointSlice"): Rules(
        name_problems=subdomain_problems,
        defaults=default_slice,
        prepare_create=prepare_slice,
        prepare_update=prepare_slice_update,
        validate_create=slice_problems,
        validate_update=validate_slice_update,
        warnings=slice_warnings,
    ),
}
