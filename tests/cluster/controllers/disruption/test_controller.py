"""Budgets on the embedded server."""

from __future__ import annotations

from datetime import timedelta
from functools import partial
from typing import Any

import pytest

from shoal.api.apps import DEPLOYMENTS, REPLICA_SETS
from shoal.api.batch import JOBS
from shoal.api.core import EVENTS, PODS
from shoal.api.meta import format_time, now
from shoal.api.policy import POD_DISRUPTION_BUDGETS
from shoal.cluster.controllers.disruption import add_disruption
from shoal.kube import Client, TooManyRequests
from tests.cluster.controllers.builders import workload_manifest
from tests.support.builders.pods import pod_manifest
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of

SELECTOR = {"matchLabels": {"app": "web"}}


def owned_by(kind: str, owner: Any, api_version: str = "apps/v1") -> dict[str, Any]:
    reference = {"apiVersion": api_version, "kind": kind, "name": owner.metadata.name, "uid": owner.metadata.uid}
    return {"ownerReferences": [reference | {"controller": True}]}


async def make_pods(cluster: Cluster, names: str, owner: dict[str, Any] | None = None, *, ready: bool = True) -> None:
    for name in names.split():
        await cluster.make(PODS, pod_manifest(name, labels={"app": "web"}, metadata=owner))
        if ready:
            await set_ready(cluster, name)


async def set_ready(cluster: Cluster, name: str, status: str = "True") -> None:
    await cluster.set_status(PODS, name, {"phase": "Running", "conditions": [{"type": "Ready", "status": status}]})


async def make_owner(cluster: Cluster, replicas: int) -> dict[str, Any]:
    """A deployment's replica set, as the owner of pods."""
    deployment = await cluster.make(DEPLOYMENTS, workload_manifest(replicas=replicas))
    part = workload_manifest("web-1", replicas=2, metadata=owned_by("Deployment", deployment))
    return owned_by("ReplicaSet", await cluster.make(REPLICA_SETS, part))


async def make_budget(cluster: Cluster, **spec: Any) -> None:
    await cluster.make(POD_DISRUPTION_BUDGETS, {"metadata": {"name": "web"}, "spec": {"selector": SELECTOR} | spec})


async def status_of(cluster: Cluster) -> dict[str, Any]:
    budget = await cluster.read(POD_DISRUPTION_BUDGETS, "web")
    assert budget is not None
    return dict(budget.get("status") or {})


async def shows(cluster: Cluster, **wanted: int) -> bool:
    status = await status_of(cluster)
    return all(status.get(name) == value for name, value in wanted.items())


async def events(cluster: Cluster) -> list[str]:
    return [event["reason"] for event in await cluster.all(EVENTS)]


async def test_a_share_is_a_share_of_what_the_deployment_wants(cluster: Cluster) -> None:
    owner = await make_owner(cluster, replicas=4)
    await make_pods(cluster, "a b c", owner)
    async with cluster.controllers(add_disruption):
        await make_budget(cluster, maxUnavailable="30%")
        await until(lambda: shows(cluster, expectedPods=4, desiredHealthy=2, currentHealthy=3, disruptionsAllowed=1))
        status = await status_of(cluster)
        assert status["observedGeneration"] == 1
        assert status["conditions"][0]["reason"] == "SufficientPods"
        await set_ready(cluster, "a", "False")
        await until(lambda: shows(cluster, currentHealthy=2, disruptionsAllowed=0))
        assert (await status_of(cluster))["conditions"][0]["status"] == "False"
        await make_pods(cluster, "d", owner)
        await until(lambda: shows(cluster, currentHealthy=3, disruptionsAllowed=1))


async def test_any_owner_with_a_size_will_do(cluster: Cluster) -> None:
    owner = await cluster.make(DEPLOYMENTS, workload_manifest(replicas=5))
    await make_pods(cluster, "a b c", owned_by("Deployment", owner))  # not by a replica set: its scale is asked for
    async with cluster.controllers(add_disruption):
        await make_budget(cluster, minAvailable="40%")
        await until(lambda: shows(cluster, expectedPods=5, desiredHealthy=2, disruptionsAllowed=1))


async def test_an_owner_that_is_gone_allows_nothing(cluster: Cluster) -> None:
    owner = await make_owner(cluster, replicas=2)
    await make_pods(cluster, "a b", owner)
    await cluster.client.delete(REPLICA_SETS, "web-1", "default", propagation="Background")
    async with cluster.controllers(add_disruption):
        await make_budget(cluster, maxUnavailable=1)
        await until(partial(_has_condition, cluster))
        condition = (await status_of(cluster))["conditions"][0]
        assert condition["reason"] == "SyncFailed"
        assert condition["message"].startswith("found no controllers for pod")


async def test_evictions_are_granted_one_by_one(cluster: Cluster) -> None:
    owner = await make_owner(cluster, replicas=3)
    await make_pods(cluster, "a b c", owner)
    async with cluster.controllers(add_disruption):
        await make_budget(cluster, minAvailable=2)
        await until(lambda: shows(cluster, expectedPods=3, disruptionsAllowed=1))
        client: Client = cluster.client
        await client.evict(PODS, "a", "default")
        with pytest.raises(TooManyRequests):
            await client.evict(PODS, "b", "default")
        await until(lambda: shows(cluster, currentHealthy=2, disruptionsAllowed=0))


