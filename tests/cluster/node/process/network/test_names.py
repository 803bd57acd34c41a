"""What each name of a cluster stands for: the lines of Kubernetes' DNS specification, and what is ours."""

from __future__ import annotations

import pytest

from shoal.cluster.node.process.network.messages import Code, Soa, Srv, Type
from shoal.cluster.node.process.network.names import Names
from tests.cluster.node.process.network.builders import (
    HTTP,
    a_catalogue,
    a_pod_at,
    a_service,
    a_slice,
    an_endpoint,
    an_external,
    put,
    remove,
)

METRICS = {"name": "metrics", "port": 9090, "protocol": "TCP"}
UNNAMED = {"name": "", "port": 7000, "protocol": "TCP"}
CLUSTER = (
    a_service("web", "10.96.0.7", ports=[HTTP, METRICS]),
    a_slice("web", an_endpoint("10.88.0.5", "front")),
    a_service("plain", "10.96.0.8", ports=[UNNAMED]),
    a_service("dual", "10.96.0.9", clusterIPs=["10.96.0.9", "fd00::9"]),
    a_service("db"),
    a_slice("db", an_endpoint("10.88.0.11", "db-0"), an_endpoint("10.88.0.10", "db-1"), name="db-a"),
    a_slice("db", an_endpoint("10.88.0.12"), an_endpoint("10.88.0.13", "db-3", ready=False), name="db-b"),
    a_service("early", publishNotReadyAddresses=True),
    a_slice("early", an_endpoint("10.88.0.20", "early-0", ready=False)),
    a_service("portless", ports=[]),
    a_slice("portless", an_endpoint("10.88.0.21"), ports=[]),
    a_service("empty"),
    an_external("outside", "www.example.com"),
    an_external("inside", "Web.default.svc.cluster.local."),
    an_external("circle", "circle.default.svc.cluster.local"),
    a_pod_at("worker-0", "10.88.0.30"),
    a_pod_at("web", "10.88.0.31"),
    a_pod_at("empty", "10.88.0.32"),
    a_pod_at("done", "10.88.0.33", phase="Succeeded"),
    a_pod_at("alone", "10.88.0.34", namespace="other"),
)
ZONE = "cluster.local"
DB = f"db.default.svc.{ZONE}"


def names() -> Names:
    return Names(a_catalogue(*CLUSTER))


ADDRESSES = {
    "a service is at its address": (f"web.default.svc.{ZONE}", ["10.96.0.7"]),
    "of two families only the one asked for": (f"dual.default.svc.{ZONE}", ["10.96.0.9"]),
    "a headless service is at all that is ready": (DB, ["10.88.0.11", "10.88.0.10", "10.88.0.12"]),
    "one that says so also at what is not ready": (f"early.default.svc.{ZONE}", ["10.88.0.20"]),
    "a headless service without ports has addresses": (f"portless.default.svc.{ZONE}", ["10.88.0.21"]),
    "an endpoint is found by its hostname": (f"db-1.{DB}", ["10.88.0.10"]),
    "an endpoint without a hostname by its address": (f"10-88-0-12.{DB}", ["10.88.0.12"]),
    "endpoints have names behind an address too": (f"front.web.default.svc.{ZONE}", ["10.88.0.5"]),
    "a pod by its address": (f"10-88-0-30.default.pod.{ZONE}", ["10.88.0.30"]),
    "a pod by its name": (f"worker-0.default.svc.{ZONE}", ["10.88.0.30"]),
    "a pod of another namespace": (f"alone.other.svc.{ZONE}", ["10.88.0.34"]),
    "who answers": (f"ns.dns.{ZONE}", ["10.88.0.1"]),
    "the machine itself": ("localhost", ["127.0.0.1"]),
}


@pytest.mark.parametrize(("name", "addresses"), ADDRESSES.values(), ids=ADDRESSES.keys())
def test_a_name_stands_for_addresses(name: str, addresses: list[str]) -> None:
    reply = names().reply(name, Type.A)

    assert [record.value for record in reply.answers] == addresses
    assert {(record.name, record.type) for record in reply.answers} == {(name, Type.A)}
    assert reply.code is Code.NO_ERROR


