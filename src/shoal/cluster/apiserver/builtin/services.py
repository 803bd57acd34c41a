"""Service: what is filled in, what is let go when its type changes, and what it may say."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.addresses import (
    address_warnings,
    endpoint_address_problems,
    legacy_address_problems,
    legacy_network_problems,
    network_warnings,
    parse_address,
)
from shoal.cluster.apiserver.builtin.names import (
    label_problems,
    port_number_problems,
    qualified_name_problems,
    subdomain_problems,
)
from shoal.cluster.apiserver.builtin.selectors import labels_problems
from shoal.cluster.apiserver.builtin.service_addresses import (
    HEADLESS,
    address_field_problems,
    changed_address_problems,
    is_headless,
    needs_health_check,
    node_ports,
)
from shoal.cluster.apiserver.builtin.values import (
    named,
    one_of,
    port_number,
    port_number_or_name,
    required_one_of,
    text,
)
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, duplicate, forbidden, invalid, required

PROTOCOLS = ("SCTP", "TCP", "UDP")
TYPES = ("ClusterIP", "ExternalName", "LoadBalancer", "NodePort")
WITH_CLUSTER_IP = ("ClusterIP", "NodePort", "LoadBalancer")
AFFINITY_SECONDS = 10800

_TOPOLOGY_HINTS = "service.kubernetes.io/topology-aware-hints"
_TOPOLOGY_MODE = "service.kubernetes.io/topology-mode"
_SOURCE_RANGES = "service.beta.kubernetes.io/load-balancer-source-ranges"


def is_externally_accessible(spec: dict[str, Any]) -> bool:
    """Whether clients outside the cluster can reach it."""
    kind = spec.get("type")
    return kind in ("LoadBalancer", "NodePort") or (kind == "ClusterIP" and bool(spec.get("externalIPs")))


def default_service(new: Object) -> None:
    """Fills in what a client left out."""
    spec = new.setdefault("spec", {})
    kind = spec.setdefault("type", "ClusterIP")
    if spec.setdefault("sessionAffinity", "None") == "None":
        spec.pop("sessionAffinityConfig", None)
    elif spec["sessionAffinity"] == "ClientIP":
        config = spec.get("sessionAffinityConfig") or {}
        if (config.get("clientIP") or {}).get("timeoutSeconds") is None:
            spec["sessionAffinityConfig"] = {"clientIP": {"timeoutSeconds": AFFINITY_SECONDS}}
    for port in spec.get("ports") or ():
        port.setdefault("protocol", "TCP")
        if port.get("targetPort") in (None, 0, ""):
            port["targetPort"] = port.get("port", 0)
    if is_externally_accessible(spec):
        spec.setdefault("externalTrafficPolicy", "Cluster")
    if kind in WITH_CLUSTER_IP:
        spec.setdefault("internalTrafficPolicy", "Cluster")
    if kind == "LoadBalancer":
        spec.setdefault("allocateLoadBalancerNodePorts", True)
        balancer = (new.get("status") or {}).get("loadBalancer") or {}
        for ingress in balancer.get("ingress") or ():
            if ingress.get("ip"):
                ingress.setdefault("ipMode", "VIP")


def prepare_create(new: Object) -> None:
    """A name for something elsewhere has no traffic to steer."""
    if new["spec"].get("type") == "ExternalName":
        new["spec"].pop("internalTrafficPolicy", None)


def prepare_update(new: Object, old: Object) -> None:
    """Lets go of what only the old type needed, where the client just did not mention it."""
    prepare_create(new)
    spec, before = new["spec"], old["spec"]
    kind, was = spec.get("type"), before.get("type")
    if kind == "ExternalName" and was != "ExternalName":
        if all(spec.get(each) == before.get(each) for each in ("clusterIP", "clusterIPs")):
            spec.pop("clusterIP", None)
            spec.pop("clusterIPs", None)
        _drop_if_same(spec, before, "ipFamilies")
        _drop_if_same(spec, before, "ipFamilyPolicy")
    exposed = ("NodePort", "LoadBalancer")
    if was in exposed and kind not in exposed and node_ports(before) >= node_ports(spec):
        for port in spec.get("ports") or ():
            port.pop("nodePort", None)
    if needs_health_check(before) and not needs_health_check(spec):
        _drop_if_same(spec, before, "healthCheckNodePort")
    if was == "LoadBalancer" and kind != "LoadBalancer":
        _drop_if_same(spec, before, "allocateLoadBalancerNodePorts")
        _drop_if_same(spec, before, "loadBalancerClass")
    if is_externally_accessible(before) and not is_externally_accessible(spec):
        _drop_if_same(spec, before, "externalTrafficPolicy")
    if kind != "LoadBalancer":
        new["status"] = {**(new.get("status") or {}), "loadBalancer": {}}


def validate_create(new: Object) -> list[FieldProblem]:
    """What is wrong with a Service whose addresses have been allocated."""
    return service_problems(new, None)


def validate_update(new: Object, old: Object) -> list[FieldProblem]:
    """The same for a change: its addresses stay what they are."""
    spec, before = new["spec"], old["spec"]
    problems: list[FieldProblem] = []
    if "ExternalName" not in (spec.get("type"), before.get("type")):
        problems += changed_address_problems(spec, before)
    balancer, before_balancer = spec.get("loadBalancerClass"), before.get("loadBalancerClass")
    if spec.get("type") == before.get("type") == "LoadBalancer" and balancer != before_balancer:
        problems.append(invalid("spec.loadBalancerClass", balancer, "may not change once set"))
    port, before_port = spec.get("healthCheckNodePort"), before.get("healthCheckNodePort")
    if needs_health_check(spec) and needs_health_check(before) and port != before_port:
        problems.append(forbidden("spec.healthCheckNodePort", "field is immutable"))
    return problems + service_problems(new, old)


def validate_status(new: Object, old: Object) -> list[FieldProblem]:
    """What is wrong with the load balancer's addresses."""
    path = "status.loadBalancer.ingress"
    ingresses = ((new.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    if ingresses and new["spec"].get("type") != "LoadBalancer":
        return [forbidden(path, "may only be used when `spec.type` is 'LoadBalancer'")]
    before = ((old.get("status") or {}).get("loadBalancer") or {}).get("ingress") or []
    known = [each["ip"] for each in before if each.get("ip")]
    problems: list[FieldProblem] = []
    for index, ingress in enumerate(ingresses):
        here, address, mode = f"{path}[{index}]", ingress.get("ip"), ingress.get("ipMode")
        if address:
            problems += legacy_address_problems(f"{here}.ip", address, known)
        if mode is None and address:
            problems.append(required(f"{here}.ipMode", "must be specified when `ip` is set"))
        elif mode is not None and not address:
            problems.append(forbidden(f"{here}.ipMode", "may not be specified when `ip` is not set"))
        elif mode is not None:
            problems += one_of(f"{here}.ipMode", mode, ("Proxy", "VIP"))
        if host := ingress.get("hostname"):
            problems += named(f"{here}.hostname", host, subdomain_problems)
            if parse_address(host):
                problems.append(invalid(f"{here}.hostname", host, "must be a DNS name, not an IP address"))
    return problems


def service_problems(new: Object, old: Object | None) -> list[FieldProblem]:
    """What is wrong with a Service at any time."""
    spec = new["spec"]
    before = old["spec"] if old else {}
    annotations = new["metadata"].get("annotations") or {}
    problems: list[FieldProblem] = []
    hints, mode = annotations.get(_TOPOLOGY_HINTS), annotations.get(_TOPOLOGY_MODE)
    if hints is not None and mode is not None and hints != mode:
        words = f"must match annotations[{_TOPOLOGY_HINTS}] when both are specified"
        problems.append(invalid(f"metadata.annotations[{_TOPOLOGY_MODE}]", mode, words))
    kind = spec.get("type", "")
    if not spec.get("ports") and not is_headless(spec) and kind != "ExternalName":
        problems.append(required("spec.ports"))
    if is_headless(spec) and kind in ("LoadBalancer", "NodePort"):
        words = f"may not be set to 'None' for {kind} services"
        problems.append(invalid("spec.clusterIPs[0]", HEADLESS, words))
    if kind == "ExternalName":
        problems += _external_name_problems(spec)
    problems += _port_problems(spec)
    problems += labels_problems(spec.get("selector"), "spec.selector")
    problems += _affinity_problems(spec)
    problems += address_field_problems(spec, before)
    known = before.get("externalIPs") or ()
    for index, address in enumerate(spec.get("externalIPs") or ()):
        here = f"spec.externalIPs[{index}]"
        problems += legacy_address_problems(here, address, known) or endpoint_address_problems(here, address)
    problems += required_one_of("spec.type", kind, TYPES)
    problems += _same_port_problems(spec)
    problems += _source_range_problems(spec, before, annotations, (old or {}).get("metadata") or {})
    if kind != "LoadBalancer":
        for field in ("allocateLoadBalancerNodePorts", "loadBalancerClass"):
            if spec.get(field) is not None:
                problems.append(forbidden(f"spec.{field}", "may only be used when `type` is 'LoadBalancer'"))
    elif spec.get("loadBalancerClass") is not None:
        problems += named("spec.loadBalancerClass", spec["loadBalancerClass"], qualified_name_problems)
    return problems + _traffic_problems(spec)


def warnings(new: Object) -> list[str]:
    """What a client is told of a Service that is taken."""
    spec = new["spec"]
    told: list[str] = []
    if _TOPOLOGY_HINTS in (new["metadata"].get("annotations") or {}):
        told.append(f"annotation {_TOPOLOGY_HINTS} is deprecated, please use {_TOPOLOGY_MODE} instead")
    headless = spec.get("type") == "ClusterIP" and spec.get("clusterIP") == HEADLESS
    if not headless:
        for index, address in enumerate(spec.get("clusterIPs") or ()):
            told += address_warnings(f"spec.clusterIPs[{index}]", address)
    external = spec.get("externalIPs") or ()
    if headless:
        if spec.get("loadBalancerIP"):
            told.append("spec.loadBalancerIP is ignored for headless services")
        if external:
            told.append("spec.externalIPs is ignored for headless services")
        if spec.get("sessionAffinity") != "None":
            told.append("spec.SessionAffinity is ignored for headless services")
    for index, address in enumerate(external):
        told += address_warnings(f"spec.externalIPs[{index}]", address)
    is_name = spec.get("type") == "ExternalName"
    if external and not headless and not is_name:
        told.append("spec.externalIPs is deprecated and may no longer be implemented in some clusters")
    if spec.get("loadBalancerIP"):
        told += address_warnings("spec.loadBalancerIP", spec["loadBalancerIP"])
    for index, network in enumerate(spec.get("loadBalancerSourceRanges") or ()):
        told += network_warnings(f"spec.loadBalancerSourceRanges[{index}]", network)
    if is_name and external:
        told.append('spec.externalIPs is ignored when spec.type is "ExternalName"')
    if not is_name and spec.get("externalName"):
        told.append('spec.externalName is ignored when spec.type is not "ExternalName"')
    if spec.get("trafficDistribution") == "PreferClose":
        told.append('spec.trafficDistribution: "PreferClose" is deprecated; use "PreferSameZone"')
    return told


def _drop_if_same(spec: dict[str, Any], before: dict[str, Any], field: str) -> None:
    if spec.get(field) == before.get(field):
        spec.pop(field, None)


def _external_name_problems(spec: dict[str, Any]) -> list[FieldProblem]:
    problems = [
        forbidden(f"spec.{field}", "may not be set for ExternalName services")
        for field in ("clusterIPs", "ipFamilies", "ipFamilyPolicy")
        if spec.get(field)
    ]
    name = spec.get("externalName", "").removesuffix(".")
    if not name:
        return [*problems, required("spec.externalName")]
    return problems + named("spec.externalName", name, subdomain_problems)


def _port_problems(spec: dict[str, Any]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    names: set[str] = set()
    ports = spec.get("ports") or ()
    for index, port in enumerate(ports):
        here, name = f"spec.ports[{index}]", port.get("name")
        if name:
            problems += named(f"{here}.name", name, label_problems)
            if name in names:
                problems.append(duplicate(f"{here}.name", name))
            names.add(name)
        elif len(ports) > 1:
            problems.append(required(f"{here}.name"))
        problems += port_number(f"{here}.port", port.get("port", 0))
        problems += required_one_of(f"{here}.protocol", port.get("protocol"), PROTOCOLS)
        problems += port_number_or_name(f"{here}.targetPort", port.get("targetPort", 0))
        if port.get("appProtocol") is not None:
            problems += named(f"{here}.appProtocol", port["appProtocol"], qualified_name_problems)
    return problems


def _same_port_problems(spec: dict[str, Any]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    ports = spec.get("ports") or ()
    if spec.get("type") == "ClusterIP":
        for index, port in enumerate(ports):
            if port.get("nodePort"):
                words = "may not be used when `type` is 'ClusterIP'"
                problems.append(forbidden(f"spec.ports[{index}].nodePort", words))
    nodes: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        if number := port.get("nodePort"):
            key = (port.get("protocol", ""), number)
            if key in nodes:
                problems.append(duplicate(f"spec.ports[{index}].nodePort", number))
            nodes.add(key)
    seen: set[tuple[str, int]] = set()
    for index, port in enumerate(ports):
        key = (port.get("protocol", ""), port.get("port", 0))
        if key in seen:
            # The value is what Kubernetes compares, in its inner shape.
            shown = {
                "Name": "",
                "Protocol": key[0],
                "AppProtocol": None,
                "Port": key[1],
                "TargetPort": 0,
                "NodePort": 0,
            }
            problems.append(duplicate(f"spec.ports[{index}]", shown))
        seen.add(key)
    return problems


def _affinity_problems(spec: dict[str, Any]) -> list[FieldProblem]:
    affinity, config = spec.get("sessionAffinity"), spec.get("sessionAffinityConfig")
    problems = required_one_of("spec.sessionAffinity", affinity, ("ClientIP", "None"))
    path, words = "spec.sessionAffinityConfig", "when session affinity type is ClientIP"
    if affinity == "None" and config is not None:
        problems.append(forbidden(path, "must not be set when session affinity is None"))
    if affinity != "ClientIP":
        return problems
    if config is None:
        return [*problems, required(path, words)]
    if config.get("clientIP") is None:
        return [*problems, required(f"{path}.clientIP", words)]
    seconds = config["clientIP"].get("timeoutSeconds")
    if seconds is None:
        return [*problems, required(f"{path}.clientIP.timeoutSeconds", words)]
    if not 0 < seconds <= 86400:
        message = "must be greater than 0 and less than 86400"
        problems.append(invalid(f"{path}.clientIP.timeoutSeconds", seconds, message))
    return problems


def _source_range_problems(
    spec: dict[str, Any], before: dict[str, Any], annotations: dict[str, str], old_metadata: dict[str, Any]
) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    is_balancer = spec.get("type") == "LoadBalancer"
    words = "may only be used when `type` is 'LoadBalancer'"
    if ranges := spec.get("loadBalancerSourceRanges"):
        path = "spec.LoadBalancerSourceRanges"
        if not is_balancer:
            problems.append(forbidden(path, words))
        known = [each.strip() for each in before.get("loadBalancerSourceRanges") or ()]
        for index, value in enumerate(ranges):
            problems += legacy_network_problems(f"{path}[{index}]", value.strip(), known)
        return problems
    value = annotations.get(_SOURCE_RANGES)
    if value is None:
        return problems
    path = f"metadata.annotations[{_SOURCE_RANGES}]"
    if not is_balancer:
        problems.append(forbidden(path, words))
    if value.strip() and (old_metadata.get("annotations") or {}).get(_SOURCE_RANGES) != value:
        for each in value.split(","):
            problems += legacy_network_problems(path, each.strip())
    return problems


def _traffic_problems(spec: dict[str, Any]) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    policy = spec.get("externalTrafficPolicy")
    if is_externally_accessible(spec):
        problems += required_one_of("spec.externalTrafficPolicy", policy, ("Cluster", "Local"))
    elif policy:
        words = "may only be set for externally-accessible services"
        problems.append(invalid("spec.externalTrafficPolicy", policy, words))
    port = spec.get("healthCheckNodePort") or 0
    if needs_health_check(spec):
        if not port:
            problems.append(required("spec.healthCheckNodePort"))
        problems += [invalid("spec.healthCheckNodePort", port, each) for each in port_number_problems(port) if port]
    elif port:
        words = "may only be set when `type` is 'LoadBalancer' and `externalTrafficPolicy` is 'Local'"
        problems.append(invalid("spec.healthCheckNodePort", port, words))
    inner = spec.get("internalTrafficPolicy")
    if inner is not None:
        problems += one_of("spec.internalTrafficPolicy", inner, ("Cluster", "Local"))
    elif spec.get("type") in WITH_CLUSTER_IP:
        problems.append(required("spec.internalTrafficPolicy"))
    if (distribution := spec.get("trafficDistribution")) is not None:
        supported = ("PreferClose", "PreferSameZone", "PreferSameNode")
        problems += one_of("spec.trafficDistribution", distribution, supported)
    return problems


RULES = {
    ("", "Service"): Rules(
        name_problems=label_problems,
        defaults=default_service,
        prepare_create=prepare_create,
        prepare_update=prepare_update,
        validate_create=validate_create,
        validate_update=validate_update,
        validate_status=validate_status,
        warnings=warnings,
        has_generation=False,
        create_on_update=True,
        resets={"": (("status",),), "status": (("spec",),)},
        fields={"spec.clusterIP": text("spec", "clusterIP"), "spec.type": text("spec", "type")},
    )
}
