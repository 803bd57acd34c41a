from __future__ import annotations

from functools import partial
from typing import Any

import pytest

from shoal.api.apps import REPLICA_SETS
from shoal.api.core import EVENTS, NAMESPACES, PODS, REPLICATION_CONTROLLERS, SERVICE_ACCOUNTS
from shoal.api.meta import Resource, format_time, now
from shoal.cluster.controllers import rests
from shoal.cluster.controllers.replica_sets import add_replica_sets
from tests.cluster.controllers.builders import workload_manifest
from tests.support.builders.pods import pod_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.clusters.ready_pods import add_ready_pods

LABELS = {"app": "web"}


def a_controller(replicas: int = 3) -> dict[str, Any]:
    return workload_manifest(replicas=replicas, selector=LABELS)


async def status_is(cluster: Cluster, resource: Resource[Any] = REPLICA_SETS, **expected: Any) -> dict[str, Any]:
    """Waits until the status of the set says this, with what is zero left out, and gives it."""

    async def told() -> dict[str, Any] | None:
        found = await cluster.read(resource, "web")
        status = (found or {}).get("status", {})
        return status if {key: status.get(key, 0) for key in expected} == expected else None

    found: dict[str, Any] = await until(told, within=10)
    return found


async def said(cluster: Cluster, reason: str) -> list[str]:
    return [event["message"] for event in await cluster.all(EVENTS) if event["reason"] == reason]


async def names(cluster: Cluster) -> list[str]:
    return [pod["metadata"]["name"] for pod in await cluster.all(PODS)]


async def resize(cluster: Cluster, replicas: int) -> None:
    await cluster.client.merge_patch(REPLICA_SETS, "web", {"spec": {"replicas": replicas}}, "default")


