"""StatefulSets on a server: pods in order, with their claims, replaced, scaled and counted."""

from __future__ import annotations

from typing import Any

from shoal.api.apps import CONTROLLER_REVISIONS, STATEFUL_SETS
from shoal.api.core import EVENTS, PERSISTENT_VOLUME_CLAIMS, PODS
from shoal.cluster.controllers.stateful_sets import add_stateful_sets
from tests.cluster.controllers.stateful_sets.conftest import (
    LABELS,
    a_claim_template,
    pod_names,
    ready,
    stateful_set_manifest,
    status_is,
)
from tests.support.builders.pods import pod_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of


async def all_ready(cluster: Cluster, count: int) -> None:
    for ordinal in range(count):
        await ready(cluster, f"web-{ordinal}")
    await status_is(cluster, readyReplicas=count, replicas=count)


async def change(cluster: Cluster, spec: dict[str, Any]) -> None:
    await cluster.client.merge_patch(STATEFUL_SETS.documents(), "web", {"spec": spec}, "default")


async def change_image(cluster: Cluster, image: str) -> None:
    patch = {"spec": {"template": {"spec": {"containers": [{"name": "main", "image": image}]}}}}
    await cluster.client.strategic_patch(STATEFUL_SETS.documents(), "web", patch, "default")


def image_of(pod: dict[str, Any]) -> str:
    return str(pod["spec"]["containers"][0]["image"])


async def test_a_pod_begins_when_the_one_before_it_is_ready(cluster: Cluster) -> None:
    async with cluster.controllers(add_stateful_sets):
        await cluster.make(STATEFUL_SETS, stateful_set_manifest())
        await status_is(cluster, replicas=1)
        assert await pod_names(cluster) == ["web-0"]
        await ready(cluster, "web-0")
        await status_is(cluster, replicas=2, readyReplicas=1)
        assert await pod_names(cluster) == ["web-0", "web-1"]
        await ready(cluster, "web-1")
        await ready(cluster, "web-2")
        status = await status_is(cluster, replicas=3, readyReplicas=3, availableReplicas=3, updatedReplicas=3)
    assert status["currentRevision"] == status["updateRevision"]
    assert status["currentReplicas"] == 3
    assert status["collisionCount"] == 0
    assert status["observedGeneration"] == 1


async def test_a_pod_has_its_name_number_hostname_and_revision(cluster: Cluster) -> None:
    async with cluster.controllers(add_stateful_sets):
        await cluster.make(STATEFUL_SETS, stateful_set_manifest(ordinals={"start": 5}))
        pod = await until(lambda: cluster.read(PODS, "web-5"))
        status = await status_is(cluster, replicas=1)
    assert pod["metadata"]["generateName"] == "web-"
    assert pod["metadata"]["labels"] == {
        "app": "web",
        "apps.kubernetes.io/pod-index": "5",
        "controller-revision-hash": status["updateRevision"],
        "statefulset.kubernetes.io/pod-name": "web-5",
    }
    assert pod["spec"]["hostname"] == "web-5"
    assert pod["spec"]["subdomain"] == "web"
    assert [owner["kind"] for owner in pod["metadata"]["ownerReferences"]] == ["StatefulSet"]


async def test_nothing_is_written_at_rest_and_after_a_restart(cluster: Cluster) -> None:
    async with cluster.controllers(add_stateful_sets):
        await cluster.make(STATEFUL_SETS, stateful_set_manifest(replicas=2, volumeClaimTemplates=[a_claim_template()]))
        await all_ready(cluster, 2)
        await status_is(cluster, currentReplicas=2, updatedReplicas=2, availableReplicas=2)
    async with cluster.controllers(add_stateful_sets) as manager:
        await manager.wait_until_working()
        await cluster.client.merge_patch(
            PODS.documents(), "web-0", {"metadata": {"annotations": {"seen": "1"}}}, "default"
        )
        await until(_reconciled(manager))
        assert writes_of(manager) == 0


def _reconciled(manager: Any) -> Any:
    async def is_idle() -> bool:
        done = manager.metrics.reconciles.labels("statefulset", "success")._value.get()
        return bool(done >= 2)

    return is_idle


