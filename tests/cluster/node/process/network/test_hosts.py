"""The names of a cluster in a file, for pods that have nobody to ask."""

from __future__ import annotations

from shoal.cluster.node.process.network import host_entries
from tests.cluster.node.process.network.builders import a_pod_at, a_service, a_slice, an_endpoint, an_external

MACHINE = "192.168.1.7"


def test_pods_services_and_hostnames_have_all_their_names() -> None:
    entries = host_entries(
        [a_service("web", "10.96.0.7"), a_service("db", namespace="other"), an_external("out", "example.com")],
        [
            a_slice("web", an_endpoint(MACHINE)),
            a_slice("db", an_endpoint(MACHINE, "db-0"), namespace="other"),
            a_slice("nobody", an_endpoint(MACHINE)),
        ],
        [a_pod_at("worker", MACHINE), a_pod_at("far", MACHINE, namespace="other")],
        namespace="default",
    )

    assert entries == [
        (MACHINE, ["web.default.svc.cluster.local", "web.default.svc", "web.default", "web"]),
        (MACHINE, ["worker.default.svc.cluster.local", "worker.default.svc", "worker.default", "worker"]),
        (MACHINE, ["db.other.svc.cluster.local", "db.other.svc", "db.other"]),
        (MACHINE, ["db-0.db.other.svc.cluster.local", "db-0.db.other.svc", "db-0.db.other"]),
        (MACHINE, ["far.other.svc.cluster.local", "far.other.svc", "far.other"]),
    ]


def test_what_is_not_ready_or_over_has_no_name() -> None:
    entries = host_entries(
        [a_service("web", "10.96.0.7"), a_service("early", publishNotReadyAddresses=True)],
        [
            a_slice("web", an_endpoint(MACHINE, ready=False)),
            a_slice("early", an_endpoint(MACHINE, ready=False)),
        ],
        [a_pod_at("done", MACHINE, phase="Succeeded"), a_pod_at("new", ""), a_pod_at("web", MACHINE)],
        namespace="default",
    )

    assert [names[-1] for _, names in entries] == ["early"]


def test_the_order_does_not_depend_on_that_of_what_was_found() -> None:
    services = [a_service("a"), a_service("b")]
    slices = [a_slice("a", an_endpoint("10.0.0.1"), an_endpoint("10.0.0.2")), a_slice("b", an_endpoint("10.0.0.1"))]

    there = host_entries(services, slices, [], namespace="default")
    back = host_entries(services[::-1], slices[::-1], [], namespace="default")

    assert there == back
    assert [address for address, _ in there] == ["10.0.0.1", "10.0.0.2", "10.0.0.1"]