MISSING = {
    "a service that is not there": f"nothing.default.svc.{ZONE}",
    "a service of another namespace": f"web.other.svc.{ZONE}",
    "a headless service behind which nothing is ready": f"empty.default.svc.{ZONE}",
    "an endpoint that is not ready": f"db-3.{DB}",
    "an endpoint that is not there": f"db-9.{DB}",
    "something below another name": f"x.outside.default.svc.{ZONE}",
    "something below a pod": f"x.worker-0.default.svc.{ZONE}",
    "a pod that has ended": f"done.default.svc.{ZONE}",
    "a pod of another namespace": f"alone.default.svc.{ZONE}",
    "a namespace in which nothing is": f"nowhere.svc.{ZONE}",
    "no address": f"worker-0.default.pod.{ZONE}",
    "what a search list makes of a whole name": f"www.example.com.default.svc.{ZONE}",
    "a port that is not there": f"_ssh._tcp.web.default.svc.{ZONE}",
    "a port of another protocol": f"_http._udp.web.default.svc.{ZONE}",
    "something else in the zone": f"foo.{ZONE}",
}


@pytest.mark.parametrize("name", MISSING.values(), ids=MISSING.keys())
def test_a_name_does_not_exist(name: str) -> None:
    reply = names().reply(name, Type.A)

    assert (reply.code, reply.answers) == (Code.NO_SUCH_NAME, ())
    assert [(record.name, record.type) for record in reply.authority] == [(ZONE, Type.SOA)]


@pytest.mark.parametrize(
    "name", ["example.com", "com", "9.9.9.9.in-addr.arpa", "x.in-addr.arpa", "notcluster.local", ""]
)
def test_nothing_exists_outside_of_the_cluster_and_that_is_said_at_once(name: str) -> None:
    reply = names().reply(name, Type.A)

    assert (reply.code, reply.answers) == (Code.NO_SUCH_NAME, ())
    assert [record.name for record in reply.authority] == [""]


EXISTING = {
    "an address of another family": (f"web.default.svc.{ZONE}", Type.AAAA),
    "a type that services do not have": (f"web.default.svc.{ZONE}", Type.TXT),
    "the port of a service has no address": (f"_http._tcp.web.default.svc.{ZONE}", Type.A),
    "the protocol of a port": (f"_tcp.web.default.svc.{ZONE}", Type.SRV),
    "a namespace": (f"default.svc.{ZONE}", Type.A),
    "the namespace of pods alone": (f"other.svc.{ZONE}", Type.A),
    "all services": (f"svc.{ZONE}", Type.A),
    "all pods": (f"pod.{ZONE}", Type.NS),
    "the zone": (ZONE, Type.A),
    "a pod's name in another family": (f"worker-0.default.svc.{ZONE}", Type.AAAA),
}


@pytest.mark.parametrize(("name", "type_"), EXISTING.values(), ids=EXISTING.keys())
def test_a_name_exists_but_has_nothing_of_that_type(name: str, type_: Type) -> None:
    reply = names().reply(name, type_)

    assert (reply.code, reply.answers) == (Code.NO_ERROR, ())
    assert [(record.name, record.type) for record in reply.authority] == [(ZONE, Type.SOA)]


WEB = f"web.default.svc.{ZONE}"
PORTS = {
    "a port of a service": (f"_http._tcp.{WEB}", [Srv(100, 80, WEB)]),
    "all ports of a service": (WEB, [Srv(50, 80, WEB), Srv(50, 9090, WEB)]),
    "an unnamed port": (f"plain.default.svc.{ZONE}", [Srv(100, 7000, f"plain.default.svc.{ZONE}")]),
    "a port of a headless service": (
        f"_http._tcp.{DB}",
        [Srv(33, 80, f"db-0.{DB}"), Srv(33, 80, f"db-1.{DB}"), Srv(33, 80, f"10-88-0-12.{DB}")],
    ),
    "the ports of an endpoint": (f"db-0.{DB}", [Srv(100, 80, f"db-0.{DB}")]),
}


