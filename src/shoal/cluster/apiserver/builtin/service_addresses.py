"""A Service's addresses: cluster IPs, IP families and node ports, how they are given out and what they may be.

Allocation comes before validation, as in Kubernetes: a Service that was not given an address gets one, and the rules
then see the whole.
"""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from typing import Any

from shoal.cluster.apiserver import refusals
from shoal.cluster.apiserver.builtin.addresses import is_ipv6, legacy_address_problems, parse_address
from shoal.cluster.apiserver.builtin.values import one_of
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.kube.admission.fields import FieldProblem, duplicate, invalid, required

HEADLESS = "None"
EXPOSED = ("NodePort", "LoadBalancer")


@dataclass(frozen=True, kw_only=True)
class Ranges:
    """Where addresses come from: one IPv4 network, and the node ports from the first to the last."""

    network: str = "10.96.0.0/16"
    is_trial: bool = False
    """Whether nothing is given out in earnest: a dry run."""
    first_port: int = 30000
    last_port: int = 32767


@dataclass(kw_only=True)
class Taken:
    """What other Services have."""

    addresses: Collection[str] = field(default_factory=frozenset)
    ports: Collection[int] = field(default_factory=frozenset)


def addresses_of(service: Object) -> set[str]:
    """The cluster IPs that a Service holds."""
    return {each for each in service["spec"].get("clusterIPs") or () if each and each != HEADLESS}


def ports_of(service: Object) -> set[int]:
    """The node ports that a Service holds, that of its health check among them."""
    spec = service["spec"]
    check = {spec["healthCheckNodePort"]} if needs_health_check(spec) and spec.get("healthCheckNodePort") else set()
    return node_ports(spec) | check


def allocate(
    service: Object,
    taken: Taken,
    ranges: Ranges = Ranges(),
    *,
    old: Object | None = None,
    source: random.Random | None = None,
) -> None:
    """Gives a Service the addresses that it needs, in place; raises Refused where it cannot have them.

    ``taken`` is what other Services have, not this one. Defaults have been filled in.
    """
    spec, before = service["spec"], old["spec"] if old else None
    name = service["metadata"].get("name", "")
    if before is not None:
        _keep(spec, before)
    _complete_cluster_ips(spec, before)
    problems = _settle_families(spec, before) or _take_cluster_ip(spec, before, taken, ranges, source)
    problems = problems or _take_node_ports(name, spec, before, taken, ranges, source)
    if problems:
        raise refusals.invalid("Service", "", name, problems)


def _keep(spec: dict[str, Any], before: dict[str, Any]) -> None:
    """Takes over what the Service had and the client did not mention."""
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        for each in ("clusterIP", "clusterIPs"):
            if not spec.get(each) and before.get(each):
                spec[each] = before[each] if each == "clusterIP" else list(before[each])
    if _gets_node_ports(spec) and _gets_node_ports(before):
        used = node_ports(spec) & node_ports(before)
        had = {port.get("name", ""): port.get("nodePort", 0) for port in before.get("ports") or ()}
        for port in spec.get("ports") or ():
            number = had.get(port.get("name", ""), 0)
            if not port.get("nodePort") and number and number not in used:
                port["nodePort"] = number
    if needs_health_check(spec) and needs_health_check(before) and before.get("healthCheckNodePort"):
        spec.setdefault("healthCheckNodePort", before["healthCheckNodePort"])


def _complete_cluster_ips(spec: dict[str, Any], before: dict[str, Any] | None) -> None:
    """Brings ``clusterIP`` and ``clusterIPs`` together, whichever of them a client wrote."""
    single, many = spec.get("clusterIP", ""), spec.get("clusterIPs") or []
    if before is None:
        if single and not many:
            spec["clusterIPs"] = [single]
        return
    was, were = before.get("clusterIP", ""), before.get("clusterIPs") or []
    if single == was:
        if were and not many:
            spec["clusterIPs"] = list(were)
    elif many == were:
        if single:
            spec["clusterIPs"] = [single]
        else:
            spec.pop("clusterIPs", None)


