"""NetworkPolicy, ServiceCIDR and IPAddress: peers, ports and networks."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from shoal.cluster.apiserver.builtin.addresses import (
    address_problems,
    is_ipv6,
    legacy_network_problems,
    network_problems,
    network_warnings,
    parse_network,
)
from shoal.cluster.apiserver.builtin.names import path_segment_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.selectors import label_selector_problems
from shoal.cluster.apiserver.builtin.values import named, one_of, port_number, port_number_or_name
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, forbidden, immutable, invalid, not_supported, required

GROUP = "networking.k8s.io"
PROTOCOLS = ("TCP", "UDP", "SCTP")
_DIRECTIONS = (("ingress", "from"), ("egress", "to"))


def default_policy(new: Object) -> None:
    """Policies are about traffic that comes in, and about what goes out where they say so."""
    spec = new.setdefault("spec", {})
    if not spec.get("policyTypes"):
        spec["policyTypes"] = ["Ingress", "Egress"] if spec.get("egress") else ["Ingress"]
    for direction, _ in _DIRECTIONS:
        for rule in spec.get(direction) or ():
            for port in rule.get("ports") or ():
                port.setdefault("protocol", "TCP")


def policy_problems(new: Object, old: Object | None = None) -> list[FieldProblem]:
    """What is wrong with a NetworkPolicy."""
    spec, before = new.get("spec") or {}, (old or {}).get("spec") or {}
    known = [network for _, block in _blocks(before) for network in _networks(block)]
    loose = bool(label_selector_problems(before.get("podSelector"), ""))
    problems = label_selector_problems(spec.get("podSelector"), "spec.podSelector", allow_invalid_values=loose)
    for direction, peers in _DIRECTIONS:
        for index, rule in enumerate(spec.get(direction) or ()):
            here = f"spec.{direction}[{index}]"
            for place, port in enumerate(rule.get("ports") or ()):
                problems += _port_problems(port, f"{here}.ports[{place}]")
            for place, peer in enumerate(rule.get(peers) or ()):
                problems += _peer_problems(peer, f"{here}.{peers}[{place}]", known, loose)
    types = spec.get("policyTypes") or ()
    if len(types) > 2:
        return [*problems, invalid("spec.policyTypes", types, "may not specify more than two policyTypes")]
    for index, each in enumerate(types):
        problems += one_of(f"spec.policyTypes[{index}]", each, ("Ingress", "Egress"))
    return problems


def policy_warnings(new: Object) -> list[str]:
    """What a client is told of networks that are not well written."""
    told = []
    for path, block in _blocks(new.get("spec") or {}):
        told += network_warnings(f"{path}.cidr", block.get("cidr", ""))
        for index, network in enumerate(block.get("except") or ()):
            told += network_warnings(f"{path}.except[{index}]", network)
    return told


def cidr_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a ServiceCIDR."""
    path, networks = "spec.cidrs", (new.get("spec") or {}).get("cidrs") or []
    if not networks:
        return [required(path, "at least one CIDR required")]
    if len(networks) > 2:
        return [invalid(path, {"CIDRs": networks}, "may only hold up to 2 values")]
    problems: list[FieldProblem] = []
    for index, network in enumerate(networks):
        problems += network_problems(f"{path}[{index}]", network)
    families = [is_ipv6(each.partition("/")[0]) for each in networks if parse_network(each)]
    if len(families) == 2 and families[0] == families[1]:
        words = "may specify no more than one IP for each IP family, i.e 192.168.0.0/24 and 2001:db8::/64"
        problems.append(invalid(path, networks, words))
    return problems


