"""The expected hashes were printed by the library that Kubernetes takes them with."""

from __future__ import annotations

import pytest

from shoal.api.core import EndpointAddress, EndpointsPort, EndpointSubset, ObjectReference
from shoal.cluster.controllers.backends import parse_ip, printed_hash, repack
from shoal.cluster.controllers.backends.subsets import _printed_port, _printed_subset

PORTS = [EndpointsPort(name="http", port=80), EndpointsPort(port=81, app_protocol="a")]
POD = ObjectReference(kind="Pod", namespace="ns", name="p", uid="u")


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        (
            _printed_subset(
                EndpointSubset(
                    addresses=[
                        EndpointAddress(ip="10.0.0.1", hostname="h", node_name="n", target_ref=POD),
                        EndpointAddress(ip="10.0.0.2"),
                    ],
                    ports=PORTS,
                )
            ),
            "82b53d23a636953029382947f60a0a2b",
        ),
        (
            _printed_subset(EndpointSubset(not_ready_addresses=[EndpointAddress(ip="10.0.0.1")])),
            "4d4f4604c1a51c97597e6c7a75c104c9",
        ),
        ("(v1.EndpointPort)" + _printed_port(PORTS[0]), "754b003f50f133a539c60d18cfb30a55"),
        (
            "(v1.EndpointPort)" + _printed_port(EndpointsPort(name="http", port=80, app_protocol="http")),
            "d076f4fe2056195b8bf843571ce8e176",
        ),
    ],
)
def test_what_is_put_in_order_has_the_hash_that_kubernetes_gives_it(printed: str, expected: str) -> None:
    assert f"{printed_hash(printed):032x}" == expected


def at(*ips: str) -> list[EndpointAddress]:
    return [EndpointAddress(ip=ip) for ip in ips]


ONE, TWO = EndpointsPort(port=111), EndpointsPort(port=222)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param(
            [EndpointSubset(addresses=at("2.2.2.2", "1.1.1.1"), ports=[ONE])],
            [EndpointSubset(addresses=at("1.1.1.1", "2.2.2.2"), ports=[ONE])],
            id="addresses in order",
        ),
        pytest.param(
            [
                EndpointSubset(addresses=at("1.1.1.1"), ports=[ONE]),
                EndpointSubset(addresses=at("2.2.2.2"), ports=[ONE]),
            ],
            [EndpointSubset(addresses=at("1.1.1.1", "2.2.2.2"), ports=[ONE])],
            id="the same ports are one subset",
        ),
        pytest.param(
            [
                EndpointSubset(addresses=at("1.1.1.1"), ports=[ONE]),
                EndpointSubset(not_ready_addresses=at("1.1.1.1"), ports=[ONE]),
            ],
            [EndpointSubset(not_ready_addresses=at("1.1.1.1"), ports=[ONE])],
            id="not ready wins",
        ),
        pytest.param(
            [EndpointSubset(addresses=at("1.1.1.1"), ports=[ONE, ONE])],
            [EndpointSubset(addresses=at("1.1.1.1"), ports=[ONE])],
            id="a port twice",
        ),
        pytest.param(
            [EndpointSubset(addresses=at("1.1.1.1"))], [EndpointSubset(addresses=at("1.1.1.1"))], id="no ports"
        ),
        pytest.param([EndpointSubset(ports=[ONE])], [], id="no addresses"),
    ],
)
def test_subsets_are_packed(before: list[EndpointSubset], after: list[EndpointSubset]) -> None:
    assert repack(before) == after


def test_the_same_addresses_with_several_ports_are_one_subset() -> None:
    subsets = [
        EndpointSubset(addresses=at("1.1.1.1"), ports=[ONE]),
        EndpointSubset(addresses=at("1.1.1.1"), ports=[TWO]),
    ]
    (found,) = repack(subsets)
    assert set(found.ports) == {ONE, TWO}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.1", ("10.0.0.1", False)),
        ("010.000.000.001", ("10.0.0.1", False)),
        ("FD00:0::1", ("fd00::1", True)),
        ("::ffff:10.0.0.1", ("10.0.0.1", False)),
        ("256.0.0.1", None),
        ("fe80::1%eth0", None),
        ("None", None),
        ("", None),
    ],
)
def test_addresses_are_read_in_any_spelling(text: str, expected: tuple[str, bool] | None) -> None:
    assert parse_ip(text) == expected