def _settle_families(spec: dict[str, Any], before: dict[str, Any] | None) -> list[FieldProblem]:
    if spec.get("type") == "ExternalName":
        return []
    if spec.get("ipFamilyPolicy") is None:
        without_pods = spec.get("clusterIP") == HEADLESS and not spec.get("selector")
        had = (before or {}).get("ipFamilyPolicy")
        spec["ipFamilyPolicy"] = had or ("RequireDualStack" if without_pods else "SingleStack")
    problems = address_field_problems(spec, before or {})
    if problems:
        return problems
    policy, path = spec["ipFamilyPolicy"], "spec.ipFamilyPolicy"
    addresses, families = spec.get("clusterIPs") or [], spec.get("ipFamilies") or []
    if policy == "SingleStack":
        several = "must be 'RequireDualStack' or 'PreferDualStack' when multiple"
        if before is not None and addresses == before.get("clusterIPs"):
            addresses = addresses[:1]
        if before is not None and families == before.get("ipFamilies"):
            families = families[:1]
        if len(addresses) == 2:
            problems.append(invalid(path, policy, f"{several} cluster IPs are specified"))
        if len(families) == 2:
            problems.append(invalid(path, policy, f"{several} IP families are specified"))
    for index, address in enumerate(addresses):
        if address == HEADLESS:
            break
        if index >= len(families):
            if is_ipv6(address):
                words = "IPv6 is not configured on this cluster"
                problems.append(invalid(f"spec.clusterIPs[{index}]", addresses, words))
            else:
                families = [*families, "IPv4"]
    if problems:
        return problems
    if spec.get("clusterIP") == HEADLESS and not spec.get("selector"):
        families = families or ["IPv4"]
        if len(families) < 2 and policy != "SingleStack":
            families = [*families, "IPv6" if families[0] == "IPv4" else "IPv4"]
    else:
        if policy == "RequireDualStack":
            problems.append(invalid(path, policy, "this cluster is not configured for dual-stack services"))
        for index, family in enumerate(families):
            if family != "IPv4":
                problems.append(invalid(f"spec.ipFamilies[{index}]", family, "not configured on this cluster"))
        families = families or ["IPv4"]
    if not problems:
        spec["ipFamilies"] = families
        if addresses:
            spec["clusterIPs"] = addresses
    return problems


def _take_cluster_ip(
    spec: dict[str, Any], before: dict[str, Any] | None, taken: Taken, ranges: Ranges, source: random.Random | None
) -> list[FieldProblem]:
    if spec.get("type") == "ExternalName" or is_headless(spec):
        return []
    if before is not None and before.get("type") != "ExternalName":
        return []
    wanted = (spec.get("clusterIPs") or [""])[0]
    network = ipaddress.ip_network(ranges.network)
    if not wanted:
        for number in _numbers(int(network.network_address) + 1, int(network.broadcast_address) - 1, source):
            address = str(ipaddress.ip_address(number))
            if address not in taken.addresses:
                spec["clusterIP"], spec["clusterIPs"] = address, [address]
                return []
        name = "failed to allocate a serviceIP: range is full"
        raise refusals.internal_error(name)
    parsed, why = parse_address(wanted), ""
    if parsed not in network or parsed in (network.network_address, network.broadcast_address):
        # Kubernetes looks for the address in one way when it only tries, and in another when it takes it.
        why = (
            f"the provided IP ({wanted}) is not in the valid range. The range of valid IPs is {ranges.network}"
            if ranges.is_trial
            else "the provided network does not match the current range"
        )
    elif wanted in taken.addresses:
        why = "provided IP is already allocated"
    if why:
        words = f"failed to allocate IP {wanted}: {why}"
        return [invalid("spec.clusterIPs", spec["clusterIPs"], words)]
    spec["clusterIP"] = wanted
    return []


