"""DaemonSets on a server: a pod for each node that may have one, replaced, moved and counted."""

from __future__ import annotations

from typing import Any

from shoal.api.apps import CONTROLLER_REVISIONS, DAEMON_SETS
from shoal.api.core import EVENTS, NODES, PODS
from shoal.cluster.controllers.daemon_sets import add_daemon_sets
from tests.cluster.controllers.daemon_sets.conftest import (
    LABELS,
    add_node,
    daemon_set_manifest,
    nodes_are,
    pods_by_node,
    run_all,
    run_pod,
    status_is,
)
from tests.support.builders.pods import pod_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of


async def change_image(cluster: Cluster, image: str) -> None:
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}
    await cluster.client.strategic_patch(DAEMON_SETS.documents(), "agent", patch, "default")


async def images(cluster: Cluster) -> list[str]:
    return sorted(pod["spec"]["containers"][0]["image"] for pod in await cluster.all(PODS))


async def three_running(cluster: Cluster, **spec: Any) -> None:
    for name in ("a", "b", "c"):
        await add_node(cluster, name)
    await cluster.make(DAEMON_SETS, daemon_set_manifest(**spec))
    await nodes_are(cluster, "a", "b", "c")
    await run_all(cluster)
    await status_is(cluster, numberAvailable=3)


async def test_every_node_gets_a_pod_that_only_it_can_run(cluster: Cluster) -> None:
    await add_node(cluster, "a")
    await add_node(cluster, "b")
    async with cluster.controllers(add_daemon_sets):
        await cluster.make(DAEMON_SETS, daemon_set_manifest())
        await nodes_are(cluster, "a", "b")
        (pod,) = (await pods_by_node(cluster))["a"]
        (revision,) = await cluster.all(CONTROLLER_REVISIONS)
        status = await status_is(cluster, currentNumberScheduled=2)
    labels = pod["metadata"]["labels"]
    assert labels["controller-revision-hash"] == revision["metadata"]["labels"]["controller-revision-hash"]
    assert revision["metadata"]["name"] == f"agent-{labels['controller-revision-hash']}"
    assert labels["pod-template-generation"] == "1"
    assert pod["metadata"]["generateName"] == "agent-"
    assert {(each["key"], each["effect"]) for each in pod["spec"]["tolerations"]} >= {
        ("node.kubernetes.io/not-ready", "NoExecute"),
        ("node.kubernetes.io/unschedulable", "NoSchedule"),
    }
    assert "nodeName" not in pod["spec"]
    assert status["desiredNumberScheduled"] == 2
    assert status["numberUnavailable"] == 2
    assert status["updatedNumberScheduled"] == 2
    assert status["observedGeneration"] == 1


async def test_pods_come_and_go_with_nodes_labels_and_taints(cluster: Cluster) -> None:
    await add_node(cluster, "a", gpu="yes")
    await add_node(cluster, "b")
    async with cluster.controllers(add_daemon_sets):
        await cluster.make(DAEMON_SETS, daemon_set_manifest(pod={"nodeSelector": {"gpu": "yes"}}))
        await nodes_are(cluster, "a")
        await cluster.client.merge_patch(NODES.documents(), "b", {"metadata": {"labels": {"gpu": "yes"}}})
        await nodes_are(cluster, "a", "b")
        await add_node(cluster, "c", gpu="yes")
        await nodes_are(cluster, "a", "b", "c")
        await cluster.client.merge_patch(NODES.documents(), "a", {"metadata": {"labels": {"gpu": None}}})
        await nodes_are(cluster, "b", "c")
        await run_all(cluster)
        await status_is(cluster, numberReady=2)
        keep_away = {"key": "dedicated", "value": "x", "effect": "NoSchedule"}
        await cluster.client.merge_patch(NODES.documents(), "b", {"spec": {"taints": [keep_away]}})
        await status_is(cluster, desiredNumberScheduled=1, numberMisscheduled=1)
        await nodes_are(cluster, "b", "c")
        drive_away = {"key": "dedicated", "value": "x", "effect": "NoExecute"}
        await cluster.client.merge_patch(NODES.documents(), "b", {"spec": {"taints": [drive_away]}})
        await nodes_are(cluster, "c")
        await status_is(cluster, desiredNumberScheduled=1, numberMisscheduled=0)


