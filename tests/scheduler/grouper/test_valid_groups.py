"""Whatever a workload asks for, its group is one that the webhook admits, and every pod has a place in it."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.scheduling_run_ai import PodGroup
from shoal.scheduler.admission.pod_groups import pod_group_findings
from shoal.scheduler.grouper.fields import Ungroupable
from shoal.scheduler.grouper.pods import GroupedPod
from shoal.scheduler.grouper.wanted import GroupWanted
from tests.scheduler.grouper.builders import a_grouped_pod, an_owner, the_group

COUNTS = st.integers(0, 9)
MAYBE = st.none() | COUNTS
SIZES = st.none() | st.integers(1, 5)


def is_valid(group: GroupWanted, *pods: GroupedPod) -> None:
    """Admitted without a word, and each pod is in a leaf."""
    body = {**group.body(frozenset()), "apiVersion": "scheduling.run.ai/v2alpha2", "kind": "PodGroup"}
    assert list(pod_group_findings(msgspec.convert(body, PodGroup), is_new=True)) == []
    leaves = {part.name for part in group.sub_groups if part.min_sub_group is None}
    assert {group.part_of(pod) for pod in pods} <= leaves


def replicas(count: int | None) -> dict[str, Any]:
    return {} if count is None else {"replicas": count}


@given(master=MAYBE, worker=MAYBE, elastic=MAYBE, policy=MAYBE, size=SIZES)
def test_pytorch_jobs(
    master: int | None, worker: int | None, elastic: int | None, policy: int | None, size: int | None
) -> None:
    annotations = {} if size is None else {"kai.scheduler/segment-size": str(size)}
    specs = {
        "Master": replicas(master),
        "Worker": {**replicas(worker), "template": {"metadata": {"annotations": annotations}}},
    }
    spec: dict[str, Any] = {"pytorchReplicaSpecs": specs}
    if elastic is not None:
        spec["elasticPolicy"] = {"minReplicas": elastic}
    if policy is not None:
        spec["runPolicy"] = {"schedulingPolicy": {"minAvailable": policy}}
    labels = [
        {"training.kubeflow.org/replica-type": "worker", "training.kubeflow.org/replica-index": str(index)}
        for index in range(1 if worker is None else worker)
    ]
    try:
        group = the_group(an_owner("PyTorchJob", "kubeflow.org/v1", spec=spec))
    except Ungroupable:
        assert policy is None  # some role has no replicas
        assert 0 in (master, worker)
        return
    is_valid(group, *(a_grouped_pod(labels=each) for each in labels))


@given(size=st.integers(1, 30), segment=st.none() | st.integers(2, 8), apart=st.booleans(), ready=st.booleans())
def test_leader_worker_sets(size: int, segment: int | None, apart: bool, ready: bool) -> None:
    policy = {"subGroupSize": segment, "subGroupPolicyType": "LeaderExcluded" if apart else "LeaderWorker"}
    template = {"size": size, **({} if segment is None else {"subGroupPolicy": policy})}
    spec = {"leaderWorkerTemplate": template, "startupPolicy": "LeaderReady" if ready else "LeaderCreated"}
    pods = [
        a_grouped_pod(str(i), labels={"leaderworkerset.sigs.k8s.io/worker-index": str(i)}, nodeName="n")
        for i in range(size)
    ]
    owner = an_owner("LeaderWorkerSet", "leaderworkerset.x-k8s.io/v1", spec=spec)
    try:
        group = the_group(owner, pod=pods[0], members=pods)
    except Ungroupable:
        assert segment is not None
        assert segment > size or (apart and (size - 1) % segment)
        return
    is_valid(group, *pods)
    places = [group.part_of(pod) for pod in pods]
    leaves = [part for part in group.sub_groups if part.min_sub_group is None]
    assert {part.name: part.min_member for part in leaves} == {part.name: places.count(part.name) for part in leaves}
    assert sum(part.min_member or 0 for part in leaves) == group.min_member == size


@given(jobs=st.lists(st.tuples(COUNTS, COUNTS), min_size=1, max_size=4), in_order=st.booleans())
def test_job_sets(jobs: list[tuple[int, int]], in_order: bool) -> None:
    spec: dict[str, Any] = {
        "replicatedJobs": [
            {"name": f"j{index}", "replicas": count, "template": {"spec": {"parallelism": pods}}}
            for index, (count, pods) in enumerate(jobs)
        ]
    }
    if in_order:
        spec["startupPolicy"] = {"startupPolicyOrder": "InOrder"}
    if not any(count for count, _ in jobs):
        return
    labels = [
        {"jobset.sigs.k8s.io/replicatedjob-name": f"j{index}", "jobset.sigs.k8s.io/job-index": str(job)}
        for index, (count, _) in enumerate(jobs)
        for job in range(count)
    ]
    group = the_group(an_owner("JobSet", "jobset.x-k8s.io/v1alpha2", spec=spec))
    is_valid(group, *(a_grouped_pod(labels=each) for each in labels))


@given(groups=st.lists(st.tuples(COUNTS, COUNTS, st.booleans()), max_size=4))
def test_ray_clusters(groups: list[tuple[int, int, bool]]) -> None:
    workers = [
        {"groupName": f"g{index}", "minReplicas": minimum, "replicas": minimum + more, "suspended": is_suspended}
        for index, (minimum, more, is_suspended) in enumerate(groups)
    ]
    group = the_group(an_owner("RayCluster", "ray.io/v1", spec={"workerGroupSpecs": workers}))
    is_valid(group, a_grouped_pod(labels={"ray.io/group": "headgroup"}))
    assert sum(part.min_member or 0 for part in group.sub_groups) == group.min_member


@given(
    cliques=st.integers(1, 5),
    together=st.lists(st.lists(st.integers(0, 6), max_size=4), max_size=3),
    minimum=st.integers(1, 4),
)
def test_pod_gangs(cliques: int, together: list[list[int]], minimum: int) -> None:
    spec = {
        "podgroups": [{"name": f"c{index}", "minReplicas": minimum} for index in range(cliques)],
        "topologyConstraintGroupConfigs": [
            {"name": f"t{index}", "podGroupNames": [f"c{one}" for one in named]} for index, named in enumerate(together)
        ],
    }
    gang = an_owner("PodGang", "scheduler.grove.io/v1alpha1", "g", spec=spec)
    pod = a_grouped_pod(labels={"grove.io/podgang": "g", "grove.io/podclique": "c0"})
    group = the_group(an_owner("PodCliqueSet", "grove.io/v1alpha1", "s"), pod=pod, beside=gang)
    is_valid(group, pod)
    assert group.min_member == cliques * minimum