async def test_a_pod_that_ended_is_made_anew(cluster: Cluster) -> None:
    async with cluster.controllers(add_stateful_sets):
        await cluster.make(STATEFUL_SETS, stateful_set_manifest(replicas=1))
        first = await until(lambda: cluster.read(PODS, "web-0"))
        await cluster.set_status(PODS, "web-0", {"phase": "Failed"})

        async def replaced() -> bool:
            pod = await cluster.read(PODS, "web-0")
            return pod is not None and pod["metadata"]["uid"] != first["metadata"]["uid"]

        await until(replaced)


async def test_parallel_pods_all_begin_at_once(cluster: Cluster) -> None:
    async with cluster.controllers(add_stateful_sets):
        await cluster.make(STATEFUL_SETS, stateful_set_manifest(replicas=5, podManagementPolicy="Parallel"))
        await status_is(cluster, replicas=5)
        assert await pod_names(cluster) == [f"web-{ordinal}" for ordinal in range(5)]
        await change(cluster, {"replicas": 2})
        await status_is(cluster, replicas=2)
        assert await pod_names(cluster) == ["web-0", "web-1"]


async def test_scaling_down_takes_the_highest_ordinal_first(cluster: Cluster) -> None:
    async with cluster.controllers(add_stateful_sets):
        await cluster.make(STATEFUL_SETS, stateful_set_manifest())
        await all_ready(cluster, 3)
        finalizer = {"metadata": {"finalizers": ["test/hold"]}}
        await cluster.client.merge_patch(PODS.documents(), "web-2", finalizer, "default")
        await change(cluster, {"replicas": 0})

        async def last_is_going() -> bool:
            pod = await cluster.read(PODS, "web-2")
            return pod is not None and "deletionTimestamp" in pod["metadata"]

        await until(last_is_going)
        await status_is(cluster, observedGeneration=2, replicas=3)
        assert await pod_names(cluster) == ["web-0", "web-1", "web-2"]
        await cluster.client.merge_patch(PODS.documents(), "web-2", {"metadata": {"finalizers": None}}, "default")
        await status_is(cluster, replicas=0)
        assert await pod_names(cluster) == []


async def test_a_rolling_update_replaces_one_pod_at_a_time_from_the_top(cluster: Cluster) -> None:
    async with cluster.controllers(add_stateful_sets):
        await cluster.make(STATEFUL_SETS, stateful_set_manifest())
        await all_ready(cluster, 3)
        before = await status_is(cluster, currentReplicas=3)
        await change_image(cluster, "two")
        for ordinal in (2, 1, 0):
            await until(_has_image(cluster, f"web-{ordinal}", "two"))
            images = {pod["metadata"]["name"]: image_of(pod) for pod in await cluster.all(PODS)}
            assert all(images[f"web-{below}"] == "one" for below in range(ordinal))
            await ready(cluster, f"web-{ordinal}")
        after = await status_is(cluster, updatedReplicas=3, currentReplicas=3, readyReplicas=3)
    assert after["currentRevision"] == after["updateRevision"] != before["currentRevision"]


def _has_image(cluster: Cluster, name: str, image: str) -> Any:
    async def has() -> bool:
        pod = await cluster.read(PODS, name)
        return pod is not None and image_of(pod) == image

    return has


async def test_pods_below_the_partition_keep_their_template(cluster: Cluster) -> None:
    strategy = {"type": "RollingUpdate", "rollingUpdate": {"partition": 2}}
    async with cluster.controllers(add_stateful_sets):
        await cluster.make(STATEFUL_SETS, stateful_set_manifest(updateStrategy=strategy))
        await all_ready(cluster, 3)
        await change_image(cluster, "two")
        await until(_has_image(cluster, "web-2", "two"))
        await ready(cluster, "web-2")
        await status_is(cluster, readyReplicas=3, updatedReplicas=1, currentReplicas=2)
        first = await cluster.read(PODS, "web-0")
        assert first is not None
        await cluster.client.delete(PODS, "web-0", "default")

        async def is_back() -> dict[str, Any] | None:
            pod = await cluster.read(PODS, "web-0")
            return pod if pod is not None and pod["metadata"]["uid"] != first["metadata"]["uid"] else None

        assert image_of(await until(is_back)) == "one"


