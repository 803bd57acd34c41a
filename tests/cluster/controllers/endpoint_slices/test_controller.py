from __future__ import annotations

from typing import Any

import pytest

from shoal.api.core import ENDPOINTS, EVENTS, NODES, PODS, SERVICES
from shoal.api.discovery_k8s_io import ENDPOINT_SLICES
from shoal.cluster.controllers.endpoint_slices import add_endpoint_slices
from tests.support.builders.services import make_pod, ready_status
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of

ZONE = {"topology.kubernetes.io/zone": "east"}


@pytest.fixture
async def nodes(cluster: Cluster) -> None:
    await cluster.make(NODES, {"metadata": {"name": "node-1", "labels": ZONE}})


async def make_service(cluster: Cluster, name: str = "web", **spec: Any) -> dict[str, Any]:
    labels = spec.pop("labels", {})
    given = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]} | spec
    made = await cluster.make(SERVICES, {"metadata": {"name": name, "labels": labels}, "spec": given})
    return made.content


async def slices_of(cluster: Cluster, service: str = "web") -> list[dict[str, Any]]:
    return await cluster.all(ENDPOINT_SLICES, labels=f"kubernetes.io/service-name={service}")


async def addresses(cluster: Cluster, service: str = "web") -> list[str]:
    return sorted(
        address
        for found in await slices_of(cluster, service)
        for endpoint in found["endpoints"] or ()
        for address in endpoint["addresses"]
    )


async def until_addresses(cluster: Cluster, *wanted: str, service: str = "web") -> None:
    async def holds() -> bool:
        return await addresses(cluster, service) == sorted(wanted)

    await until(holds, within=10)


@pytest.mark.usefixtures("nodes")
async def test_a_services_slice_shows_its_pods_and_belongs_to_it(cluster: Cluster) -> None:
    service = await make_service(cluster, labels={"team": "a"})
    async with cluster.controllers(add_endpoint_slices):
        await make_pod(cluster, "web-1", "10.1.0.1", hostname="one", subdomain="web")
        await make_pod(cluster, "other", "10.1.0.9", labels={"app": "other"})
        await until_addresses(cluster, "10.1.0.1")
        (found,) = await slices_of(cluster)
    pod = await cluster.read(PODS, "web-1")
    assert pod is not None
    assert found["addressType"] == "IPv4"
    assert found["ports"] == [{"name": "", "port": 8080, "protocol": "TCP"}]
    assert found["endpoints"] == [
        {
            "addresses": ["10.1.0.1"],
            "conditions": {"ready": True, "serving": True, "terminating": False},
            "hostname": "one",
            "nodeName": "node-1",
            "targetRef": {"kind": "Pod", "namespace": "default", "name": "web-1", "uid": pod["metadata"]["uid"]},
            "zone": "east",
        }
    ]
    metadata = found["metadata"]
    assert metadata["generateName"] == "web-"
    assert metadata["labels"] == {
        "team": "a",
        "kubernetes.io/service-name": "web",
        "endpointslice.kubernetes.io/managed-by": "endpointslice-controller.k8s.io",
    }
    assert metadata["ownerReferences"] == [
        {
            "apiVersion": "v1", "kind": "Service", "name": "web", "uid": service["metadata"]["uid"],
            "controller": True, "blockOwnerDeletion": True,
        }
    ]  # fmt: skip
    assert metadata["annotations"] == {"endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z"}


