"""Where services are listened on, what they lead to, and who is led where."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.cluster.node.process.network.balance import (
    Backend,
    Balance,
    Chooser,
    Front,
    is_translated,
    unreachable_address,
    wanted_fronts,
)
from shoal.cluster.node.process.network.views import ProxiedService, ServingSlice
from tests.cluster.node.process.network.builders import API, HTTP, MACHINE, a_service, a_slice, an_endpoint, an_external

ONE, TWO = an_endpoint("10.88.0.2"), an_endpoint("10.88.0.3")
TARGET = {"name": "http", "port": 8080, "protocol": "TCP"}
UDP = {"name": "dns", "port": 53, "protocol": "UDP"}


def web(**spec: Any) -> ProxiedService:
    return a_service("web", "10.96.0.7", **spec)


def behind(*endpoints: dict[str, Any], **more: Any) -> ServingSlice:
    return a_slice("web", *endpoints, **({"ports": [TARGET]} | more))


ENDING = an_endpoint("10.88.0.9", ready=False, serving=True, terminating=True)
CASES: dict[str, tuple[ProxiedService, list[ServingSlice], dict[tuple[str, int, bool], list[tuple[str, int]]]]] = {
    "its address leads to all that is ready": (
        web(),
        [behind(ONE, TWO)],
        {("10.96.0.7", 80, False): [("10.88.0.2", 8080), ("10.88.0.3", 8080)]},
    ),
    "several slices are one service": (
        web(),
        [behind(ONE), behind(TWO, ports=[TARGET | {"port": 9090}])],
        {("10.96.0.7", 80, False): [("10.88.0.2", 8080), ("10.88.0.3", 9090)]},
    ),
    "nothing behind it: nothing listens": (web(), [behind()], {}),
    "no slices: nothing listens": (web(), [], {}),
    "what is not ready is left out": (
        web(),
        [behind(ONE, an_endpoint("10.88.0.4", ready=False))],
        {("10.96.0.7", 80, False): [("10.88.0.2", 8080)]},
    ),
    "what nothing is known of is ready": (
        web(),
        [behind({"addresses": ["10.88.0.2"]})],
        {("10.96.0.7", 80, False): [("10.88.0.2", 8080)]},
    ),
    "what ends is left out while others are ready": (
        web(),
        [behind(ENDING, ONE)],
        {("10.96.0.7", 80, False): [("10.88.0.2", 8080)]},
    ),
    "what ends but serves is used where nothing else is": (
        web(),
        [behind(ENDING)],
        {("10.96.0.7", 80, False): [("10.88.0.9", 8080)]},
    ),
    "what ends and serves no more is not": (
        web(),
        [behind(an_endpoint("10.88.0.9", ready=False, serving=False, terminating=True))],
        {},
    ),
    "ports are found by their names": (
        web(ports=[HTTP, {"name": "admin", "port": 81, "protocol": "TCP"}]),
        [behind(ONE, ports=[{"name": "admin", "port": 9000, "protocol": "TCP"}, TARGET])],
        {("10.96.0.7", 80, False): [("10.88.0.2", 8080)], ("10.96.0.7", 81, False): [("10.88.0.2", 9000)]},
    ),
    "a port without a name is the one without a name": (
        web(ports=[{"port": 80}]),
        [behind(ONE, ports=[{"port": 8080}])],
        {("10.96.0.7", 80, False): [("10.88.0.2", 8080)]},
    ),
    "datagrams too": (
        web(ports=[UDP]),
        [behind(ONE, ports=[UDP | {"port": 5353}])],
        {("10.96.0.7", 53, True): [("10.88.0.2", 5353)]},
    ),
    "another protocol is another port": (web(ports=[UDP | {"protocol": "TCP"}]), [behind(ONE, ports=[UDP])], {}),
    "SCTP is not served": (
        web(ports=[HTTP | {"protocol": "SCTP"}]),
        [behind(ONE, ports=[TARGET | {"protocol": "SCTP"}])],
        {},
    ),
    "a node port is on the node's address": (
        web(type="NodePort", ports=[HTTP | {"nodePort": 30080}]),
        [behind(ONE)],
        {("10.96.0.7", 80, False): [("10.88.0.2", 8080)], ("10.88.0.1", 30080, False): [("10.88.0.2", 8080)]},
    ),
    "a load balancer has node ports": (
        web(type="LoadBalancer", ports=[HTTP | {"nodePort": 30080}]),
        [behind(ONE)],
        {("10.96.0.7", 80, False): [("10.88.0.2", 8080)], ("10.88.0.1", 30080, False): [("10.88.0.2", 8080)]},
    ),
    "a headless service is not served": (a_service("web"), [behind(ONE)], {}),
    "another name is not served": (an_external("web", "example.com"), [behind(ONE)], {}),
    "of two families one": (
        web(clusterIPs=["10.96.0.7", "fd00::7"]),
        [behind(ONE)],
        {("10.96.0.7", 80, False): [("10.88.0.2", 8080)]},
    ),
    "only what is on this node, where that is asked for": (
        web(internalTrafficPolicy="Local"),
        [behind(ONE, an_endpoint("10.88.0.3", node="other"))],
        {("10.96.0.7", 80, False): [("10.88.0.2", 8080)]},
    ),
    "what is outside of the network of the pods is left out": (
        web(),
        [behind(an_endpoint("192.168.1.1"), an_endpoint("127.0.0.1"), an_endpoint("fd00::1"), ONE)],
        {("10.96.0.7", 80, False): [("10.88.0.2", 8080)]},
    ),
    "and nothing listens where all is outside": (web(), [behind(an_endpoint("10.244.0.2"))], {}),
}


@pytest.mark.parametrize(("service", "slices", "expected"), CASES.values(), ids=CASES.keys())
def test_a_service_has_fronts(
    service: ProxiedService,
    slices: list[ServingSlice],
    expected: dict[tuple[str, int, bool], list[tuple[str, int]]],
) -> None:
    wanted = wanted_fronts(service, slices, node="local", machine=MACHINE)

    assert {
        tuple(front): [(backend.address, backend.port) for backend in balance.backends]
        for front, balance in wanted.items()
        if not front.is_on_machine
    } == {(*front, False): backends for front, backends in expected.items()}


ON_LOOPBACK: dict[str, tuple[ProxiedService, set[tuple[str, int, bool]]]] = {
    "a node port": (
        web(type="NodePort", ports=[HTTP | {"nodePort": 30080}]),
        {("127.0.0.1", 30080, False)},
    ),
    "a load balancer, with an address of its own": (
        web(type="LoadBalancer", ports=[HTTP | {"nodePort": 30080}]),
        {("127.0.0.1", 30080, False), ("127.96.0.7", 80, False)},
    ),
    "a load balancer without node ports": (
        web(type="LoadBalancer", ports=[HTTP], allocateLoadBalancerNodePorts=False),
        {("127.96.0.7", 80, False)},
    ),
    "not a load balancer of somebody else": (
        web(type="LoadBalancer", loadBalancerClass="example.com/other", ports=[HTTP | {"nodePort": 30080}]),
        {("127.0.0.1", 30080, False)},
    ),
    "no other Service": (web(), set()),
}


@pytest.mark.parametrize(("service", "expected"), ON_LOOPBACK.values(), ids=ON_LOOPBACK.keys())
def test_loopback_of_the_machine_has(service: ProxiedService, expected: set[tuple[str, int, bool]]) -> None:
    wanted = wanted_fronts(service, [behind(ONE)], node="local", machine=MACHINE)

    assert {front[:3] for front in wanted if front.is_on_machine} == expected
    assert all(front.address.startswith("127.") for front in wanted if front.is_on_machine)


def test_the_kernel_leads_only_within_the_network_of_the_pods() -> None:
    of_pods = wanted_fronts(
        web(type="NodePort", ports=[HTTP | {"nodePort": 30080}]), [behind(ONE)], node="local", machine=MACHINE
    )
    of_machine = wanted_fronts(API_SERVER, [], node="local", machine=MACHINE)

    assert {front.address for front, one in of_pods.items() if is_translated(front, one)} == {"10.96.0.7", "10.88.0.1"}
    assert not any(is_translated(front, one) for front, one in of_machine.items())


API_SERVER = a_service("kubernetes", "10.96.0.1", ports=[{"name": "https", "port": 443}])
API_PORT = [{"name": "https", "port": 7443, "protocol": "TCP"}]


@pytest.mark.parametrize("address", ["", "127.0.0.1", "192.168.1.1"], ids=["nothing", "where it is", "another"])
def test_the_api_server_is_dialled_where_we_know_it_to_be_whatever_is_written(address: str) -> None:
    own = a_slice("kubernetes", *([an_endpoint(address)] if address else []), name="kubernetes", ports=API_PORT)

    assert wanted_fronts(API_SERVER, [own], node="local", machine=MACHINE) == {
        Front("10.96.0.1", 443): Balance(backends=(API,))
    }
    assert unreachable_address(API_SERVER, [own], machine=MACHINE) is None


def test_a_service_that_is_only_called_like_the_api_servers_is_no_way_out() -> None:
    elsewhere = a_service("kubernetes", "10.96.0.1", namespace="mine", ports=[{"name": "https", "port": 443}])
    theirs = a_slice("kubernetes", an_endpoint("192.168.1.1"), name="kubernetes", namespace="mine", ports=API_PORT)

    assert wanted_fronts(elsewhere, [theirs], node="local", machine=MACHINE) == {}
    assert unreachable_address(elsewhere, [theirs], machine=MACHINE) == "192.168.1.1"


BACKENDS = tuple(Backend(f"10.88.0.{n}", 80) for n in (2, 3, 4))


def test_connections_are_spread_evenly() -> None:
    chooser = Chooser(Balance(backends=BACKENDS))

    firsts = [chooser.candidates("10.88.0.9", 0.0)[0] for _ in range(9)]

    assert [firsts.count(backend) for backend in BACKENDS] == [3, 3, 3]


def test_all_others_are_candidates_too() -> None:
    chooser = Chooser(Balance(backends=BACKENDS), turn=1)

    assert chooser.candidates("10.88.0.9", 0.0) == [BACKENDS[1], BACKENDS[2], BACKENDS[0]]


def test_a_client_stays_with_its_backend_for_as_long_as_it_comes_back_in_time() -> None:
    chooser = Chooser(Balance(backends=BACKENDS, affinity_seconds=10))
    first = _led(chooser, "10.88.0.9", 0.0)
    _led(chooser, "10.88.0.8", 1.0)

    assert _led(chooser, "10.88.0.9", 9.0) == _led(chooser, "10.88.0.9", 18.0) == first
    assert _led(chooser, "10.88.0.9", 29.0) != first


def test_a_client_whose_backend_is_gone_gets_another_one() -> None:
    chooser = Chooser(Balance(backends=BACKENDS, affinity_seconds=10))
    first = _led(chooser, "10.88.0.9", 0.0)
    left = tuple(backend for backend in BACKENDS if backend != first)

    chooser.update(Balance(backends=left, affinity_seconds=10))

    second = _led(chooser, "10.88.0.9", 1.0)
    assert second in left
    assert _led(chooser, "10.88.0.9", 2.0) == second


def test_a_service_says_how_long_clients_stay() -> None:
    usual = wanted_fronts(web(sessionAffinity="ClientIP"), [behind(ONE)], node="local", machine=MACHINE)
    short = wanted_fronts(
        web(sessionAffinity="ClientIP", sessionAffinityConfig={"clientIP": {"timeoutSeconds": 7}}),
        [behind(ONE)],
        node="local",
        machine=MACHINE,
    )

    assert [balance.affinity_seconds for balance in usual.values()] == [10800]
    assert [balance.affinity_seconds for balance in short.values()] == [7]


def _led(chooser: Chooser, client: str, now: float) -> Backend:
    backend = chooser.candidates(client, now)[0]
    chooser.keep(client, backend, now)
    return backend
