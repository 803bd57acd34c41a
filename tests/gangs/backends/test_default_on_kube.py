"""Kubernetes 1.36 with its Workload API switched on: the words that the default backend uses, and what they achieve."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from shoal.api import grove, scheduler_grove_io
from shoal.api.core import NODES, PODS
from shoal.api.grove import POD_CLIQUE_SETS
from shoal.api.meta import Document, Resource
from shoal.api.scheduler_grove_io import POD_GANGS, PodGang
from shoal.api.scheduling_k8s_io import POD_GROUPS_V1ALPHA2, WORKLOADS_V1ALPHA2
from shoal.cluster.kubernetes import RealKubernetes
from shoal.cluster.kubernetes.launcher import Part
from shoal.gangs.backends import Backends
from shoal.gangs.backends.controller import add_backends
from shoal.gangs.caches import Caches
from shoal.kube import Client, HttpTransport, Manager, NotFound, Settings, load_connection, running
from tests.gangs.backends.builders import a_gang_body, a_group
from tests.gangs.builders import a_set
from tests.support.clusters.client import QUICK_PACE, client_to, until
from tests.support.clusters.in_process import writes_of
from tests.support.clusters.real import StartKube
from tests.support.waiting.at_rest import at_rest

GATES = "--feature-gates=GenericWorkload=true,GangScheduling=true"
FLAGS = {
    Part.API_SERVER: [GATES, "--runtime-config=scheduling.k8s.io/v1alpha2=true"],
    Part.CONTROLLER_MANAGER: [GATES],
    Part.SCHEDULER: [GATES],
}


@pytest.fixture
def kubernetes(start_kube: StartKube) -> RealKubernetes:
    definitions = [each.manifest() for each in (*grove.DEFINITIONS, *scheduler_grove_io.DEFINITIONS)]
    return start_kube(
        controller_manager=True, scheduler=True, durable=False, extra_flags=FLAGS, definitions=definitions
    )


class World:
    """The cluster, by what this test does to it."""

    def __init__(self, kubernetes: RealKubernetes, client: Client) -> None:
        self._kubernetes = kubernetes
        self.client = client

    @asynccontextmanager
    async def backends(self) -> AsyncIterator[tuple[Manager, Backends]]:
        transport = HttpTransport(load_connection(self._kubernetes.kubeconfig))
        manager = Manager(transport, name="backends", settings=Settings(pace=QUICK_PACE))
        backends = Backends.load(manager)
        add_backends(manager, Caches(manager), backends, look_again=0.2, good_news=0.05)
        try:
            async with running(manager):
                yield manager, backends
        finally:
            await transport.close()

    async def read(self, resource: Resource[Any], name: str) -> dict[str, Any] | None:
        try:
            return (await self.client.get(resource.documents(), name, "default")).content
        except NotFound:
            return None

    async def ready(self, name: str, reason: str) -> dict[str, Any]:
        async def condition() -> dict[str, Any] | None:
            gang = await self.client.get(POD_GANGS.documents(), name, "default")
            for each in gang.content.get("status", {}).get("conditions", []):
                if each["type"] == "BackendReady" and each["reason"] == reason:
                    return dict(each)
            return None

        found: dict[str, Any] = await until(condition, within=30)
        return found

    async def pod(self, backends: Backends, gang: PodGang, clique: str, index: int) -> None:
        """A pod of a clique that fills a node, made ready as the controller of cliques does it."""
        backend = backends.of(gang)
        assert backend is not None
        container = {"name": "main", "image": "none", "resources": {"requests": {"cpu": "1"}}}
        bare = {"containers": [container], "tolerations": [{"operator": "Exists"}]}
        spec = backend.pod_spec(bare, gang, clique, backends.served())
        body = {"metadata": {"name": f"{clique}-{index}"}, "spec": dict(spec)}
        made = await self.client.create(PODS.documents(), body, "default")
        assert made.content["spec"]["schedulingGroup"] == {"podGroupName": f"{gang.metadata.name}-{clique}"}

    async def node(self, name: str) -> None:
        """A node with room for one pod."""
        await self.client.create(NODES.documents(), {"metadata": {"name": name}})
        room = {"cpu": "1", "memory": "8Gi", "pods": "10"}
        ready = {"type": "Ready", "status": "True", "reason": "KubeletReady"}
        status = {"capacity": room, "allocatable": room, "conditions": [ready]}
        await self.client.merge_patch(NODES.documents(), name, {"status": status}, subresource="status")

    async def places(self) -> dict[str, str]:
        """Where each pod is, or why it is nowhere."""
        listing = await self.client.list(PODS.documents(), "default")
        return {found.metadata.name: found.content["spec"].get("nodeName", "") for found in listing.items}

    async def unschedulable(self) -> bool:
        listing = await self.client.list(PODS.documents(), "default")
        return len(listing.items) > 0 and all(_is_refused(found) for found in listing.items)


def _is_refused(pod: Document) -> bool:
    conditions = pod.content.get("status", {}).get("conditions", [])
    return any(each["type"] == "PodScheduled" and each.get("reason") == "Unschedulable" for each in conditions)


@pytest.mark.kube
async def test_the_words_are_kubernetes_own_and_make_a_gang_of_it(kubernetes: RealKubernetes) -> None:
    async with client_to(kubernetes.kubeconfig) as client:
        world = World(kubernetes, client)
        await client.create(POD_CLIQUE_SETS.documents(), a_set("web"), "default")
        groups = [a_group("web-0-a", 2), a_group("web-0-b", 1)]
        made = await client.create(POD_GANGS, a_gang_body(*groups, backend="default"), "default")
        async with world.backends() as (manager, backends):
            condition = await world.ready("web-0", "Synced")
            assert condition["message"] == "Workload web-0, PodGroup web-0-web-0-a, PodGroup web-0-web-0-b"
            workload = await world.read(WORKLOADS_V1ALPHA2, "web-0")
            assert workload is not None
            assert [each["name"] for each in workload["spec"]["podGroupTemplates"]] == ["web-0-a", "web-0-b"]
            group = await world.read(POD_GROUPS_V1ALPHA2, "web-0-web-0-a")
            assert group is not None
            assert group["spec"]["schedulingPolicy"] == {"gang": {"minCount": 2}}
            assert group["metadata"]["ownerReferences"][0]["uid"] == made.metadata.uid

            await _two_pods_wait_for_two_nodes(world, backends, made)
            await at_rest(manager)
            written = writes_of(manager)
            await client.merge_patch(
                POD_GANGS, "web-0", {"spec": {"podgroups": [a_group("web-0-a", 2, pods=2), groups[1]]}}, "default"
            )
            await until(lambda: _has_references(client), within=30)
            await at_rest(manager)
            assert writes_of(manager) == written
        async with world.backends() as (manager, _):
            await at_rest(manager)
            assert writes_of(manager) == 0

            await _groups_that_nobody_may_change_are_made_anew(world)
            await _a_constraint_that_the_server_drops_is_told(world)
            await client.delete(POD_CLIQUE_SETS, "web", "default")
            for name in ("web-0", "web-1"):
                await client.delete(POD_GANGS, name, "default")
            await until(lambda: _is_empty(client), within=30)


async def _has_references(client: Client) -> bool:
    gang = await client.get(POD_GANGS, "web-0", "default")
    return bool(gang.spec.pod_groups[0].pod_references)


async def _two_pods_wait_for_two_nodes(world: World, backends: Backends, gang: PodGang) -> None:
    """The scheduler places both pods of a clique or none: one node is not enough for either."""
    await world.node("n1")
    for index in range(2):
        await world.pod(backends, gang, "web-0-a", index)
    await until(world.unschedulable, within=30)
    assert set((await world.places()).values()) == {""}
    await world.node("n2")

    async def are_placed() -> bool:
        return set((await world.places()).values()) == {"n1", "n2"}

    await until(are_placed, within=30)


async def _groups_that_nobody_may_change_are_made_anew(world: World) -> None:
    """The server keeps a group while pods of it run: it goes with the last of them, and then comes back."""
    before = await world.read(POD_GROUPS_V1ALPHA2, "web-0-web-0-a")
    assert before is not None
    groups = [a_group("web-0-a", 1), a_group("web-0-b", 1)]
    await world.client.merge_patch(POD_GANGS, "web-0", {"spec": {"podgroups": groups}}, "default")
    condition = await world.ready("web-0", "Replacing")
    assert condition["status"] == "False"
    for index in range(2):
        await world.client.delete(PODS, f"web-0-a-{index}", "default", grace_seconds=0)
    await world.ready("web-0", "Synced")
    after = await world.read(POD_GROUPS_V1ALPHA2, "web-0-web-0-a")
    assert after is not None
    assert after["metadata"]["uid"] != before["metadata"]["uid"]
    assert after["spec"]["schedulingPolicy"] == {"gang": {"minCount": 1}}
    kept = await world.read(POD_GROUPS_V1ALPHA2, "web-0-web-0-b")
    assert kept is not None
    assert "deletionTimestamp" not in kept["metadata"]


async def _a_constraint_that_the_server_drops_is_told(world: World) -> None:
    body = a_gang_body(a_group("web-1-a", 1, required="topology/rack"), name="web-1", backend="default")
    await world.client.create(POD_GANGS, body, "default")
    condition = await world.ready("web-1", "BackendFieldsDropped")
    assert "spec.schedulingConstraints is dropped" in condition["message"]


async def _is_empty(client: Client) -> bool:
    kinds = (WORKLOADS_V1ALPHA2, POD_GROUPS_V1ALPHA2)
    return not [item for kind in kinds for item in (await client.list(kind, "default")).items]