async def test_on_delete_pods_wait_until_somebody_deletes_them(cluster: Cluster) -> None:
    async with cluster.controllers(add_stateful_sets):
        await cluster.make(STATEFUL_SETS, stateful_set_manifest(replicas=2, updateStrategy={"type": "OnDelete"}))
        await all_ready(cluster, 2)
        await change_image(cluster, "two")
        await status_is(cluster, observedGeneration=2, updatedReplicas=0)
        await cluster.client.delete(PODS, "web-1", "default")
        await until(_has_image(cluster, "web-1", "two"))
        await status_is(cluster, updatedReplicas=1)
        assert await _has_image(cluster, "web-0", "one")()


async def test_claims_are_made_before_the_pod_and_belong_to_the_set_where_it_says_so(cluster: Cluster) -> None:
    policy = {"whenDeleted": "Delete", "whenScaled": "Delete"}
    templates = [a_claim_template()]
    async with cluster.controllers(add_stateful_sets):
        await cluster.make(
            STATEFUL_SETS,
            stateful_set_manifest(
                replicas=2, volumeClaimTemplates=templates, persistentVolumeClaimRetentionPolicy=policy
            ),
        )
        await all_ready(cluster, 2)
        await until(_claim_is_owned_by(cluster, "data-web-1", "StatefulSet"))
        claim = await cluster.read(PERSISTENT_VOLUME_CLAIMS, "data-web-1")
        assert claim is not None
        assert claim["metadata"]["labels"] == {"kind": "disk", "app": "web"}
        pod = await cluster.read(PODS, "web-1")
        assert pod is not None
        assert pod["spec"]["volumes"][0] == {
            "name": "data",
            "persistentVolumeClaim": {"claimName": "data-web-1"},
        }
        finalizer = {"metadata": {"finalizers": ["test/hold"]}}
        await cluster.client.merge_patch(PODS.documents(), "web-1", finalizer, "default")
        await change(cluster, {"replicas": 1})
        await until(_claim_is_owned_by(cluster, "data-web-1", "Pod"))
        await cluster.client.merge_patch(PODS.documents(), "web-1", {"metadata": {"finalizers": None}}, "default")
        await status_is(cluster, replicas=1)
        # The claim still goes with the pod that was: a new one waits until it has.
        await change(cluster, {"replicas": 2})
        await status_is(cluster, observedGeneration=3)
        assert await pod_names(cluster) == ["web-0"]
        await cluster.client.merge_patch(
            PERSISTENT_VOLUME_CLAIMS.documents(), "data-web-1", {"metadata": {"finalizers": None}}, "default"
        )
        await cluster.client.delete(PERSISTENT_VOLUME_CLAIMS, "data-web-1", "default")
        await until(lambda: cluster.read(PODS, "web-1"))


def _claim_is_owned_by(cluster: Cluster, name: str, kind: str) -> Any:
    async def is_owned() -> bool:
        claim = await cluster.read(PERSISTENT_VOLUME_CLAIMS, name)
        owners = claim["metadata"].get("ownerReferences", []) if claim else []
        return [owner["kind"] for owner in owners] == [kind]

    return is_owned


async def test_a_rollback_gives_the_old_revision_a_new_number(cluster: Cluster) -> None:
    async with cluster.controllers(add_stateful_sets):
        await cluster.make(STATEFUL_SETS, stateful_set_manifest(replicas=0, revisionHistoryLimit=1))
        first = (await status_is(cluster, observedGeneration=1))["updateRevision"]
        await change_image(cluster, "two")
        await status_is(cluster, observedGeneration=2)
        await change_image(cluster, "one")
        status = await status_is(cluster, observedGeneration=3)
        assert status["updateRevision"] == first
        numbers = {each["metadata"]["name"]: each["revision"] for each in await cluster.all(CONTROLLER_REVISIONS)}
        assert numbers[first] == 3
        for generation, image in enumerate(["three", "four", "five"], start=4):
            await change_image(cluster, image)
            await status_is(cluster, observedGeneration=generation)

        async def is_short() -> bool:
            return len(await cluster.all(CONTROLLER_REVISIONS)) == 2

        await until(is_short)


