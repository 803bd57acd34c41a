from __future__ import annotations

import copy
from functools import partial
from typing import Any

import pytest

from shoal.api.apps import DEPLOYMENTS, REPLICA_SETS
from shoal.api.core import EVENTS, PODS
from shoal.cluster.controllers.deployments import add_deployments
from shoal.cluster.controllers.deployments.revisions import wanted_set
from shoal.cluster.controllers.replica_sets import add_replica_sets
from tests.cluster.controllers.builders import workload_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.clusters.ready_pods import add_ready_pods

ALL = (add_replica_sets, add_deployments, add_ready_pods)
REVISION = "deployment.kubernetes.io/revision"


def deployment_manifest(replicas: int = 3, **given: Any) -> dict[str, Any]:
    return workload_manifest(replicas=replicas, image="a", metadata={"annotations": {"team": "a"}}, **given)


async def change(cluster: Cluster, *, image: str = "", **spec: Any) -> None:
    if image:
        spec["template"] = {"spec": {"containers": [{"name": "main", "image": image}]}}
    await cluster.client.merge_patch(DEPLOYMENTS, "web", {"spec": spec}, "default")


async def read(cluster: Cluster) -> dict[str, Any]:
    found = await cluster.read(DEPLOYMENTS, "web")
    assert found is not None
    return found


def reason_of(deployment: dict[str, Any], kind: str = "Progressing") -> str:
    conditions = deployment.get("status", {}).get("conditions", ())
    return str(next((condition["reason"] for condition in conditions if condition["type"] == kind), ""))


async def complete(cluster: Cluster) -> dict[str, Any]:
    """Waits until the rollout is over, as ``kubectl rollout status`` does."""

    async def is_over() -> dict[str, Any] | None:
        found = await read(cluster)
        status, wanted = found.get("status", {}), found["spec"]["replicas"]
        counts = [status.get(key, 0) for key in ("replicas", "updatedReplicas", "availableReplicas")]
        is_seen = status.get("observedGeneration") == found["metadata"]["generation"]
        return found if is_seen and counts == [wanted] * 3 and status.get("unavailableReplicas", 0) == 0 else None

    found: dict[str, Any] = await until(is_over, within=15)
    return found


async def sets(cluster: Cluster) -> dict[str, dict[str, Any]]:
    """The ReplicaSets by the image of their pods."""
    found = await cluster.all(REPLICA_SETS)
    return {one["spec"]["template"]["spec"]["containers"][0]["image"]: one for one in found}


async def sizes(cluster: Cluster) -> dict[str, int]:
    return {image: one["spec"]["replicas"] for image, one in (await sets(cluster)).items()}


async def said(cluster: Cluster, reason: str = "ScalingReplicaSet") -> list[str]:
    events = [event for event in await cluster.all(EVENTS) if event["reason"] == reason]
    return [event["message"] for event in events]


async def test_a_deployment_is_one_set_of_its_size(cluster: Cluster) -> None:
    made = (await cluster.make(DEPLOYMENTS, deployment_manifest())).content
    async with cluster.controllers(*ALL):
        found = await complete(cluster)
        (only,) = (await sets(cluster)).values()
    digest = only["metadata"]["labels"]["pod-template-hash"]
    assert only["metadata"]["name"] == f"web-{digest}"
    assert only["metadata"]["labels"] == {"app": "web", "pod-template-hash": digest}
    assert only["metadata"]["annotations"] == {
        "team": "a",
        REVISION: "1",
        "deployment.kubernetes.io/desired-replicas": "3",
        "deployment.kubernetes.io/max-replicas": "4",
    }
    assert only["spec"]["selector"] == {"matchLabels": {"app": "web", "pod-template-hash": digest}}
    assert only["metadata"]["ownerReferences"][0]["uid"] == made["metadata"]["uid"]
    assert found["metadata"]["annotations"] == {"team": "a", REVISION: "1"}
    status = found["status"]
    for condition in status["conditions"]:
        del condition["lastUpdateTime"], condition["lastTransitionTime"]
    assert status == {
        "observedGeneration": 1,
        "replicas": 3,
        "updatedReplicas": 3,
        "readyReplicas": 3,
        "availableReplicas": 3,
        "terminatingReplicas": 0,
        "conditions": [
            {
                "type": "Available",
                "status": "True",
                "reason": "MinimumReplicasAvailable",
                "message": "Deployment has minimum availability.",
            },
            {
                "type": "Progressing",
                "status": "True",
                "reason": "NewReplicaSetAvailable",
                "message": f'ReplicaSet "web-{digest}" has successfully progressed.',
            },
        ],
    }
    assert await said(cluster) == [f"Scaled up replica set web-{digest} from 0 to 3"]