def _take_node_ports(
    name: str,
    spec: dict[str, Any],
    before: dict[str, Any] | None,
    taken: Taken,
    ranges: Ranges,
    source: random.Random | None,
) -> list[FieldProblem]:
    kept = node_ports(before) if before else set()
    used, given = set(taken.ports) | kept, set(taken.ports)
    ports = spec.get("ports") or () if spec.get("type") in EXPOSED else ()
    # Ports that share a number, such as TCP and UDP of one name server, share a node port.
    by_port: dict[int, int] = {}
    for index, port in enumerate(ports):
        number = port.get("nodePort", 0)
        if not number:
            if not _gets_node_ports(spec):
                continue
            shared = [each.get("nodePort", 0) for each in ports if each.get("port") == port.get("port")]
            number = by_port.get(port.get("port", 0)) or next(filter(None, shared), 0)
            if not number:
                number = _free_port(used, ranges, source)
                by_port[port.get("port", 0)] = number
            port["nodePort"] = number
        is_known = number in kept or number == by_port.get(port.get("port", 0))
        others = given if before is None else taken.ports
        if not is_known and (why := _port_refusal(number, others, ranges)):
            return [invalid(f"spec.ports[{index}].nodePort", number, why)]
        used.add(number)
        given.add(number)
        by_port.setdefault(port.get("port", 0), number)
    if needs_health_check(spec) and not (before and needs_health_check(before)):
        check = spec.get("healthCheckNodePort", 0)
        if not check:
            spec["healthCheckNodePort"] = _free_port(used, ranges, source)
        elif check in used or (why := _port_refusal(check, taken.ports, ranges)):
            why = "provided port is already allocated" if check in used else why
            raise refusals.internal_error(f"failed to allocate requested HealthCheck NodePort {check}: {why}")
    return []


def _port_refusal(number: int, taken: Collection[int], ranges: Ranges) -> str:
    if not ranges.first_port <= number <= ranges.last_port:
        valid = f"{ranges.first_port}-{ranges.last_port}"
        return f"provided port is not in the valid range. The range of valid ports is {valid}"
    return "provided port is already allocated" if number in taken else ""


def _free_port(used: set[int], ranges: Ranges, source: random.Random | None) -> int:
    for number in _numbers(ranges.first_port, ranges.last_port, source):
        if number not in used:
            return number
    raise refusals.internal_error("failed to allocate a nodePort: range is full")


def _numbers(first: int, last: int, source: random.Random | None) -> Iterator[int]:
    """All numbers of a range, once around from a random one: what was just released is not given out next."""
    count = last - first + 1
    start = (source or random).randrange(count)
    return (first + (start + step) % count for step in range(count))


def _gets_node_ports(spec: dict[str, Any]) -> bool:
    kind = spec.get("type")
    return kind == "NodePort" or (kind == "LoadBalancer" and spec.get("allocateLoadBalancerNodePorts") is not False)


def changed_address_problems(spec: dict[str, Any], before: dict[str, Any]) -> list[FieldProblem]:
    """What may not change about the addresses of a Service that has some, before and after."""
    return _changed_addresses(spec, before) + _changed_families(spec, before)


def is_headless(spec: dict[str, Any]) -> bool:
    """Whether it has no address of its own."""
    return spec.get("clusterIPs") == [HEADLESS]


def needs_health_check(spec: dict[str, Any]) -> bool:
    """Whether a load balancer has to know which nodes have endpoints."""
    return spec.get("type") == "LoadBalancer" and spec.get("externalTrafficPolicy") == "Local"


def node_ports(spec: dict[str, Any]) -> set[int]:
    """The node ports of all its ports."""
    return {port["nodePort"] for port in spec.get("ports") or () if port.get("nodePort")}