async def test_a_job_has_no_size_and_so_nothing_is_allowed(cluster: Cluster) -> None:
    template = workload_manifest(pod={"restartPolicy": "Never"})["spec"]["template"]
    job = await cluster.make(JOBS, {"metadata": {"name": "j"}, "spec": {"template": template}})
    await make_pods(cluster, "a", owned_by("Job", job, "batch/v1"))
    async with cluster.controllers(add_disruption):
        await make_budget(cluster, maxUnavailable=1)
        await until(partial(_has_condition, cluster))
        condition = (await status_of(cluster))["conditions"][0]
        assert condition["reason"] == "SyncFailed"
        assert condition["message"] == "jobs.batch does not implement the scale subresource"
        await until(lambda: _told(cluster, "CalculateExpectedPodCountFailed"))


async def test_pods_without_a_controller_are_told_of(cluster: Cluster) -> None:
    await make_pods(cluster, "a")
    async with cluster.controllers(add_disruption):
        await make_budget(cluster, maxUnavailable=1)
        await until(lambda: shows(cluster, expectedPods=0, currentHealthy=1, disruptionsAllowed=0))
        await until(lambda: _told(cluster, "UnmanagedPods"))


async def test_a_budget_without_pods_says_so_and_a_restart_writes_nothing(cluster: Cluster) -> None:
    async with cluster.controllers(add_disruption):
        await make_budget(cluster, minAvailable=1)
        await until(lambda: shows(cluster, desiredHealthy=1, expectedPods=0))
        await until(lambda: _told(cluster, "NoPods"))
    async with cluster.controllers(add_disruption) as manager:
        other = {"metadata": {"name": "other"}, "spec": {"minAvailable": 0, "selector": {"matchLabels": {"x": "y"}}}}
        await cluster.make(POD_DISRUPTION_BUDGETS, other)

        async def is_counted() -> bool:
            budget = await cluster.read(POD_DISRUPTION_BUDGETS, "other")
            return bool(budget and (budget.get("status") or {}).get("conditions"))

        await until(is_counted)
        await until(lambda: _count(cluster, "NoPods", 2))
        assert writes_of(manager) == 2  # the other's status and event


async def test_pods_that_come_and_go_and_change_their_labels_are_counted(cluster: Cluster) -> None:
    async with cluster.controllers(add_disruption):
        await make_budget(cluster, minAvailable=1)
        await make_pods(cluster, "a b")
        await until(lambda: shows(cluster, expectedPods=2, currentHealthy=2, disruptionsAllowed=1))
        await cluster.client.merge_patch(PODS, "a", {"metadata": {"labels": {"app": "other"}}}, "default")
        await until(lambda: shows(cluster, expectedPods=1, currentHealthy=1, disruptionsAllowed=0))
        patch = {"spec": {"selector": {"matchLabels": {"app": "other"}}, "minAvailable": 0}}
        await cluster.client.merge_patch(POD_DISRUPTION_BUDGETS, "web", patch, "default")
        await until(lambda: shows(cluster, observedGeneration=2, expectedPods=1, disruptionsAllowed=1))
        await cluster.client.delete(PODS, "a", "default", grace_seconds=0)
        await until(lambda: shows(cluster, expectedPods=0, disruptionsAllowed=0))


async def test_an_end_that_was_announced_and_did_not_come_is_withdrawn(cluster: Cluster) -> None:
    await make_pods(cluster, "stale fresh kubelet", ready=False)
    then, moment = format_time(now() - timedelta(minutes=3)), format_time(now())
    for name, since, reason in (
        ("stale", then, "EvictionByEvictionAPI"),
        ("fresh", moment, "EvictionByEvictionAPI"),
        ("kubelet", then, "TerminationByKubelet"),
    ):
        condition = {"type": "DisruptionTarget", "status": "True", "reason": reason, "lastTransitionTime": since}
        await cluster.set_status(PODS, name, {"conditions": [condition | {"message": "soon"}]})
    async with cluster.controllers(add_disruption):
        await until(lambda: _target(cluster, "stale", "False"))
        assert await _target(cluster, "fresh", "True")
        assert await _target(cluster, "kubelet", "True")
        pod = await cluster.read(PODS, "stale")
        assert pod is not None
        found = next(one for one in pod["status"]["conditions"] if one["type"] == "DisruptionTarget")
        assert not found.get("reason")
        assert not found.get("message")
    async with cluster.controllers(partial(add_disruption, stale_after=timedelta(0))):
        await until(lambda: _target(cluster, "fresh", "False"))


async def _target(cluster: Cluster, name: str, status: str) -> bool:
    pod = await cluster.read(PODS, name)
    assert pod is not None
    return any(one["type"] == "DisruptionTarget" and one["status"] == status for one in pod["status"]["conditions"])


async def _told(cluster: Cluster, reason: str) -> bool:
    return reason in await events(cluster)


async def _count(cluster: Cluster, reason: str, count: int) -> bool:
    return (await events(cluster)).count(reason) == count


async def _has_condition(cluster: Cluster) -> bool:
    return bool((await status_of(cluster)).get("conditions"))
