"""Workloads of kinds that others define: their definitions are installed without a schema, their pods made by hand."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api import grove, scheduler_grove_io
from shoal.api.apps import STATEFUL_SETS
from shoal.api.batch import JOBS
from shoal.api.core import EVENTS, PODS
from shoal.api.scheduler_grove_io import POD_GANGS
from shoal.api.scheduling_run_ai import POD_GROUPS
from shoal.cli.processes.api import define
from tests.scheduler.grouper.stage import (
    THINGS,
    a_kind,
    define_kinds,
    group_of,
    grouped_pod_manifest,
    grouper,
    groups_there,
    made,
    marked_pods,
    part_of,
    reference,
    template,
    told,
)
from tests.support.clusters.client import until
from tests.support.clusters.in_process import Cluster, writes_of
from tests.support.waiting.at_rest import at_rest

RAY_CLUSTERS = a_kind("ray.io/v1", "RayCluster", "rayclusters")
RAY_JOBS = a_kind("ray.io/v1", "RayJob", "rayjobs")
PYTORCH_JOBS = a_kind("kubeflow.org/v1", "PyTorchJob", "pytorchjobs")
JOB_SETS = a_kind("jobset.x-k8s.io/v1alpha2", "JobSet", "jobsets")
TRAIN_JOBS = a_kind("trainer.kubeflow.org/v1alpha1", "TrainJob", "trainjobs")
LEADER_WORKER_SETS = a_kind("leaderworkerset.x-k8s.io/v1", "LeaderWorkerSet", "leaderworkersets")


async def parts_there(cluster: Cluster, name: str, *parts: str) -> dict[str, Any]:
    """The group, once it has these parts."""

    async def there() -> dict[str, Any] | None:
        found = await cluster.read(POD_GROUPS, name)
        names = [part["name"] for part in found["spec"].get("subGroups", [])] if found else []
        return found if names == list(parts) else None

    found: dict[str, Any] = await until(there)
    return found


async def test_a_ray_cluster_and_what_becomes_of_it(cluster: Cluster) -> None:
    await define_kinds(cluster, RAY_CLUSTERS)
    gpu: dict[str, Any] = {"groupName": "gpu", "replicas": 2, "minReplicas": 1}
    spec = {"headGroupSpec": {}, "workerGroupSpecs": [gpu]}
    ray = await made(cluster, RAY_CLUSTERS, "ray", spec, labels={"kai.scheduler/queue": "q"})
    for name, nodes in (("head", "headgroup"), ("w-0", "gpu"), ("w-1", "gpu")):
        await cluster.make(PODS, grouped_pod_manifest(name, owner=ray, labels={"ray.io/group": nodes}))
    async with cluster.controllers(grouper) as manager:
        pods = await marked_pods(cluster, 3)
        assert [part_of(pod) for pod in pods] == ["headgroup", "gpu", "gpu"]
        (group,) = await groups_there(cluster, 1)
        assert group["spec"] == {
            "minMember": 2,
            "queue": "q",
            "priorityClassName": "train",
            "subGroups": [{"name": "headgroup", "minMember": 1}, {"name": "gpu", "minMember": 1}],
        }
        await at_rest(manager)
        written = writes_of(manager)
        assert written == 4
        # Its status says nothing of its group; its spec does.
        await cluster.set_status(RAY_CLUSTERS, "ray", {"state": "ready"})
        more = {"spec": {"workerGroupSpecs": [gpu, {"groupName": "cpu", "replicas": 3}]}}
        await cluster.client.merge_patch(RAY_CLUSTERS, "ray", more, "default")
        changed = await parts_there(cluster, group["metadata"]["name"], "headgroup", "gpu", "cpu")
        assert changed["spec"]["minMember"] == 5
        await at_rest(manager)
        # One for the group, and one the first time that somebody else's queue has to be let go.
        assert writes_of(manager) <= written + 2


async def test_the_pod_that_submits_a_ray_job_is_in_the_group_of_its_cluster(cluster: Cluster) -> None:
    await define_kinds(cluster, RAY_CLUSTERS, RAY_JOBS)
    job = await made(cluster, RAY_JOBS, "train")
    ray = await made(cluster, RAY_CLUSTERS, "train-x", {"workerGroupSpecs": [{"replicas": 3}]}, owner=job)
    await cluster.set_status(RAY_JOBS, "train", {"rayClusterName": "train-x"})
    submit = {"template": template(restartPolicy="Never")}
    submitter = await made(cluster, JOBS, "train-submit", submit, owner=job)
    await cluster.make(PODS, grouped_pod_manifest("submit", owner=submitter))
    await cluster.make(PODS, grouped_pod_manifest("head", owner=ray, labels={"ray.io/group": "headgroup"}))
    async with cluster.controllers(grouper):
        head, submitting = await marked_pods(cluster, 2)
        (group,) = await groups_there(cluster, 1)
    assert group_of(head) == group_of(submitting) == f"pg-train-{job['metadata']['uid']}"
    assert (part_of(head), part_of(submitting)) == ("headgroup", "")
    assert group["spec"]["minMember"] == 4


async def test_a_pytorch_job_in_segments(cluster: Cluster) -> None:
    await define_kinds(cluster, PYTORCH_JOBS)
    annotations = {"kai.scheduler/segment-size": "2"}
    specs = {
        "Master": {"replicas": 1},
        "Worker": {"replicas": 4, "template": {"metadata": {"annotations": annotations}}},
    }
    job = await made(cluster, PYTORCH_JOBS, "llm", {"pytorchReplicaSpecs": specs})
    roles = [("m", "master", "0"), *((f"w-{index}", "worker", str(index)) for index in range(4))]
    for name, role, index in roles:
        labels = {"training.kubeflow.org/replica-type": role, "training.kubeflow.org/replica-index": index}
        await cluster.make(PODS, grouped_pod_manifest(name, owner=job, labels=labels))
    async with cluster.controllers(grouper):
        pods = await marked_pods(cluster, 5)
        group = await parts_there(
            cluster, f"pg-llm-{job['metadata']['uid']}", "master", "worker", "worker-0", "worker-1"
        )
    assert [part_of(pod) for pod in pods] == ["master", "worker-0", "worker-0", "worker-1", "worker-1"]
    assert group["spec"]["minMember"] == 5


async def test_a_train_job_is_grouped_as_its_job_set(cluster: Cluster) -> None:
    await define_kinds(cluster, JOB_SETS, TRAIN_JOBS)
    train = await made(cluster, TRAIN_JOBS, "t", labels={"kai.scheduler/queue": "q"})
    jobs = [{"name": "node", "replicas": 2, "template": {"spec": {"parallelism": 1}}}]
    job_set = await made(cluster, JOB_SETS, "t", {"replicatedJobs": jobs}, owner=train)
    for index in ("0", "1"):
        spec = {"template": template(restartPolicy="Never")}
        job = await made(cluster, JOBS, f"t-node-{index}", spec, owner=job_set)
        labels = {"jobset.sigs.k8s.io/replicatedjob-name": "node", "jobset.sigs.k8s.io/job-index": index}
        await cluster.make(PODS, grouped_pod_manifest(f"p-{index}", owner=job, labels=labels))
    async with cluster.controllers(grouper) as manager:
        pods = await marked_pods(cluster, 2)
        (group,) = await groups_there(cluster, 1)
        await at_rest(manager)
        # The pods of several Jobs are one group all the same, and it is written once.
        assert writes_of(manager) == 3
    assert [part_of(pod) for pod in pods] == ["node-replica-0", "node-replica-1"]
    assert group["metadata"]["ownerReferences"][0]["kind"] == "JobSet"
    assert (group["spec"]["queue"], group["spec"]["minSubGroup"]) == ("q", 1)


async def test_a_leader_starts_alone_until_it_has_a_node(cluster: Cluster) -> None:
    await define_kinds(cluster, LEADER_WORKER_SETS)
    spec = {"startupPolicy": "LeaderReady", "leaderWorkerTemplate": {"size": 3}}
    owner = await made(cluster, LEADER_WORKER_SETS, "lws", spec)
    index = "leaderworkerset.sigs.k8s.io/worker-index"
    group_index = "leaderworkerset.sigs.k8s.io/group-index"
    await cluster.make(PODS, grouped_pod_manifest("lws-0", owner=owner, labels={index: "0", group_index: "0"}))
    name = f"pg-lws-{owner['metadata']['uid']}-group-0"
    async with cluster.controllers(grouper):
        group = await parts_there(cluster, name, "leader")
        assert group["spec"]["minMember"] == 1
        await cluster.client.bind(PODS, "lws-0", "default", node="n")
        group = await parts_there(cluster, name, "leader", "workers")
        assert group["spec"]["minMember"] == 3


async def test_the_way_up_leads_through_pods_that_own_others(cluster: Cluster) -> None:
    await define_kinds(cluster, LEADER_WORKER_SETS)
    owner = await made(cluster, LEADER_WORKER_SETS, "lws", {"leaderWorkerTemplate": {"size": 2}})
    index = "leaderworkerset.sigs.k8s.io/worker-index"
    spec = {"serviceName": "s", "selector": {"matchLabels": {"app": "a"}}, "template": template()}
    leaders = await made(cluster, STATEFUL_SETS, "lws", spec, owner=owner)
    leader = (await cluster.make(PODS, grouped_pod_manifest("lws-0", owner=leaders, labels={index: "0"}))).content
    workers = await made(cluster, STATEFUL_SETS, "lws-0", spec, owner=leader)
    await cluster.make(PODS, grouped_pod_manifest("lws-0-1", owner=workers, labels={index: "1"}))
    async with cluster.controllers(grouper) as manager:
        pods = await marked_pods(cluster, 2)
        await at_rest(manager)
        assert writes_of(manager) == 3
    assert {group_of(pod) for pod in pods} == {f"pg-lws-{owner['metadata']['uid']}"}
    assert [part_of(pod) for pod in pods] == ["leader", "workers"]


@pytest.mark.parametrize("has_backend", [True, False])
async def test_a_gang_that_a_backend_speaks_for_is_left_to_it(cluster: Cluster, has_backend: bool) -> None:
    await define(cluster.client, (*grove.DEFINITIONS, *scheduler_grove_io.DEFINITIONS))
    cliques = [{"name": "a", "spec": {"roleName": "a", "replicas": 1, "podSpec": {"containers": [{"name": "c"}]}}}]
    pcs = await made(cluster, grove.POD_CLIQUE_SETS.documents(), "s", {"replicas": 1, "template": {"cliques": cliques}})
    gang_spec = {"podgroups": [{"name": "s-0-a", "minReplicas": 1, "podReferences": []}]}
    gang = await made(cluster, POD_GANGS.documents(), "s-0", gang_spec)
    name = f"pg-s-0-{gang['metadata']['uid']}"
    labels = {"grove.io/podgang": "s-0", "grove.io/podclique": "s-0-a"}
    await cluster.make(PODS, grouped_pod_manifest("p", owner=pcs, labels=labels))
    if has_backend:
        owner = {**reference(gang), "controller": True}
        theirs = {"metadata": {"name": name, "ownerReferences": [owner]}, "spec": {"minMember": 9}}
        await cluster.make(POD_GROUPS, theirs)
    await cluster.make(PODS, grouped_pod_manifest("solo"))
    async with cluster.controllers(grouper) as manager:
        pods = await marked_pods(cluster, 1 if has_backend else 2)
        await at_rest(manager)
        group = await cluster.read(POD_GROUPS, name)
    assert group is not None
    if has_backend:
        assert group["spec"] == {"minMember": 9}
        assert [pod["metadata"]["name"] for pod in pods] == ["solo"]
        assert await cluster.all(EVENTS) == []
    else:
        assert group["spec"]["minMember"] == 1
        assert [part_of(pod) for pod in pods] == ["s-0-a", ""]


async def test_a_kind_that_nobody_knows_is_one_group(cluster: Cluster) -> None:
    await define_kinds(cluster, THINGS)
    thing = await made(cluster, THINGS, "thing", labels={"kai.scheduler/queue": "q"})
    for name in ("a", "b"):
        await cluster.make(PODS, grouped_pod_manifest(name, owner=thing))
    async with cluster.controllers(grouper):
        await marked_pods(cluster, 2)
        (group,) = await groups_there(cluster, 1)
    assert group["metadata"]["name"] == f"pg-thing-{thing['metadata']['uid']}"
    assert (group["spec"]["queue"], group["spec"]["minMember"]) == ("q", 1)


async def test_an_owner_with_several_owners_is_told(cluster: Cluster) -> None:
    await define_kinds(cluster, THINGS)
    first, second = await made(cluster, THINGS, "first"), await made(cluster, THINGS, "second")
    both = {"ownerReferences": [reference(first), reference(second)]}
    middle = await made(cluster, THINGS, "middle", **both)
    await cluster.make(PODS, grouped_pod_manifest("p", owner=middle))
    async with cluster.controllers(grouper) as manager:
        event = await told(cluster, "Thing middle has several owners (Thing first, Thing second)")
        assert event["involvedObject"]["name"] == "p"
        await at_rest(manager)
        assert await cluster.all(POD_GROUPS) == []


@pytest.mark.parametrize(
    "owner",
    [
        pytest.param({"apiVersion": "batch/v1", "kind": "Job"}, id="of a kind that is served"),
        pytest.param({"apiVersion": "nowhere.example.com/v1", "kind": "Ghost"}, id="of a kind that is not"),
    ],
)
async def test_an_owner_that_is_not_there_is_told(cluster: Cluster, owner: dict[str, str]) -> None:
    gone = {**owner, "metadata": {"name": "gone", "uid": "0000"}}
    await cluster.make(PODS, grouped_pod_manifest("p", owner=gone))
    async with cluster.controllers(grouper):
        await told(cluster, f"{owner['kind']} gone with uid 0000 owns the pod and is gone")
    assert await cluster.all(POD_GROUPS) == []


async def test_an_owner_that_came_after_another_of_its_name_is_not_the_pods(cluster: Cluster) -> None:
    job = await cluster.make(JOBS, {"metadata": {"name": "job"}, "spec": {"template": template(restartPolicy="Never")}})
    stale = {**job.content, "metadata": {**job.content["metadata"], "uid": "before"}}
    await cluster.make(PODS, grouped_pod_manifest("new", owner=job.content))
    async with cluster.controllers(grouper):
        await marked_pods(cluster, 1)
        await cluster.make(PODS, grouped_pod_manifest("old", owner=stale))
        await told(cluster, "Job job with uid before owns the pod and is gone")
        await marked_pods(cluster, 1)
