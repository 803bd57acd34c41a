"""Services: addresses, ports and what may change."""

from __future__ import annotations

from typing import Any

from tests.conformance.objects import a_service
from tests.conformance.story import CORE, Story, delete, get, patch, post, put

SERVICES = f"{CORE}/services"
ONE = f"{SERVICES}/one"

REFUSED: tuple[dict[str, Any], ...] = (
    {"ports": []},
    {"ports": [{"port": 0}]},
    {"ports": [{"port": 80}, {"port": 81}]},
    {"ports": [{"port": 80, "name": "a"}, {"port": 80, "name": "b"}]},
    {"ports": [{"port": 80, "protocol": "ICMP"}]},
    {"ports": [{"port": 80, "targetPort": "Bad_Port"}]},
    {"type": "Unicorn"},
    {"sessionAffinity": "Sticky"},
    {"externalTrafficPolicy": "Local"},
    {"ipFamilyPolicy": "RequireDualStack"},
    {"selector": {"bad key": "x"}},
    {"externalIPs": ["127.0.0.1", "x"]},
)


def without_port(body: dict[str, Any]) -> dict[str, Any]:
    """The server's own service, without the port that this run has."""
    for port in body["spec"]["ports"]:
        port["targetPort"] = "<server>"
    return body


STORIES = [
    Story(
        "a service gets an address",
        [
            post(SERVICES, a_service(), called="made"),
            put(ONE, a_service(selector={"app": "two"})),
            patch(ONE, {"spec": {"clusterIP": "10.96.200.200", "clusterIPs": ["10.96.200.200"]}}),
            patch(ONE, {"spec": {"clusterIP": None}}),
            patch(ONE, {"spec": {"ports": [{"port": 81, "name": "web"}, {"port": 82}]}}),
            patch(ONE, {"spec": {"ports": [{"port": 81, "targetPort": "web"}]}}),
            delete(ONE),
            get(ONE),
        ],
    ),
    Story(
        "chosen addresses",
        [
            post(SERVICES, a_service(clusterIP="10.96.77.1")),
            post(SERVICES, a_service("two", clusterIP="10.96.77.1")),
            post(SERVICES, a_service("two", clusterIP="192.168.0.1")),
            post(SERVICES, a_service("two", clusterIP="nonsense")),
            delete(ONE),
            post(SERVICES, a_service("two", clusterIP="10.96.77.1")),
            post(SERVICES, a_service("three", clusterIP="10.96.77.2"), query={"dryRun": "All"}),
            post(SERVICES, a_service("three", clusterIP="10.96.77.2")),
        ],
    ),
    Story(
        "headless and external services",
        [
            post(SERVICES, a_service(clusterIP="None")),
            patch(ONE, {"spec": {"clusterIP": "10.96.77.9"}}),
            post(
                SERVICES,
                {"metadata": {"name": "ext"}, "spec": {"type": "ExternalName", "externalName": "a.example.com"}},
            ),
            post(SERVICES, {"metadata": {"name": "ext2"}, "spec": {"type": "ExternalName"}}),
            patch(f"{SERVICES}/ext", {"spec": {"type": "ClusterIP", "ports": [{"port": 80}]}}),
            post(SERVICES, {"metadata": {"name": "bare"}, "spec": {"clusterIP": "None"}}),
            post(SERVICES, {"metadata": {"name": "bare2"}, "spec": {}}),
        ],
    ),
    Story(
        "node ports",
        [
            post(SERVICES, a_service(type="NodePort")),
            post(SERVICES, a_service("two", type="NodePort", ports=[{"port": 80, "nodePort": 31777}])),
            post(SERVICES, a_service("three", type="NodePort", ports=[{"port": 80, "nodePort": 31777}])),
            post(SERVICES, a_service("three", type="NodePort", ports=[{"port": 80, "nodePort": 80}])),
            patch(ONE, {"spec": {"type": "ClusterIP"}}),
            patch(ONE, {"spec": {"type": "NodePort", "ports": [{"port": 80, "nodePort": 31778}]}}),
            post(SERVICES, a_service("four", ports=[{"port": 80, "nodePort": 31779}])),
            delete(f"{SERVICES}/two"),
            post(SERVICES, a_service("three", type="NodePort", ports=[{"port": 80, "nodePort": 31777}])),
        ],
    ),
    Story(
        "load balancers",
        [
            post(SERVICES, a_service(type="LoadBalancer")),
            post(SERVICES, a_service("local", type="LoadBalancer", externalTrafficPolicy="Local")),
            post(SERVICES, a_service("noports", type="LoadBalancer", allocateLoadBalancerNodePorts=False)),
            patch(f"{ONE}/status", {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}),
            patch(f"{ONE}/status", {"status": {"loadBalancer": {"ingress": [{"ip": "nonsense"}]}}}),
            patch(ONE, {"spec": {"type": "ClusterIP"}}),
        ],
    ),
    Story(
        "services that are refused",
        [post(SERVICES, a_service(**spec)) for spec in REFUSED],
    ),
    Story(
        "the service of the server itself", [get("/api/v1/namespaces/default/services/kubernetes", shown=without_port)]
    ),
]
