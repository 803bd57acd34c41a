"""Ray: head and workers start together, a part for each group of nodes."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.scheduling_run_ai import TopologyConstraint
from shoal.scheduler.grouper.case import Case
from shoal.scheduler.grouper.fields import Ungroupable
from shoal.scheduler.grouper.kinds import beside
from shoal.scheduler.grouper.kinds.reference import Reference
from tests.scheduler.grouper.builders import a_grouped_pod, an_owner, parts_of, the_group


def workers(replicas: int | None = None, minimum: int | None = None, **more: Any) -> dict[str, Any]:
    return {
        **({} if replicas is None else {"replicas": replicas}),
        **({} if minimum is None else {"minReplicas": minimum}),
        **more,
    }


def cluster_spec(*groups: dict[str, Any], **head: Any) -> dict[str, Any]:
    return {"headGroupSpec": head, "workerGroupSpecs": list(groups)}


def a_cluster(*groups: dict[str, Any], version: str = "v1", **head: Any) -> dict[str, Any]:
    return an_owner("RayCluster", f"ray.io/{version}", "c", spec=cluster_spec(*groups, **head))


CLUSTERS: dict[str, tuple[dict[str, Any], int, dict[str, str]]] = {
    "a head alone": (a_cluster(), 1, {}),
    "the minimum of each group": (
        a_cluster(workers(5, 2), workers(3, 1)),
        4,
        {"worker-group-0": "2 pods", "worker-group-1": "1 pods"},
    ),
    "all of a group without a minimum": (a_cluster(workers(3)), 4, {"worker-group-0": "3 pods"}),
    "all of a group with a minimum of none": (a_cluster(workers(3, 0)), 4, {"worker-group-0": "3 pods"}),
    "several hosts for each replica": (
        a_cluster(workers(2, 1, numOfHosts=4), workers(3, numOfHosts=2)),
        11,
        {"worker-group-0": "4 pods", "worker-group-1": "6 pods"},
    ),
    "groups with names": (a_cluster(workers(2, groupName="gpu")), 3, {"gpu": "2 pods"}),
    "a group that is suspended": (
        a_cluster(workers(2, 1, suspended=True), workers(1)),
        2,
        {"worker-group-1": "1 pods"},
    ),
    "a group that is scaled to none": (a_cluster(workers(0, 0), workers()), 1, {}),
}


@pytest.mark.parametrize("version", ["v1", "v1alpha1"])
@pytest.mark.parametrize(("cluster", "minimum", "parts"), CLUSTERS.values(), ids=CLUSTERS)
def test_head_and_workers_start_together(
    cluster: dict[str, Any], minimum: int, parts: dict[str, str], version: str
) -> None:
    group = the_group({**cluster, "apiVersion": f"ray.io/{version}"})
    assert (group.name, group.min_member) == ("pg-c-c-uid", minimum)
    assert parts_of(group) == {"headgroup": "1 pods", **parts}


def test_a_pod_is_in_the_part_of_its_group_of_nodes() -> None:
    group = the_group(a_cluster(workers(2, groupName="gpu")))
    found = [group.part_of(a_grouped_pod(labels={"ray.io/group": name})) for name in ("headgroup", "gpu", "gone")]
    assert found == ["headgroup", "gpu", ""]
    assert group.part_of(a_grouped_pod()) == ""


def test_a_minimum_above_the_replicas_is_told() -> None:
    with pytest.raises(Ungroupable, match="'gpu' of RayCluster team/c have 1 replicas and a minReplicas of 2"):
        the_group(a_cluster(workers(1, 2, groupName="gpu")))


@pytest.mark.parametrize("names", [("gpu", "gpu"), ("headgroup", "gpu")])
def test_two_parts_of_one_name_are_told(names: tuple[str, str]) -> None:
    with pytest.raises(Ungroupable, match="two subgroups would be named"):
        the_group(a_cluster(*(workers(1, groupName=name) for name in names)))


def test_a_name_that_no_part_can_have_is_told() -> None:
    with pytest.raises(Ungroupable, match="'GPU_large'"):
        the_group(a_cluster(workers(1, groupName="GPU_large")))


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({"ray.io/priority-class-name": "urgent"}, "urgent", id="Ray's own label"),
        pytest.param({"ray.io/priority-class-name": "urgent", "priorityClassName": "build"}, "urgent", id="goes first"),
        pytest.param(
            {"ray.io/priority-class-name": "nothing", "priorityClassName": "build"}, "build", id="if it exists"
        ),
        pytest.param({"priorityClassName": "build"}, "build", id="the usual one"),
        pytest.param({}, "train", id="none"),
    ],
)
def test_ray_has_a_label_for_priorities(labels: dict[str, str], expected: str) -> None:
    owner = an_owner("RayCluster", "ray.io/v1", "c", labels=labels, spec=cluster_spec())
    assert the_group(owner, pod=a_grouped_pod(priorityClassName="")).priority_class == expected


def placed(**levels: str) -> dict[str, Any]:
    annotations = {f"kai.scheduler/{key.replace('_', '-')}": value for key, value in levels.items()}
    return {"template": {"metadata": {"annotations": annotations}}}


def test_each_group_of_nodes_may_stay_together() -> None:
    cluster = a_cluster(
        workers(2, groupName="a", **placed(topology="dc", topology_required_placement="rack")),
        workers(2, groupName="b", **placed(topology="dc")),
        **placed(topology="dc", topology_preferred_placement="zone"),
    )
    assert {part.name: part.topology_constraint for part in the_group(cluster).sub_groups} == {
        "headgroup": TopologyConstraint(topology="dc", preferred_topology_level="zone"),
        "a": TopologyConstraint(topology="dc", required_topology_level="rack"),
        "b": None,
    }


def test_a_placement_without_a_topology_is_told() -> None:
    with pytest.raises(Ungroupable, match=r"set annotation kai\.scheduler/topology"):
        the_group(a_cluster(**placed(topology_required_placement="rack")))


OWNERS = {
    "RayJob": {"status": {"rayClusterName": "c"}},
    "RayService": {"status": {"activeServiceStatus": {"rayClusterName": "c"}}},
    "RayService that comes up": {"status": {"pendingServiceStatus": {"rayClusterName": "c"}}},
}


@pytest.mark.parametrize(("kind", "status"), OWNERS.items(), ids=OWNERS)
def test_the_pods_of_a_job_or_service_are_those_of_its_cluster(kind: str, status: dict[str, Any]) -> None:
    owner = an_owner(kind.split(maxsplit=1)[0], "ray.io/v1", "top", labels={"kai.scheduler/queue": "q"}, **status)
    cluster = a_cluster(workers(3, 2))
    below = the_group(cluster, owner)
    assert (below.name, below.queue, below.min_member) == ("pg-top-top-uid", "q", 3)
    # The pod that submits a job does not lie below the cluster.
    submitter = Case(pod=a_grouped_pod("submit"), owners=(an_owner("Job", "batch/v1"), owner))
    assert beside(submitter) == Reference(api_version="ray.io/v1", kind="RayCluster", name="c")
    assert the_group(*submitter.owners, pod=submitter.pod, beside=cluster) == below
    assert beside(Case(pod=a_grouped_pod(), owners=(cluster, owner))) is None


@pytest.mark.parametrize("field", ["rayClusterSpec", "rayClusterConfig"])
def test_a_cluster_that_is_not_made_yet_is_as_its_owner_describes_it(field: str) -> None:
    owner = an_owner("RayJob", "ray.io/v1", "top", spec={field: cluster_spec(workers(3))})
    assert beside(Case(pod=a_grouped_pod(), owners=(owner,))) is None
    assert the_group(owner).min_member == 4


def test_a_job_without_any_cluster_is_told() -> None:
    with pytest.raises(Ungroupable, match="RayCluster of RayJob team/top is not known yet"):
        the_group(an_owner("RayJob", "ray.io/v1", "top"))
