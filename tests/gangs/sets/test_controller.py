"""What is there once for a set, how a set tells how it is, and how it goes."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from shoal.api.core import EVENTS, SECRETS, SERVICE_ACCOUNTS, SERVICES
from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES, SCALING_GROUPS, TOPOLOGY_BINDINGS
from shoal.api.meta import format_time, now, owner_reference
from shoal.api.rbac import ROLE_BINDINGS, ROLES
from shoal.api.resource_k8s_io import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from shoal.gangs.settings import GangSettings
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set
from tests.gangs.sets.running_sets import Running, looks
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of


def with_group(replicas: int = 1, **more: Any) -> dict[str, Any]:
    return a_set(
        "web",
        a_clique_template("front", 2),
        a_clique_template("worker", 3),
        groups=[a_scaling_group_template("model", ["worker"], 3, min_available=2)],
        replicas=replicas,
        **more,
    )


def condition(kind: str, status: str, *, ago: float) -> dict[str, Any]:
    since = format_time(now() - timedelta(seconds=ago))
    return {"type": kind, "status": status, "reason": "Test", "message": "", "lastTransitionTime": since}


async def test_a_set_has_an_account_that_may_look_at_pods_and_a_token_for_it(running: Running) -> None:
    async with running.sets():
        pcs = await running.make(a_set("web"))
        await running.names(POD_CLIQUES, 1)
        cluster = running.cluster
        account = await cluster.read(SERVICE_ACCOUNTS, "web")
        role = await cluster.read(ROLES, "grove.io:pcs:web")
        binding = await cluster.read(ROLE_BINDINGS, "grove.io:pcs:web")
        secret = await cluster.read(SECRETS, "web-ic-sat")
        kept = await cluster.read(POD_CLIQUE_SETS, "web")
    assert kept is not None
    assert kept["metadata"]["finalizers"] == ["grove.io/podcliqueset.grove.io"]
    for child in (account, role, binding, secret):
        assert child is not None
        assert child["metadata"]["ownerReferences"][0]["uid"] == pcs["metadata"]["uid"]
        assert child["metadata"]["labels"]["app.kubernetes.io/part-of"] == "web"
    assert role["metadata"]["labels"]["app.kubernetes.io/name"] == "grove.io-pcs-web"  # type: ignore[index]
    assert role["rules"][0]["resources"] == ["pods", "pods/status"]  # type: ignore[index]
    assert binding["subjects"][0]["name"] == "web"  # type: ignore[index]
    assert secret["data"]["token"]  # type: ignore[index]


async def test_no_clique_is_made_before_the_token_is_there(cluster: Cluster, tmp_path: Any) -> None:
    running = Running(cluster, tmp_path)  # where nobody fills token Secrets
    async with running.sets() as manager:
        await running.make(with_group())
        await running.names(SERVICES, 1)
        await until(lambda: cluster.read(SECRETS, "web-ic-sat"), within=30)
        await running.settled(manager)
        assert await running.names(POD_CLIQUES) == []
        assert await running.names(SCALING_GROUPS) == []
        await running.change({"data": {"token": "dG9rZW4="}}, "web-ic-sat", SECRETS)
        assert await running.names(POD_CLIQUES, 1) == ["web-0-front"]
        assert await running.names(SCALING_GROUPS, 1) == ["web-0-model"]


async def test_a_foreign_secret_of_our_name_stops_the_set_and_is_told_of(running: Running) -> None:
    await running.cluster.make(SECRETS, {"metadata": {"name": "web-ic-sat"}, "stringData": {"token": "theirs"}})
    before = await running.cluster.read(SECRETS, "web-ic-sat")
    async with running.sets():
        await running.make(a_set("web"))

        async def told() -> Any:
            return (await running.status()).get("lastErrors")

        [error] = await until(told, within=30)
        assert error["code"] == "ERR_SECRET_CONFLICT"
        assert "Secret default/web-ic-sat exists and is not owned by PodCliqueSet web" in error["description"]
        assert await running.names(POD_CLIQUES) == []
        assert await running.cluster.read(SECRETS, "web-ic-sat") == before
        await running.cluster.client.delete(SECRETS, "web-ic-sat", "default")
        await running.names(POD_CLIQUES, 1)
        await running.status(lastErrors=None)


async def test_the_status_counts_replicas_that_are_available_and_updated(running: Running) -> None:
    async with running.sets():
        await running.make(with_group(2))
        await running.names(SCALING_GROUPS, 2)
        selector = "app.kubernetes.io/managed-by=grove-operator,app.kubernetes.io/part-of=web"
        await running.status(replicas=2, availableReplicas=0, updatedReplicas=0, hpaPodSelector=selector)
        await running.ready("web-0-front")
        await running.cluster.set_status(SCALING_GROUPS, "web-0-model", {"replicas": 3, "availableReplicas": 2})
        status = await running.status(availableReplicas=1, updatedReplicas=0)
        word = status["currentGenerationHash"]
        await running.cluster.set_status(
            SCALING_GROUPS, "web-0-model", {"currentPodCliqueSetGenerationHash": word, "updatedReplicas": 2}
        )
        status = await running.status(availableReplicas=1, updatedReplicas=1)
        assert "updateProgress" not in status


async def test_a_generation_is_observed_when_every_gang_has_its_pods(running: Running) -> None:
    async with running.sets() as manager:
        await running.make(with_group(1))
        await running.names(SCALING_GROUPS, 1)
        await running.gang("web-0", 0, "Starting")
        status = await running.status(
            podGangStatuses=[{"name": "web-0", "phase": "Starting", "conditions": [INITIALIZED]}]
        )
        await running.settled(manager)
        assert "observedGeneration" not in status
        await running.gang("web-0-model-0", 0, **{"grove.io/podcliquescalinggroup": "web-0-model"})
        status = await running.status(observedGeneration=1)
        assert [gang["name"] for gang in status["podGangStatuses"]] == ["web-0", "web-0-model-0"]
        await running.change({"spec": {"replicas": 2}})
        await running.status(replicas=2, observedGeneration=1)
        await running.gang("web-1", 1)
        await running.gang("web-1-model-0", 1, **{"grove.io/podcliquescalinggroup": "web-1-model"})
        await running.status(observedGeneration=2)


INITIALIZED = {
    "type": "Initialized",
    "status": "True",
    "reason": "PodGangPodsCreated",
    "message": "",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
}


async def test_at_rest_nothing_is_written_not_even_by_another_process(running: Running) -> None:
    async with running.sets() as manager:
        await running.make(with_group(2))
        await running.names(SCALING_GROUPS, 2)
        for replica in (0, 1):
            await running.gang(f"web-{replica}", replica)
            await running.gang(f"web-{replica}-model-0", replica)
        await running.status(observedGeneration=1)
        await another_look(running, manager)
        before = writes_of(manager)
        await another_look(running, manager)
        assert writes_of(manager) == before
    async with running.sets() as manager:
        await another_look(running, manager)
        assert looks(manager)["podcliqueset-replica"] >= 2
        assert writes_of(manager) == 0


async def another_look(running: Running, manager: Any) -> None:
    """Asks for a look at the set and all its replicas, and waits until it was taken and nothing is left to do."""
    await running.settled(manager)
    before = looks(manager)
    await running.change({"metadata": {"annotations": {"grove.io/reconcile-trigger": str(before)}}})

    async def taken() -> bool:
        after = looks(manager)
        return all(after.get(name, 0) > before.get(name, 0) for name in ("podcliqueset", "podcliqueset-replica"))

    await until(taken, within=30)
    await running.settled(manager)


async def test_the_trigger_annotation_asks_for_another_look_and_others_do_not(running: Running) -> None:
    async with running.sets() as manager:
        await running.make(a_set("web"))
        await running.names(POD_CLIQUES, 1)
        await another_look(running, manager)
        before = looks(manager)
        await running.change({"metadata": {"annotations": {"other": "1"}}})
        await another_look(running, manager)
        assert looks(manager)["podcliqueset-replica"] == before["podcliqueset-replica"] + 1


async def test_many_changes_at_once_are_written_together_and_the_last_one_always(running: Running) -> None:
    async with running.sets() as manager:
        await running.make(a_set("web", replicas=60))
        await running.names(POD_CLIQUES, 60)
        await running.status(replicas=60)
        await running.settled(manager)
        before = writes_of(manager)
        for replica in range(60):
            await running.ready(f"web-{replica}-workers")
        await running.status(availableReplicas=60)
        assert writes_of(manager) - before <= 8


async def test_a_changed_template_reaches_all_cliques_at_once_and_pods_one_replica_at_a_time(running: Running) -> None:
    async with running.sets():
        body = a_set("web", replicas=3)
        await running.make(body)
        await running.names(POD_CLIQUES, 3)
        first = (await running.status(replicas=3))["currentGenerationHash"]
        for replica in range(3):
            await running.ready(f"web-{replica}-workers")
        await running.status(updatedReplicas=3)
        await images(running, body, "busybox:2")
        status = await updating(running, 0)
        assert status["currentGenerationHash"] != first
        assert status["updatedReplicas"] == 0
        assert status["updateProgress"]["totalPodCliquesCount"] == 3
        await running.ready("web-0-workers")
        status = await updating(running, 1)
        assert status["updateProgress"]["updatedPodCliquesCount"] == 1

        await images(running, body, "busybox:3")  # in the middle of it
        status = await running.status(updatedReplicas=0)
        await running.ready("web-1-workers")
        await updating(running, 0)
        await running.ready("web-0-workers")
        await updating(running, 2)
        await running.ready("web-2-workers")
        status = await running.status(updatedReplicas=3)
        assert "updateEndedAt" in status["updateProgress"]
        assert "currentlyUpdating" not in status["updateProgress"]


async def images(running: Running, body: dict[str, Any], image: str) -> None:
    body["spec"]["template"]["cliques"][0]["spec"]["podSpec"]["containers"][0]["image"] = image
    await running.change({"spec": body["spec"]})

    async def everywhere() -> bool:
        cliques = await running.cluster.all(POD_CLIQUES)
        return {clique["spec"]["podSpec"]["containers"][0]["image"] for clique in cliques} == {image}

    await until(everywhere, within=30)
    words = {
        clique["metadata"]["labels"]["grove.io/pod-template-hash"] for clique in await running.cluster.all(POD_CLIQUES)
    }
    assert len(words) == 1


async def updating(running: Running, replica: int) -> dict[str, Any]:
    async def found() -> dict[str, Any] | None:
        status = await running.status()
        now_in_work = status.get("updateProgress", {}).get("currentlyUpdating", [])
        return status if [one["replicaIndex"] for one in now_in_work] == [replica] else None

    status: dict[str, Any] = await until(found, within=30)
    return status


async def test_a_replica_that_was_broken_for_too_long_is_torn_down_as_a_whole(running: Running) -> None:
    async with running.sets():
        await running.make(with_group(2, terminationDelay="60s"))
        await running.names(SCALING_GROUPS, 2)
        labels = {
            "app.kubernetes.io/managed-by": "grove-operator",
            "app.kubernetes.io/part-of": "web",
            "grove.io/podcliqueset-replica-index": "0",
            "grove.io/podcliquescalinggroup": "web-0-model",
        }
        spec = {"roleName": "worker", "replicas": 1, "podSpec": {"containers": [{"name": "a", "image": "b"}]}}
        group = await running.cluster.client.get(SCALING_GROUPS, "web-0-model", "default")
        owner = msgspec.to_builtins(owner_reference(group, SCALING_GROUPS))
        metadata = {"name": "web-0-model-0-worker", "labels": labels, "ownerReferences": [owner]}
        await running.cluster.make(POD_CLIQUES, {"metadata": metadata, "spec": spec})
        well = [condition("PodCliqueScheduled", "True", ago=0), condition("MinAvailableBreached", "False", ago=0)]
        await running.cluster.set_status(POD_CLIQUES, "web-1-front", {"conditions": well})
        broken = [condition("PodCliqueScheduled", "True", ago=90), condition("MinAvailableBreached", "True", ago=61)]
        await running.cluster.set_status(POD_CLIQUES, "web-0-front", {"conditions": broken})

        async def torn_down() -> bool:
            found = {item["metadata"]["name"] for item in await running.cluster.all(POD_CLIQUES)}
            going = {
                item["metadata"]["name"]
                for item in await running.cluster.all(POD_CLIQUES)
                if "deletionTimestamp" in item["metadata"]
            }
            return "web-0-model-0-worker" not in found and going == {"web-0-front"}

        await until(torn_down, within=30)

        async def marked() -> bool:
            group = await running.cluster.read(SCALING_GROUPS, "web-0-model")
            found = (group or {}).get("status", {}).get("conditions", [])
            return [(one["type"], one["status"], one["reason"]) for one in found] == [
                ("GangTerminationInProgress", "True", "GangTerminationActive")
            ]

        await until(marked, within=30)
        other = await running.cluster.read(SCALING_GROUPS, "web-1-model")
        assert not (other or {}).get("status", {}).get("conditions")

        async def told() -> bool:
            return "PodCliqueSetReplicaDeleteSuccessful" in {one["reason"] for one in await running.cluster.all(EVENTS)}

        await until(told, within=30)
        await running.change({"metadata": {"finalizers": None}}, "web-0-front", POD_CLIQUES)

        async def is_new() -> bool:
            found = await running.cluster.read(POD_CLIQUES, "web-0-front")
            return found is not None and "deletionTimestamp" not in found["metadata"]

        await until(is_new, within=30)


async def test_a_replica_is_torn_down_when_its_time_is_up_without_another_event(running: Running) -> None:
    async with running.sets():
        await running.make(a_set("web", terminationDelay="60s"))
        await running.names(POD_CLIQUES, 1)
        await running.status(replicas=1)
        broken = [condition("PodCliqueScheduled", "True", ago=90), condition("MinAvailableBreached", "True", ago=58)]
        await running.cluster.set_status(POD_CLIQUES, "web-0-workers", {"conditions": broken})

        async def is_going() -> bool:
            found = await running.cluster.read(POD_CLIQUES, "web-0-workers")
            return found is not None and "deletionTimestamp" in found["metadata"]

        await until(is_going, within=30)


async def test_everything_goes_with_the_set(running: Running) -> None:
    async with running.sets():
        await running.make(with_group(2))
        await running.names(SCALING_GROUPS, 2)
        await running.cluster.client.delete(POD_CLIQUE_SETS, "web", "default")
        for resource in (POD_CLIQUE_SETS, POD_CLIQUES, SCALING_GROUPS, SERVICES, ROLES, ROLE_BINDINGS, SECRETS):
            await running.released(resource, 0)
        assert await running.names(SERVICE_ACCOUNTS, 1) == ["default"]


async def test_a_set_made_anew_under_its_name_waits_for_what_the_first_one_left(running: Running) -> None:
    async with running.sets():
        await running.make(a_set("web"))
        await running.names(POD_CLIQUES, 1)
        await running.cluster.client.delete(POD_CLIQUE_SETS, "web", "default")
        await running.released(POD_CLIQUE_SETS, 0)
        second = await running.make(a_set("web"))

        async def is_the_seconds() -> bool:
            found = await running.cluster.read(POD_CLIQUES, "web-0-workers")
            if found is not None and "deletionTimestamp" in found["metadata"]:
                await running.change({"metadata": {"finalizers": None}}, "web-0-workers", POD_CLIQUES)
            return found is not None and found["metadata"]["ownerReferences"][0]["uid"] == second["metadata"]["uid"]

        await until(is_the_seconds, within=30)
        await running.status(lastErrors=None, replicas=1)


@pytest.mark.parametrize("is_enabled", [pytest.param(True, id="on"), pytest.param(False, id="off")])
async def test_a_set_says_whether_its_topology_is_there(running: Running, is_enabled: bool) -> None:
    constraint = {"topologyName": "cluster", "pack": {"required": "rack"}}

    async def says(status: str, reason: str) -> bool:
        found = (await running.status()).get("conditions", [])
        return [(one["type"], one["status"], one["reason"]) for one in found] == [
            ("TopologyLevelsUnavailable", status, reason)
        ]

    async with running.sets(GangSettings(has_topologies=is_enabled)) as manager:
        await running.make(a_set("web", topologyConstraint=constraint))
        if not is_enabled:
            await until(lambda: says("Unknown", "TopologyAwareSchedulingDisabled"), within=30)
            return
        await until(lambda: says("Unknown", "ClusterTopologyNotFound"), within=30)
        await running.names(POD_CLIQUES, 1)
        await running.gang("web-0", 0)
        await running.status(observedGeneration=1)  # there is nothing left that would have it looked at
        await running.settled(manager)
        levels = [{"domain": "rack", "key": "example.com/rack"}]
        await running.cluster.make(TOPOLOGY_BINDINGS, {"metadata": {"name": "cluster"}, "spec": {"levels": levels}})
        await until(lambda: says("False", "AllClusterTopologyLevelsAvailable"), within=30)
        levels = [{"domain": "zone", "key": "example.com/zone"}]
        await running.change({"spec": {"levels": levels}}, "cluster", TOPOLOGY_BINDINGS)
        await until(lambda: says("True", "ClusterTopologyLevelsUnavailable"), within=30)


async def test_shared_claims_are_made_for_the_set_and_for_each_replica(running: Running) -> None:
    requests = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}
    sharing = [
        {"name": "mine", "scope": "AllReplicas"},
        {"name": "mine", "scope": "PerReplica"},
        {"name": "beside", "scope": "PerReplica"},
    ]
    async with running.sets():
        await running.make(
            a_set(
                "web",
                replicas=2,
                resourceClaimTemplates=[{"name": "mine", "templateSpec": {"spec": requests}}],
                resourceSharing=sharing,
            )
        )
        assert await running.names(RESOURCE_CLAIMS, 3) == ["web-0-mine", "web-1-mine", "web-all-mine"]

        async def told() -> Any:
            return (await running.status()).get("lastErrors")

        [error] = await until(told, within=30)
        assert error["code"] == "ERR_SYNC_RESOURCE_CLAIM"
        await running.cluster.make(
            RESOURCE_CLAIM_TEMPLATES, {"metadata": {"name": "beside"}, "spec": {"spec": requests}}
        )
        await running.status(lastErrors=None)
        await running.names(RESOURCE_CLAIMS, 5)
        await running.change({"spec": {"replicas": 1}})
        assert await running.names(RESOURCE_CLAIMS, 3) == ["web-0-beside", "web-0-mine", "web-all-mine"]
