from __future__ import annotations

from datetime import timedelta

import msgspec
import pytest

from shoal.api.core import EndpointAddress, Endpoints, EndpointSubset, Pod, Service
from shoal.cluster.controllers.endpoints.wanted import wanted_endpoints, within_capacity
from tests.support.builders.services import START, a_backend, a_service


def made(service: Service, *pods: Pod) -> Endpoints:
    found = wanted_endpoints(service, pods, None, START)
    assert found is not None
    return found


def shown(service: Service, *pods: Pod) -> list[tuple[list[str], list[str], list[int]]]:
    """Ready and other addresses with their ports, for each subset."""
    return [
        (
            [address.ip for address in subset.addresses],
            [address.ip for address in subset.not_ready_addresses],
            sorted(port.port for port in subset.ports),
        )
        for subset in made(service, *pods).subsets
    ]


TWO_PORTS = [{"name": "a", "port": 80, "targetPort": "web"}, {"name": "b", "port": 81, "targetPort": 9090}]


@pytest.mark.parametrize(
    ("service", "pods", "expected"),
    [
        pytest.param(a_service(), [a_backend("p", "1.1.1.1")], [(["1.1.1.1"], [], [8080])], id="a ready pod"),
        pytest.param(a_service(), [a_backend("p", "1.1.1.1", ready=False)], [([], ["1.1.1.1"], [8080])],
            id="not ready"),
        pytest.param(
            a_service(publishNotReadyAddresses=True),
            [a_backend("p", "1.1.1.1", ready=False), a_backend("q", "1.1.1.2", going=True)],
            [(["1.1.1.1", "1.1.1.2"], [], [8080])],
            id="published in any state",
        ),
        pytest.param(a_service(), [a_backend("p", "1.1.1.1", going=True)], [], id="going"),
        pytest.param(a_service(), [a_backend("p", "1.1.1.1", phase="Failed")], [], id="failed"),
        pytest.param(a_service(), [a_backend("p")], [], id="no address yet"),
        pytest.param(a_service(), [a_backend("p", "fd00::1")], [], id="the other family"),
        pytest.param(
            a_service(ipFamilies=["IPv6", "IPv4"]), [a_backend("p", ["1.1.1.1", "fd00::1"])],
            [(["fd00::1"], [], [8080])], id="the first family counts",
        ),
        pytest.param(a_service(ipFamilies=[], clusterIP="fd00::9"), [a_backend("p", ["1.1.1.1", "fd00::1"])],
            [(["fd00::1"], [], [8080])], id="the family of the service's address"),
        pytest.param(a_service(ports=[], clusterIP="None"), [a_backend("p", "1.1.1.1")], [(["1.1.1.1"], [], [])],
            id="headless without ports"),
        pytest.param(a_service(ports=[]), [a_backend("p", "1.1.1.1")], [], id="no ports at all"),
        pytest.param(a_service(ports=TWO_PORTS), [a_backend("p", "1.1.1.1", ports={"web": 8000})],
            [(["1.1.1.1"], [], [8000, 9090])], id="a port by name"),
        pytest.param(a_service(ports=TWO_PORTS[:1]), [a_backend("p", "1.1.1.1")], [], id="no port of that name"),
        pytest.param(a_service(), [a_backend("p", "001.002.003.004")], [(["1.2.3.4"], [], [8080])],
            id="an odd spelling"),
    ],
)  # fmt: skip
def test_which_pods_are_shown_and_how(
    service: Service, pods: list[Pod], expected: list[tuple[list[str], list[str], list[int]]]
) -> None:
    assert shown(service, *pods) == expected


def test_pods_with_other_ports_have_a_subset_of_their_own() -> None:
    pods = [a_backend("p", "1.1.1.1", ports={"web": 8000}), a_backend("q", "1.1.1.2", ports={"web": 8001})]
    found = shown(a_service(ports=TWO_PORTS), *pods)
    assert sorted(found) == [(["1.1.1.1"], [], [8000]), (["1.1.1.1", "1.1.1.2"], [], [9090]), (["1.1.1.2"], [], [8001])]