async def test_a_deployment_at_rest_writes_nothing_also_after_a_restart(cluster: Cluster) -> None:
    await cluster.make(DEPLOYMENTS, deployment_manifest())
    async with cluster.controllers(*ALL):
        await complete(cluster)
        await change(cluster, image="b")
        await complete(cluster)
    async with cluster.controllers(*ALL) as manager:
        await manager.wait_until_working()
        await cluster.make(DEPLOYMENTS, {**deployment_manifest(0), "metadata": {"name": "later"}})

        async def later_is_seen() -> bool:
            found = await cluster.read(DEPLOYMENTS, "later")
            return found is not None and reason_of(found) == "NewReplicaSetAvailable"

        await until(later_is_seen)  # so everything that waited before it has been looked at
        writes = writes_of(manager)
        assert writes <= 3  # its ReplicaSet, and the statuses of both


async def test_a_new_template_takes_over_and_is_never_short_of_pods(cluster: Cluster) -> None:
    await cluster.make(DEPLOYMENTS, deployment_manifest(4))
    async with cluster.controllers(*ALL) as manager:
        await complete(cluster)
        ready: list[int] = []
        total: list[int] = []

        def watch(_: Any) -> None:
            pods = manager.cache.informer(PODS).items()
            ready.append(sum(pod.status.phase == "Running" for pod in pods))
            total.append(len(pods))

        manager.cache.informer(PODS).subscribe(watch)
        await change(cluster, image="b")
        found = await complete(cluster)
        assert await sizes(cluster) == {"a": 0, "b": 4}
    assert found["metadata"]["annotations"][REVISION] == "2"
    assert reason_of(found) == "NewReplicaSetAvailable"
    assert min(ready) >= 3
    assert max(total) <= 5
    names = {image: one["metadata"]["name"] for image, one in (await sets(cluster)).items()}
    messages = await said(cluster)
    assert f"Scaled up replica set {names['b']} from 0 to 1" in messages
    assert f"Scaled down replica set {names['a']} from 4 to 3" in messages


async def test_a_rollout_that_never_becomes_ready_keeps_the_old_pods_and_is_late(cluster: Cluster) -> None:
    await cluster.make(DEPLOYMENTS, deployment_manifest(4, progressDeadlineSeconds=1))
    async with cluster.controllers(add_replica_sets, add_deployments, partial(add_ready_pods, image="a")):
        await complete(cluster)
        await change(cluster, image="broken")

        async def is_late() -> bool:
            return reason_of(await read(cluster)) == "ProgressDeadlineExceeded"

        await until(is_late)
        assert await sizes(cluster) == {"a": 3, "broken": 2}
        assert reason_of(await read(cluster), "Available") == "MinimumReplicasAvailable"
        await change(cluster, image="a")
        found = await complete(cluster)
        assert await sizes(cluster) == {"a": 4, "broken": 0}
    assert reason_of(found) == "NewReplicaSetAvailable"
    old = (await sets(cluster))["a"]["metadata"]["annotations"]
    assert old[REVISION] == found["metadata"]["annotations"][REVISION] == "3"
    assert old["deployment.kubernetes.io/revision-history"] == "1"


async def test_a_size_is_followed_up_and_down(cluster: Cluster) -> None:
    await cluster.make(DEPLOYMENTS, deployment_manifest(2))
    async with cluster.controllers(*ALL):
        await complete(cluster)
        await change(cluster, replicas=5)
        await complete(cluster)
        annotations = (await sets(cluster))["a"]["metadata"]["annotations"]
        assert annotations["deployment.kubernetes.io/desired-replicas"] == "5"
        assert annotations["deployment.kubernetes.io/max-replicas"] == "7"
        await change(cluster, replicas=0)
        found = await complete(cluster)
    assert await cluster.all(PODS) == []
    assert found["metadata"]["annotations"][REVISION] == "1"
    name = (await sets(cluster))["a"]["metadata"]["name"]
    assert sorted(await said(cluster)) == [
        f"Scaled down replica set {name} from 5 to 0",
        f"Scaled up replica set {name} from 0 to 2",
        f"Scaled up replica set {name} from 2 to 5",
    ]


