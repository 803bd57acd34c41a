"""How services, their endpoints and the rest of networking are printed."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.tables.ages import UNKNOWN, age
from shoal.cluster.apiserver.tables.printer import AGE, NAME, Printer, Printers, column, metadata_of, part_of, wide
from shoal.cluster.apiserver.tables.wording import NONE, UNSET, labels_text, selector_text, some_of

_DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"
_SHOWN = 3


def _service(value: Object, now: datetime) -> list[Any]:
    metadata, spec = metadata_of(value), part_of(value, "spec")
    addresses = spec.get("clusterIPs")
    return [
        metadata.get("name") or "",
        spec.get("type") or "",
        addresses[0] if addresses else NONE,
        _outside_addresses(value, spec),
        ",".join(_service_port(port) for port in spec.get("ports") or ()) or NONE,
        age(metadata.get("creationTimestamp"), now),
        labels_text(spec.get("selector")),
    ]


def _outside_addresses(service: Object, spec: Object) -> str:
    given = spec.get("externalIPs") or []
    match spec.get("type"):
        case "ClusterIP" | "NodePort":
            return ",".join(given) or NONE
        case "LoadBalancer":
            return ",".join([*_load_balancer_points(service), *given]) or "<pending>"
        case "ExternalName":
            return spec.get("externalName") or ""
    return UNKNOWN


def _load_balancer_points(value: Object) -> list[str]:
    points = part_of(value, "status", "loadBalancer").get("ingress") or ()
    return sorted({place for point in points if (place := point.get("ip") or point.get("hostname"))})


def _service_port(port: Object) -> str:
    node_port = port.get("nodePort") or 0
    number = f"{port.get('port') or 0}:{node_port}" if node_port > 0 else f"{port.get('port') or 0}"
    return f"{number}/{port.get('protocol') or ''}"


def _endpoints(value: Object, now: datetime) -> list[Any]:
    metadata, subsets = metadata_of(value), value.get("subsets") or ()
    count = sum(len(subset.get("addresses") or ()) * max(len(subset.get("ports") or ()), 1) for subset in subsets)
    return [
        metadata.get("name") or "",
        some_of(_endpoint_texts(subsets), count, limit=_SHOWN) if subsets else NONE,
        age(metadata.get("creationTimestamp"), now),
    ]


def _endpoint_texts(subsets: Any) -> Iterator[str]:
    for subset in subsets:
        addresses = [address.get("ip") or "" for address in subset.get("addresses") or ()]
        ports = subset.get("ports")
        if not ports:
            yield from addresses
        for port in ports or ():
            number = port.get("port") or 0
            yield from (f"[{ip}]:{number}" if ":" in ip else f"{ip}:{number}" for ip in addresses)


def _endpoint_slice(value: Object, now: datetime) -> list[Any]:
    metadata = metadata_of(value)
    ports = value.get("ports") or ()
    endpoints = [endpoint.get("addresses") or () for endpoint in value.get("endpoints") or ()]
    addresses = (address for some in endpoints for address in some)
    return [
        metadata.get("name") or "",
        value.get("addressType") or "",
        some_of(map(_slice_port, ports), len(ports), limit=_SHOWN) or UNSET,
        some_of(addresses, sum(map(len, endpoints)), limit=_SHOWN) or UNSET,
        age(metadata.get("creationTimestamp"), now),
    ]


def _slice_port(port: Object) -> str:
    for field in ("port", "name"):
        if (shown := port.get(field)) is not None:
            return str(shown)
    return "*"


def _ingress(value: Object, now: datetime) -> list[Any]:
    metadata, spec = metadata_of(value), part_of(value, "spec")
    class_name = spec.get("ingressClassName")
    return [
        metadata.get("name") or "",
        NONE if class_name is None else class_name,
        _hosts_text(spec.get("rules") or []),
        ",".join(_load_balancer_points(value)),
        "80, 443" if spec.get("tls") else "80",
        age(metadata.get("creationTimestamp"), now),
    ]


def _hosts_text(rules: list[Object]) -> str:
    """The first hosts; once there are enough, all rules count as more, also those without a host."""
    shown: list[str] = []
    for index, rule in enumerate(rules):
        if host := rule.get("host"):
            shown.append(host)
        if len(shown) == _SHOWN and index + 1 < len(rules):
            return f"{','.join(shown)} + {len(rules) - _SHOWN} more..."
    return ",".join(shown) or "*"


def _ingress_class(value: Object, now: datetime) -> list[Any]:
    metadata, spec = metadata_of(value), part_of(value, "spec")
    name = metadata.get("name") or ""
    if (metadata.get("annotations") or {}).get(_DEFAULT_CLASS) == "true":
        name += " (default)"
    parameters = NONE
    if (reference := spec.get("parameters")) is not None:
        group = reference.get("apiGroup")
        kind = reference.get("kind") or ""
        parameters = f"{kind if group is None else f'{kind}.{group}'}/{reference.get('name') or ''}"
    return [name, spec.get("controller") or "", parameters, age(metadata.get("creationTimestamp"), now)]


def _network_policy(value: Object, now: datetime) -> list[Any]:
    metadata = metadata_of(value)
    pods = selector_text(part_of(value, "spec").get("podSelector")) or NONE
    return [metadata.get("name") or "", pods, age(metadata.get("creationTimestamp"), now)]


def _service_cidr(value: Object, now: datetime) -> list[Any]:
    metadata = metadata_of(value)
    ranges = ",".join(part_of(value, "spec").get("cidrs") or ())
    return [metadata.get("name") or "", ranges, age(metadata.get("creationTimestamp"), now)]


def _ip_address(value: Object, now: datetime) -> list[Any]:
    """The row of an address, which has an age without a column for it, as in Kubernetes."""
    metadata, parent = metadata_of(value), part_of(value, "spec").get("parentRef")
    reference = NONE
    if parent is not None:
        resource, group = parent.get("resource") or "", parent.get("group")
        parts = [(f"{resource}.{group}" if group else resource).lower(), parent.get("namespace"), parent.get("name")]
        reference = "/".join([parts[0], *([parts[1]] if parts[1] else ()), parts[2] or ""])
    return [metadata.get("name") or "", reference, age(metadata.get("creationTimestamp"), now)]


PRINTERS: Printers = {
    ("", "Service"): Printer(
        [
            NAME,
            column("Type", "How the service is reached."),
            column("Cluster-IP", "Its first address within the cluster."),
            column("External-IP", "Where it is reached from outside."),
            column("Port(s)", "Its ports, with those of the nodes and the protocols."),
            AGE,
            wide("Selector", "Labels of the pods behind it."),
        ],
        _service,
    ),
    ("", "Endpoints"): Printer([NAME, column("Endpoints", "Addresses and ports behind the service."), AGE], _endpoints),
    ("discovery.k8s.io", "EndpointSlice"): Printer(
        [
            NAME,
            column("AddressType", "What the addresses are."),
            column("Ports", "Ports of every endpoint."),
            column("Endpoints", "Addresses of the endpoints."),
            AGE,
        ],
        _endpoint_slice,
    ),
    ("networking.k8s.io", "Ingress"): Printer(
        [
            NAME,
            column("Class", "The class whose controller serves it."),
            column("Hosts", "Hosts that its rules match."),
            column("Address", "Where it is reached."),
            column("Ports", "Ports that are open."),
            AGE,
        ],
        _ingress,
    ),
    ("networking.k8s.io", "IngressClass"): Printer(
        [
            NAME,
            column("Controller", "The controller that serves this class."),
            column("Parameters", "The object with its parameters."),
            AGE,
        ],
        _ingress_class,
    ),
    ("networking.k8s.io", "NetworkPolicy"): Printer(
        [NAME, column("Pod-Selector", "Labels of the pods that it holds for."), AGE], _network_policy
    ),
    ("networking.k8s.io", "ServiceCIDR"): Printer(
        [NAME, column("CIDRs", "Ranges that services get addresses of."), AGE], _service_cidr
    ),
    ("networking.k8s.io", "IPAddress"): Printer([NAME, column("ParentRef", "The object that has it.")], _ip_address),
}