def address_field_problems(spec: dict[str, Any], before: dict[str, Any]) -> list[FieldProblem]:
    """What is wrong with the cluster IPs and IP families as such."""
    if spec.get("type") == "ExternalName":
        return []
    problems: list[FieldProblem] = []
    path, single, addresses = "spec.clusterIPs", spec.get("clusterIP"), spec.get("clusterIPs") or []
    if single and not addresses:
        problems.append(required(path))
    elif single and addresses[0] != single:
        problems.append(invalid(path, addresses, "first value must match `clusterIP`"))
    elif addresses and not single:
        problems.append(invalid(path, addresses, "must be empty when `clusterIP` is not specified"))
    families = spec.get("ipFamilies") or []
    for index, family in enumerate(families):
        problems += one_of(f"spec.ipFamilies[{index}]", family, ("IPv4", "IPv6"))
        if family in families[:index]:
            problems.append(duplicate(f"spec.ipFamilies[{index}]", family))
    if (policy := spec.get("ipFamilyPolicy")) is not None:
        problems += one_of("spec.ipFamilyPolicy", policy, ("PreferDualStack", "RequireDualStack", "SingleStack"))
    bad: list[FieldProblem] = []
    for index, address in enumerate(addresses):
        if index == 0 and address == HEADLESS:
            if len(addresses) > 1:
                bad.append(invalid(path, addresses, "'None' must be the first and only value"))
            continue
        bad += legacy_address_problems(f"{path}[{index}]", address, before.get("clusterIPs") or ())
    problems += bad
    if len(addresses) > 2:
        problems.append(invalid(path, addresses, "may only hold up to 2 values"))
    if bad:
        return problems
    if len(addresses) > 1 and len({is_ipv6(each) for each in addresses}) < 2:
        problems.append(invalid(path, addresses, "may specify no more than one IP for each IP family"))
    if not is_headless(spec):
        for index, (address, family) in enumerate(zip(addresses, families, strict=False)):
            if family in ("IPv4", "IPv6") and is_ipv6(address) != (family == "IPv6"):
                words = f"expected an {family} value as indicated by `ipFamilies[{index}]`"
                problems.append(invalid(f"{path}[{index}]", address, words))
    return problems


def _changed_addresses(spec: dict[str, Any], before: dict[str, Any]) -> list[FieldProblem]:
    if is_headless(spec) and is_headless(before):
        return []
    new, old = spec.get("clusterIPs") or [], before.get("clusterIPs") or []
    once = "may not change once set"
    if len(new) == len(old):
        return [invalid(f"spec.clusterIPs[{i}]", new, once) for i, each in enumerate(old) if each != new[i]]
    problems: list[FieldProblem] = []
    if not new:
        problems.append(invalid("spec.clusterIPs[0]", new, "primary clusterIP can not be unset"))
    if old and new and old[0] != new[0]:
        problems.append(invalid("spec.clusterIPs[0]", new, once))
    if len(old) > len(new) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        words = "must be set to 'SingleStack' when releasing the secondary clusterIP"
        problems.append(invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), words))
    return problems


def _changed_families(spec: dict[str, Any], before: dict[str, Any]) -> list[FieldProblem]:
    if is_headless(spec) or is_headless(before):
        return []
    new, old = spec.get("ipFamilies") or [], before.get("ipFamilies") or []
    once = "may not change once set"
    if len(new) == len(old):
        return [invalid("spec.ipFamilies[0]", new, once) for i, each in enumerate(old) if each != new[i]]
    problems: list[FieldProblem] = []
    if len(old) > len(new) and not spec.get("clusterIPs"):
        problems.append(invalid("spec.ipFamilies[0]", new, "primary ipFamily can not be unset"))
    if old and new and old[0] != new[0]:
        problems.append(invalid("spec.ipFamilies[0]", spec.get("clusterIPs") or [], once))
    if len(old) > len(new) == 1 and spec.get("ipFamilyPolicy") != "SingleStack":
        words = "must be set to 'SingleStack' when releasing the secondary ipFamily"
        problems.append(invalid("spec.ipFamilyPolicy", spec.get("ipFamilyPolicy"), words))
    return problems