async def test_a_pod_for_a_node_that_is_gone_is_deleted(cluster: Cluster) -> None:
    await add_node(cluster, "a")
    await add_node(cluster, "b")
    async with cluster.controllers(add_daemon_sets):
        await cluster.make(DAEMON_SETS, daemon_set_manifest())
        await nodes_are(cluster, "a", "b")
        await cluster.client.delete(NODES, "b")
        await nodes_are(cluster, "a")
        await status_is(cluster, desiredNumberScheduled=1, currentNumberScheduled=1)


async def test_nothing_is_written_at_rest_and_after_a_restart(cluster: Cluster) -> None:
    async with cluster.controllers(add_daemon_sets):
        await three_running(cluster)
    async with cluster.controllers(add_daemon_sets) as manager:
        await manager.wait_until_working()
        note = {"metadata": {"annotations": {"seen": "1"}}}
        await cluster.client.merge_patch(DAEMON_SETS.documents(), "agent", note, "default")

        async def has_looked() -> bool:
            done = manager.metrics.reconciles.labels("daemonset", "success")._value.get()
            return bool(done >= 2)

        await until(has_looked)
        assert writes_of(manager) == 0


async def test_a_node_that_only_reports_wakes_nobody(cluster: Cluster) -> None:
    async with cluster.controllers(add_daemon_sets) as manager:
        await three_running(cluster)
        count = manager.metrics.reconciles.labels("daemonset", "success")._value
        before = count.get()
        await cluster.set_status(NODES, "a", {"capacity": {"cpu": "4"}})
        await cluster.client.merge_patch(NODES.documents(), "b", {"metadata": {"annotations": {"x": "y"}}})
        await status_is(cluster, numberAvailable=3)
        assert count.get() == before


async def test_a_rolling_update_stays_within_max_unavailable(cluster: Cluster) -> None:
    async with cluster.controllers(add_daemon_sets):
        await three_running(cluster)
        await change_image(cluster, "two")
        for updated in (1, 2, 3):
            await status_is(cluster, updatedNumberScheduled=updated, currentNumberScheduled=3)
            assert await images(cluster) == ["one"] * (3 - updated) + ["two"] * updated
            await run_all(cluster)
        await status_is(cluster, numberAvailable=3, updatedNumberScheduled=3)
        revisions = await cluster.all(CONTROLLER_REVISIONS)
        assert sorted(each["revision"] for each in revisions) == [1, 2]


async def test_a_surge_makes_the_new_pod_before_the_old_one_goes(cluster: Cluster) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}}
    async with cluster.controllers(add_daemon_sets):
        await three_running(cluster, updateStrategy=strategy)
        await change_image(cluster, "two")
        for updated in (1, 2, 3):

            async def has_surged(count: int = updated) -> bool:
                return await images(cluster) == ["one"] * (4 - count) + ["two"] * count

            await until(has_surged)
            await run_all(cluster)
        await status_is(cluster, numberAvailable=3, updatedNumberScheduled=3)
        assert await images(cluster) == ["two"] * 3


async def test_on_delete_pods_wait_until_somebody_deletes_them(cluster: Cluster) -> None:
    async with cluster.controllers(add_daemon_sets):
        await three_running(cluster, updateStrategy={"type": "OnDelete"})
        await change_image(cluster, "two")
        await status_is(cluster, observedGeneration=2, updatedNumberScheduled=0)
        (pod,) = (await pods_by_node(cluster))["b"]
        await cluster.client.delete(PODS, pod["metadata"]["name"], "default")
        await status_is(cluster, updatedNumberScheduled=1)
        assert await images(cluster) == ["one", "one", "two"]