def validate_cidr_update(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with a change: a second family may come, nothing may go."""
    path = "spec.cidrs"
    networks, before = ((each.get("spec") or {}).get("cidrs") or [] for each in (new, old))
    if len(networks) == len(before):
        return [immutable(f"{path}[{i}]", networks[i]) for i, each in enumerate(before) if each != networks[i]]
    if len(before) == 1 and len(networks) == 2:
        changed = [] if networks[0] == before[0] else [immutable(f"{path}[0]", networks[0])]
        return changed + cidr_problems(new)
    return [immutable(path, networks)]


def address_name_problems(name: str) -> list[str]:
    """The name of an IPAddress is the address."""
    return [each.message for each in address_problems("", name)]


def address_object_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with an IPAddress."""
    parent = (new.get("spec") or {}).get("parentRef")
    if parent is None:
        return [required("spec.parentRef")]
    path = "spec.parentRef"
    problems = named(f"{path}.group", parent["group"], subdomain_problems) if parent.get("group") else []
    for field in ("resource", "name"):
        if value := parent.get(field):
            problems += named(f"{path}.{field}", value, path_segment_problems)
        else:
            problems.append(required(f"{path}.{field}"))
    if namespace := parent.get("namespace"):
        problems += named(f"{path}.namespace", namespace, path_segment_problems)
    return problems


def validate_address_update(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with a change: it belongs to whom it belonged."""
    parent, before = ((each.get("spec") or {}).get("parentRef") for each in (new, old))
    if parent == before:
        return []
    shown = parent and {
        "Group": parent.get("group", ""),
        "Resource": parent.get("resource", ""),
        "Namespace": parent.get("namespace", ""),
        "Name": parent.get("name", ""),
    }
    return [immutable("spec.parentRef", shown)]


def _port_problems(port: dict[str, Any], path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    protocol, number, last = port.get("protocol"), port.get("port"), port.get("endPort")
    if protocol is not None and protocol not in PROTOCOLS:
        problems.append(not_supported(f"{path}.protocol", protocol, PROTOCOLS))
    if number is None:
        if last is not None:
            words = "may not be specified when `port` is not specified"
            problems.append(invalid(f"{path}.endPort", last, words))
        return problems
    if isinstance(number, str) and last is not None:
        problems.append(invalid(f"{path}.endPort", last, "may not be specified when `port` is non-numeric"))
    problems += port_number_or_name(f"{path}.port", number)
    if isinstance(number, int) and last is not None:
        if last < number:
            problems.append(invalid(f"{path}.endPort", number, "must be greater than or equal to `port`"))
        problems += port_number(f"{path}.endPort", last)
    return problems


def _peer_problems(peer: dict[str, Any], path: str, known: Collection[str], loose: bool) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    given = [each for each in ("podSelector", "namespaceSelector", "ipBlock") if peer.get(each) is not None]
    for each in given:
        if each == "ipBlock":
            problems += _block_problems(peer[each], f"{path}.ipBlock", known)
        else:
            problems += label_selector_problems(peer[each], f"{path}.{each}", allow_invalid_values=loose)
    if not given:
        problems.append(required(path, "must specify a peer"))
    elif len(given) > 1 and "ipBlock" in given:
        problems.append(forbidden(path, "may not specify both ipBlock and another peer"))
    return problems


def _block_problems(block: dict[str, Any], path: str, known: Collection[str]) -> list[FieldProblem]:
    network = block.get("cidr", "")
    if not network:
        return [required(f"{path}.cidr")]
    problems = legacy_network_problems(f"{path}.cidr", network, known)
    whole = parse_network(network)
    if whole is None:
        return problems
    for index, each in enumerate(block.get("except") or ()):
        here = f"{path}.except[{index}]"
        problems += legacy_network_problems(here, each, known)
        part = parse_network(each)
        if part is None:
            continue
        inside = part[1].version == whole[1].version and part[1].network_address in whole[1]
        if not inside or whole[1].prefixlen >= part[1].prefixlen:
            problems.append(invalid(here, each, "must be a strict subset of `cidr`"))
    return problems


def _blocks(spec: dict[str, Any]) -> Iterator[tuple[str, dict[str, Any]]]:
    for direction, peers in _DIRECTIONS:
        for index, rule in enumerate(spec.get(direction) or ()):
            for place, peer in enumerate(rule.get(peers) or ()):
                if peer.get("ipBlock") is not None:
                    yield f"spec.{direction}[{index}].{peers}[{place}].ipBlock", peer["ipBlock"]


def _networks(block: dict[str, Any]) -> list[str]:
    return [block.get("cidr", ""), *(block.get("except") or ())]


RULES = {
    (GROUP, "NetworkPolicy"): Rules(
        name_problems=subdomain_problems,
        defaults=default_policy,
        validate_create=policy_problems,
        validate_update=policy_problems,
        warnings=policy_warnings,
    ),
    (GROUP, "ServiceCIDR"): Rules(
        name_problems=subdomain_problems,
        validate_create=cidr_problems,
        validate_update=validate_cidr_update,
        has_generation=False,
        resets={"": (("status",),), "status": (("metadata",), ("spec",))},
    ),
    (GROUP, "IPAddress"): Rules(
        name_problems=address_name_problems,
        validate_create=address_object_problems,
        validate_update=validate_address_update,
        has_generation=False,
    ),
}
