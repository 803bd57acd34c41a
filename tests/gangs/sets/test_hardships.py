"""Sets where something is in the way: refusals, equal names, an earlier set, and what it left behind."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import msgspec

from shoal.api.autoscaling import HORIZONTAL_POD_AUTOSCALERS
from shoal.api.core import SERVICE_ACCOUNTS
from shoal.api.grove import POD_CLIQUES, names
from shoal.api.resource_nvidia_com import COMPUTE_DOMAINS
from shoal.api.scheduler_grove_io import POD_GANGS
from shoal.gangs.caches import Caches
from shoal.gangs.sets import add_sets
from shoal.gangs.settings import GangSettings
from shoal.kube import Manager
from shoal.kube import running as running_manager
from shoal.kube.transport import Request, Response
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set
from tests.gangs.sets.running_sets import Running
from tests.gangs.sets.test_compute_domains import DEFINITION, MNNVL
from tests.gangs.sets.test_controller import condition
from tests.support.clusters.client import install, until
from tests.support.clusters.faults import Fault, FaultyTransport, behind
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.network.scripted import status


@asynccontextmanager
async def sets_with(running: Running, *faults: Fault) -> AsyncIterator[FaultyTransport]:
    """The controllers of sets behind a connection on which these faults happen."""
    transport = FaultyTransport(running.cluster.server.transport())
    transport.faults.extend(faults)
    manager = Manager(transport, name="controllers")
    add_sets(manager, Caches(manager), GangSettings())
    async with running_manager(manager):
        yield transport


def refused(plural: str) -> Fault:
    """Nothing of this kind can be made."""

    def fault(request: Request) -> Response | None:
        if request.method == "GET" or f"/{plural}/" not in request.path:
            return None
        return Response(403, {}, msgspec.json.encode(status(403, "Forbidden", "exceeded quota: small")))

    return fault


async def test_what_is_refused_once_for_a_set_is_told_beside_all_the_rest(running: Running) -> None:
    async with sets_with(running, refused("serviceaccounts")) as transport:
        await running.make(a_set("web", replicas=2))
        [error] = (await running.status(replicas=2))["lastErrors"]
        assert error["code"] == "ERR_SYNC_SERVICEACCOUNT"
        assert "exceeded quota" in error["description"]
        transport.faults.clear()
        await until(lambda: running.cluster.read(SERVICE_ACCOUNTS, "web"), within=30)
        await running.status(lastErrors=None)


async def test_what_is_refused_for_a_replica_is_told_by_its_kind(running: Running) -> None:
    async with sets_with(running, refused("podcliques")) as transport:
        await running.make(a_set("web"))

        async def told() -> Any:
            return (await running.status()).get("lastErrors")

        [error] = await until(told, within=30)
        assert error["code"] == "ERR_SYNC_PODCLIQUE"
        transport.faults.clear()
        await running.names(POD_CLIQUES, 1)
        await running.status(lastErrors=None)


async def test_a_clique_and_a_group_of_one_name_do_not_take_turns_at_their_autoscaler(running: Running) -> None:
    scaling = {"minReplicas": 1, "maxReplicas": 9}
    front, worker = a_clique_template("model", 2), a_clique_template("worker", 2)
    front["spec"]["autoScalingConfig"] = scaling
    group = a_scaling_group_template("model", ["worker"], 2, scaleConfig=scaling)
    async with running.sets() as manager:
        await running.make(a_set("web", front, worker, groups=[group]))

        async def told() -> Any:
            return (await running.status()).get("lastErrors")

        [error] = await until(told, within=30)
        assert error["code"] == "ERR_SYNC_HPA"
        assert 'clique "model" and scaling group "model"' in error["description"]
        assert await running.names(POD_CLIQUES, 1) == ["web-0-model"]
        await running.settled(manager)
        found = await running.cluster.read(HORIZONTAL_POD_AUTOSCALERS, "web-0-model")
        assert found is not None
        assert found["spec"]["scaleTargetRef"]["kind"] == "PodClique"
        assert writes_of(manager) < 30


async def test_what_an_earlier_set_of_the_name_left_is_not_told_of_the_new_one(
    cluster: Cluster, tmp_path: Path
) -> None:
    running = Running(cluster, tmp_path)  # where nobody removes what has lost its owner
    async with running.sets():
        await running.make(a_set("web"))
        await running.status(replicas=1)
        labels = names.component_labels("web", "web-0-workers", names.SET_CLIQUE_COMPONENT)
        owner = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueSet", "name": "web", "controller": True}
        metadata = {
            "name": "web-0-workers",
            "labels": {**labels, names.SET_REPLICA_LABEL: "0"},
            "ownerReferences": [{**owner, "uid": "earlier"}],
        }
        await cluster.make(POD_CLIQUES, {"metadata": metadata, "spec": a_clique_template()["spec"]})
        await cluster.set_status(POD_CLIQUES, "web-0-workers", {"replicas": 2, "readyReplicas": 2})
        await running.change({"spec": {"replicas": 2}})
        await running.status(replicas=2, availableReplicas=0)


async def test_a_teardown_that_is_interrupted_is_begun_anew(running: Running) -> None:
    refusals = 0

    def fault(request: Request) -> Response | None:
        nonlocal refusals
        if request.method != "DELETE" or not request.path.endswith("/podcliques/web-0-well"):
            return None
        refusals += 1
        return Response(403, {}, msgspec.json.encode(status(403, "Forbidden", "not now"))) if refusals < 3 else None

    async with sets_with(running, fault):
        body = a_set("web", a_clique_template("broken", 1), a_clique_template("well", 1), terminationDelay="60s")
        await running.make(body)
        await running.names(POD_CLIQUES, 2)
        before = {one["metadata"]["name"]: one["metadata"]["uid"] for one in await running.cluster.all(POD_CLIQUES)}
        conditions = [
            condition("PodCliqueScheduled", "True", ago=90),
            condition("MinAvailableBreached", "True", ago=61),
        ]
        await running.cluster.set_status(POD_CLIQUES, "web-0-broken", {"conditions": conditions})

        async def all_new() -> bool:
            found = await running.cluster.all(POD_CLIQUES)
            for one in found:
                if "deletionTimestamp" in one["metadata"]:
                    await running.change({"metadata": {"finalizers": None}}, one["metadata"]["name"], POD_CLIQUES)
            return len(found) == 2 and not {one["metadata"]["uid"] for one in found} & set(before.values())

        await until(all_new, within=30)
        assert refusals == 3


async def test_a_foreign_gang_of_a_wanted_name_is_told_of_and_never_counted(running: Running) -> None:
    labels = {**names.default_labels("web"), names.SET_REPLICA_LABEL: "0"}
    await running.cluster.make(POD_GANGS, {"metadata": {"name": "web-0", "labels": labels}, "spec": {"podgroups": []}})
    async with running.sets():
        await running.make(a_set("web"))

        async def told() -> Any:
            return (await running.status()).get("lastErrors")

        [error] = await until(told, within=30)
        assert error["code"] == "ERR_SYNC_PODGANG"
        assert "PodGang default/web-0 exists and is not owned by PodCliqueSet web" in error["description"]
        assert "podGangStatuses" not in await running.status()
        await running.cluster.client.delete(POD_GANGS, "web-0", "default")
        await running.names(POD_CLIQUES, 1)
        await running.gang("web-0", 0)
        await running.status(lastErrors=None, observedGeneration=1)


async def test_a_domain_whose_set_is_gone_is_let_go(running: Running) -> None:
    await install(running.cluster.client, DEFINITION)
    body = {
        "metadata": {
            "name": "web-0-fast",
            "labels": {**names.default_labels("web"), names.SET_REPLICA_LABEL: "0"},
            "finalizers": [names.COMPUTE_DOMAIN_FINALIZER],
        }
    }
    async with running.sets(MNNVL):
        await running.cluster.make(COMPUTE_DOMAINS, body)
        await running.cluster.client.delete(COMPUTE_DOMAINS, "web-0-fast", "default")
        assert await running.names(COMPUTE_DOMAINS, 0) == []


async def test_of_two_sets_that_want_a_clique_of_one_name_the_first_keeps_it(running: Running) -> None:
    async with running.sets() as manager:
        with behind(manager.cache.informer(POD_CLIQUES.documents())):
            first = await running.make(a_set("a", a_clique_template("0-x", 1)))
            made = (await until(lambda: running.cluster.read(POD_CLIQUES, "a-0-0-x"), within=30))["metadata"]
            await running.make(a_set("a-0", a_clique_template("x", 1)))

            async def told() -> Any:
                return (await running.status("a-0")).get("lastErrors")

            [error] = await until(told, within=30)
        assert error["code"] == "ERR_SYNC_PODCLIQUE"
        assert "PodClique default/a-0-0-x exists and belongs to PodCliqueSet a" in error["description"]
        found = await running.cluster.read(POD_CLIQUES, "a-0-0-x")
        assert found is not None
        assert found["metadata"]["uid"] == made["uid"]
        assert [owner["uid"] for owner in found["metadata"]["ownerReferences"]] == [first["metadata"]["uid"]]
        assert found["metadata"]["labels"]["app.kubernetes.io/part-of"] == "a"