async def test_a_service_without_pods_has_one_empty_slice(cluster: Cluster) -> None:
    service = await make_service(cluster, clusterIP="None", ports=[])
    async with cluster.controllers(add_endpoint_slices):
        (found,) = await until(lambda: slices_of(cluster), within=10)
    assert found["endpoints"] is None
    assert found["ports"] is None
    assert found["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
    created = service["metadata"]["creationTimestamp"]
    assert found["metadata"]["annotations"] == {"endpoints.kubernetes.io/last-change-trigger-time": created}


@pytest.mark.usefixtures("nodes")
async def test_a_slice_follows_its_pods_through_readiness_and_deletion(cluster: Cluster) -> None:
    await make_service(cluster)
    async with cluster.controllers(add_endpoint_slices):
        await make_pod(cluster, "web-1", "10.1.0.1", ready=False)
        await make_pod(cluster, "web-2", "10.1.0.2")
        await until_addresses(cluster, "10.1.0.1", "10.1.0.2")
        await cluster.set_status(PODS, "web-1", ready_status(["10.1.0.1"]))

        async def conditions() -> list[Any]:
            (found,) = await slices_of(cluster)
            return [endpoint["conditions"] for endpoint in found["endpoints"] or ()]

        async def all_ready() -> bool:
            return [each["ready"] for each in await conditions()] == [True, True]

        await until(all_ready, within=10)
        await cluster.client.delete(PODS, "web-2", "default", grace_seconds=60)

        async def one_goes() -> bool:
            going = {"ready": False, "serving": True, "terminating": True}
            return going in await conditions()

        await until(one_goes, within=10)
        await cluster.client.delete(PODS, "web-2", "default", grace_seconds=0)
        await until_addresses(cluster, "10.1.0.1")
        await cluster.set_status(PODS, "web-1", {"phase": "Succeeded"})
        await until_addresses(cluster)
        assert len(await slices_of(cluster)) == 1


@pytest.mark.usefixtures("nodes")
async def test_nothing_is_written_at_rest_nor_after_a_restart(cluster: Cluster) -> None:
    await make_service(cluster)
    await make_service(cluster, "empty", selector={"app": "nobody"})
    await make_service(cluster, "custom", selector=None)
    await cluster.make(
        ENDPOINTS,
        {"metadata": {"name": "custom"}, "subsets": [{"addresses": [{"ip": "10.9.0.1"}], "ports": [{"port": 1}]}]},
    )
    await make_pod(cluster, "web-1", "10.1.0.1")
    async with cluster.controllers(add_endpoint_slices) as manager:
        await until_addresses(cluster, "10.1.0.1")
        await until_addresses(cluster, "10.9.0.1", service="custom")
        await until(lambda: slices_of(cluster, "empty"), within=10)
        before = writes_of(manager)
        await cluster.client.merge_patch(PODS, "web-1", {"metadata": {"annotations": {"a": "b"}}}, "default")
        await make_service(cluster, "fence-1", selector={"app": "nobody"})
        await until(lambda: slices_of(cluster, "fence-1"), within=10)
        assert writes_of(manager) == before + 1
    async with cluster.controllers(add_endpoint_slices) as again:
        await make_service(cluster, "fence-2", selector={"app": "nobody"})
        await until(lambda: slices_of(cluster, "fence-2"), within=10)
        assert writes_of(again) == 1


@pytest.mark.usefixtures("nodes")
async def test_more_pods_than_a_slice_holds_are_spread_over_several(cluster: Cluster) -> None:
    await make_service(cluster)
    for number in range(5):
        await make_pod(cluster, f"web-{number}", f"10.1.0.{number}")
    async with cluster.controllers(lambda manager: add_endpoint_slices(manager, max_endpoints_per_slice=2)):
        await until_addresses(cluster, *(f"10.1.0.{number}" for number in range(5)))
        assert sorted(len(found["endpoints"]) for found in await slices_of(cluster)) == [1, 2, 2]


async def test_a_pod_whose_node_is_unknown_waits_for_it(cluster: Cluster) -> None:
    await make_service(cluster)
    await make_pod(cluster, "web-1", "10.1.0.1", node="node-7")
    async with cluster.controllers(add_endpoint_slices):
        await until(lambda: slices_of(cluster), within=10)
        assert await addresses(cluster) == []
        await cluster.make(NODES, {"metadata": {"name": "node-7"}})
        await until_addresses(cluster, "10.1.0.1")


@pytest.mark.usefixtures("nodes")
async def test_what_somebody_did_to_a_slice_is_undone(cluster: Cluster) -> None:
    await make_service(cluster)
    await make_pod(cluster, "web-1", "10.1.0.1")
    async with cluster.controllers(add_endpoint_slices):
        await until_addresses(cluster, "10.1.0.1")
        (found,) = await slices_of(cluster)
        name = found["metadata"]["name"]
        await cluster.client.merge_patch(ENDPOINT_SLICES, name, {"endpoints": []}, "default")
        await until_addresses(cluster, "10.1.0.1")
        await cluster.client.delete(ENDPOINT_SLICES, name, "default")

        async def made_anew() -> bool:
            return any(found["metadata"]["name"] != name for found in await slices_of(cluster))

        await until(made_anew, within=10)
        await until_addresses(cluster, "10.1.0.1")


@pytest.mark.usefixtures("nodes")
async def test_a_changed_service_changes_its_slices(cluster: Cluster) -> None:
    await make_service(cluster)
    await make_pod(cluster, "web-1", "10.1.0.1")
    await make_pod(cluster, "new-1", "10.1.0.5", labels={"app": "new"})
    async with cluster.controllers(add_endpoint_slices):
        await until_addresses(cluster, "10.1.0.1")
        (before,) = await slices_of(cluster)
        patch = {
            "metadata": {"labels": {"x": "y"}},
            "spec": {"selector": {"app": "new"}, "trafficDistribution": "PreferSameZone"},
        }
        await cluster.client.merge_patch(SERVICES, "web", patch, "default")
        await until_addresses(cluster, "10.1.0.5")
        (after,) = await slices_of(cluster)
    assert after["metadata"]["name"] == before["metadata"]["name"]
    assert after["metadata"]["labels"]["x"] == "y"
    assert after["endpoints"][0]["hints"] == {"forZones": [{"name": "east"}]}
    assert "annotations" in after["metadata"]


async def test_zones_are_shared_out_as_long_as_all_have_nodes(cluster: Cluster) -> None:
    for zone in ("east", "west"):
        labels = {"topology.kubernetes.io/zone": zone}
        await cluster.make(NODES, {"metadata": {"name": zone, "labels": labels}})
        ready = {"allocatable": {"cpu": "4"}, "conditions": [{"type": "Ready", "status": "True"}]}
        await cluster.set_status(NODES, zone, ready)
    service = await make_service(cluster)
    annotation = {"metadata": {"annotations": {"service.kubernetes.io/topology-mode": "Auto"}}}
    await cluster.client.merge_patch(SERVICES, service["metadata"]["name"], annotation, "default")
    for number in range(3):
        await make_pod(cluster, f"web-{number}", f"10.1.0.{number}", node="east")
    await make_pod(cluster, "web-3", "10.1.0.3", node="west")

    async def zones() -> list[str]:
        endpoints = [endpoint for found in await slices_of(cluster) for endpoint in found["endpoints"] or ()]
        return sorted(zone["name"] for each in endpoints for zone in each.get("hints", {}).get("forZones", ()))

    async def said() -> set[str]:
        return {event["reason"] for event in await cluster.all(EVENTS)}

    async with cluster.controllers(add_endpoint_slices):

        async def shared_out() -> bool:
            return await zones() == ["east", "east", "west", "west"]

        async def not_any_more() -> bool:
            return await zones() == [] and "TopologyAwareHintsDisabled" in await said()

        await until(shared_out, within=10)
        await cluster.set_status(NODES, "west", {"conditions": [{"type": "Ready", "status": "False"}]})
        await until(not_any_more, within=10)
        assert await said() == {"TopologyAwareHintsEnabled", "TopologyAwareHintsDisabled"}


async def test_endpoints_written_by_hand_are_mirrored_until_their_service_selects(cluster: Cluster) -> None:
    await make_service(cluster, selector=None)
    subset = {
        "addresses": [{"ip": "10.9.0.1"}, {"ip": "fd00::1"}],
        "notReadyAddresses": [{"ip": "10.9.0.2"}],
        "ports": [{"name": "c", "port": 8080}, {"name": "b", "port": 81}],
    }
    made = await cluster.make(
        ENDPOINTS, {"metadata": {"name": "web", "labels": {"l": "1"}, "annotations": {"a": "1"}}, "subsets": [subset]}
    )
    async with cluster.controllers(add_endpoint_slices):
        await until_addresses(cluster, "10.9.0.1", "10.9.0.2", "fd00::1")
        found = {each["addressType"]: each for each in await slices_of(cluster)}
        assert [port["name"] for port in found["IPv4"]["ports"]] == ["c", "b"]
        assert found["IPv6"]["endpoints"] == [{"addresses": ["fd00::1"], "conditions": {"ready": True}}]
        assert found["IPv4"]["metadata"]["labels"] == {
            "l": "1",
            "kubernetes.io/service-name": "web",
            "endpointslice.kubernetes.io/managed-by": "endpointslicemirroring-controller.k8s.io",
        }
        assert found["IPv4"]["metadata"]["annotations"] == {"a": "1"}
        assert found["IPv4"]["metadata"]["ownerReferences"][0]["uid"] == made.metadata.uid
        fewer = {"subsets": [subset | {"addresses": [{"ip": "10.9.0.1"}]}]}
        await cluster.client.merge_patch(ENDPOINTS, "web", fewer, "default")
        await until_addresses(cluster, "10.9.0.1", "10.9.0.2")
        await cluster.client.merge_patch(SERVICES, "web", {"spec": {"selector": {"app": "web"}}}, "default")
        await until_addresses(cluster)


async def test_endpoints_that_ask_not_to_be_mirrored_are_not(cluster: Cluster) -> None:
    await make_service(cluster, selector=None)
    body = {"metadata": {"name": "web"}, "subsets": [{"addresses": [{"ip": "10.9.0.1"}], "ports": [{"port": 1}]}]}
    await cluster.make(ENDPOINTS, body)
    async with cluster.controllers(add_endpoint_slices):
        await until_addresses(cluster, "10.9.0.1")
        skip = {"metadata": {"labels": {"endpointslice.kubernetes.io/skip-mirror": "true"}}}
        await cluster.client.merge_patch(ENDPOINTS, "web", skip, "default")
        await until_addresses(cluster)
        assert await slices_of(cluster) == []
