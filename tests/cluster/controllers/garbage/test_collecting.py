"""The collector on the embedded server."""

from __future__ import annotations

import asyncio
import time
from typing import Any

import msgspec
import pytest

from shoal.api.core import CONFIG_MAPS, EVENTS, NAMESPACES, NODES, PODS, SECRETS
from shoal.api.meta import Document, Resource
from shoal.cluster.controllers.garbage import add_garbage_collector, kinds
from shoal.cluster.indexes import all_pods
from shoal.kube import Informer, Manager, running
from shoal.kube.admission.configuration import CUSTOM_RESOURCE_DEFINITIONS
from shoal.kube.backoff import Backoff
from shoal.kube.queries import Propagation
from shoal.kube.transport import Request, Response
from tests.support.clusters.client import install, until
from tests.support.clusters.faults import FaultyTransport
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.schemas.widgets import WIDGET_DEFINITION, WIDGETS

Content = dict[str, Any]
HOLD = "example.com/hold"


def reference(owner: Document, **more: Any) -> Content:
    said = {key: owner.content[key] for key in ("apiVersion", "kind")}
    return said | {"name": owner.metadata.name, "uid": owner.metadata.uid} | more


def named(name: str, *owners: Content, finalizers: tuple[str, ...] = ()) -> Content:
    return {"metadata": {"name": name, "ownerReferences": list(owners), "finalizers": list(finalizers)}}


async def a_map(
    cluster: Cluster, name: str, *owners: Content, finalizers: tuple[str, ...] = (), namespace: str = "default"
) -> Document:
    return await cluster.make(CONFIG_MAPS, named(name, *owners, finalizers=finalizers), namespace)


async def delete(cluster: Cluster, name: str, how: Propagation | None, resource: Resource[Any] = CONFIG_MAPS) -> None:
    await cluster.client.delete(resource, name, "default" if resource.namespaced else "", propagation=how)


async def is_gone(cluster: Cluster, *names: str, resource: Resource[Any] = CONFIG_MAPS) -> None:
    async def gone() -> bool:
        return not [name for name in names if await cluster.read(resource, name) is not None]

    await until(gone, within=10)


async def release(cluster: Cluster, name: str) -> None:
    await cluster.client.merge_patch(CONFIG_MAPS, name, {"metadata": {"finalizers": None}}, "default")


def owners_of(found: Content | None) -> list[str]:
    assert found is not None
    return [owner["name"] for owner in found["metadata"].get("ownerReferences", [])]


