"""The next reconcile of a key sees what the last one wrote, through informers that select too; and nothing hangs."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any

import pytest

from shoal.api.apps import DEPLOYMENTS
from shoal.api.core import CONFIG_MAPS, SECRETS
from shoal.api.meta import PartialObject, Resource
from shoal.kube import Client, Controller, Key, Manager
from shoal.kube.freshness import WriteLog, recording
from tests.support.clusters.faults import behind
from tests.support.clusters.in_process import Cluster
from tests.support.waiting import eventually

KEPT = SECRETS.view(PartialObject)
SETS = DEPLOYMENTS.view(PartialObject)
OURS = {"app": "web"}
NAMESPACE = "default"


def a_secret(name: str, labels: dict[str, str] | None = None, kind: str = "Opaque") -> dict[str, Any]:
    return {"metadata": {"name": name, "labels": labels or {}}, "type": kind}


def a_deployment(name: str, labels: dict[str, str]) -> dict[str, Any]:
    template = {"metadata": {"labels": OURS}, "spec": {"containers": [{"name": "main", "image": "i"}]}}
    spec = {"replicas": 1, "selector": {"matchLabels": OURS}, "template": template}
    return {"metadata": {"name": name, "labels": labels}, "spec": spec}


async def make_ours(client: Client) -> None:
    await client.create(KEPT, a_secret("new", OURS), NAMESPACE)


async def make_foreign(client: Client) -> None:
    await client.create(KEPT, a_secret("new"), NAMESPACE)


async def make_plain(client: Client) -> None:
    await client.create(KEPT, a_secret("new", kind="example.com/plain"), NAMESPACE)


async def take_in(client: Client) -> None:
    await client.merge_patch(KEPT, "foreign", {"metadata": {"labels": OURS}}, NAMESPACE)


async def pretend_to_take_in(client: Client) -> None:
    await client.merge_patch(KEPT, "foreign", {"metadata": {"annotations": {"seen": "yes"}}}, NAMESPACE)
    await client.merge_patch(KEPT, "foreign", {"metadata": {"labels": OURS}}, NAMESPACE, dry_run=True)


async def let_go(client: Client) -> None:
    await client.merge_patch(KEPT, "ours", {"metadata": {"labels": {"app": None}}}, NAMESPACE)


async def make_and_let_go(client: Client) -> None:
    await make_ours(client)
    await client.merge_patch(KEPT, "new", {"metadata": {"labels": {"app": None}}}, NAMESPACE)


async def change_foreign(client: Client) -> None:
    await client.merge_patch(KEPT, "foreign", {"metadata": {"labels": {"app": "other"}}}, NAMESPACE)


async def delete_ours(client: Client) -> None:
    await client.delete(KEPT, "ours", NAMESPACE)


async def delete_foreign(client: Client) -> None:
    await client.delete(KEPT, "foreign", NAMESPACE)


async def scale_shown(client: Client) -> None:
    await client.scale(SETS, "shown", 2, NAMESPACE)


async def scale_hidden(client: Client) -> None:
    await client.scale(SETS, "hidden", 2, NAMESPACE)


@dataclass(frozen=True)
class Story:
    """What a reconcile writes, what its informer selects, and what that holds, by name, once it shows the write."""

    write: Callable[[Client], Awaitable[None]]
    resource: Resource[Any] = KEPT
    labels: str = "app=web"
    fields: str = ""
    shows: frozenset[str] = frozenset({"ours"})


WAITED_FOR = {
    "an object is made": Story(make_ours, shows=frozenset({"ours", "new"})),
    "an object of a type is made": Story(
        make_plain, labels="", fields="type=example.com/plain", shows=frozenset({"new"})
    ),
    "an object of a name is made": Story(make_foreign, labels="", fields="metadata.name=new", shows=frozenset({"new"})),
    "labels begin to match": Story(take_in, shows=frozenset({"ours", "foreign"})),
    "labels match no more": Story(let_go, shows=frozenset()),
    "labels match for a moment": Story(make_and_let_go),
    "an object is deleted": Story(delete_ours, shows=frozenset()),
    "an object is scaled": Story(scale_shown, resource=SETS, labels="!hidden", shows=frozenset({"shown"})),
}
NOT_WAITED_FOR = {
    "an object is made that has no such labels": Story(make_foreign),
    "an object of another type is made": Story(make_ours, fields="type=example.com/plain", shows=frozenset()),
    "labels change that do not match": Story(change_foreign),
    "labels would match, on trial": Story(pretend_to_take_in),
    "an object is deleted that has no such labels": Story(delete_foreign),
    "an object is scaled whose labels exclude it": Story(
        scale_hidden, resource=SETS, labels="!hidden", shows=frozenset({"shown"})
    ),
}


class World:
    """One controller with one worker, which writes in its first reconcile, and an informer that selects."""

    def __init__(self, story: Story) -> None:
        self._story = story
        self.reconciled: list[str] = []
        self.shown: frozenset[str] | None = None
        """What the informer showed to the second reconcile."""

    def add(self, manager: Manager) -> None:
        story = self._story
        self.informer = manager.cache.informer(story.resource, label_selector=story.labels, field_selector=story.fields)
        self._client = manager.client
        self.controller = Controller("shelves", CONFIG_MAPS, self._reconcile, workers=1)
        manager.add(self.controller)

    def call(self, name: str) -> None:
        self.controller.enqueue(Key("", name))

    async def _reconcile(self, key: Key) -> None:
        if key.namespace:
            return  # a map that the cluster has by itself
        if key.name == "shelf" and "shelf" not in self.reconciled:
            await self._story.write(self._client)
        elif key.name == "shelf":
            self.shown = frozenset(found.metadata.name for found in self.informer.items())
        self.reconciled.append(key.name)


async def fill(cluster: Cluster) -> None:
    await cluster.make(SECRETS, a_secret("ours", OURS))
    await cluster.make(SECRETS, a_secret("foreign"))
    await cluster.make(DEPLOYMENTS, a_deployment("shown", {}))
    await cluster.make(DEPLOYMENTS, a_deployment("hidden", {"hidden": "yes"}))


@pytest.mark.parametrize("story", [pytest.param(story, id=name) for name, story in WAITED_FOR.items()])
async def test_a_key_rests_until_a_selecting_informer_shows_what_was_written(cluster: Cluster, story: Story) -> None:
    await fill(cluster)
    world = World(story)
    async with cluster.controllers(world.add):
        with behind(world.informer):
            world.call("shelf")
            await eventually(lambda: world.reconciled == ["shelf"])
            world.call("shelf")
            world.call("other")
            await eventually(lambda: "other" in world.reconciled)
            assert world.reconciled == ["shelf", "other"]
        await eventually(lambda: world.reconciled == ["shelf", "other", "shelf"])
        assert world.shown == story.shows


@pytest.mark.parametrize("story", [pytest.param(story, id=name) for name, story in NOT_WAITED_FOR.items()])
async def test_a_key_does_not_rest_for_what_an_informer_is_never_told_of(cluster: Cluster, story: Story) -> None:
    await fill(cluster)
    world = World(story)
    async with cluster.controllers(world.add):
        with behind(world.informer):
            world.call("shelf")
            await eventually(lambda: world.reconciled == ["shelf"])
            world.call("shelf")
            await eventually(lambda: world.reconciled == ["shelf", "shelf"], within=4.0)
            assert world.shown == story.shows


async def test_an_informer_of_another_namespace_is_not_waited_for(cluster: Cluster) -> None:
    async with cluster.controllers() as manager:
        near = manager.cache.informer(KEPT, namespace=NAMESPACE, label_selector="app=web")
        far = manager.cache.informer(KEPT, namespace="kube-system", label_selector="app=web")
        await manager.cache.wait_for_sync(within=10)
        log = WriteLog(manager.cache.selecting)
        with behind(near), behind(far), recording(log):
            await make_ours(manager.client)
            assert list(log.selected) == [near]
            assert not manager.cache.shows(log)
        assert await manager.cache.wait_for_writes(log, within=10)


async def test_an_informer_that_is_not_vital_is_not_waited_for(cluster: Cluster) -> None:
    async with cluster.controllers() as manager:
        informer = manager.cache.informer(KEPT, label_selector="app=web", is_vital=False)
        await informer.wait_for_sync()
        log = WriteLog(manager.cache.selecting)
        with behind(informer), recording(log):
            await make_ours(manager.client)
            assert manager.cache.shows(log)
