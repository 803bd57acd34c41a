"""Services get addresses that nobody else has, keep them, and are refused those that are taken."""

from __future__ import annotations

import ipaddress
import random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.apiserver.builtin.service_addresses import Ranges, Taken, addresses_of, allocate, ports_of
from shoal.cluster.apiserver.builtin.services import default_service
from shoal.cluster.apiserver.refusals import Refused

SMALL = Ranges(network="10.0.0.0/29", first_port=30000, last_port=30005)


def a_service(**spec: Any) -> dict[str, Any]:
    service = {"metadata": {"name": "s"}, "spec": {"ports": [{"port": 80}], "selector": {"a": "b"}, **spec}}
    default_service(service)
    return service


def refusal(service: dict[str, Any], taken: Taken, **options: Any) -> str:
    with pytest.raises(Refused) as refused:
        allocate(service, taken, SMALL, **options)
    return refused.value.status.message


@given(
    wanted=st.lists(st.sampled_from(["ClusterIP", "NodePort", "LoadBalancer", "headless"]), max_size=5),
    seed=st.integers(),
)
def test_no_address_is_given_twice(wanted: list[str], seed: int) -> None:
    source = random.Random(seed)
    addresses: set[str] = set()
    ports: set[int] = set()
    for kind in wanted:
        service = a_service(clusterIP="None") if kind == "headless" else a_service(type=kind)
        allocate(service, Taken(addresses=addresses, ports=ports), SMALL, source=source)
        assert not addresses_of(service) & addresses
        assert not ports_of(service) & ports
        assert all(ipaddress.ip_address(each) in ipaddress.ip_network(SMALL.network) for each in addresses_of(service))
        addresses |= addresses_of(service)
        ports |= ports_of(service)
        assert len(addresses_of(service)) == (kind != "headless")


def test_an_address_that_is_taken_is_refused() -> None:
    taken = Taken(addresses={"10.0.0.3"})
    assert refusal(a_service(clusterIP="10.0.0.3"), taken) == (
        'Service "s" is invalid: spec.clusterIPs: Invalid value: ["10.0.0.3"]: failed to allocate IP 10.0.0.3: '
        "provided IP is already allocated"
    )


def test_a_port_that_is_taken_is_refused() -> None:
    service = a_service(type="NodePort", ports=[{"port": 80, "nodePort": 30001}])
    assert refusal(service, Taken(ports={30001})) == (
        'Service "s" is invalid: spec.ports[0].nodePort: Invalid value: 30001: provided port is already allocated'
    )


def test_a_port_outside_the_range_is_refused() -> None:
    service = a_service(type="NodePort", ports=[{"port": 80, "nodePort": 80}])
    assert refusal(service, Taken()) == (
        'Service "s" is invalid: spec.ports[0].nodePort: Invalid value: 80: provided port is not in the valid range. '
        "The range of valid ports is 30000-30005"
    )


def test_two_protocols_of_one_port_share_a_node_port() -> None:
    ports = [{"name": "tcp", "port": 53}, {"name": "udp", "port": 53, "protocol": "UDP"}]
    service = a_service(type="NodePort", ports=ports)
    allocate(service, Taken(), SMALL)
    assert len(ports_of(service)) == 1


def test_a_full_range_is_told() -> None:
    taken = Taken(addresses={str(each) for each in ipaddress.ip_network(SMALL.network)})
    assert "range is full" in refusal(a_service(), taken)


def test_a_change_keeps_what_the_client_does_not_mention() -> None:
    old = a_service(type="LoadBalancer", externalTrafficPolicy="Local")
    allocate(old, Taken(), SMALL)
    new = a_service(type="LoadBalancer", externalTrafficPolicy="Local")
    allocate(new, Taken(), SMALL, old=old)
    assert new["spec"] == old["spec"]
    assert ports_of(new) == ports_of(old)


def test_a_name_for_something_elsewhere_gets_nothing() -> None:
    service = a_service(type="ExternalName", externalName="a.b")
    allocate(service, Taken(), SMALL)
    assert not addresses_of(service)


def test_a_service_that_was_a_name_gets_an_address() -> None:
    old = a_service(type="ExternalName", externalName="a.b")
    new = a_service()
    allocate(new, Taken(), SMALL, old=old)
    assert len(addresses_of(new)) == 1
