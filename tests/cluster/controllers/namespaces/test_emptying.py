"""Namespace deletion on the embedded server."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec

from shoal.api.core import CONFIG_MAPS, NAMESPACES, NODES, PODS, SECRETS, SERVICE_ACCOUNTS
from shoal.cluster.controllers.garbage import add_garbage_collector
from shoal.cluster.controllers.namespaces import add_namespaces
from shoal.kube import Manager, running
from shoal.kube.transport import Request, Response
from tests.support.builders.pods import pod_manifest
from tests.support.clusters.client import install, requests, until
from tests.support.clusters.faults import FaultyTransport
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.schemas.widgets import WIDGET_DEFINITION, WIDGETS

Content = dict[str, Any]
HOLD = "example.com/hold"


async def make_namespace(cluster: Cluster, name: str = "team", **spec: Any) -> None:
    await cluster.make(NAMESPACES, {"metadata": {"name": name}, "spec": spec})


async def delete(cluster: Cluster, name: str = "team") -> None:
    await cluster.client.delete(NAMESPACES, name)


async def is_gone(cluster: Cluster, name: str = "team", *, within: float = 5.0) -> None:
    async def gone() -> bool:
        return await cluster.read(NAMESPACES, name) is None

    await until(gone, within=within)


async def said_of(cluster: Cluster, type_: str, name: str = "team") -> Content:
    """The first answer that a namespace has to one question."""

    async def condition() -> Content | None:
        found = await cluster.read(NAMESPACES, name)
        assert found is not None
        return next((one for one in found["status"].get("conditions", []) if one["type"] == type_), None)

    answer: Content = await until(condition)
    return answer


async def make_running_pod(cluster: Cluster, name: str) -> None:
    """A pod on a node, which does not go before its node says so."""
    if await cluster.read(SERVICE_ACCOUNTS, "default", "team") is None:
        await cluster.make(SERVICE_ACCOUNTS, {"metadata": {"name": "default"}}, "team")
    await cluster.make(PODS, pod_manifest(name, node="node"), "team")


async def test_an_empty_namespace_goes_at_once(cluster: Cluster) -> None:
    async with cluster.controllers(add_namespaces):
        await make_namespace(cluster)
        await delete(cluster)
        began = time.monotonic()
        await is_gone(cluster)
        assert time.monotonic() - began < 2


async def test_everything_in_a_namespace_goes_and_nothing_elsewhere(cluster: Cluster) -> None:
    await install(cluster.client, WIDGET_DEFINITION)
    async with cluster.controllers(add_namespaces):
        await make_namespace(cluster)
        for namespace in ("team", "default"):
            await cluster.make(CONFIG_MAPS, {"metadata": {"name": "settings"}}, namespace)
            await cluster.make(SECRETS, {"metadata": {"name": "secret"}}, namespace)
            await cluster.make(WIDGETS, {"metadata": {"name": "widget"}}, namespace)
        await delete(cluster)
        await is_gone(cluster)
        for resource, name in ((CONFIG_MAPS, "settings"), (SECRETS, "secret"), (WIDGETS, "widget")):
            assert await cluster.read(resource, name, "team") is None
            assert await cluster.read(resource, name) is not None


async def test_pods_go_before_everything_else(cluster: Cluster) -> None:
    await cluster.make(NODES, {"metadata": {"name": "node"}})
    await make_namespace(cluster)
    await make_running_pod(cluster, "first")
    await make_running_pod(cluster, "second")
    await cluster.make(CONFIG_MAPS, {"metadata": {"name": "settings"}}, "team")
    async with cluster.controllers(add_namespaces) as manager:
        await delete(cluster)
        said = await said_of(cluster, "NamespaceContentRemaining")
        assert said["status"] == "False"
        for pod in await cluster.all(PODS, "team"):
            assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
        assert await cluster.read(CONFIG_MAPS, "settings", "team") is not None
        before = writes_of(manager)
        await cluster.client.delete(PODS, "first", "team", grace_seconds=0)
        assert await cluster.read(CONFIG_MAPS, "settings", "team") is not None
        assert writes_of(manager) == before
        await cluster.client.delete(PODS, "second", "team", grace_seconds=0)
        await is_gone(cluster)


async def test_what_is_held_keeps_the_namespace_until_it_is_released(cluster: Cluster) -> None:
    await make_namespace(cluster)
    await cluster.make(CONFIG_MAPS, {"metadata": {"name": "held", "finalizers": [HOLD]}}, "team")
    await cluster.make(SECRETS, {"metadata": {"name": "free"}}, "team")
    async with cluster.controllers(add_namespaces, add_garbage_collector) as manager:
        await delete(cluster)
        said = await said_of(cluster, "NamespaceContentRemaining")
        assert (said["status"], said["reason"], said["message"]) == (
            "True",
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 1 resource instances",
        )
        said = await said_of(cluster, "NamespaceFinalizersRemaining")
        assert said["message"] == (
            "Some content in the namespace has finalizers remaining: example.com/hold in 1 resource instances"
        )
        assert await cluster.read(SECRETS, "free", "team") is None
        before = writes_of(manager)
    # One that is started meanwhile has nothing to write, and hears of the end.
    async with cluster.controllers(add_namespaces, add_garbage_collector) as manager:

        async def knows_maps() -> bool:
            return any(one.resource.plural == "configmaps" and one.has_synced for one in manager.cache.informers)

        await until(knows_maps)
        assert before > 0
        assert writes_of(manager) == 0
        await cluster.client.merge_patch(CONFIG_MAPS, "held", {"metadata": {"finalizers": None}}, "team")
        await is_gone(cluster, within=10)


async def test_the_finalizers_of_others_are_left_to_them(cluster: Cluster) -> None:
    await make_namespace(cluster, finalizers=["example.com/other"])
    async with cluster.controllers(add_namespaces):
        await delete(cluster)

        async def ours_is_off() -> bool:
            found = await cluster.read(NAMESPACES, "team")
            return found is not None and found["spec"]["finalizers"] == ["example.com/other"]

        await until(ours_is_off)
        found = await cluster.read(NAMESPACES, "team")
        assert found is not None
        assert {one["status"] for one in found["status"]["conditions"]} == {"False"}
    async with cluster.controllers(add_namespaces) as manager:
        await make_namespace(cluster, "next")
        await delete(cluster, "next")
        await is_gone(cluster, "next")
        assert writes_of(manager) == 2  # the conditions and the finalizer of the other one
    found["spec"]["finalizers"] = []
    found["metadata"].pop("resourceVersion")
    await cluster.client.update(NAMESPACES.documents(), found, name="team", subresource="finalize")
    await is_gone(cluster)


async def test_a_namespace_that_is_not_deleted_is_left_alone(cluster: Cluster) -> None:
    await make_namespace(cluster)
    await make_namespace(cluster, "other")
    await cluster.make(CONFIG_MAPS, {"metadata": {"name": "settings"}}, "team")
    async with cluster.controllers(add_namespaces):
        await delete(cluster, "other")
        await is_gone(cluster, "other")
        assert await cluster.read(CONFIG_MAPS, "settings", "team") is not None


async def test_while_some_kinds_are_not_known_a_namespace_stays_and_is_not_asked_for_all_the_time(
    cluster: Cluster,
) -> None:
    stale = {"metadata": {"name": "metrics.example.com"}, "versions": [{"version": "v1", "freshness": "Stale"}]}

    def unfinished(request: Request) -> Response | None:
        return Response(200, {}, msgspec.json.encode({"items": [stale]})) if request.path == "/apis" else None

    transport = FaultyTransport(cluster.server.transport())
    transport.faults.append(unfinished)
    manager = Manager(transport, name="controllers")
    add_namespaces(manager)
    async with running(manager):
        await make_namespace(cluster)
        await delete(cluster)
        assert (await said_of(cluster, "NamespaceDeletionDiscoveryFailure"))["status"] == "True"
        before = requests(manager.metrics)
        await asyncio.sleep(0.4)
        assert requests(manager.metrics) - before < 150  # one look is about fifty
        transport.faults.clear()
        await is_gone(cluster)