@pytest.mark.parametrize(("name", "ports"), PORTS.values(), ids=PORTS.keys())
def test_a_port_has_places(name: str, ports: list[Srv]) -> None:
    reply = names().reply(name, Type.SRV)

    assert [record.value for record in reply.answers] == ports
    assert {record.name for record in reply.additional} == {port.target for port in ports}
    assert {record.type for record in reply.additional} == {Type.A}


def test_an_unnamed_port_has_no_name() -> None:
    assert names().reply(f"_._tcp.plain.default.svc.{ZONE}", Type.SRV).code is Code.NO_SUCH_NAME


def test_a_name_for_another_inside_brings_its_address_along() -> None:
    reply = names().reply(f"inside.default.svc.{ZONE}", Type.A)

    assert [(record.name, record.type, record.value) for record in reply.answers] == [
        (f"inside.default.svc.{ZONE}", Type.CNAME, WEB),
        (WEB, Type.A, "10.96.0.7"),
    ]


@pytest.mark.parametrize("type_", [Type.A, Type.AAAA, Type.CNAME])
def test_a_name_for_another_outside_is_that_alone(type_: Type) -> None:
    reply = names().reply(f"outside.default.svc.{ZONE}", type_)

    assert reply.code is Code.NO_ERROR
    assert [(record.type, record.value) for record in reply.answers] == [(Type.CNAME, "www.example.com")]


def test_a_name_for_itself_is_answered_all_the_same() -> None:
    assert names().reply(f"circle.default.svc.{ZONE}", Type.A).code is Code.NO_ERROR


REVERSE = {
    "a service": ("7.0.96.10.in-addr.arpa", [WEB]),
    "an endpoint with a hostname": ("10.0.88.10.in-addr.arpa", [f"db-1.{DB}"]),
    "the machine": ("1.0.0.127.in-addr.arpa", ["localhost"]),
    "an endpoint without a hostname": ("12.0.88.10.in-addr.arpa", []),
    "an endpoint that is not ready": ("13.0.88.10.in-addr.arpa", []),
    "a pod of no service": ("30.0.88.10.in-addr.arpa", []),
}


@pytest.mark.parametrize(("name", "found"), REVERSE.values(), ids=REVERSE.keys())
def test_an_address_has_names(name: str, found: list[str]) -> None:
    reply = names().reply(name, Type.PTR)

    assert [record.value for record in reply.answers] == found
    assert reply.code is (Code.NO_ERROR if found else Code.NO_SUCH_NAME)


def test_the_version_of_the_specification_is_told() -> None:
    assert [record.value for record in names().reply(f"dns-version.{ZONE}", Type.TXT).answers] == ["1.1.0"]


def test_the_zone_says_who_answers_for_it() -> None:
    (soa,) = names().reply(ZONE, Type.SOA).answers
    (server,) = names().reply(ZONE, Type.NS).answers

    assert isinstance(soa.value, Soa)
    assert soa.value.server == server.value == f"ns.dns.{ZONE}"


def test_a_service_comes_before_a_pod_of_its_name() -> None:
    catalogue = a_catalogue(*CLUSTER)
    found = Names(catalogue)
    assert [record.value for record in found.reply(WEB, Type.A).answers] == ["10.96.0.7"]

    remove(catalogue, a_service("web", "10.96.0.7"))

    assert [record.value for record in found.reply(WEB, Type.A).answers] == ["10.88.0.31"]


def test_a_change_shows_at_once() -> None:
    catalogue = a_catalogue(*CLUSTER)
    found = Names(catalogue)
    found.reply(DB, Type.A)

    put(catalogue, a_slice("db", an_endpoint("10.88.0.99", "db-1"), name="db-a"))

    assert {record.value for record in found.reply(DB, Type.A).answers} == {"10.88.0.99", "10.88.0.12"}
    assert [record.value for record in found.reply(f"db-1.{DB}", Type.A).answers] == ["10.88.0.99"]
    assert not found.reply("10.0.88.10.in-addr.arpa", Type.PTR).answers
    assert found.reply("99.0.88.10.in-addr.arpa", Type.PTR).answers
