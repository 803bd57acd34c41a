from __future__ import annotations

from typing import Any

from shoal.api.core import ENDPOINTS, PODS, SERVICES
from shoal.cluster.controllers.endpoints import add_endpoints
from tests.support.builders.services import make_pod, ready_status
from tests.support.clusters.client import until
from tests.support.clusters.faults import behind
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest


async def make_service(cluster: Cluster, name: str = "web", **spec: Any) -> None:
    labels = spec.pop("labels", {})
    given = {"selector": {"app": "web"}, "ports": [{"port": 80, "targetPort": 8080}]} | spec
    await cluster.make(SERVICES, {"metadata": {"name": name, "labels": labels}, "spec": given})


async def until_shown(
    cluster: Cluster, ready: list[str], not_ready: list[str] | None = None, name: str = "web"
) -> dict[str, Any]:
    async def shown() -> dict[str, Any] | None:
        found = await cluster.read(ENDPOINTS, name)
        subsets = (found or {}).get("subsets", [])
        have = [address["ip"] for subset in subsets for address in subset.get("addresses", ())]
        lack = [address["ip"] for subset in subsets for address in subset.get("notReadyAddresses", ())]
        return found if found is not None and have == ready and lack == (not_ready or []) else None

    found: dict[str, Any] = await until(shown, within=10)
    return found


async def test_endpoints_show_a_services_pods(cluster: Cluster) -> None:
    await make_service(cluster, labels={"team": "a"})
    async with cluster.controllers(add_endpoints):
        await make_pod(cluster, "web-2", "10.1.0.2", ready=False)
        await make_pod(cluster, "web-1", "10.1.0.1", hostname="one", subdomain="web")
        found = await until_shown(cluster, ["10.1.0.1"], ["10.1.0.2"])
    pod = await cluster.read(PODS, "web-1")
    assert pod is not None
    (subset,) = found["subsets"]
    assert subset["ports"] == [{"port": 8080, "protocol": "TCP"}]
    assert subset["addresses"] == [
        {
            "ip": "10.1.0.1",
            "hostname": "one",
            "nodeName": "node-1",
            "targetRef": {"kind": "Pod", "namespace": "default", "name": "web-1", "uid": pod["metadata"]["uid"]},
        }
    ]
    assert found["metadata"]["labels"] == {"team": "a", "endpoints.kubernetes.io/managed-by": "endpoint-controller"}
    assert found["metadata"]["annotations"] == {
        "endpoints.kubernetes.io/last-change-trigger-time": "2026-01-01T00:00:00Z"
    }


async def test_endpoints_follow_their_pods_and_go_with_their_service(cluster: Cluster) -> None:
    await make_service(cluster, clusterIP="None")
    async with cluster.controllers(add_endpoints):
        empty = await until_shown(cluster, [])
        assert empty["metadata"]["labels"]["service.kubernetes.io/headless"] == ""
        await make_pod(cluster, "web-1", "10.1.0.1", ready=False)
        await until_shown(cluster, [], ["10.1.0.1"])
        await cluster.set_status(PODS, "web-1", ready_status(["10.1.0.1"]))
        await until_shown(cluster, ["10.1.0.1"])
        await cluster.client.delete(PODS, "web-1", "default", grace_seconds=60)
        await until_shown(cluster, [])
        await cluster.client.delete(ENDPOINTS, "web", "default")
        await until_shown(cluster, [])
        await cluster.client.delete(SERVICES, "web", "default")

        async def gone() -> bool:
            return await cluster.read(ENDPOINTS, "web") is None

        await until(gone, within=10)


async def test_endpoints_whose_service_went_while_nobody_looked_are_removed(cluster: Cluster) -> None:
    await cluster.make(ENDPOINTS, {"metadata": {"name": "left"}})
    leader = {"annotations": {"control-plane.alpha.kubernetes.io/leader": "{}"}}
    await cluster.make(ENDPOINTS, {"metadata": {"name": "election"} | leader})
    async with cluster.controllers(add_endpoints):

        async def gone() -> bool:
            return await cluster.read(ENDPOINTS, "left") is None

        await until(gone, within=10)
        assert await cluster.read(ENDPOINTS, "election") is not None


async def test_endpoints_of_a_service_without_selector_are_left_alone(cluster: Cluster) -> None:
    await make_service(cluster, "custom", selector=None)
    await cluster.make(ENDPOINTS, {"metadata": {"name": "custom"}, "subsets": [{"addresses": [{"ip": "10.9.0.1"}]}]})
    await make_service(cluster)
    await make_pod(cluster, "web-1", "10.1.0.1")
    async with cluster.controllers(add_endpoints) as manager:
        await until_shown(cluster, ["10.1.0.1"])
        await until_shown(cluster, ["10.9.0.1"], name="custom")
        assert writes_of(manager) == 1
    async with cluster.controllers(add_endpoints) as again:
        await make_service(cluster, "fence")
        await until_shown(cluster, ["10.1.0.1"], name="fence")
        assert writes_of(again) == 1


async def test_endpoints_of_a_service_that_is_not_seen_yet_stay(cluster: Cluster) -> None:
    by_hand = {"metadata": {"name": "db"}, "subsets": [{"addresses": [{"ip": "10.9.0.1"}], "ports": [{"port": 80}]}]}
    async with cluster.controllers(add_endpoints) as manager:
        seen = manager.cache.informer(ENDPOINTS)
        with behind(manager.cache.informer(SERVICES)):
            await make_service(cluster, "db", selector=None)
            with behind(seen):
                await cluster.make(ENDPOINTS, by_hand)
                await cluster.client.delete(ENDPOINTS, "db", "default")
                made = await cluster.make(ENDPOINTS, by_hand)
            await at_rest(manager)
            found = await cluster.read(ENDPOINTS, "db")
    assert found is not None
    assert found["metadata"]["uid"] == made.metadata.uid