async def test_in_the_middle_of_a_rollout_another_size_is_shared(cluster: Cluster) -> None:
    strategy = {"rollingUpdate": {"maxSurge": 3, "maxUnavailable": 2}}
    await cluster.make(DEPLOYMENTS, deployment_manifest(10, strategy=strategy))
    async with cluster.controllers(add_replica_sets, add_deployments, partial(add_ready_pods, image="a")):
        await complete(cluster)
        await change(cluster, image="broken")

        async def has(expected: dict[str, int]) -> bool:
            return await sizes(cluster) == expected

        await until(partial(has, {"a": 8, "broken": 5}))
        await change(cluster, replicas=15)
        await until(partial(has, {"a": 11, "broken": 7}))


async def test_recreating_waits_for_the_last_old_pod(cluster: Cluster) -> None:
    await cluster.make(DEPLOYMENTS, deployment_manifest(2, strategy={"type": "Recreate"}))
    async with cluster.controllers(*ALL):
        await complete(cluster)
        held = (await cluster.all(PODS))[0]["metadata"]["name"]
        await cluster.client.merge_patch(PODS, held, {"metadata": {"finalizers": ["example.com/wait"]}}, "default")
        await change(cluster, image="b")

        async def only_the_held_one() -> bool:
            pods = [pod["metadata"]["name"] for pod in await cluster.all(PODS)]
            found = (await sets(cluster))["a"]
            return pods == [held] and found["status"].get("terminatingReplicas") == 1

        await until(only_the_held_one)
        assert await sizes(cluster) == {"a": 0}
        await cluster.client.merge_patch(PODS, held, {"metadata": {"finalizers": None}}, "default")
        await complete(cluster)
        assert await sizes(cluster) == {"a": 0, "b": 2}


async def test_a_paused_deployment_is_scaled_but_not_rolled_out(cluster: Cluster) -> None:
    await cluster.make(DEPLOYMENTS, deployment_manifest(2))
    async with cluster.controllers(*ALL):
        await complete(cluster)
        await change(cluster, paused=True)

        async def has_reason(expected: str) -> bool:
            found = await read(cluster)
            is_seen = found["status"]["observedGeneration"] == found["metadata"]["generation"]
            return is_seen and reason_of(found) == expected

        await until(partial(has_reason, "DeploymentPaused"))
        await change(cluster, image="b", replicas=4)
        await until(partial(has_reason, "DeploymentPaused"))

        async def has(expected: dict[str, int]) -> bool:
            return await sizes(cluster) == expected

        await until(partial(has, {"a": 4}))
        await change(cluster, paused=False)
        found = await complete(cluster)
        assert await sizes(cluster) == {"a": 0, "b": 4}
    assert reason_of(found) == "NewReplicaSetAvailable"


async def test_only_so_many_old_versions_are_kept(cluster: Cluster) -> None:
    await cluster.make(DEPLOYMENTS, deployment_manifest(1, revisionHistoryLimit=1))
    async with cluster.controllers(*ALL):
        await complete(cluster)
        for image in ("b", "c", "d"):
            await change(cluster, image=image)
            await complete(cluster)

        async def two_left() -> bool:
            return await sizes(cluster) == {"c": 0, "d": 1}

        await until(two_left)


async def test_annotations_and_the_time_to_become_ready_reach_the_set(cluster: Cluster) -> None:
    await cluster.make(DEPLOYMENTS, deployment_manifest(1))
    async with cluster.controllers(*ALL):
        await complete(cluster)
        cause = {"kubernetes.io/change-cause": "a good one"}
        await cluster.client.merge_patch(DEPLOYMENTS, "web", {"metadata": {"annotations": cause}}, "default")
        await change(cluster, minReadySeconds=1)

        async def arrived() -> bool:
            only = (await sets(cluster))["a"]
            annotations = only["metadata"]["annotations"]
            return bool(only["spec"].get("minReadySeconds") == 1 and cause.items() <= annotations.items())

        await until(arrived)
        assert (await complete(cluster))["metadata"]["annotations"][REVISION] == "1"