async def test_a_revision_is_the_patch_that_brings_its_template_back(cluster: Cluster) -> None:
    async with cluster.controllers(add_stateful_sets):
        await cluster.make(STATEFUL_SETS, stateful_set_manifest(replicas=0))
        await status_is(cluster, observedGeneration=1)
        (revision,) = await cluster.all(CONTROLLER_REVISIONS)
        made = await cluster.read(STATEFUL_SETS, "web")
        assert made is not None
        assert revision["data"] == {"spec": {"template": {**made["spec"]["template"], "$patch": "replace"}}}
        assert revision["metadata"]["labels"]["app"] == "web"
        assert revision["metadata"]["name"] == f"web-{revision['metadata']['labels']['controller.kubernetes.io/hash']}"
        await change_image(cluster, "two")
        await status_is(cluster, observedGeneration=2)
        await cluster.client.strategic_patch(STATEFUL_SETS.documents(), "web", revision["data"], "default")
        status = await status_is(cluster, observedGeneration=3)
        assert status["updateRevision"] == revision["metadata"]["name"]


async def test_a_pod_that_nobody_has_is_adopted_by_its_name_and_labels(cluster: Cluster) -> None:
    for name in ("web-0", "other-0"):
        await cluster.make(PODS, pod_manifest(name, labels=LABELS))
    async with cluster.controllers(add_stateful_sets):
        await cluster.make(STATEFUL_SETS, stateful_set_manifest(replicas=1))

        async def is_adopted() -> bool:
            pod = await cluster.read(PODS, "web-0")
            return bool(pod and pod["metadata"].get("ownerReferences"))

        await until(is_adopted)
        await ready(cluster, "web-0")
        await until(_has_label(cluster, "web-0", "statefulset.kubernetes.io/pod-name", "web-0"))
        other = await cluster.read(PODS, "other-0")
        assert other is not None
        assert "ownerReferences" not in other["metadata"]


def _has_label(cluster: Cluster, name: str, label: str, value: str) -> Any:
    async def has() -> bool:
        pod = await cluster.read(PODS, name)
        return bool(pod and pod["metadata"]["labels"].get(label) == value)

    return has


async def test_a_pod_counts_as_available_after_min_ready_seconds(cluster: Cluster) -> None:
    async with cluster.controllers(add_stateful_sets):
        await cluster.make(STATEFUL_SETS, stateful_set_manifest(replicas=2, minReadySeconds=1))
        await ready(cluster, "web-0")
        await status_is(cluster, readyReplicas=1, availableReplicas=1)
        await ready(cluster, "web-1")
        await status_is(cluster, availableReplicas=2)


async def test_events_tell_of_pods_and_claims(cluster: Cluster) -> None:
    async with cluster.controllers(add_stateful_sets):
        await cluster.make(STATEFUL_SETS, stateful_set_manifest(replicas=1, volumeClaimTemplates=[a_claim_template()]))
        await status_is(cluster, replicas=1)

        async def told() -> set[str]:
            found = {event["message"] for event in await cluster.all(EVENTS)}
            return found if len(found) == 2 else set()

        assert await until(told) == {
            "Create Claim data-web-0 Pod web-0 in StatefulSet web success",
            "Create Pod web-0 in StatefulSet web successful",
        }


async def test_a_refused_pod_is_told_and_tried_again(cluster: Cluster) -> None:
    made = stateful_set_manifest(replicas=1)
    made["spec"]["template"]["spec"]["serviceAccountName"] = "missing"
    async with cluster.controllers(add_stateful_sets):
        await cluster.make(STATEFUL_SETS, made)

        async def told() -> list[dict[str, Any]]:
            return [event for event in await cluster.all(EVENTS) if event["reason"] == "FailedCreate"]

        events = await until(told)
        assert events[0]["message"].startswith("Create Pod web-0 in StatefulSet web failed error: ")
        status = await status_is(cluster, observedGeneration=1)
        assert status["replicas"] == 0
