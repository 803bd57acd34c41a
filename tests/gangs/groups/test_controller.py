"""The controller of scaling groups on a real API server; the tests tell how the pods of cliques are."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.core import EVENTS
from shoal.api.grove import POD_CLIQUE_SETS, POD_CLIQUES, SCALING_GROUPS, names
from shoal.api.resource_k8s_io import RESOURCE_CLAIM_TEMPLATES, RESOURCE_CLAIMS
from tests.gangs.builders import a_pod_spec
from tests.gangs.groups.stage import BROKEN, GROUP, PENDING, Stage, controller, replica, replicas
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, errors_of, writes_of
from tests.support.waiting.at_rest import at_rest


@pytest.fixture
def stage(cluster: Cluster) -> Stage:
    return Stage(cluster)


async def reasons(cluster: Cluster) -> set[str]:
    return {event["reason"] for event in await cluster.all(EVENTS)}


async def test_members_are_made_for_each_replica(cluster: Cluster, stage: Stage) -> None:
    await stage.open(replicas=3, min_available=2, cliqueStartupType="CliqueStartupTypeInOrder")
    group = await stage.group()
    async with cluster.controllers(controller):
        await stage.wait_for(*replicas(range(3)))

    members = {member["metadata"]["name"]: member for member in await stage.members()}
    base, scaled = members["web-0-model-1-worker"], members["web-0-model-2-worker"]
    assert base["metadata"]["ownerReferences"][0]["uid"] == group["metadata"]["uid"]
    assert base["metadata"]["ownerReferences"][0]["controller"] is True
    assert base["metadata"]["finalizers"] == [names.CLIQUE_FINALIZER]
    assert base["metadata"]["labels"]["grove.io/podgang"] == "web-0"
    assert "grove.io/base-podgang" not in base["metadata"]["labels"]
    assert scaled["metadata"]["labels"]["grove.io/podgang"] == "web-0-model-0"
    assert scaled["metadata"]["labels"]["grove.io/base-podgang"] == "web-0"
    assert (base["spec"]["replicas"], base["spec"]["minAvailable"]) == (3, 2)
    assert base["spec"]["startsAfter"] == ["web-0-model-0-leader", "web-0-model-1-leader"]
    assert scaled["spec"]["startsAfter"] == ["web-0-model-2-leader"]
    variables = [variable["name"] for variable in base["spec"]["podSpec"]["containers"][0]["env"]]
    assert variables == ["GROVE_PCSG_NAME", "GROVE_PCSG_TEMPLATE_NUM_PODS", "GROVE_PCSG_INDEX"]


async def test_the_status_follows_the_members(cluster: Cluster, stage: Stage) -> None:
    await stage.open(replicas=2)
    async with cluster.controllers(controller) as manager:
        await stage.wait_for(*replicas(range(2)))
        await at_rest(manager)
        assert (await stage.condition())["status"] == "True"  # nothing was told yet, and nothing was ever well

        await stage.play(only=lambda name: name in replica(0))
        await until(lambda: _is(stage, scheduledReplicas=1, availableReplicas=1, updatedReplicas=1), within=30)
        assert (await stage.condition())["status"] == "False"
        assert "currentPodCliqueSetGenerationHash" not in await stage.status()

        await stage.play()
        await until(lambda: _is(stage, scheduledReplicas=2, availableReplicas=2, updatedReplicas=2), within=30)
        status = await stage.status()
        pcs = await stage.pcs()
        assert status["currentPodCliqueSetGenerationHash"] == pcs.status.current_generation_hash
        assert (status["replicas"], status["observedGeneration"]) == (2, 1)
        assert "grove.io/podcliquescalinggroup=web-0-model" in status["selector"]
        assert "PodCliqueCreateSuccessful" in await reasons(cluster)


async def test_scaling_out_makes_scaled_gangs_and_scaling_in_takes_the_last_replicas(
    cluster: Cluster, stage: Stage
) -> None:
    await stage.open(replicas=1)
    async with cluster.controllers(controller) as manager:
        await stage.wait_for(*replica(0))
        first = await stage.uids()

        await cluster.client.scale(SCALING_GROUPS, GROUP, 3, "default")
        await stage.wait_for(*replicas(range(3)))
        gangs = {member["metadata"]["labels"][names.GANG_LABEL] for member in await stage.members()}
        assert gangs == {"web-0", "web-0-model-0", "web-0-model-1"}

        await cluster.client.scale(SCALING_GROUPS, GROUP, 1, "default")
        await stage.wait_for(*replica(0))
        assert await stage.uids() == first
        await at_rest(manager)
        assert "PodCliqueScalingGroupReplicaDeleteSuccessful" in await reasons(cluster)


async def test_a_replica_that_was_broken_for_too_long_is_made_anew(cluster: Cluster, stage: Stage) -> None:
    await stage.open(replicas=2, terminationDelay="1s")
    async with cluster.controllers(controller):
        await stage.wait_for(*replicas(range(2)))
        await stage.played(lambda: _is(stage, availableReplicas=2))
        before = await stage.uids()

        await stage.play(BROKEN, only=lambda name: name == "web-0-model-1-worker")
        await stage.made_anew(before, *replica(1))
        after = await stage.uids()
        assert all(after[name] == before[name] for name in replica(0))
        assert (await stage.condition())["status"] == "False"


@pytest.mark.parametrize(
    ("min_available", "delay"),
    [
        pytest.param(1, "4h", id="its time is not up"),
        pytest.param(2, "1ms", id="too few are well, so that the whole gang is broken"),
    ],
)
async def test_a_broken_replica_is_left_alone(cluster: Cluster, stage: Stage, min_available: int, delay: str) -> None:
    await stage.open(replicas=2, min_available=min_available, terminationDelay=delay)
    async with cluster.controllers(controller) as manager:
        await stage.wait_for(*replicas(range(2)))
        await stage.played(lambda: _is(stage, availableReplicas=2))

        await stage.play(BROKEN, only=lambda name: name == "web-0-model-1-worker")
        await until(lambda: _is(stage, availableReplicas=1), within=30)
        await at_rest(manager)

        assert await stage.let_go() == []
        assert (await stage.condition())["status"] == ("True" if min_available == 2 else "False")


async def test_a_replica_that_was_never_scheduled_is_not_torn_down(cluster: Cluster, stage: Stage) -> None:
    await stage.open(replicas=2, terminationDelay="1ms")
    async with cluster.controllers(controller) as manager:
        await stage.wait_for(*replicas(range(2)))
        await stage.play(only=lambda name: name in replica(0))
        await stage.play(PENDING, only=lambda name: name in replica(1))
        await until(lambda: _breach_is(stage, "False"), within=30)
        await at_rest(manager)

        assert await stage.let_go() == []


async def test_the_termination_of_the_gang_is_over_when_the_group_is_well(cluster: Cluster, stage: Stage) -> None:
    await stage.open()
    async with cluster.controllers(controller) as manager:
        await stage.wait_for(*replica(0))
        await stage.play(BROKEN)
        await until(lambda: _breach_is(stage, "True"), within=30)
        await at_rest(manager)
        told = (await stage.status())["conditions"]
        torn_down = {
            "type": "GangTerminationInProgress",
            "status": "True",
            "reason": "GangTerminationActive",
            "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z",
        }
        await cluster.set_status(SCALING_GROUPS, GROUP, {"conditions": [*told, torn_down]})
        await at_rest(manager)
        assert await stage.condition("GangTerminationInProgress")

        await stage.play()
        await until(lambda: _breach_is(stage, "False"), within=30)
        assert not await stage.condition("GangTerminationInProgress")


async def test_an_update_recreates_one_replica_at_a_time(cluster: Cluster, stage: Stage) -> None:
    await stage.open(replicas=3, min_available=2)
    async with cluster.controllers(controller):
        await stage.wait_for(*replicas(range(3)))
        await stage.played(lambda: _is(stage, updatedReplicas=3))
        before = await stage.uids()

        await stage.change_templates("new")
        order: list[str] = []

        async def is_over() -> bool:
            uids = await stage.uids()
            changed = [name for name in sorted(before) if uids.get(name, "") != before[name]]
            order.extend(name for name in changed if name not in order)
            away = {name.removesuffix("-leader").removesuffix("-worker") for name in before if name not in uids}
            assert len(away) <= 1, away
            progress = (await stage.status()).get("updateProgress", {})
            return "updateEndedAt" in progress and await _is(stage, updatedReplicas=3)

        await stage.played(is_over)
        status, pcs = await stage.status(), await stage.pcs()
        uids = await stage.uids()
        assert not set(uids.values()) & set(before.values())
        assert [name[: len(GROUP) + 2] for name in order] == [f"{GROUP}-{index}" for index in (0, 0, 1, 1, 2, 2)]
        assert status["updateProgress"]["readyReplicaIndicesSelectedToUpdate"] == {"current": 2, "completed": [0, 1, 2]}
        assert status["updateProgress"]["updatedPodCliquesCount"] == 6
        assert status["currentPodCliqueSetGenerationHash"] == pcs.status.current_generation_hash
        assert {member["spec"]["podSpec"]["hostname"] for member in await stage.members()} == {"new"}


async def test_a_second_change_in_the_middle_of_an_update_converges(cluster: Cluster, stage: Stage) -> None:
    await stage.open(replicas=2)
    async with cluster.controllers(controller):
        await stage.wait_for(*replicas(range(2)))
        await stage.played(lambda: _is(stage, updatedReplicas=2))

        await stage.change_templates("second")

        async def first_is_away() -> bool:
            await stage.let_go()
            hostnames = {member["spec"]["podSpec"].get("hostname") for member in await stage.members()}
            return "second" in hostnames

        await until(first_is_away, within=30)
        await stage.change_templates("third")

        async def is_over() -> bool:
            pcs = await stage.pcs()
            return await _is(
                stage, updatedReplicas=2, currentPodCliqueSetGenerationHash=pcs.status.current_generation_hash
            )

        await stage.played(is_over)
        assert {member["spec"]["podSpec"]["hostname"] for member in await stage.members()} == {"third"}


async def test_members_are_left_alone_until_it_is_the_turn_of_their_replica(cluster: Cluster, stage: Stage) -> None:
    await stage.open(replicas=2)
    async with cluster.controllers(controller) as manager:
        await stage.wait_for(*replicas(range(2)))
        await stage.played(lambda: _is(stage, updatedReplicas=2))
        before = await stage.uids()

        await stage.change_templates("new", in_work=None)
        await until(lambda: _is(stage, updatedReplicas=None), within=30)
        await at_rest(manager)
        assert await stage.uids() == before

        # What is added meanwhile is born new.
        await cluster.client.scale(SCALING_GROUPS, GROUP, 3, "default")
        await stage.wait_for(*replicas(range(3)))
        hostnames = [member["spec"]["podSpec"].get("hostname") for member in await stage.members()]
        assert hostnames == [None, None, None, None, "new", "new"]

        await stage.played(lambda: _is(stage, updatedReplicas=1, availableReplicas=3))
        await at_rest(manager)
        await stage.take_turn()
        await until(stage.let_go, within=30)
        await stage.played(lambda: _is(stage, updatedReplicas=3))
        assert not set((await stage.uids()).values()) & set(before.values())


async def test_on_delete_patches_members_and_keeps_their_replicas(cluster: Cluster, stage: Stage) -> None:
    await stage.open(replicas=1, update="OnDelete")
    async with cluster.controllers(controller) as manager:
        await stage.wait_for(*replica(0))
        await stage.played(lambda: _is(stage, updatedReplicas=1))
        before = await stage.uids()
        await cluster.client.scale(POD_CLIQUES, "web-0-model-0-worker", 5, "default")
        await at_rest(manager)

        await stage.change_templates("new")

        async def are_patched() -> bool:
            members = await stage.members()
            return all(member["spec"]["podSpec"].get("hostname") == "new" for member in members)

        await until(are_patched, within=30)
        await at_rest(manager)
        assert await stage.uids() == before
        assert {member["metadata"]["name"]: member["spec"]["replicas"] for member in await stage.members()} == {
            "web-0-model-0-leader": 1,
            "web-0-model-0-worker": 5,
        }
        status = await stage.status()
        assert status["updateProgress"]["updateEndedAt"]
        pcs = await stage.pcs()
        assert status["currentPodCliqueSetGenerationHash"] != pcs.status.current_generation_hash  # pods are old

        await stage.play()  # somebody has deleted the pods
        await until(lambda: _is(stage, currentPodCliqueSetGenerationHash=pcs.status.current_generation_hash), within=30)


@pytest.mark.parametrize("update", ["RollingRecreate", "OnDelete"])
async def test_what_an_autoscaler_set_is_never_reverted(cluster: Cluster, stage: Stage, update: str) -> None:
    await stage.open(replicas=1, update=update)
    async with cluster.controllers(controller) as manager:
        await stage.wait_for(*replica(0))
        await at_rest(manager)
        await cluster.client.scale(POD_CLIQUES, "web-0-model-0-worker", 7, "default")
        # The template's number is for cliques that are not there yet.
        patch = [{"op": "replace", "path": "/spec/template/cliques/1/spec/replicas", "value": 4}]
        await cluster.client.json_patch(POD_CLIQUE_SETS.documents(), "web", patch, "default")
        await cluster.client.scale(SCALING_GROUPS, GROUP, 2, "default")
        await stage.wait_for(*replicas(range(2)))
        await at_rest(manager)

    async with cluster.controllers(controller) as manager:
        await at_rest(manager)
    found = {member["metadata"]["name"]: member["spec"]["replicas"] for member in await stage.members()}
    assert (found["web-0-model-0-worker"], found["web-0-model-1-worker"]) == (7, 4)


async def test_existing_members_are_not_patched_when_updates_recreate_them(cluster: Cluster, stage: Stage) -> None:
    await stage.open(replicas=1)
    async with cluster.controllers(controller) as manager:
        await stage.wait_for(*replica(0))
        patch = {"spec": {"podSpec": a_pod_spec(hostname="edited")}}
        await cluster.client.merge_patch(POD_CLIQUES.documents(), "web-0-model-0-leader", patch, "default")
        await at_rest(manager)

        assert [member["spec"]["podSpec"].get("hostname") for member in await stage.members()] == ["edited", None]


@pytest.mark.parametrize("update", ["RollingRecreate", "OnDelete"])
async def test_at_rest_nothing_is_written_nor_after_a_restart(cluster: Cluster, stage: Stage, update: str) -> None:
    await stage.open(replicas=2, update=update)
    async with cluster.controllers(controller) as manager:
        await stage.wait_for(*replicas(range(2)))
        await stage.played(lambda: _is(stage, updatedReplicas=2))
        await at_rest(manager)
        settled = writes_of(manager)
        trigger = {"metadata": {"labels": {"touched": "yes"}}}
        await cluster.client.merge_patch(SCALING_GROUPS.documents(), GROUP, trigger, "default")
        await cluster.client.merge_patch(POD_CLIQUES.documents(), "web-0-model-0-leader", trigger, "default")
        await at_rest(manager)
        assert writes_of(manager) == settled

    async with cluster.controllers(controller) as again:
        await at_rest(again)
        assert writes_of(again) == 0


async def test_a_foreign_clique_is_never_taken_over_and_blocks_no_other(cluster: Cluster, stage: Stage) -> None:
    spec = {"roleName": "mine", "replicas": 1, "minAvailable": 1, "podSpec": a_pod_spec()}
    foreign = {"metadata": {"name": "web-0-model-0-leader", "namespace": "default"}, "spec": spec}
    await cluster.make(POD_CLIQUES, foreign)
    await stage.open(replicas=2)
    async with cluster.controllers(controller) as manager:
        await stage.wait_for("web-0-model-0-worker", *replica(1))

        async def is_told() -> Any:
            return (await stage.status()).get("lastErrors")

        [error] = await until(is_told, within=30)
        assert error["code"] == "ERR_CREATE_PODCLIQUES"
        assert "web-0-model-0-leader exists" in error["description"]
        found = await cluster.read(POD_CLIQUES, "web-0-model-0-leader")
        assert found is not None
        assert (found["spec"]["roleName"], found["metadata"].get("ownerReferences")) == ("mine", None)
        await manager.events.flush(within=30)
        assert "PodCliqueCreateFailed" in await reasons(cluster)

        # It recovers by itself once the name is free.
        await cluster.client.delete(POD_CLIQUES, "web-0-model-0-leader", "default")
        await stage.wait_for(*replicas(range(2)))
        await until(lambda: _has_no_errors(stage), within=30)


async def test_a_clique_that_an_earlier_group_of_the_name_left_is_waited_for_without_a_word(
    cluster: Cluster, stage: Stage
) -> None:
    owner = {"apiVersion": "grove.io/v1alpha1", "kind": "PodCliqueScalingGroup", "name": GROUP, "uid": "earlier"}
    metadata = {"name": "web-0-model-0-leader", "ownerReferences": [{**owner, "controller": True}]}
    spec = {"roleName": "leader", "replicas": 1, "minAvailable": 1, "podSpec": a_pod_spec()}
    await cluster.make(POD_CLIQUES, {"metadata": metadata, "spec": spec})
    await stage.open(replicas=2)
    async with cluster.controllers(controller) as manager:
        await stage.wait_for("web-0-model-0-worker", *replica(1))
        await at_rest(manager)
        assert await _has_no_errors(stage)
        assert "PodCliqueCreateFailed" not in await reasons(cluster)
        await cluster.client.delete(POD_CLIQUES, "web-0-model-0-leader", "default")
        await stage.wait_for(*replicas(range(2)))


async def test_a_group_that_is_deleted_is_let_go(cluster: Cluster, stage: Stage) -> None:
    await stage.open()
    async with cluster.controllers(controller):
        await stage.wait_for(*replica(0))
        await cluster.client.delete(SCALING_GROUPS, GROUP, "default", propagation="Background")

        async def is_gone() -> bool:
            return await cluster.read(SCALING_GROUPS, GROUP) is None

        await until(is_gone, within=30)


async def test_the_finalizer_is_put_back(cluster: Cluster, stage: Stage) -> None:
    await stage.open()
    bare: dict[str, Any] = {"metadata": {"finalizers": []}}
    await cluster.client.merge_patch(SCALING_GROUPS.documents(), GROUP, bare, "default")
    async with cluster.controllers(controller):
        await stage.wait_for(*replica(0))
    assert (await stage.group())["metadata"]["finalizers"] == [names.SCALING_GROUP_FINALIZER]


async def test_claims_follow_the_replicas_and_a_template_that_appears_is_found(cluster: Cluster, stage: Stage) -> None:
    await stage.open(replicas=2, sharing=[{"name": "gpus", "scope": "PerReplica"}])
    async with cluster.controllers(controller) as manager:

        async def is_told() -> Any:
            return (await stage.status()).get("lastErrors")

        [error] = await until(is_told, within=30)
        assert error["code"] == "ERR_SYNC_RESOURCE_CLAIM"
        await stage.wait_for(*replicas(range(2)))
        await at_rest(manager)
        assert errors_of(manager) == 0, "it is waited for, and not tried again and again"
        requests = [{"name": "gpu", "exactly": {"deviceClassName": "gpu.example.com"}}]
        template = {"metadata": {"name": "gpus"}, "spec": {"spec": {"devices": {"requests": requests}}}}
        await cluster.make(RESOURCE_CLAIM_TEMPLATES, template)

        async def claims() -> list[str]:
            return [claim["metadata"]["name"] for claim in await cluster.all(RESOURCE_CLAIMS)]

        async def both() -> bool:
            return await claims() == ["web-0-model-0-gpus", "web-0-model-1-gpus"]

        await until(both, within=30)
        await cluster.client.delete(RESOURCE_CLAIMS, "web-0-model-0-gpus", "default")
        await until(both, within=30)  # it is made anew
        await cluster.client.scale(SCALING_GROUPS, GROUP, 1, "default")

        async def first() -> bool:
            await stage.let_go()
            return await claims() == ["web-0-model-0-gpus"]

        await until(first, within=30)
        await at_rest(manager)
        settled = writes_of(manager)
        trigger = {"metadata": {"labels": {"touched": "yes"}}}
        await cluster.client.merge_patch(SCALING_GROUPS.documents(), GROUP, trigger, "default")
        await at_rest(manager)
        assert writes_of(manager) == settled


async def _is(stage: Stage, **expected: Any) -> bool:
    status = await stage.status()
    return all((status.get(field) or None) == (value or None) for field, value in expected.items())


async def _breach_is(stage: Stage, expected: str) -> bool:
    return (await stage.condition()).get("status") == expected


async def _has_no_errors(stage: Stage) -> bool:
    return not (await stage.status()).get("lastErrors")
