"""What is made for each replica of a set, and what becomes of it."""

from __future__ import annotations

from typing import Any

from shoal.api.autoscaling import HORIZONTAL_POD_AUTOSCALERS
from shoal.api.core import EVENTS, SERVICES
from shoal.api.grove import POD_CLIQUES, SCALING_GROUPS
from tests.gangs.builders import a_clique_template, a_pod_spec, a_scaling_group_template, a_set
from tests.gangs.sets.running_sets import Running, looks
from tests.support.clusters.client import until
from tests.support.clusters.in_process import writes_of

SCALING = {"minReplicas": 1, "maxReplicas": 9}


def inference(replicas: int = 2, **more: Any) -> dict[str, Any]:
    front = a_clique_template(
        "front", 2, labels={"team": "a"}, annotations={"note": "b", "grove.io/topology-name": "t"}
    )
    front["spec"]["autoScalingConfig"] = SCALING
    return a_set(
        "web",
        front,
        a_clique_template("leader", 1),
        a_clique_template("worker", 3),
        groups=[a_scaling_group_template("model", ["leader", "worker"], 3, min_available=2, scaleConfig=SCALING)],
        replicas=replicas,
        **more,
    )


async def test_each_replica_gets_its_service_its_cliques_its_groups_and_their_autoscalers(running: Running) -> None:
    async with running.sets():
        pcs = await running.make(inference(cliqueStartupType="CliqueStartupTypeInOrder"))
        assert await running.names(SCALING_GROUPS, 2) == ["web-0-model", "web-1-model"]
        assert await running.names(POD_CLIQUES, 2) == ["web-0-front", "web-1-front"]
        assert await running.names(SERVICES, 2) == ["web-0", "web-1"]
        assert await running.names(HORIZONTAL_POD_AUTOSCALERS, 4) == [
            "web-0-front",
            "web-0-model",
            "web-1-front",
            "web-1-model",
        ]
        children = [
            await running.cluster.read(POD_CLIQUES, "web-1-front"),
            await running.cluster.read(SCALING_GROUPS, "web-1-model"),
            await running.cluster.read(SERVICES, "web-1"),
            await running.cluster.read(HORIZONTAL_POD_AUTOSCALERS, "web-1-model"),
        ]
    for child in children:
        assert child is not None
        labels, [owner] = child["metadata"]["labels"], child["metadata"]["ownerReferences"]
        assert labels["app.kubernetes.io/managed-by"] == "grove-operator"
        assert labels["app.kubernetes.io/part-of"] == "web"
        assert labels["app.kubernetes.io/name"] == child["metadata"]["name"]
        assert labels["grove.io/podcliqueset-replica-index"] == "1"
        assert (owner["kind"], owner["uid"], owner["controller"]) == ("PodCliqueSet", pcs["metadata"]["uid"], True)
    clique, group, service, autoscaler = children
    assert clique["metadata"]["finalizers"] == ["grove.io/podclique.grove.io"]  # type: ignore[index]
    assert clique["metadata"]["annotations"] == {"note": "b"}  # type: ignore[index]
    assert clique["metadata"]["labels"]["team"] == "a"  # type: ignore[index]
    assert clique["metadata"]["labels"]["grove.io/podgang"] == "web-1"  # type: ignore[index]
    assert clique["spec"]["replicas"] == 2  # type: ignore[index]
    assert clique["spec"]["podSpec"]["containers"][0]["image"] == "busybox"  # type: ignore[index]
    assert group["metadata"]["finalizers"] == ["grove.io/podcliquescalinggroup.grove.io"]  # type: ignore[index]
    assert group["spec"] == {"replicas": 3, "minAvailable": 2, "cliqueNames": ["leader", "worker"]}  # type: ignore[index]
    assert service["spec"]["clusterIP"] == "None"  # type: ignore[index]
    assert autoscaler["spec"]["scaleTargetRef"]["kind"] == "PodCliqueScalingGroup"  # type: ignore[index]


async def test_scaling_in_leaves_nothing_of_the_replicas_that_go(running: Running) -> None:
    async with running.sets():
        await running.make(inference(3))
        await running.names(SCALING_GROUPS, 3)
        await running.change({"spec": {"replicas": 1}})
        await running.released(POD_CLIQUES, 1)
        await running.released(SCALING_GROUPS, 1)
        assert await running.names(SERVICES, 1) == ["web-0"]
        assert await running.names(HORIZONTAL_POD_AUTOSCALERS, 2) == ["web-0-front", "web-0-model"]
        await running.change({"spec": {"replicas": 2}})
        assert await running.names(POD_CLIQUES, 2) == ["web-0-front", "web-1-front"]
        assert await running.names(SERVICES, 2) == ["web-0", "web-1"]


async def test_a_set_that_was_scaled_in_while_nobody_looked_is_tidied_up(running: Running) -> None:
    async with running.sets():
        await running.make(inference(3))
        await running.names(SCALING_GROUPS, 3)
    await running.change({"spec": {"replicas": 0}})
    async with running.sets():
        for resource in (POD_CLIQUES, SCALING_GROUPS, SERVICES, HORIZONTAL_POD_AUTOSCALERS):
            await running.released(resource, 0)


async def test_an_autoscaler_that_is_not_asked_for_any_more_goes(running: Running) -> None:
    async with running.sets():
        body = inference(1)
        await running.make(body)
        await running.names(HORIZONTAL_POD_AUTOSCALERS, 2)
        del body["spec"]["template"]["cliques"][0]["spec"]["autoScalingConfig"]
        await running.change({"spec": body["spec"]})
        assert await running.names(HORIZONTAL_POD_AUTOSCALERS, 1) == ["web-0-model"]