def test_labels_are_the_services_and_two_of_the_controllers() -> None:
    found = made(a_service(labels={"a": "b", "service.kubernetes.io/headless": ""}))
    assert found.metadata.labels == {"a": "b", "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    headless = made(a_service(clusterIP="None"))
    assert headless.metadata.labels == {
        "service.kubernetes.io/headless": "", "endpoints.kubernetes.io/managed-by": "endpoint-controller",
    }  # fmt: skip


def test_nothing_is_wanted_where_all_is_said() -> None:
    pods = [a_backend(f"p{number}", f"1.1.1.{number}") for number in range(3)]
    current = made(a_service(), *pods)
    assert wanted_endpoints(a_service(), reversed(pods), current, None) is None


def test_versions_and_order_of_another_writer_do_not_matter() -> None:
    service = a_service()
    current = made(service, a_backend("p", "1.1.1.1"), a_backend("q", "1.1.1.2"))
    (subset,) = current.subsets
    versioned = []
    for address in reversed(subset.addresses):
        assert address.target_ref is not None
        reference = msgspec.structs.replace(address.target_ref, resource_version="7")
        versioned.append(msgspec.structs.replace(address, target_ref=reference))
    other = msgspec.structs.replace(current, subsets=[msgspec.structs.replace(subset, addresses=versioned)])
    assert wanted_endpoints(service, [a_backend("p", "1.1.1.1"), a_backend("q", "1.1.1.2")], other, None) is None


def test_annotations_of_others_stay_and_an_undated_change_has_no_date() -> None:
    service = a_service()
    current = made(service)
    annotated = msgspec.structs.replace(current.metadata, annotations=current.metadata.annotations | {"mine": "1"})
    later = wanted_endpoints(
        service, [a_backend("p", "1.1.1.1")], msgspec.structs.replace(current, metadata=annotated), None
    )
    assert later is not None
    assert later.metadata.annotations == {"mine": "1"}


def test_more_than_a_thousand_addresses_are_cut_and_then_left_alone() -> None:
    service = a_service()
    pods = [a_backend(f"p{number}", f"10.0.{number // 250}.{number % 250}") for number in range(1200)]
    found = wanted_endpoints(service, pods, None, START + timedelta(seconds=1))
    assert found is not None
    assert len(found.subsets[0].addresses) == 1000
    assert found.metadata.annotations == {
        "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:01Z",
        "endpoints.kubernetes.io/over-capacity": "truncated",
    }
    assert wanted_endpoints(service, pods, found, None) is None
    fewer = wanted_endpoints(service, pods[:3], found, None)
    assert fewer is not None
    assert fewer.metadata.annotations == {}


def a_subset(ready: int, not_ready: int) -> EndpointSubset:
    return EndpointSubset(
        addresses=[EndpointAddress(ip=f"1.0.0.{number}") for number in range(ready)],
        not_ready_addresses=[EndpointAddress(ip=f"2.0.0.{number}") for number in range(not_ready)],
    )


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param([(5, 5)], [(5, 5)], id="all fit"),
        pytest.param([(15, 0)], [(10, 0)], id="ready ones are cut"),
        pytest.param([(9, 5)], [(9, 1)], id="those that are not ready are cut first"),
        pytest.param([(11, 5)], [(10, 0)], id="no room for any that is not ready"),
        pytest.param([(10, 0), (10, 0)], [(5, 0), (5, 0)], id="each loses its share"),
        pytest.param([(9, 1), (6, 1)], [(6, 0), (4, 0)], id="shares are rounded up"),
        pytest.param([(2, 10), (2, 4)], [(2, 5), (2, 1)], id="what is left goes to the last"),
    ],
)
def test_what_is_cut_off_at_ten(before: list[tuple[int, int]], after: list[tuple[int, int]]) -> None:
    kept = within_capacity([a_subset(*counts) for counts in before], 10)
    assert [(len(subset.addresses), len(subset.not_ready_addresses)) for subset in kept] == after
