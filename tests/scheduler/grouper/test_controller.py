"""The grouper on a real server, with pods that the cluster's own controllers make."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

from shoal.api.apps import DEPLOYMENTS, STATEFUL_SETS
from shoal.api.batch import CRON_JOBS, JOBS
from shoal.api.core import CONFIG_MAPS, PODS
from shoal.api.meta import format_time, now
from shoal.api.scheduling_run_ai import POD_GROUPS
from shoal.cluster.controllers.cron_jobs import add_cron_jobs
from shoal.cluster.controllers.deployments import add_deployments
from shoal.cluster.controllers.garbage import add_garbage_collector
from shoal.cluster.controllers.jobs import add_jobs
from shoal.cluster.controllers.replica_sets import add_replica_sets
from shoal.cluster.controllers.stateful_sets import add_stateful_sets
from shoal.kube import Manager
from shoal.scheduler.grouper import GrouperSettings, add_grouper
from tests.scheduler.grouper.stage import (
    add_priorities,
    group_of,
    grouped_pod_manifest,
    grouper,
    groups_there,
    marked_pods,
    reference,
    template,
    told,
)
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest

SELECTOR = {"matchLabels": {"app": "a"}}


def a_job(name: str = "train", *, pods: int = 3, **metadata: Any) -> dict[str, Any]:
    spec = {"parallelism": pods, "completions": pods, "template": template(restartPolicy="Never")}
    return {"metadata": {"name": name, **metadata}, "spec": spec}


async def test_the_pods_of_a_job_are_one_group(cluster: Cluster) -> None:
    annotations = {"kai.scheduler/batch-min-member": "2"}
    job = await cluster.make(JOBS, a_job(labels={"kai.scheduler/queue": "q"}, annotations=annotations))
    async with cluster.controllers(add_jobs, grouper):
        pods = await marked_pods(cluster, 3)
        (group,) = await groups_there(cluster, 1)
    assert group["metadata"]["name"] == f"pg-train-{job.metadata.uid}"
    assert {group_of(pod) for pod in pods} == {group["metadata"]["name"]}
    assert group["metadata"]["ownerReferences"] == [
        {"apiVersion": "batch/v1", "kind": "Job", "name": "train", "uid": job.metadata.uid}
    ]
    assert group["spec"] == {"minMember": 2, "queue": "q", "priorityClassName": "train"}


async def test_many_pods_of_one_owner_cost_one_group_and_one_patch_each(cluster: Cluster) -> None:
    await cluster.make(JOBS, a_job(pods=20))
    async with cluster.controllers(add_jobs):
        await until(lambda: _pods(cluster, 20))
    async with cluster.controllers(grouper) as manager:
        await marked_pods(cluster, 20)
        await at_rest(manager)
        assert writes_of(manager) == 21


async def test_each_job_of_a_cron_job_is_a_group(cluster: Cluster) -> None:
    spec = {"schedule": "0 * * * *", "jobTemplate": {"spec": a_job(pods=2)["spec"]}}
    await cluster.make(CRON_JOBS, {"metadata": {"name": "tick"}, "spec": spec})
    due = {"lastScheduleTime": format_time(now() - timedelta(hours=2))}
    await cluster.set_status(CRON_JOBS, "tick", due)
    async with cluster.controllers(add_cron_jobs, add_jobs, grouper):
        pods = await marked_pods(cluster, 2)
        (group,) = await groups_there(cluster, 1)
    (job,) = await cluster.all(JOBS)
    assert group["metadata"]["name"] == f"pg-{job['metadata']['name']}-{job['metadata']['uid']}"
    assert group["metadata"]["ownerReferences"][0]["kind"] == "Job"
    assert len({group_of(pod) for pod in pods}) == 1


async def test_the_pods_of_a_stateful_set_are_one_group(cluster: Cluster) -> None:
    spec = {
        "replicas": 2,
        "serviceName": "s",
        "podManagementPolicy": "Parallel",
        "selector": SELECTOR,
        "template": template(),
    }
    made = await cluster.make(STATEFUL_SETS, {"metadata": {"name": "s"}, "spec": spec})
    async with cluster.controllers(add_stateful_sets, grouper):
        await marked_pods(cluster, 2)
        (group,) = await groups_there(cluster, 1)
    assert group["metadata"]["name"] == f"pg-s-{made.metadata.uid}"
    assert group["spec"]["minMember"] == 1


async def test_each_pod_of_a_deployment_is_a_group_that_goes_with_it(cluster: Cluster) -> None:
    spec = {"replicas": 2, "selector": SELECTOR, "template": template(labels={"kai.scheduler/queue": "q"})}
    await cluster.make(DEPLOYMENTS, {"metadata": {"name": "d"}, "spec": spec})
    async with cluster.controllers(add_deployments, add_replica_sets, add_garbage_collector, grouper):
        pods = await marked_pods(cluster, 2)
        groups = await groups_there(cluster, 2)
        owners = {group["metadata"]["ownerReferences"][0]["name"] for group in groups}
        assert owners == {pod["metadata"]["name"] for pod in pods}
        assert {(one["spec"]["priorityClassName"], one["spec"]["queue"]) for one in groups} == {("inference", "q")}
        await cluster.client.merge_patch(DEPLOYMENTS.documents(), "d", {"spec": {"replicas": 1}}, "default")
        await groups_there(cluster, 1)


async def test_a_pod_by_itself_is_a_group_that_is_made_again_when_it_is_lost(cluster: Cluster) -> None:
    pod = await cluster.make(PODS, grouped_pod_manifest("solo", labels={"kai.scheduler/queue": "q"}))
    name = f"pg-solo-{pod.metadata.uid}"
    async with cluster.controllers(grouper):
        (marked,) = await marked_pods(cluster, 1)
        assert group_of(marked) == name
        (group,) = await groups_there(cluster, 1)
        await cluster.client.delete(POD_GROUPS, name, "default")
        await until(lambda: _made_again(cluster, group))


async def test_pods_of_other_schedulers_are_none_of_ours(cluster: Cluster) -> None:
    await cluster.make(PODS, grouped_pod_manifest("other", schedulerName="default-scheduler"))
    await cluster.make(PODS, grouped_pod_manifest("second", schedulerName="other-kai"))
    settings = GrouperSettings(scheduler_names=frozenset({"kai-scheduler", "other-kai"}))
    async with cluster.controllers(lambda manager: add_grouper(manager, settings)) as manager:
        (marked,) = await marked_pods(cluster, 1)
        await at_rest(manager)
    assert marked["metadata"]["name"] == "second"
    await groups_there(cluster, 1)


async def test_what_others_group_or_want_ungrouped_is_left_alone(cluster: Cluster) -> None:
    skipped = a_job("skipped", pods=1, annotations={"kai.scheduler/skip-podgrouper": "true"})
    job = (await cluster.make(JOBS, skipped)).content
    await cluster.make(PODS, grouped_pod_manifest("below", owner=job))
    await cluster.make(PODS, grouped_pod_manifest("volcano", annotations={"scheduling.volcano.sh/group-name": "v"}))
    await cluster.make(PODS, grouped_pod_manifest("mine", annotations={"pod-group-name": "mine"}))
    await cluster.make(PODS, grouped_pod_manifest("solo"))
    async with cluster.controllers(grouper) as manager:
        await groups_there(cluster, 1)
        await at_rest(manager)
    groups = {pod["metadata"]["name"]: group_of(pod).partition("-")[0] for pod in await cluster.all(PODS)}
    assert groups == {"below": "", "mine": "mine", "solo": "pg", "volcano": ""}


async def test_a_workload_may_change_its_mind_about_being_grouped(cluster: Cluster) -> None:
    job = await cluster.make(JOBS, a_job(pods=1, annotations={"kai.scheduler/skip-podgrouper": "true"}))
    await cluster.make(PODS, grouped_pod_manifest("below", owner=job.content))
    async with cluster.controllers(grouper) as manager:
        await at_rest(manager)
        assert await cluster.all(POD_GROUPS) == []
        change = {"metadata": {"annotations": {"kai.scheduler/skip-podgrouper": None}}}
        await cluster.client.merge_patch(JOBS.documents(), "train", change, "default")
        await marked_pods(cluster, 1)


async def test_at_rest_nothing_is_written_not_even_after_a_restart(cluster: Cluster) -> None:
    await cluster.make(JOBS, a_job())
    await cluster.make(PODS, grouped_pod_manifest("solo"))
    async with cluster.controllers(add_jobs, grouper):
        await marked_pods(cluster, 4)
    async with cluster.controllers(grouper) as manager:
        await at_rest(manager)
        # What changes of a pod while it runs is none of the grouper's business.
        await cluster.set_status(PODS, "solo", {"phase": "Running"})
        await cluster.client.merge_patch(
            PODS, "solo", {"metadata": {"annotations": {"received-resource-type": "Regular"}}}, "default"
        )
        await cluster.make(PODS, grouped_pod_manifest("last"))
        await marked_pods(cluster, 5)
        await at_rest(manager)
        assert writes_of(manager) == 2


async def test_what_a_user_changed_of_a_group_is_kept(cluster: Cluster) -> None:
    await add_priorities(cluster, "urgent")
    labels = {"kai.scheduler/queue": "a", "kai.scheduler/node-pool": "x"}
    await cluster.make(JOBS, a_job(labels=labels))
    async with cluster.controllers(add_jobs, grouper):
        await marked_pods(cluster, 3)
        (group,) = await groups_there(cluster, 1)
        assert group["metadata"]["labels"] == labels
        theirs: dict[str, Any] = {
            "metadata": {"labels": {"kai.scheduler/node-pool": "y", "kai.scheduler/queue": "b"}},
            "spec": {
                "queue": "b",
                "markUnschedulable": False,
                "schedulingBackoff": 1,
                "topologyConstraint": {"topology": "dc", "requiredTopologyLevel": "rack"},
            },
        }
        name = group["metadata"]["name"]
        await cluster.client.merge_patch(POD_GROUPS.documents(), name, theirs, "default", field_manager="kubectl-edit")
        more = {"metadata": {"labels": {"priorityClassName": "urgent", "kai.scheduler/queue": "c"}}}
        await cluster.client.merge_patch(JOBS.documents(), "train", more, "default")
        changed = await until(lambda: _with_priority(cluster, name, "urgent"))
        assert {**changed["spec"], **theirs["spec"]} == changed["spec"]
        assert changed["metadata"]["labels"] == {**theirs["metadata"]["labels"], "priorityClassName": "urgent"}
        # A topology that the workload asks for is the workload's to say.
        asked = {"kai.scheduler/topology": "own", "kai.scheduler/topology-preferred-placement": "zone"}
        await cluster.client.merge_patch(JOBS.documents(), "train", {"metadata": {"annotations": asked}}, "default")
        await until(lambda: _placed(cluster, name, "own"))


async def test_a_change_that_somebody_made_to_our_part_is_undone(cluster: Cluster) -> None:
    await cluster.make(JOBS, a_job())
    async with cluster.controllers(add_jobs, grouper):
        await marked_pods(cluster, 3)
        (group,) = await groups_there(cluster, 1)
        name = group["metadata"]["name"]
        await cluster.client.merge_patch(POD_GROUPS.documents(), name, {"spec": {"minMember": 9}}, "default")
        await until(lambda: _with_minimum(cluster, name, 1))


async def test_a_foreign_group_of_the_same_name_is_not_taken_over(cluster: Cluster) -> None:
    job = (await cluster.make(JOBS, a_job(pods=1))).content
    name = f"pg-train-{job['metadata']['uid']}"
    foreign = {"metadata": {"name": name, "labels": {"whose": "theirs"}}, "spec": {"minMember": 7, "queue": "theirs"}}
    await cluster.make(POD_GROUPS, foreign)
    await cluster.make(PODS, grouped_pod_manifest("p", owner=job))
    await cluster.make(PODS, grouped_pod_manifest("solo"))
    async with cluster.controllers(grouper) as manager:
        event = await told(cluster, "is not owned by Job train")
        assert event["involvedObject"]["name"] == "p"
        (marked,) = await marked_pods(cluster, 1)
        assert marked["metadata"]["name"] == "solo"
        await at_rest(manager)
        found = await cluster.read(POD_GROUPS, name)
        assert found is not None
        assert (found["spec"], found["metadata"]["labels"]) == (foreign["spec"], {"whose": "theirs"})
        await cluster.client.delete(POD_GROUPS, name, "default")
        await marked_pods(cluster, 2)


async def test_a_group_that_kais_own_grouper_made_is_carried_on(cluster: Cluster) -> None:
    job = (await cluster.make(JOBS, a_job(pods=1))).content
    name = f"pg-train-{job['metadata']['uid']}"
    theirs = {
        "metadata": {"name": name, "ownerReferences": [reference(job)]},
        "spec": {"minMember": 7, "queue": "kept"},
    }
    await cluster.make(POD_GROUPS, theirs)
    await cluster.make(PODS, grouped_pod_manifest("p", owner=job))
    async with cluster.controllers(grouper):
        await marked_pods(cluster, 1)
        group = await until(lambda: _with_minimum(cluster, name, 1))
    assert group["spec"]["queue"] == "kept"


async def test_default_priorities_come_from_a_config_map(cluster: Cluster) -> None:
    await add_priorities(cluster, "nightly", "daily")
    settings = GrouperSettings(defaults_name="defaults", defaults_namespace="default")
    job = await cluster.make(JOBS, a_job(pods=1))
    await cluster.make(PODS, grouped_pod_manifest("p", owner=job.content))
    types = '[{"typeName": "Job", "group": "batch", "priorityName": "%s", "preemptibility": "non-preemptible"}]'
    await cluster.make(CONFIG_MAPS, {"metadata": {"name": "defaults"}, "data": {"types": types % "nightly"}})
    name = f"pg-train-{job.metadata.uid}"
    async with cluster.controllers(lambda manager: add_grouper(manager, settings)):
        group = await until(lambda: _with_priority(cluster, name, "nightly"))
        assert group["spec"]["preemptibility"] == "non-preemptible"
        change = {"data": {"types": types % "daily"}}
        await cluster.client.merge_patch(CONFIG_MAPS, "defaults", change, "default")
        await until(lambda: _with_priority(cluster, name, "daily"))
        await cluster.client.merge_patch(CONFIG_MAPS, "defaults", {"data": {"types": "nonsense"}}, "default")
        await until(lambda: _with_priority(cluster, name, "train"))
        await told(cluster, "is no JSON list of kinds")


async def test_a_priority_counts_from_when_its_class_exists(cluster: Cluster) -> None:
    pod = await cluster.make(PODS, grouped_pod_manifest("solo", labels={"priorityClassName": "late"}))
    name = f"pg-solo-{pod.metadata.uid}"
    async with cluster.controllers(grouper):
        await until(lambda: _with_priority(cluster, name, "train"))
        await add_priorities(cluster, "late")
        await until(lambda: _with_priority(cluster, name, "late"))


async def test_a_job_that_makes_no_sense_is_told_and_stops_nobody(cluster: Cluster) -> None:
    bad = await cluster.make(JOBS, a_job("bad", pods=1, annotations={"kai.scheduler/batch-min-member": "few"}))
    await cluster.make(PODS, grouped_pod_manifest("a", owner=bad.content))
    await cluster.make(PODS, grouped_pod_manifest("b"))
    async with cluster.controllers(grouper) as manager:
        event = await told(cluster, "whole number of at least 0")
        assert (event["type"], event["involvedObject"]["name"]) == ("Warning", "a")
        (marked,) = await marked_pods(cluster, 1)
        assert marked["metadata"]["name"] == "b"
        await at_rest(manager)
        repaired = {"metadata": {"annotations": {"kai.scheduler/batch-min-member": "1"}}}
        await cluster.client.merge_patch(JOBS.documents(), "bad", repaired, "default")
        await marked_pods(cluster, 2)


async def test_metrics_count_groups_pods_and_problems(cluster: Cluster) -> None:
    bad = await cluster.make(JOBS, a_job("bad", pods=1, annotations={"kai.scheduler/batch-min-member": "few"}))
    await cluster.make(PODS, grouped_pod_manifest("a", owner=bad.content))
    good = await cluster.make(JOBS, a_job("good", pods=2))
    for name in ("b", "c"):
        await cluster.make(PODS, grouped_pod_manifest(name, owner=good.content))
    async with cluster.controllers(grouper) as manager:
        await marked_pods(cluster, 2)
        await told(cluster, "whole number")
        await at_rest(manager)
        assert _metric(manager, "kai_podgrouper_pods") == 2
        assert _metric(manager, "kai_podgrouper_pod_groups") == 1
        assert _metric(manager, "kai_podgrouper_problems_total") == 1


def _metric(manager: Manager, name: str) -> float | None:
    return manager.metrics.registry.get_sample_value(name)


async def _pods(cluster: Cluster, count: int) -> bool:
    return len(await cluster.all(PODS)) == count


async def _made_again(cluster: Cluster, before: dict[str, Any]) -> bool:
    found = await cluster.read(POD_GROUPS, before["metadata"]["name"])
    return found is not None and found["metadata"]["uid"] != before["metadata"]["uid"]


async def _with_priority(cluster: Cluster, name: str, priority: str) -> dict[str, Any] | None:
    found = await cluster.read(POD_GROUPS, name)
    return found if found is not None and found["spec"]["priorityClassName"] == priority else None


async def _with_minimum(cluster: Cluster, name: str, minimum: int) -> dict[str, Any] | None:
    found = await cluster.read(POD_GROUPS, name)
    return found if found is not None and found["spec"]["minMember"] == minimum else None


async def _placed(cluster: Cluster, name: str, topology: str) -> bool:
    found = await cluster.read(POD_GROUPS, name)
    return found is not None and found["spec"]["topologyConstraint"]["topology"] == topology
