"""JobSets: a part for each replicated job, and in it one for each of its Jobs."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.scheduling_run_ai import TopologyConstraint
from shoal.scheduler.grouper.fields import Ungroupable
from shoal.scheduler.grouper.pods import GroupedPod
from tests.scheduler.grouper.builders import a_grouped_pod, an_owner, parts_of, the_group

MINIMUM = "kai.scheduler/batch-min-member"


def replicated(
    name: str,
    replicas: int | None = None,
    parallelism: int | None = None,
    *,
    annotations: dict[str, str] | None = None,
) -> dict[str, Any]:
    job: dict[str, Any] = {"metadata": {"annotations": annotations or {}}, "spec": {}}
    if parallelism is not None:
        job["spec"]["parallelism"] = parallelism
    return {"name": name, "template": job, **({} if replicas is None else {"replicas": replicas})}


def a_set(*jobs: dict[str, Any], order: str = "", annotations: dict[str, str] | None = None) -> dict[str, Any]:
    spec: dict[str, Any] = {"replicatedJobs": list(jobs)}
    if order:
        spec["startupPolicy"] = {"startupPolicyOrder": order}
    return an_owner("JobSet", "jobset.x-k8s.io/v1alpha2", annotations=annotations, spec=spec)


def of_job(job: str = "", index: str = "") -> GroupedPod:
    labels = {"jobset.sigs.k8s.io/replicatedjob-name": job, "jobset.sigs.k8s.io/job-index": index}
    return a_grouped_pod(f"p-{job}-{index}", labels={key: value for key, value in labels.items() if value})


def test_a_replicated_job_is_a_part_with_a_part_for_each_job() -> None:
    group = the_group(a_set(replicated("driver"), replicated("workers", 2, 4)))
    assert (group.name, group.min_member, group.min_sub_group) == ("pg-w-w-uid", None, 2)
    assert parts_of(group) == {
        "driver": "1 parts",
        "driver-replica-0": "1 pods in driver",
        "workers": "2 parts",
        "workers-replica-0": "4 pods in workers",
        "workers-replica-1": "4 pods in workers",
    }


TWO = (replicated("a"), replicated("b"))

ROOTS: dict[str, tuple[dict[str, Any], int]] = {
    "all": (a_set(*TWO), 2),
    "in any order": (a_set(*TWO, order="AnyOrder"), 2),
    "in order": (a_set(*TWO, order="InOrder"), 1),
    "as annotated": (a_set(*TWO, annotations={MINIMUM: "1"}), 1),
    "not more than there are": (a_set(*TWO, annotations={MINIMUM: "7"}), 2),
    "as annotated before the order": (a_set(*TWO, order="InOrder", annotations={MINIMUM: "2"}), 2),
    "those that have Jobs": (a_set(*TWO, replicated("none", 0)), 2),
}


@pytest.mark.parametrize(("job_set", "expected"), ROOTS.values(), ids=ROOTS)
def test_how_many_replicated_jobs_start_together(job_set: dict[str, Any], expected: int) -> None:
    assert the_group(job_set).min_sub_group == expected


@pytest.mark.parametrize(("said", "expected"), [("2", "2 pods in a"), ("9", "9 pods in a")])
def test_the_minimum_of_a_job_may_be_annotated_in_its_template(said: str, expected: str) -> None:
    group = the_group(a_set(replicated("a", 1, 4, annotations={MINIMUM: said})))
    assert parts_of(group)["a-replica-0"] == expected


def test_the_set_and_its_jobs_may_each_stay_together() -> None:
    job = replicated(
        "a", annotations={"kai.scheduler/topology": "dc", "kai.scheduler/topology-required-placement": "rack"}
    )
    annotations = {"kai.scheduler/topology": "dc", "kai.scheduler/topology-required-placement": "zone"}
    group = the_group(a_set(job, annotations=annotations))
    rack = TopologyConstraint(topology="dc", required_topology_level="rack")
    assert [part.topology_constraint for part in group.sub_groups] == [None, rack]
    assert group.topology == TopologyConstraint(topology="dc", required_topology_level="zone")


def test_a_topology_without_a_level_says_nothing() -> None:
    group = the_group(a_set(replicated("a", annotations={"kai.scheduler/topology": "dc"})))
    assert [part.topology_constraint for part in group.sub_groups] == [None, None]


def test_a_pod_is_in_the_part_of_its_job() -> None:
    group = the_group(a_set(replicated("a", 2), replicated("b", 1)))
    found = [group.part_of(pod) for pod in (of_job("a", "0"), of_job("a", "1"), of_job("b", "0"))]
    assert found == ["a-replica-0", "a-replica-1", "b-replica-0"]


@pytest.mark.parametrize(
    ("pod", "problem"),
    [
        pytest.param(of_job(index="0"), "replicatedjob-name", id="no replicated job"),
        pytest.param(of_job("a"), "job-index", id="no index"),
        pytest.param(of_job("a", "2"), "does not have", id="an index too many"),
        pytest.param(of_job("b", "0"), "does not have", id="another job"),
    ],
)
def test_a_pod_that_is_in_no_part_is_told(pod: GroupedPod, problem: str) -> None:
    group = the_group(a_set(replicated("a", 2)))
    with pytest.raises(Ungroupable, match=problem):
        group.part_of(pod)


@pytest.mark.parametrize(
    ("job_set", "problem"),
    [
        pytest.param(a_set(), "has no replicatedJobs", id="no jobs"),
        pytest.param(a_set(*TWO, annotations={MINIMUM: "x"}), "is 'x'", id="no number"),
        pytest.param(a_set(*TWO, annotations={MINIMUM: "0"}), "is '0'", id="too few"),
        pytest.param(a_set(replicated("a", annotations={MINIMUM: "x"})), "is 'x'", id="no number in a template"),
        pytest.param(a_set(replicated("a", annotations={MINIMUM: "0"})), "is '0'", id="too few in a template"),
        pytest.param(a_set(replicated("")), "without a name", id="no name"),
    ],
)
def test_a_set_that_makes_no_sense_is_told(job_set: dict[str, Any], problem: str) -> None:
    with pytest.raises(Ungroupable, match=problem):
        the_group(job_set)


def test_a_train_job_is_grouped_as_its_job_set() -> None:
    train = an_owner("TrainJob", "trainer.kubeflow.org/v1alpha1", "t", labels={"kai.scheduler/queue": "q"})
    group = the_group(an_owner("Job", "batch/v1", "j"), a_set(replicated("node", 1, 4)), train)
    assert (group.owner.kind, group.queue, group.min_sub_group) == ("JobSet", "q", 1)
    assert parts_of(group)["node-replica-0"] == "4 pods in node"
