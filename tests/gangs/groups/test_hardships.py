"""Scaling groups where something is in the way: watches that lag behind each other, and refusals half-way.

PodCliques are read from two watches, as values and as documents: the slower one never has the last word.
"""

from __future__ import annotations

import msgspec

from shoal.api.grove import POD_CLIQUES
from shoal.kube import Manager
from shoal.kube import running as running_manager
from shoal.kube.transport import Request, Response
from tests.gangs.groups.stage import BROKEN, Stage, controller, replica, replicas
from tests.support.clusters.faults import FaultyTransport, behind
from tests.support.clusters.in_process import Cluster
from tests.support.network.scripted import status
from tests.support.waiting import eventually
from tests.support.waiting.at_rest import at_rest

LEADER = "web-0-model-0-leader"


async def test_a_member_comes_back_though_its_document_is_still_seen(cluster: Cluster) -> None:
    stage = Stage(cluster)
    await stage.open()
    async with cluster.controllers(controller) as manager:
        await stage.wait_for(*replica(0))
        await at_rest(manager)
        cliques = manager.cache.informer(POD_CLIQUES)
        with behind(manager.cache.informer(POD_CLIQUES.documents())):
            await cluster.client.delete(POD_CLIQUES, LEADER, "default")
            await stage.let_go()
            await eventually(lambda: cliques.get(LEADER, "default") is None)
            await at_rest(manager)
        await stage.wait_for(*replica(0))


async def test_what_somebody_changed_in_a_member_is_put_right_though_its_document_is_old(cluster: Cluster) -> None:
    stage = Stage(cluster)
    await stage.open(update="OnDelete")
    async with cluster.controllers(controller) as manager:
        await stage.wait_for(*replica(0))
        await at_rest(manager)
        cliques = manager.cache.informer(POD_CLIQUES)
        with behind(manager.cache.informer(POD_CLIQUES.documents())):
            patch = {"spec": {"roleName": "usurper"}}
            await cluster.client.merge_patch(POD_CLIQUES.documents(), LEADER, patch, "default")
            await eventually(lambda: (seen := cliques.get(LEADER, "default")) and seen.spec.role_name == "usurper")
            await at_rest(manager)
        await eventually(lambda: (seen := cliques.get(LEADER, "default")) and seen.spec.role_name == "leader")


async def test_a_replica_whose_teardown_is_interrupted_is_torn_down_as_a_whole(cluster: Cluster) -> None:
    stage = Stage(cluster)
    await stage.open(replicas=2, terminationDelay="1s")
    refusals = 0

    def fault(request: Request) -> Response | None:
        nonlocal refusals
        if request.method != "DELETE" or not request.path.endswith("/web-0-model-1-leader"):
            return None
        refusals += 1
        return Response(403, {}, msgspec.json.encode(status(403, "Forbidden", "not now"))) if refusals < 3 else None

    transport = FaultyTransport(cluster.server.transport())
    transport.faults.append(fault)
    manager = Manager(transport, name="controllers")
    controller(manager)
    async with running_manager(manager):
        await stage.wait_for(*replicas(range(2)))
        await stage.play()
        before = await stage.uids()
        await stage.play(BROKEN, only=lambda name: name == "web-0-model-1-worker")
        await stage.made_anew(before, *replica(1))
        assert refusals == 3