async def test_a_set_that_another_cluster_made_is_found_by_its_template(cluster: Cluster) -> None:
    made = (await cluster.make(DEPLOYMENTS, deployment_manifest(2))).content
    labels = {"app": "web", "pod-template-hash": "5d4f6b7c8"}
    spec = copy.deepcopy(made["spec"])
    body = {
        "metadata": {"name": "web-5d4f6b7c8", "labels": labels, "annotations": {REVISION: "7"}},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": spec["template"]["spec"]},
        },
    }
    await cluster.make(REPLICA_SETS, body)
    async with cluster.controllers(*ALL):
        found = await complete(cluster)
        (only,) = (await sets(cluster)).values()
    assert only["metadata"]["name"] == "web-5d4f6b7c8"
    assert only["metadata"]["ownerReferences"][0]["name"] == "web"
    assert found["metadata"]["annotations"][REVISION] == "7"
    assert "collisionCount" not in found["status"]


async def test_a_set_that_is_not_selected_any_more_is_released(cluster: Cluster) -> None:
    await cluster.make(DEPLOYMENTS, deployment_manifest(1))
    async with cluster.controllers(*ALL):
        await complete(cluster)
        first = (await sets(cluster))["a"]["metadata"]["name"]
        await cluster.client.merge_patch(REPLICA_SETS, first, {"metadata": {"labels": {"app": "debug"}}}, "default")

        async def released() -> bool:
            found = await cluster.read(REPLICA_SETS, first)
            return found is not None and "ownerReferences" not in found["metadata"]

        async def replaced() -> bool:
            return len(await cluster.all(REPLICA_SETS)) == 2

        await until(released)
        # The name is taken by the set that was released, so that the next one has another.
        await until(replaced)
        found = await complete(cluster)
    assert found["status"]["collisionCount"] == 1


async def test_a_name_that_is_taken_is_avoided(cluster: Cluster) -> None:
    made = await cluster.make(DEPLOYMENTS, deployment_manifest(1))
    typed = await cluster.client.get(DEPLOYMENTS, "web", "default")
    name = wanted_set(typed, revision=1, replicas=1)["metadata"]["name"]
    other = {"app": "other"}
    template = {"metadata": {"labels": other}, "spec": made.content["spec"]["template"]["spec"]}
    spec = {"replicas": 0, "selector": {"matchLabels": other}, "template": template}
    await cluster.make(REPLICA_SETS, {"metadata": {"name": name}, "spec": spec})
    async with cluster.controllers(*ALL):
        found = await complete(cluster)
    assert found["status"]["collisionCount"] == 1
    names = [one["metadata"]["name"] for one in await cluster.all(REPLICA_SETS)]
    assert name in names
    assert len(names) == 2


async def test_a_failure_to_make_pods_is_told_on_the_deployment(cluster: Cluster) -> None:
    body = deployment_manifest(1)
    body["spec"]["template"]["spec"]["serviceAccountName"] = "robot"
    await cluster.make(DEPLOYMENTS, body)
    async with cluster.controllers(*ALL):

        async def failing() -> bool:
            return reason_of(await read(cluster), "ReplicaFailure") == "FailedCreate"

        await until(failing)


async def test_a_deployment_on_its_way_out_makes_nothing(cluster: Cluster) -> None:
    body = deployment_manifest(1)
    body["metadata"]["finalizers"] = ["example.com/wait"]
    await cluster.make(DEPLOYMENTS, body)
    await cluster.client.delete(DEPLOYMENTS, "web", "default")
    async with cluster.controllers(*ALL):

        async def is_seen() -> bool:
            return bool((await read(cluster)).get("status", {}).get("observedGeneration") == 2)

        await until(is_seen)
    assert await cluster.all(REPLICA_SETS) == []


@pytest.mark.parametrize("kills", [3])
async def test_a_rollout_goes_on_wherever_it_was_stopped(cluster: Cluster, kills: int) -> None:
    await cluster.make(DEPLOYMENTS, deployment_manifest(5))
    async with cluster.controllers(*ALL):
        await complete(cluster)
    await change(cluster, image="b")
    for number in range(kills):
        async with cluster.controllers(*ALL):

            async def some_new(enough: int = number + 1) -> bool:
                return (await sizes(cluster)).get("b", 0) >= enough

            await until(some_new)
    async with cluster.controllers(*ALL):
        await complete(cluster)
        assert await sizes(cluster) == {"a": 0, "b": 5}
        assert len(await cluster.all(PODS)) == 5