async def settled(manager: Manager, cluster: Cluster) -> None:
    """Waits until the collector has looked at all there was to look at before: it has collected one that came after."""
    await cluster.make(
        SECRETS,
        named("marker", {"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "never"}),
    )
    await is_gone(cluster, "marker", resource=SECRETS)


async def test_dependents_go_after_their_owner_and_theirs_after_them(cluster: Cluster) -> None:
    async with cluster.controllers(add_garbage_collector):
        owner = await a_map(cluster, "owner")
        child = await a_map(cluster, "child", reference(owner))
        await cluster.make(SECRETS, named("grandchild", reference(child)))
        await a_map(cluster, "other")
        await delete(cluster, "owner", "Background")
        await is_gone(cluster, "owner", "child")
        await is_gone(cluster, "grandchild", resource=SECRETS)
        assert await cluster.read(CONFIG_MAPS, "other") is not None


async def test_what_is_left_with_one_owner_loses_the_reference_to_the_other(cluster: Cluster) -> None:
    async with cluster.controllers(add_garbage_collector):
        owners = [await a_map(cluster, name) for name in ("first", "second")]
        await a_map(cluster, "child", *map(reference, owners))
        await delete(cluster, "first", "Background")

        async def is_detached() -> bool:
            return owners_of(await cluster.read(CONFIG_MAPS, "child")) == ["second"]

        await until(is_detached)
        await delete(cluster, "second", "Background")
        await is_gone(cluster, "child")


async def test_what_was_orphaned_or_abandoned_before_the_start_is_dealt_with(cluster: Cluster) -> None:
    owner = await a_map(cluster, "owner")
    await a_map(cluster, "child", reference(owner))
    await delete(cluster, "owner", "Background")
    other = await a_map(cluster, "orphaning")
    await a_map(cluster, "orphan", reference(other))
    await delete(cluster, "orphaning", "Orphan")
    waiting = await a_map(cluster, "waiting")
    await a_map(cluster, "awaited", reference(waiting, blockOwnerDeletion=True))
    await delete(cluster, "waiting", "Foreground")
    async with cluster.controllers(add_garbage_collector):
        await is_gone(cluster, "child", "orphaning", "waiting", "awaited")
        assert owners_of(await cluster.read(CONFIG_MAPS, "orphan")) == []


async def test_in_the_foreground_an_owner_stays_until_those_that_block_it_are_gone(cluster: Cluster) -> None:
    async with cluster.controllers(add_garbage_collector):
        owner = await a_map(cluster, "owner")
        blocks = {"blockOwnerDeletion": True}
        await a_map(cluster, "held", reference(owner, **blocks), finalizers=(HOLD,))
        await a_map(cluster, "free", reference(owner, **blocks))
        branch = await a_map(cluster, "branch", reference(owner, **blocks))
        await a_map(cluster, "leaf", reference(branch, **blocks))
        await delete(cluster, "owner", "Foreground")
        await is_gone(cluster, "free", "branch", "leaf")
        found = await cluster.read(CONFIG_MAPS, "owner")
        assert found is not None
        assert found["metadata"]["finalizers"] == ["foregroundDeletion"]
        await release(cluster, "held")
        await is_gone(cluster, "held", "owner")


async def test_a_dependent_that_does_not_block_keeps_no_owner_waiting(cluster: Cluster) -> None:
    async with cluster.controllers(add_garbage_collector):
        owner = await a_map(cluster, "owner")
        await a_map(cluster, "held", reference(owner), finalizers=(HOLD,))
        await delete(cluster, "owner", "Foreground")
        await is_gone(cluster, "owner")
        found = await cluster.read(CONFIG_MAPS, "held")
        assert found is not None
        assert "deletionTimestamp" in found["metadata"]


async def test_an_owner_goes_when_a_dependent_stops_blocking_it(cluster: Cluster) -> None:
    async with cluster.controllers(add_garbage_collector):
        owner = await a_map(cluster, "owner")
        await a_map(cluster, "held", reference(owner, blockOwnerDeletion=True), finalizers=(HOLD,))
        await delete(cluster, "owner", "Foreground")

        async def is_asked() -> bool:
            return "deletionTimestamp" in (await cluster.read(CONFIG_MAPS, "held") or {})["metadata"]

        await until(is_asked)
        patch = [{"op": "replace", "path": "/metadata/ownerReferences/0/blockOwnerDeletion", "value": False}]
        await cluster.client.json_patch(CONFIG_MAPS, "held", patch, "default")
        await is_gone(cluster, "owner")


async def test_a_dependent_with_another_owner_survives_a_foreground_deletion(cluster: Cluster) -> None:
    async with cluster.controllers(add_garbage_collector):
        owner, keeper = await a_map(cluster, "owner"), await a_map(cluster, "keeper")
        await a_map(cluster, "child", reference(owner, blockOwnerDeletion=True), reference(keeper))
        await delete(cluster, "owner", "Foreground")
        await is_gone(cluster, "owner")
        assert owners_of(await cluster.read(CONFIG_MAPS, "child")) == ["keeper"]


async def test_two_that_own_each_other_do_not_wait_for_ever(cluster: Cluster) -> None:
    async with cluster.controllers(add_garbage_collector):
        first = await a_map(cluster, "first")
        second = await a_map(cluster, "second", reference(first, blockOwnerDeletion=True))
        back = {"metadata": {"ownerReferences": [reference(second, blockOwnerDeletion=True)]}}
        await cluster.client.merge_patch(CONFIG_MAPS, "first", back, "default")
        await delete(cluster, "first", "Foreground")
        await is_gone(cluster, "first", "second")


async def test_orphaned_dependents_stay_without_the_reference(cluster: Cluster) -> None:
    async with cluster.controllers(add_garbage_collector):
        await install(cluster.client, WIDGET_DEFINITION)
        owner, keeper = await a_map(cluster, "owner"), await a_map(cluster, "keeper")
        await a_map(cluster, "child", reference(owner))
        await a_map(cluster, "shared", reference(keeper), reference(owner, controller=True))

        async def is_made() -> Document:
            return await cluster.make(WIDGETS, named("widget", reference(owner)))

        await until(is_made)
        await settled_kind(cluster, "widget")
        await delete(cluster, "owner", "Orphan")
        await is_gone(cluster, "owner")
        assert owners_of(await cluster.read(CONFIG_MAPS, "child")) == []
        assert owners_of(await cluster.read(CONFIG_MAPS, "shared")) == ["keeper"]
        assert owners_of(await cluster.read(WIDGETS, "widget")) == []


async def settled_kind(cluster: Cluster, name: str) -> None:
    """Waits until the collector knows widgets: it has collected one without an owner."""
    lost = {"apiVersion": "v1", "kind": "ConfigMap", "name": "never", "uid": "never"}
    await cluster.make(WIDGETS, named("lost", lost))
    await is_gone(cluster, "lost", resource=WIDGETS)


async def test_an_owner_of_the_same_name_but_another_uid_is_no_owner(cluster: Cluster) -> None:
    async with cluster.controllers(add_garbage_collector):
        old = await a_map(cluster, "owner")
        await delete(cluster, "owner", "Background")
        await a_map(cluster, "owner")
        await a_map(cluster, "child", reference(old))
        await is_gone(cluster, "child")
        assert await cluster.read(CONFIG_MAPS, "owner") is not None


async def test_a_reference_whose_kind_does_not_fit_its_uid_names_nobody(cluster: Cluster) -> None:
    async with cluster.controllers(add_garbage_collector):
        owner = await a_map(cluster, "owner")
        await a_map(cluster, "child", reference(owner) | {"kind": "Secret"})
        await is_gone(cluster, "child")


async def test_an_owner_in_another_namespace_is_no_owner_and_that_is_told(cluster: Cluster) -> None:
    await cluster.make(NAMESPACES, {"metadata": {"name": "other"}})
    async with cluster.controllers(add_garbage_collector):
        owner = await a_map(cluster, "owner", namespace="other")
        child = await a_map(cluster, "child", reference(owner))
        await is_gone(cluster, "child")

        async def told() -> list[Content]:
            return [event for event in await cluster.all(EVENTS) if event["reason"] == "OwnerRefInvalidNamespace"]

        [event] = await until(told)
        coordinates = f"[v1/ConfigMap, namespace: default, name: owner, uid: {owner.metadata.uid}]"
        assert event["message"] == f'ownerRef {coordinates} does not exist in namespace "default"'
        assert event["type"] == "Warning"
        assert event["involvedObject"] == {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "namespace": "default",
            "name": "child",
            "uid": child.metadata.uid,
        }


async def test_a_cluster_scoped_object_outlives_an_owner_that_it_cannot_have(cluster: Cluster) -> None:
    async with cluster.controllers(add_garbage_collector) as manager:
        owner = await a_map(cluster, "owner")
        await cluster.make(NODES, named("node", reference(owner)))
        await delete(cluster, "owner", "Background")
        await settled(manager, cluster)
        # By its deletion event the owner is known to be gone, but it never was where the node looks for it.
        assert await cluster.read(NODES, "node") is not None


async def test_a_cluster_scoped_owner_has_dependents_anywhere(cluster: Cluster) -> None:
    async with cluster.controllers(add_garbage_collector):
        node = await cluster.make(NODES, named("node"))
        await a_map(cluster, "child", reference(node))
        await delete(cluster, "node", "Background", NODES)
        await is_gone(cluster, "child")


async def test_a_dependent_of_an_unknown_kind_stays_until_the_kind_is_known(cluster: Cluster) -> None:
    async with cluster.controllers(add_garbage_collector) as manager:
        lost = {"apiVersion": "example.com/v1", "kind": "Widget", "name": "w", "uid": "never"}
        await a_map(cluster, "child", lost)
        await settled(manager, cluster)
        assert await cluster.read(CONFIG_MAPS, "child") is not None
        await install(cluster.client, WIDGET_DEFINITION)
        await is_gone(cluster, "child")


async def test_a_kind_is_followed_while_it_is_defined(cluster: Cluster) -> None:
    def followed(manager: Manager) -> list[Informer[Any]]:
        return [one for one in manager.cache.informers if one.resource.plural == "widgets"]

    async with cluster.controllers(add_garbage_collector) as manager:
        await install(cluster.client, WIDGET_DEFINITION)

        async def is_followed() -> bool:
            return bool(followed(manager))

        await until(is_followed)
        owner = await cluster.make(WIDGETS, named("owner"))
        await cluster.make(WIDGETS, named("child", reference(owner)))
        await a_map(cluster, "map", reference(owner))
        await delete(cluster, "owner", "Background", WIDGETS)
        await is_gone(cluster, "owner", "child", resource=WIDGETS)
        await is_gone(cluster, "map")

        last = await cluster.make(WIDGETS, named("last"))
        await a_map(cluster, "map", reference(last))
        await delete(cluster, "widgets.example.com", None, CUSTOM_RESOURCE_DEFINITIONS)

        async def is_let_go() -> bool:
            return not followed(manager)

        await is_gone(cluster, "map")
        await until(is_let_go)


async def test_pods_are_not_read_twice(cluster: Cluster) -> None:
    def readers(manager: Manager) -> None:
        all_pods(manager)

    async with cluster.controllers(readers, add_garbage_collector) as manager:
        node = await cluster.make(NODES, named("node"))
        pod = named("pod", reference(node)) | {"spec": {"containers": [{"name": "main", "image": "image"}]}}
        await cluster.make(PODS, pod)
        await delete(cluster, "node", "Background", NODES)
        await is_gone(cluster, "pod", resource=PODS)
        assert len([one for one in manager.cache.informers if one.resource.plural == "pods"]) == 1


async def test_at_rest_and_after_a_restart_nothing_is_written(cluster: Cluster) -> None:
    owner = await a_map(cluster, "owner")
    for number in range(5):
        await a_map(cluster, f"child-{number}", reference(owner))
    for _ in range(2):
        async with cluster.controllers(add_garbage_collector) as manager:
            await settled(manager, cluster)
            assert writes_of(manager) == 1  # the marker's own deletion
    assert len(await cluster.all(CONFIG_MAPS, labels="")) >= 6


async def test_a_kind_that_is_for_a_while_not_served_costs_no_dependents(cluster: Cluster) -> None:
    async with cluster.controllers(add_garbage_collector) as manager:
        owner = await a_map(cluster, "owner")
        await cluster.make(SECRETS, named("child", reference(owner)))
        await settled(manager, cluster)
        [maps] = [one for one in manager.cache.informers if one.resource.plural == "configmaps"]
        maps.unserved()
        await settled(manager, cluster)
        assert await cluster.read(SECRETS, "child") is not None


async def test_a_kind_that_cannot_be_read_does_not_hold_up_the_others(cluster: Cluster) -> None:
    transport = FaultyTransport(cluster.server.transport())
    transport.faults.append(lambda request: Response(500, {}, b"{}") if request.path == "/api/v1/secrets" else None)
    manager = Manager(transport, name="controllers")
    add_garbage_collector(manager)
    async with running(manager):
        owner = await a_map(cluster, "owner")
        await a_map(cluster, "child", reference(owner))
        await delete(cluster, "owner", "Background")
        await is_gone(cluster, "child")
        assert manager._informers_check() == ""


async def test_a_kind_that_was_not_listed_for_a_while_is_followed_as_before(cluster: Cluster) -> None:
    await install(cluster.client, WIDGET_DEFINITION)
    transport = FaultyTransport(cluster.server.transport())
    manager = Manager(transport, name="controllers")
    add_garbage_collector(manager)
    answers: list[bool] = []

    def forgetful(request: Request) -> Response | None:
        if request.path != "/apis":
            return None
        answers.append(len(answers) < 3)
        return Response(200, {}, b'{"items": []}') if answers[-1] else None

    async def is_listed_again() -> bool:
        return answers[-1:] == [False]

    async with running(manager):
        await cluster.make(WIDGETS, named("held"))
        await settled(manager, cluster)
        transport.faults.append(forgetful)
        news = {"metadata": {"labels": {"any": "news"}}}
        await cluster.client.merge_patch(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.com", news)
        await until(is_listed_again)
        await settled(manager, cluster)

        await delete(cluster, "held", None, WIDGETS)
        await is_gone(cluster, "held", resource=WIDGETS)
        owner = await cluster.make(WIDGETS, named("owner"))
        await cluster.make(WIDGETS, named("child", reference(owner)))
        await delete(cluster, "owner", "Background", WIDGETS)
        await is_gone(cluster, "owner", "child", resource=WIDGETS)


async def test_a_dependent_whose_deletion_is_refused_is_tried_again(cluster: Cluster) -> None:
    transport = FaultyTransport(cluster.server.transport())
    refusals = 3

    def refuse(request: Request) -> Response | None:
        nonlocal refusals
        if request.method != "DELETE" or not refusals:
            return None
        refusals -= 1
        return Response(409, {}, b'{"kind": "Status", "reason": "Conflict", "code": 409}')

    transport.faults.append(refuse)
    manager = Manager(transport, name="controllers")
    add_garbage_collector(manager)
    async with running(manager):
        owner = await a_map(cluster, "owner")
        await a_map(cluster, "child", reference(owner))
        await delete(cluster, "owner", "Background")
        await is_gone(cluster, "child")


async def test_news_of_definitions_do_not_add_up_while_some_kinds_are_not_known(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kinds, "AGAIN", Backoff(initial=0.1, cap=0.1))
    await install(cluster.client, WIDGET_DEFINITION)
    transport = FaultyTransport(cluster.server.transport())
    asked: list[float] = []

    def unfinished(request: Request) -> Response | None:
        if request.path != "/apis":
            return None
        asked.append(time.monotonic())
        stale = {"metadata": {"name": "example.org"}, "versions": [{"version": "v1", "freshness": "Stale"}]}
        return Response(200, {}, msgspec.json.encode({"items": [stale]}))

    transport.faults.append(unfinished)
    manager = Manager(transport, name="controllers")
    add_garbage_collector(manager)
    async with running(manager):
        for number in range(20):
            news = {"metadata": {"labels": {"number": str(number)}}}
            await cluster.client.merge_patch(CUSTOM_RESOURCE_DEFINITIONS, "widgets.example.com", news)
            await asyncio.sleep(0.02)
        asked.clear()
        await asyncio.sleep(0.5)
        assert len(asked) < 8


async def test_many_dependents_go_at_once(cluster: Cluster) -> None:
    async with cluster.controllers(add_garbage_collector):
        owner = await a_map(cluster, "owner")
        await asyncio.gather(*(a_map(cluster, f"child-{number}", reference(owner)) for number in range(300)))
        await delete(cluster, "owner", "Foreground")
        await is_gone(cluster, "owner", *(f"child-{number}" for number in range(300)))