async def test_what_somebody_deletes_or_bends_is_made_right_again(running: Running) -> None:
    async with running.sets():
        await running.make(inference(1))
        await running.names(SCALING_GROUPS, 1)
        first = await running.cluster.read(SERVICES, "web-0")
        await running.cluster.client.delete(SERVICES, "web-0", "default")

        async def is_back() -> bool:
            found = await running.cluster.read(SERVICES, "web-0")
            return found is not None and found["metadata"]["uid"] != first["metadata"]["uid"]  # type: ignore[index]

        await until(is_back, within=30)
        await running.change({"metadata": {"labels": {"grove.io/podgang": "other"}}}, "web-0-front", POD_CLIQUES)

        async def is_right() -> bool:
            found = await running.cluster.read(POD_CLIQUES, "web-0-front")
            return bool(found and found["metadata"]["labels"]["grove.io/podgang"] == "web-0")

        await until(is_right, within=30)


async def test_a_clique_that_is_deleted_is_made_anew_once_it_is_gone(running: Running) -> None:
    async with running.sets():
        await running.make(inference(1))
        await running.names(POD_CLIQUES, 1)
        first = await running.cluster.read(POD_CLIQUES, "web-0-front")
        await running.cluster.client.delete(POD_CLIQUES, "web-0-front", "default")
        await running.change({"metadata": {"finalizers": None}}, "web-0-front", POD_CLIQUES)

        async def is_new() -> bool:
            found = await running.cluster.read(POD_CLIQUES, "web-0-front")
            return found is not None and found["metadata"]["uid"] != first["metadata"]["uid"]  # type: ignore[index]

        await until(is_new, within=30)


async def test_foreign_objects_of_our_names_are_never_taken_over_and_told_of(running: Running) -> None:
    cluster = running.cluster
    await cluster.make(SERVICES, {"metadata": {"name": "web-1"}, "spec": {"clusterIP": "None"}})
    spec = {"roleName": "x", "replicas": 1, "podSpec": a_pod_spec()}
    await cluster.make(POD_CLIQUES, {"metadata": {"name": "web-0-front"}, "spec": spec})
    before = [await cluster.read(SERVICES, "web-1"), await cluster.read(POD_CLIQUES, "web-0-front")]
    async with running.sets():
        await running.make(inference(3))
        assert await running.names(SCALING_GROUPS, 1) == ["web-2-model"]

        async def both_told() -> list[tuple[str, str]] | None:
            told = (await running.status()).get("lastErrors", [])
            return [(error["code"], error["description"]) for error in told] if len(told) == 2 else None

        told = await until(both_told, within=30)
        assert told[0][0] == "ERR_SYNC_PODCLIQUE"
        assert "PodClique default/web-0-front exists and is not owned by PodCliqueSet web" in told[0][1]
        assert told[1][0] == "ERR_SYNC_PODCLIQUESET_SERVICE"
        assert [await cluster.read(SERVICES, "web-1"), await cluster.read(POD_CLIQUES, "web-0-front")] == before
        events = {event["reason"] for event in await cluster.all(EVENTS)}
        assert "PodCliqueCreateOrUpdateFailed" in events
        await cluster.client.delete(SERVICES, "web-1", "default")
        await cluster.client.delete(POD_CLIQUES, "web-0-front", "default")
        await running.status(lastErrors=None)
        assert await running.names(SCALING_GROUPS, 3) == ["web-0-model", "web-1-model", "web-2-model"]


async def test_replicas_that_an_autoscaler_wrote_stay_whatever_else_changes(running: Running) -> None:
    client = running.cluster.client
    body = inference(2)
    async with running.sets():
        await running.make(body)
        await running.names(SCALING_GROUPS, 2)
        await client.scale(POD_CLIQUES, "web-0-front", 7, "default")
        await client.scale(SCALING_GROUPS, "web-1-model", 5, "default")
        for clique in body["spec"]["template"]["cliques"]:
            clique["spec"]["podSpec"]["containers"][0]["image"] = "busybox:2"
            clique["spec"]["replicas"] = 4
        await running.change({"spec": body["spec"]})

        async def all_changed() -> bool:
            found = await running.cluster.all(POD_CLIQUES)
            return all(one["spec"]["podSpec"]["containers"][0]["image"] == "busybox:2" for one in found)

        await until(all_changed, within=30)
        assert await client.replicas(POD_CLIQUES, "web-0-front", "default") == 7
        assert await client.replicas(POD_CLIQUES, "web-1-front", "default") == 2, "as it was made"
        assert await client.replicas(SCALING_GROUPS, "web-0-model", "default") == 3
        assert await client.replicas(SCALING_GROUPS, "web-1-model", "default") == 5


async def test_a_change_of_one_replicas_status_costs_the_others_nothing(running: Running) -> None:
    async with running.sets() as manager:
        await running.make(a_set("web", replicas=5))
        await running.names(POD_CLIQUES, 5)
        await running.settled(manager)
        before = looks(manager)["podcliqueset-replica"]
        await running.ready("web-3-workers")
        await running.status(availableReplicas=1)
        assert looks(manager)["podcliqueset-replica"] == before


async def test_five_hundred_replicas_cost_two_writes_each(running: Running) -> None:
    async with running.sets() as manager:
        await running.make(a_set("web", replicas=500))
        await running.names(POD_CLIQUES, 500)
        await running.names(SERVICES, 500)
        await running.settled(manager)
        # The account, the set's finalizer and status, and a few events.
        assert 1000 <= writes_of(manager) <= 1060
        before = writes_of(manager)
        await running.change({"spec": {"replicas": 450}})
        await running.released(POD_CLIQUES, 450)
        await running.released(SERVICES, 450)
        await running.settled(manager)
        assert 100 <= writes_of(manager) - before <= 130