async def test_failed_pods_are_replaced_later_each_time(cluster: Cluster) -> None:
    await add_node(cluster, "a")
    async with cluster.controllers(add_daemon_sets):
        await cluster.make(DAEMON_SETS, daemon_set_manifest())
        seen: set[str] = set()
        for _ in range(2):

            async def next_pod() -> dict[str, Any] | None:
                pods = [pod for pod in await cluster.all(PODS) if pod["metadata"]["uid"] not in seen]
                return pods[0] if pods else None

            pod = await until(next_pod)
            seen.add(pod["metadata"]["uid"])
            await cluster.set_status(PODS, pod["metadata"]["name"], {"phase": "Failed"})
        # The first is deleted at once, the second after a second.
        assert len(await cluster.all(PODS)) == 1
        await until(next_pod)

        async def told() -> bool:
            reasons = [event["reason"] for event in await cluster.all(EVENTS)]
            return "FailedDaemonPod" in reasons and "SuccessfulDelete" in reasons

        await until(told)


async def test_a_pod_counts_as_available_after_min_ready_seconds(cluster: Cluster) -> None:
    await add_node(cluster, "a")
    async with cluster.controllers(add_daemon_sets):
        await cluster.make(DAEMON_SETS, daemon_set_manifest(minReadySeconds=1))
        await nodes_are(cluster, "a")
        await run_all(cluster)
        await status_is(cluster, numberReady=1, numberAvailable=1)


async def test_a_pod_that_nobody_has_is_adopted(cluster: Cluster) -> None:
    await add_node(cluster, "a")
    await cluster.make(PODS, pod_manifest("mine", labels=LABELS, node="a"))
    async with cluster.controllers(add_daemon_sets):
        await cluster.make(DAEMON_SETS, daemon_set_manifest(updateStrategy={"type": "OnDelete"}))
        await status_is(cluster, currentNumberScheduled=1, updatedNumberScheduled=0)
        (pod,) = await cluster.all(PODS)
        assert pod["metadata"]["ownerReferences"][0]["kind"] == "DaemonSet"


async def test_history_is_cut_to_its_limit_and_a_rollback_renumbers(cluster: Cluster) -> None:
    async with cluster.controllers(add_daemon_sets):
        await cluster.make(DAEMON_SETS, daemon_set_manifest(revisionHistoryLimit=1))
        await status_is(cluster, observedGeneration=1)
        (first,) = await cluster.all(CONTROLLER_REVISIONS)
        await change_image(cluster, "two")
        await status_is(cluster, observedGeneration=2)
        await cluster.client.strategic_patch(DAEMON_SETS.documents(), "agent", first["data"], "default")
        await status_is(cluster, observedGeneration=3)
        again = await cluster.read(CONTROLLER_REVISIONS, first["metadata"]["name"])
        assert again is not None
        assert again["revision"] == 3
        await change_image(cluster, "three")
        await status_is(cluster, observedGeneration=4)

        async def is_short() -> bool:
            return sorted(each["revision"] for each in await cluster.all(CONTROLLER_REVISIONS)) == [3, 4]

        await until(is_short)


async def test_one_bad_pod_per_node_is_enough_to_be_told(cluster: Cluster) -> None:
    await add_node(cluster, "a")
    async with cluster.controllers(add_daemon_sets):
        await cluster.make(DAEMON_SETS, daemon_set_manifest(pod={"serviceAccountName": "missing"}))

        async def told() -> bool:
            return any(event["reason"] == "FailedCreate" for event in await cluster.all(EVENTS))

        await until(told)
        await status_is(cluster, observedGeneration=1, desiredNumberScheduled=1, numberUnavailable=1)


async def test_a_second_pod_on_a_node_is_deleted(cluster: Cluster) -> None:
    await add_node(cluster, "a")
    async with cluster.controllers(add_daemon_sets):
        await cluster.make(DAEMON_SETS, daemon_set_manifest())
        await nodes_are(cluster, "a")
        (pod,) = (await pods_by_node(cluster))["a"]
        await run_pod(cluster, pod, "a")
        double = {"metadata": {"name": "double", "labels": pod["metadata"]["labels"]}, "spec": pod["spec"]}
        double["spec"] = {key: value for key, value in pod["spec"].items() if key != "nodeName"}
        await cluster.make(PODS, double)

        async def is_single() -> bool:
            return [each["metadata"]["name"] for each in await cluster.all(PODS)] == [pod["metadata"]["name"]]

        await until(is_single)
