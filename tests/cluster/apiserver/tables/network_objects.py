"""Services, endpoints and the rest of networking for their tables."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tests.cluster.apiserver.tables.cases import Case, Object, named


def network_cases(prefix: str) -> Iterator[Case]:
    def service(name: str, spec: Object, points: list[Object] | None = None) -> Case:
        patches = {"status": {"status": {"loadBalancer": {"ingress": points}}}} if points else {}
        return Case("v1", "Service", named(f"svc-{name}", spec=spec), patches)

    port = {"port": 80}
    yield service("plain", {"ports": [port], "selector": {"b": "c", "a": "d"}})
    yield service("ports", {"ports": [{"name": "a", **port}, {"name": "b", "port": 53, "protocol": "UDP"}]})
    yield service("headless", {"clusterIP": "None"})
    yield service("external", {"ports": [port], "externalIPs": ["192.0.2.1", "192.0.2.2"]})
    yield service("node", {"type": "NodePort", "ports": [port]})
    yield service("name", {"type": "ExternalName", "externalName": "example.test"})
    balanced = {"type": "LoadBalancer", "ports": [port]}
    yield service("pending", balanced)
    points: list[Object] = [
        {"hostname": "very-long-name.balancer.example.test"},
        {"ip": "192.0.2.9"},
        {"ip": "192.0.2.9"},
    ]
    yield service("balanced", balanced, points)
    yield service("balanced-external", {**balanced, "externalIPs": ["192.0.2.1"]}, points)
    yield service("external-pending", {**balanced, "externalIPs": ["192.0.2.1"]})

    def endpoints(name: str, *subsets: Object) -> Case:
        return Case("v1", "Endpoints", named(f"ep-{name}", subsets=list(subsets)))

    few, many = [{"ip": "10.0.0.1"}, {"ip": "10.0.0.2"}], [{"ip": f"10.0.1.{each}"} for each in range(1, 6)]
    two = [{"name": "a", "port": 80}, {"name": "b", "port": 443}]
    yield endpoints("none")
    yield endpoints("plain", {"addresses": few, "ports": [port]})
    yield endpoints("ports", {"addresses": few, "ports": two})
    yield endpoints("portless", {"addresses": many})
    yield endpoints("six", {"addresses": [{"ip": "fd00::1"}], "ports": [port]})
    yield endpoints("unready", {"notReadyAddresses": few, "ports": [port]})
    yield endpoints("mixed", {"addresses": [{"ip": "10.0.0.9"}]}, {"addresses": many, "ports": two})

    def slices(name: str, ports: list[Object], *addresses: list[str], kind: str = "IPv4") -> Case:
        made = named(f"slice-{name}", addressType=kind, ports=ports)
        return Case(
            "discovery.k8s.io/v1", "EndpointSlice", {**made, "endpoints": [{"addresses": each} for each in addresses]}
        )

    yield slices("none", [])
    yield slices("plain", [port], ["10.0.0.1"])
    yield slices("name", [{"name": "web"}, {"name": "", "port": 8}], ["10.0.0.1"], ["10.0.0.2"])
    yield slices("any", [{}], ["fd00::1"], kind="IPv6")
    yield slices(
        "many", [{"name": f"p{each}", "port": each} for each in range(1, 6)], *([f"10.0.0.{n}"] for n in range(1, 6))
    )

    backend = {"service": {"name": "s", "port": {"number": 80}}}

    def ingress(name: str, *hosts: str, points: list[Object] | None = None, **spec: Any) -> Case:
        path = {"http": {"paths": [{"path": "/", "pathType": "Prefix", "backend": backend}]}}
        rules = [{**({"host": host} if host else {}), **path} for host in hosts]
        shape = {**({"rules": rules} if rules else {"defaultBackend": backend}), **spec}
        patches = {"status": {"status": {"loadBalancer": {"ingress": points}}}} if points else {}
        return Case("networking.k8s.io/v1", "Ingress", named(f"ing-{name}", spec=shape), patches)

    yield ingress("plain", ingressClassName="some")
    yield ingress("host", "a.test", tls=[{"hosts": ["a.test"]}], points=points)
    yield ingress("three", "a.test", "b.test", "c.test")
    yield ingress("five", "a.test", "b.test", "c.test", "d.test", "e.test")
    yield ingress("hostless", "a.test", "", "b.test", "c.test", "")
    yield ingress("any", "")

    default = {"annotations": {"ingressclass.kubernetes.io/is-default-class": "true"}}
    reference = {"kind": "Thing", "name": "t", "scope": "Cluster"}
    for name, metadata, spec in (
        ("plain", {}, {"controller": "test.io/c"}),
        ("default", default, {"controller": "test.io/c", "parameters": {**reference, "apiGroup": "k.test"}}),
        ("core", {}, {"controller": "test.io/c", "parameters": reference}),
    ):
        yield Case("networking.k8s.io/v1", "IngressClass", named(f"{prefix}-{name}", metadata=metadata, spec=spec))
    for name, pods in {"all": {}, "some": {"matchLabels": {"b": "c", "a": "d"}}}.items():
        yield Case("networking.k8s.io/v1", "NetworkPolicy", named(f"policy-{name}", spec={"podSelector": pods}))
