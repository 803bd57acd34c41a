"""Cases of the rules that Kubernetes packs endpoints by, at ten to a slice."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec
import pytest

from shoal.api.core import SERVICES, ObjectReference, Pod, Service
from shoal.api.discovery_k8s_io import Endpoint, EndpointHints, EndpointPort, EndpointSlice, ForNode, ForZone
from shoal.api.meta import ObjectMeta, owner_reference
from shoal.cluster.controllers.endpoint_slices.backends_of_service import address_types, in_order, wanted_endpoints
from shoal.cluster.controllers.endpoint_slices.hints import with_hints
from shoal.cluster.controllers.endpoint_slices.packing import plan_slices, slice_labels
from shoal.cluster.controllers.endpoint_slices.plan import Plan
from tests.support.builders.services import a_backend, a_service

MANAGER = "endpointslice-controller.k8s.io"
SERVICE = a_service()
LIMIT = 10


def pods(numbers: Iterable[int]) -> list[Pod]:
    return [a_backend(f"p{number}", f"10.0.0.{number}") for number in numbers]


def endpoints(numbers: Iterable[int]) -> list[Endpoint]:
    wanted = wanted_endpoints(SERVICE, pods(numbers), "IPv4", lambda _: "")
    return [endpoint for together in wanted.endpoints.values() for endpoint in together.values()]


def a_slice(name: str, numbers: Iterable[int], *, service: Service = SERVICE, **fields: object) -> EndpointSlice:
    found = EndpointSlice(
        metadata=ObjectMeta(
            name=name,
            namespace="default",
            labels=slice_labels(service, MANAGER),
            owner_references=[owner_reference(service, SERVICES)],
        ),
        address_type="IPv4",
        endpoints=endpoints(numbers),
        ports=[EndpointPort(name="", port=8080, protocol="TCP")],
    )
    return msgspec.structs.replace(found, **fields)


def planned(service: Service, chosen: Sequence[Pod], existing: Sequence[EndpointSlice]) -> Plan:
    wanted = wanted_endpoints(service, chosen, "IPv4", lambda _: "")
    return plan_slices(service, wanted, existing, "IPv4", limit=LIMIT, manager=MANAGER)


def summed(plan: Plan, existing: Sequence[EndpointSlice]) -> dict[str, int]:
    """How many endpoints each slice has afterwards; new ones are numbered."""
    counts = {each.metadata.name: len(each.endpoints or ()) for each in existing}
    counts |= {before.metadata.name: len(after.endpoints or ()) for before, after in plan.update}
    counts |= {f"new-{number}": len(new.endpoints or ()) for number, new in enumerate(plan.create)}
    return {name: count for name, count in counts.items() if name not in {each.metadata.name for each in plan.delete}}


@pytest.mark.parametrize(
    ("existing", "wanted", "after", "written"),
    [
        pytest.param({}, range(0), {"new-0": 0}, 1, id="an empty slice for an empty service"),
        pytest.param({}, range(25), {"new-0": 10, "new-1": 10, "new-2": 5}, 3, id="new slices are filled up"),
        pytest.param({"a": range(5)}, range(5), {"a": 5}, 0, id="nothing to do"),
        pytest.param({"a": range(5)}, range(7), {"a": 7}, 1, id="a slice with room takes what is new"),
        pytest.param({"a": range(10)}, range(9), {"a": 9}, 1, id="what is gone is taken out"),
        pytest.param({"a": range(5), "b": range(10, 15)}, range(5), {"a": 5}, 1, id="an emptied slice goes"),
        pytest.param(
            {"a": range(8), "b": range(10, 15)}, [*range(8), *range(10, 15), 20], {"a": 9, "b": 5}, 1,
            id="the slice that is fullest afterwards takes the rest",
        ),
        pytest.param(
            {"a": range(8), "b": range(10, 18)}, [*range(8), *range(10, 18), 20, 21, 22],
            {"a": 8, "b": 8, "new-0": 3}, 1, id="what fits into no single slice gets a new one",
        ),
        pytest.param(
            {"a": range(3), "b": range(10, 18)}, [1, 2, *range(10, 17), 20, 21, 22, 23], {"a": 3, "b": 10}, 2,
            id="slices that are written anyway are filled first",
        ),
        pytest.param(
            {"a": range(3)}, range(21), {"a": 3, "new-0": 10, "new-1": 8}, 2,
            id="more than fit are not torn apart to fill a slice",
        ),
        pytest.param({"a": range(3)}, range(23), {"a": 3, "new-0": 10, "new-1": 10}, 2, id="full ones stay whole"),
        pytest.param({"a": range(3)}, range(18), {"a": 8, "new-0": 10}, 2, id="a remainder goes where there is room"),
        pytest.param({"a": range(3)}, range(5, 8), {"a": 3}, 1, id="a slice is used again"),
        pytest.param({"a": range(3)}, range(0), {"a": 0}, 1, id="the last slice becomes the empty one"),
    ],
)  # fmt: skip
def test_how_endpoints_are_spread(
    existing: dict[str, Iterable[int]], wanted: Iterable[int], after: dict[str, int], written: int
) -> None:
    slices = [a_slice(name, numbers) for name, numbers in existing.items()]
    plan = planned(SERVICE, pods(wanted), slices)
    assert summed(plan, slices) == after
    assert len(plan.create) + len(plan.update) + len(plan.delete) == written


def test_an_empty_slice_is_kept_as_it_is() -> None:
    placeholder = a_slice("a", [], endpoints=None, ports=None)
    assert not planned(SERVICE, [], [placeholder])
    relabelled = planned(a_service(labels={"new": "label"}), [], [placeholder])
    assert [after.metadata.labels["new"] for _, after in relabelled.update] == ["label"]


def test_slices_of_an_earlier_service_of_the_name_are_deleted_not_used() -> None:
    earlier = msgspec.structs.replace(SERVICE, metadata=msgspec.structs.replace(SERVICE.metadata, uid="earlier"))
    plan = planned(SERVICE, pods(range(3)), [a_slice("a", range(3), service=earlier)])
    assert [each.metadata.name for each in plan.delete] == ["a"]
    assert [len(new.endpoints or ()) for new in plan.create] == [3]


def test_a_changed_endpoint_is_changed_where_it_is() -> None:
    changed = [*pods(range(1, 3)), a_backend("p0", "10.0.0.0", ready=False)]
    plan = planned(SERVICE, changed, [a_slice("a", range(3))])
    ((_, after),) = plan.update
    assert [endpoint.conditions.ready for endpoint in after.endpoints or ()] == [False, True, True]


def test_labels_of_the_service_are_carried_over() -> None:
    service = a_service(labels={"x": "y", "kubernetes.io/service-name": "forged"})
    ((_, after),) = planned(service, pods(range(3)), [a_slice("a", range(3))]).update
    assert after.metadata.labels == {
        "x": "y",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": MANAGER,
    }


def test_pods_whose_named_port_differs_are_in_slices_of_their_own() -> None:
    service = a_service(ports=[{"name": "http", "port": 80, "targetPort": "web", "protocol": "TCP"}])
    chosen = [
        a_backend("p", "10.0.0.1", ports={"web": 8080}),
        a_backend("q", "10.0.0.2", ports={"web": 9090}),
        a_backend("r", "10.0.0.3"),
    ]
    plan = planned(service, chosen, [])
    ports = sorted([port.port for port in new.ports or ()] for new in plan.create)
    assert ports == [[], [8080], [9090]]


@pytest.mark.parametrize(
    ("pod", "publish", "conditions"),
    [
        pytest.param(a_backend("p", "10.0.0.1"), False, (True, True, False), id="ready"),
        pytest.param(a_backend("p", "10.0.0.1", ready=False), False, (False, False, False), id="not ready"),
        pytest.param(a_backend("p", "10.0.0.1", going=True), False, (False, True, True), id="going, and still serving"),
        pytest.param(
            a_backend("p", "10.0.0.1", ready=False), True, (True, False, False), id="published though not ready"
        ),
        pytest.param(a_backend("p", "10.0.0.1", going=True), True, (True, True, True), id="published though going"),
    ],
)
def test_the_conditions_of_an_endpoint(pod: Pod, publish: bool, conditions: tuple[bool, bool, bool]) -> None:
    service = a_service(publishNotReadyAddresses=publish)
    (together,) = wanted_endpoints(service, [pod], "IPv4", lambda _: "").endpoints.values()
    (endpoint,) = together.values()
    assert (endpoint.conditions.ready, endpoint.conditions.serving, endpoint.conditions.terminating) == conditions


def test_a_pod_on_an_unknown_node_is_left_out_unless_its_service_publishes_all() -> None:
    pod = a_backend("p", "10.0.0.1")
    wanted = wanted_endpoints(SERVICE, [pod], "IPv4", lambda _: None)
    assert wanted.nowhere == [pod]
    assert [list(together) for together in wanted.endpoints.values()] == [[]]
    published = wanted_endpoints(a_service(publishNotReadyAddresses=True), [pod], "IPv4", lambda _: None)
    assert [len(together) for together in published.endpoints.values()] == [1]


@pytest.mark.parametrize(
    ("service", "types"),
    [
        (a_service(), ["IPv4"]),
        (a_service(ipFamilies=["IPv6", "IPv4"]), ["IPv4", "IPv6"]),
        (a_service(ipFamilies=[], clusterIP="fd00::1"), ["IPv6"]),
        (a_service(ipFamilies=[], clusterIP="10.0.0.1"), ["IPv4"]),
        (a_service(ipFamilies=[], clusterIP="None"), ["IPv4", "IPv6"]),
    ],
)
def test_the_address_types_of_a_service(service: Service, types: list[str]) -> None:
    assert address_types(service) == types


def test_ports_are_in_the_order_that_kubernetes_gives_them() -> None:
    ports = [
        EndpointPort(name="metrics", port=9090, protocol="TCP", app_protocol="http"),
        EndpointPort(name="dns", port=53, protocol="UDP"),
        EndpointPort(name="http", port=8080, protocol="TCP"),
    ]
    assert [port.name for port in in_order(ports)] == ["http", "dns", "metrics"]


ZONED = Endpoint(addresses=["10.0.0.1"], zone="east", node_name="n", target_ref=ObjectReference(kind="Pod"))
READY = msgspec.structs.replace(ZONED, conditions=endpoints([1])[0].conditions)
EAST, HERE = [ForZone(name="east")], [ForNode(name="n")]


@pytest.mark.parametrize(
    ("distribution", "endpoint", "hints"),
    [
        (None, READY, None),
        ("Elsewhere", READY, None),
        ("PreferClose", READY, EndpointHints(for_zones=EAST)),
        ("PreferSameZone", READY, EndpointHints(for_zones=EAST)),
        ("PreferSameNode", READY, EndpointHints(for_zones=EAST, for_nodes=HERE)),
        ("PreferSameZone", ZONED, None),
        ("PreferSameZone", msgspec.structs.replace(READY, zone=None), None),
        ("PreferSameNode", msgspec.structs.replace(READY, zone=None), EndpointHints(for_nodes=HERE)),
    ],
)
def test_the_hints_of_an_endpoint(distribution: str | None, endpoint: Endpoint, hints: EndpointHints | None) -> None:
    found = with_hints(a_slice("a", [], endpoints=[endpoint]), distribution)
    assert [each.hints for each in found.endpoints or ()] == [hints]
    assert with_hints(found, distribution) is found


def test_hints_are_taken_off_slices_that_are_else_left_alone() -> None:
    hinted = with_hints(
        a_slice("a", [], endpoints=[msgspec.structs.replace(endpoints([1])[0], zone="z")]), "PreferClose"
    )
    wanted = wanted_endpoints(SERVICE, pods([1]), "IPv4", lambda _: "z")
    plan = plan_slices(SERVICE, wanted, [hinted], "IPv4", limit=LIMIT, manager=MANAGER)
    assert [[each.hints for each in after.endpoints or ()] for _, after in plan.update] == [[None]]