async def test_a_set_makes_its_pods_and_tells_of_them(cluster: Cluster) -> None:
    made = (await cluster.make(REPLICA_SETS, workload_manifest(replicas=3))).content
    async with cluster.controllers(add_replica_sets):
        status = await status_is(cluster, replicas=3, observedGeneration=1)
        pods = await cluster.all(PODS)
    assert status == {"replicas": 3, "fullyLabeledReplicas": 3, "terminatingReplicas": 0, "observedGeneration": 1}
    for pod in pods:
        assert pod["metadata"]["generateName"] == "web-"
        assert pod["metadata"]["labels"] == LABELS
        assert pod["metadata"]["ownerReferences"] == [
            {
                "apiVersion": "apps/v1",
                "kind": "ReplicaSet",
                "name": "web",
                "uid": made["metadata"]["uid"],
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ]
    assert sorted(await said(cluster, "SuccessfulCreate")) == [f"Created pod: {name}" for name in await names(cluster)]


async def test_a_set_at_rest_writes_nothing_also_after_a_restart(cluster: Cluster) -> None:
    await cluster.make(REPLICA_SETS, workload_manifest(replicas=3))
    await cluster.make(REPLICATION_CONTROLLERS, a_controller())
    async with cluster.controllers(add_replica_sets, add_ready_pods):
        await status_is(cluster, availableReplicas=3)
        await status_is(cluster, REPLICATION_CONTROLLERS, availableReplicas=3)
    async with cluster.controllers(add_replica_sets) as manager:
        await manager.wait_until_working()
        await cluster.make(REPLICA_SETS, workload_manifest("later", replicas=0))

        async def later_is_seen() -> bool:
            found = await cluster.read(REPLICA_SETS, "later")
            return found is not None and found.get("status", {}).get("observedGeneration") == 1

        await until(later_is_seen)  # so everything that waited before it has been looked at
        assert writes_of(manager) == 1


async def test_ready_pods_are_told_of_and_a_lost_one_is_replaced(cluster: Cluster) -> None:
    await cluster.make(REPLICA_SETS, workload_manifest(replicas=3))
    async with cluster.controllers(add_replica_sets, add_ready_pods):
        await status_is(cluster, readyReplicas=3, availableReplicas=3)
        lost = (await names(cluster))[0]
        await cluster.client.delete(PODS, lost, "default")

        async def replaced() -> bool:
            found = await names(cluster)
            return len(found) == 3 and lost not in found

        await until(replaced)
        await status_is(cluster, replicas=3, readyReplicas=3, availableReplicas=3)


async def test_a_pod_that_ended_is_replaced_and_kept(cluster: Cluster) -> None:
    await cluster.make(REPLICA_SETS, workload_manifest(replicas=1))
    async with cluster.controllers(add_replica_sets):
        await status_is(cluster, replicas=1)
        ended = (await names(cluster))[0]
        await cluster.set_status(PODS, ended, {"phase": "Failed"})

        async def two() -> bool:
            return len(await names(cluster)) == 2

        await until(two)
        await status_is(cluster, replicas=1)
        assert ended in await names(cluster)


async def test_a_smaller_set_gives_up_those_it_can_spare_best(cluster: Cluster) -> None:
    await cluster.make(REPLICA_SETS, workload_manifest(replicas=3))
    async with cluster.controllers(add_replica_sets):
        await status_is(cluster, replicas=3)
        kept = (await names(cluster))[1]
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": format_time(now())}
        await cluster.set_status(PODS, kept, {"phase": "Running", "conditions": [ready]})
        await status_is(cluster, readyReplicas=1)
        await resize(cluster, 1)
        await status_is(cluster, replicas=1, readyReplicas=1, observedGeneration=2)
        assert await names(cluster) == [kept]
    assert len(await said(cluster, "SuccessfulDelete")) == 2


async def test_pods_on_their_way_out_are_counted_apart_and_replaced_at_once(cluster: Cluster) -> None:
    await cluster.make(REPLICA_SETS, workload_manifest(replicas=1))
    async with cluster.controllers(add_replica_sets):
        await status_is(cluster, replicas=1)
        going = (await names(cluster))[0]
        patch = {"metadata": {"finalizers": ["example.com/wait"]}}
        await cluster.client.merge_patch(PODS, going, patch, "default")
        await cluster.client.delete(PODS, going, "default")
        await status_is(cluster, replicas=1, terminatingReplicas=1)
        await cluster.client.merge_patch(PODS, going, {"metadata": {"finalizers": None}}, "default")
        await status_is(cluster, replicas=1, terminatingReplicas=0)


async def test_an_orphan_is_adopted_and_a_relabeled_pod_let_go(cluster: Cluster) -> None:
    await cluster.make(PODS, pod_manifest("found", labels=LABELS))
    await cluster.make(REPLICA_SETS, workload_manifest(replicas=1))
    async with cluster.controllers(add_replica_sets):
        await status_is(cluster, replicas=1)
        assert await names(cluster) == ["found"]
        await cluster.client.merge_patch(PODS, "found", {"metadata": {"labels": {"app": "debug"}}}, "default")

        async def replaced() -> bool:
            return len(await names(cluster)) == 2

        await until(replaced)
        await status_is(cluster, replicas=1)
        found = await cluster.read(PODS, "found")
        assert found is not None
        assert "ownerReferences" not in found["metadata"]


async def test_one_orphan_too_many_is_adopted_and_one_pod_given_up(cluster: Cluster) -> None:
    await cluster.make(REPLICA_SETS, workload_manifest(replicas=1))
    async with cluster.controllers(add_replica_sets):
        await status_is(cluster, replicas=1)
        await cluster.make(PODS, pod_manifest("extra", labels=LABELS))

        async def one_again() -> bool:
            return len(await said(cluster, "SuccessfulDelete")) == 1 and len(await names(cluster)) == 1

        await until(one_again)


async def test_a_set_on_its_way_out_makes_nothing(cluster: Cluster) -> None:
    await cluster.make(REPLICA_SETS, workload_manifest(replicas=1, metadata={"finalizers": ["example.com/wait"]}))
    await cluster.client.delete(REPLICA_SETS, "web", "default")
    async with cluster.controllers(add_replica_sets):
        await status_is(cluster, replicas=0, observedGeneration=2)
    assert await names(cluster) == []


async def test_pods_that_are_refused_are_told_of_and_tried_again(cluster: Cluster) -> None:
    await cluster.make(REPLICA_SETS, workload_manifest(replicas=2, pod={"serviceAccountName": "robot"}))
    async with cluster.controllers(add_replica_sets):

        async def failing() -> dict[str, Any] | None:
            found = await cluster.read(REPLICA_SETS, "web")
            return next(iter((found or {}).get("status", {}).get("conditions", ())), None)

        condition = await until(failing)
        message = 'pods "web-" is forbidden: error looking up service account default/robot: '
        assert (condition["type"], condition["status"]) == ("ReplicaFailure", "True")
        assert condition["reason"] == "FailedCreate"
        assert condition["message"].startswith(message)

        async def warned() -> list[str]:
            return await said(cluster, "FailedCreate")

        assert (await until(warned))[0].startswith(f"Error creating: {message}")
        await cluster.make(SERVICE_ACCOUNTS, {"metadata": {"name": "robot"}})
        status = await status_is(cluster, replicas=2)
        assert "conditions" not in status


async def test_a_pod_counts_as_available_once_it_has_been_ready_for_long_enough(cluster: Cluster) -> None:
    await cluster.make(REPLICA_SETS, workload_manifest(replicas=1, minReadySeconds=1))
    async with cluster.controllers(add_replica_sets, add_ready_pods):
        status = await status_is(cluster, readyReplicas=1)
        assert status.get("availableReplicas", 0) == 0
        await status_is(cluster, availableReplicas=1)


async def test_a_namespace_that_takes_no_pods_any_more_is_no_failure(cluster: Cluster) -> None:
    await cluster.make(NAMESPACES, {"metadata": {"name": "leaving"}})
    await cluster.make(REPLICA_SETS, workload_manifest(replicas=2), "leaving")
    await cluster.client.delete(NAMESPACES, "leaving")
    async with cluster.controllers(add_replica_sets):

        async def told() -> dict[str, Any] | None:
            found = await cluster.read(REPLICA_SETS, "web", "leaving")
            return (
                (found or {}).get("status", {}) if (found or {}).get("status", {}).get("observedGeneration") else None
            )

        status = await until(told)
    assert status == {"replicas": 0, "terminatingReplicas": 0, "observedGeneration": 1}


@pytest.mark.parametrize("burst", [4])
async def test_a_large_set_grows_in_bursts(cluster: Cluster, burst: int) -> None:
    await cluster.make(REPLICA_SETS, workload_manifest(replicas=10))
    async with cluster.controllers(partial(add_replica_sets, burst=burst)):
        await status_is(cluster, replicas=10)
        await resize(cluster, 0)
        await status_is(cluster, replicas=0, observedGeneration=2)
    assert await names(cluster) == []


async def test_a_replication_controller_is_kept_by_the_same_rule(cluster: Cluster) -> None:
    await cluster.make(REPLICATION_CONTROLLERS, a_controller(2))
    async with cluster.controllers(add_replica_sets, add_ready_pods):
        status = await status_is(cluster, REPLICATION_CONTROLLERS, availableReplicas=2)
        pods = await cluster.all(PODS)
    assert status == {
        "replicas": 2,
        "fullyLabeledReplicas": 2,
        "readyReplicas": 2,
        "availableReplicas": 2,
        "observedGeneration": 1,
    }
    owners = [pod["metadata"]["ownerReferences"][0] for pod in pods]
    assert {(owner["apiVersion"], owner["kind"]) for owner in owners} == {("v1", "ReplicationController")}


async def test_a_broken_set_does_not_hold_up_others(cluster: Cluster) -> None:
    await cluster.make(REPLICA_SETS, workload_manifest("refused", replicas=50, pod={"serviceAccountName": "robot"}))
    await cluster.make(REPLICA_SETS, workload_manifest(replicas=2))
    async with cluster.controllers(add_replica_sets):
        await status_is(cluster, replicas=2)


async def test_a_set_of_many_pods_is_not_looked_at_for_each_of_their_changes(
    cluster: Cluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rests, "MANY", 20)
    monkeypatch.setattr(rests, "PER_SECOND", 40)
    await cluster.make(REPLICA_SETS, workload_manifest(replicas=20))
    async with cluster.controllers(add_replica_sets, add_ready_pods) as manager:
        await status_is(cluster, replicas=20, readyReplicas=20)
        looks = manager.metrics.reconciles.labels("replicaset", "success")._value.get
        before = looks()
        for name in await names(cluster):
            await cluster.client.merge_patch(PODS, name, {"metadata": {"annotations": {"a": "b"}}}, "default")
        await cluster.client.delete(PODS, (await names(cluster))[0], "default", grace_seconds=0)
        await until(lambda: _has_pods(cluster, 20))
        await status_is(cluster, replicas=20, readyReplicas=20)
        assert looks() - before <= 8
        await resize(cluster, 0)
        await status_is(cluster, replicas=0)


async def _has_pods(cluster: Cluster, count: int) -> bool:
    return len(await names(cluster)) == count
