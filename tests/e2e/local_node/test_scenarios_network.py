"""Pods that find and answer each other: on the same port, by their names, and through Services."""

from __future__ import annotations

import pytest

from tests.e2e.local_node.machine import listening, own_addresses
from tests.e2e.local_node.scenes import (
    PORT,
    Object,
    Scene,
    a_pod_spec,
    a_service,
    a_set,
    an_answering_container,
    an_answering_pod,
    an_idle_pod,
)

pytestmark = [pytest.mark.kube, pytest.mark.slow]


def test_ten_pods_listen_on_the_same_port_at_once_and_each_answers_by_its_own_address(scene: Scene) -> None:
    names = [f"twin-{number}" for number in range(10)]
    scene.apply(an_idle_pod("client"), *(an_answering_pod(name) for name in names))
    scene.until("condition=Ready", "pod", "--all")

    addresses = addresses_of(scene)
    answers = scene.program_in("client", "ask", *(f"{addresses[name]}:{PORT}" for name in names))

    assert len(set(addresses.values())) == len(addresses)
    assert answers == {f"{addresses[name]}:{PORT}": name for name in names}


def test_the_pods_of_a_stateful_set_find_each_other_by_name(scene: Scene) -> None:
    spec = a_pod_spec(an_answering_container())
    scene.apply(a_service("web", clusterIP="None"), a_set("StatefulSet", "web", 3, spec, serviceName="web"))
    scene.until("jsonpath={.status.readyReplicas}=3", "statefulset/web")

    names = [f"web-{number}" for number in range(3)]
    domains = ("", ".web", f".web.{scene.namespace}", f".web.{scene.namespace}.svc.cluster.local")
    places = {f"{name}{domain}:{PORT}": name for name in names for domain in domains}
    for name in names:
        assert scene.program_in(name, "ask", *places) == places


def test_a_service_spreads_over_those_of_its_pods_that_are_ready(scene: Scene) -> None:
    spec = a_pod_spec(an_answering_container())
    scene.apply(an_idle_pod("client"), a_service("web"), a_set("Deployment", "web", 3, spec))
    scene.until("condition=Available", "deployment/web")
    scene.until("condition=Ready", "pod/client")
    pods = set(scene.names_of("app=web"))

    def answering() -> set[str]:
        """Who answers in the name of the Service."""
        asked = "60*web:80"
        return set(scene.program_in("client", "ask", asked)[asked])

    scene.until_true(lambda: answering() == pods, "all three to answer")

    unready = min(pods)
    scene.run_in(unready, "touch", "/tmp/unready")
    scene.until("condition=Ready=false", f"pod/{unready}")
    scene.until_true(lambda: answering() == pods - {unready}, "the one that is not ready to be left alone")

    scene.run_in(unready, "rm", "/tmp/unready")
    scene.until_true(lambda: answering() == pods, "the one that is ready again to answer as well")


def test_a_service_with_nothing_behind_it_refuses_at_once(scene: Scene) -> None:
    scene.apply(an_idle_pod("client"), a_service("nobody"))
    scene.until("condition=Ready", "pod/client")

    # A client that had to wait would report TimeoutError, or URLError for a name that is not known.
    scene.until_true(
        lambda: scene.program_in("client", "ask", "nobody:80") == {"nobody:80": "ConnectionRefusedError"},
        "the Service to have a name and to refuse",
    )


def test_a_service_with_affinity_leads_a_client_to_the_same_pod_each_time(scene: Scene) -> None:
    spec = a_pod_spec(an_answering_container())
    clients = [f"client-{number}" for number in range(3)]
    scene.apply(
        *map(an_idle_pod, clients), a_service("web", sessionAffinity="ClientIP"), a_set("Deployment", "web", 3, spec)
    )
    scene.until("condition=Available", "deployment/web")
    scene.until("condition=Ready", "pod", "--all")

    asked = "20*web:80"
    homes = [scene.program_in(client, "ask", asked)[asked] for client in clients]

    # Which pod that is comes by chance for each client: all three may have the same.
    assert [list(home.values()) for home in homes] == [[20], [20], [20]]


def test_a_service_carries_datagrams(scene: Scene) -> None:
    spec = a_pod_spec(an_answering_container())
    scene.apply(an_idle_pod("client"), a_service("web", protocol="UDP"), a_set("Deployment", "web", 3, spec))
    scene.until("condition=Available", "deployment/web")
    scene.until("condition=Ready", "pod/client")

    asked = "12*udp:web:80"
    scene.until_true(
        lambda: set(scene.program_in("client", "ask", asked)[asked]) == set(scene.names_of("app=web")),
        "all three to answer",
    )


def test_a_headless_service_gives_the_addresses_of_all_its_pods(scene: Scene) -> None:
    spec = a_pod_spec(an_answering_container())
    scene.apply(an_idle_pod("client"), a_service("web", clusterIP="None"), a_set("Deployment", "web", 3, spec))
    scene.until("condition=Available", "deployment/web")
    scene.until("condition=Ready", "pod/client")

    found = scene.run_in("client", "getent", "ahostsv4", f"web.{scene.namespace}.svc.cluster.local")

    pods = {address for name, address in addresses_of(scene).items() if name != "client"}
    assert {line.split()[0] for line in found.splitlines()} == pods


def test_nothing_leaves_the_network_of_the_pods(scene: Scene) -> None:
    scene.apply(an_idle_pod("client"))
    scene.until("condition=Ready", "pod/client")

    with listening() as machine:
        places = [f"{host}:{port}" for host in own_addresses() for port in machine.ports]
        answers = scene.program_in("client", "ask", *places, "192.0.2.1:80")
        scene.program_in("client", "ask", f"udp:{places[-2]}")
        assert not machine.were_reached()

    # No way leads there, or nobody is there: whoever asks is told so, and does not wait for an answer.
    assert set(answers.values()) <= {"ConnectionRefusedError", "OSError"}


def test_a_service_leads_nobody_out_of_the_network_of_the_pods(scene: Scene) -> None:
    with listening() as machine:
        port = machine.ports[0]
        scene.apply(an_idle_pod("client"), *a_way_out(own_addresses()[-1], port))
        scene.until("condition=Ready", "pod/client")
        place = f"{scene.of('service/way-out', '.spec.clusterIP')}:{port}"
        assert scene.program_in("client", "ask", place) == {place: "ConnectionRefusedError"}
        assert not machine.were_reached()


def a_way_out(address: str, port: int) -> list[Object]:
    """A Service with an endpoint that is not a pod."""
    ports = [{"name": "way-out", "port": port, "protocol": "TCP"}]
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "way-out"}, "spec": {"ports": ports}}
    endpoints = {
        "apiVersion": "discovery.k8s.io/v1",
        "kind": "EndpointSlice",
        "metadata": {"name": "way-out", "labels": {"kubernetes.io/service-name": "way-out"}},
        "addressType": "IPv4",
        "endpoints": [{"addresses": [address]}],
        "ports": ports,
    }
    return [service, endpoints]


def addresses_of(scene: Scene) -> dict[str, str]:
    pods = scene.json("get", "pods")["items"]
    return {pod["metadata"]["name"]: pod["status"]["podIP"] for pod in pods}
