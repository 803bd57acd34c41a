"""PyTorchJobs: masters, workers, elasticity and segments."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.scheduling_run_ai import TopologyConstraint
from shoal.scheduler.grouper.fields import Ungroupable
from shoal.scheduler.grouper.pods import GroupedPod
from shoal.scheduler.grouper.segments import check_segments
from tests.scheduler.grouper.builders import a_grouped_pod, an_owner, parts_of, the_group

SIZE = "kai.scheduler/segment-size"


def a_job(
    master: int | None = None,
    worker: int | None = None,
    *,
    elastic: int | None = None,
    policy: int | None = None,
    template: dict[str, str] | None = None,
    annotations: dict[str, str] | None = None,
) -> dict[str, Any]:
    specs: dict[str, Any] = {}
    if master is not None:
        specs["Master"] = {"replicas": master}
    if worker is not None:
        specs["Worker"] = {"replicas": worker, "template": {"metadata": {"annotations": template or {}}}}
    spec: dict[str, Any] = {"pytorchReplicaSpecs": specs}
    if elastic is not None:
        spec["elasticPolicy"] = {"minReplicas": elastic}
    if policy is not None:
        spec["runPolicy"] = {"schedulingPolicy": {"minAvailable": policy}}
    return an_owner("PyTorchJob", "kubeflow.org/v1", annotations=annotations, spec=spec)


def worker(index: int | str | None = 0, **annotations: str) -> GroupedPod:
    labels = {"training.kubeflow.org/replica-type": "worker"}
    if index is not None:
        labels["training.kubeflow.org/replica-index"] = str(index)
    return a_grouped_pod(f"worker-{index}", labels=labels, annotations=annotations)


MASTER = a_grouped_pod("master", labels={"training.kubeflow.org/replica-type": "master"})

MINIMUMS: dict[str, tuple[dict[str, Any], int, dict[str, str]]] = {
    "all replicas": (a_job(2, 4), 6, {"master": "2 pods", "worker": "4 pods"}),
    "masters alone": (a_job(2), 2, {"master": "2 pods"}),
    "workers alone": (a_job(None, 4), 4, {"worker": "4 pods"}),
    "the elastic minimum": (a_job(2, 4, elastic=5), 5, {"master": "2 pods", "worker": "3 pods"}),
    "the scheduling policy": (a_job(2, 4, policy=4), 4, {"master": "2 pods", "worker": "2 pods"}),
    "the policy before elasticity": (a_job(2, 4, elastic=5, policy=4), 4, {"master": "2 pods", "worker": "2 pods"}),
    "an elastic minimum below the masters": (a_job(2, 4, elastic=1), 1, {"master": "2 pods", "worker": "0 pods"}),
    "no master yet": (a_job(0, 4, policy=4), 4, {"worker": "4 pods"}),
}


@pytest.mark.parametrize(("job", "minimum", "parts"), MINIMUMS.values(), ids=MINIMUMS)
def test_masters_and_workers_are_parts(job: dict[str, Any], minimum: int, parts: dict[str, str]) -> None:
    group = the_group(job, pod=worker())
    assert (group.min_member, group.min_sub_group, parts_of(group)) == (minimum, None, parts)


def test_a_pod_is_in_the_part_of_its_role() -> None:
    group = the_group(a_job(1, 2))
    assert [group.part_of(pod) for pod in (MASTER, worker(), a_grouped_pod())] == ["master", "worker", ""]


SEGMENTS: dict[str, tuple[dict[str, Any], dict[str, str]]] = {
    "which divide": (
        a_job(1, 4, template={SIZE: "2"}),
        {"worker": "2 parts", "worker-0": "2 pods in worker", "worker-1": "2 pods in worker"},
    ),
    "which do not divide": (
        a_job(1, 5, template={SIZE: "2"}),
        {
            "worker": "3 parts",
            "worker-0": "2 pods in worker",
            "worker-1": "2 pods in worker",
            "worker-2": "1 pods in worker",
        },
    ),
    "of an elastic job": (
        a_job(1, 8, elastic=5, template={SIZE: "2"}),
        {
            "worker": "4 parts",
            "worker-0": "2 pods in worker",
            "worker-1": "2 pods in worker",
            "worker-2": "0 pods in worker",
            "worker-3": "0 pods in worker",
        },
    ),
    "larger than the job": (a_job(1, 3, template={SIZE: "8"}), {"worker": "1 parts", "worker-0": "3 pods in worker"}),
    "without workers": (a_job(1, 0, policy=1, template={SIZE: "2"}), {"worker": "0 pods"}),
}


@pytest.mark.parametrize(("job", "parts"), SEGMENTS.values(), ids=SEGMENTS)
def test_workers_are_cut_into_segments(job: dict[str, Any], parts: dict[str, str]) -> None:
    assert parts_of(the_group(job, pod=MASTER)) == {"master": "1 pods", **parts}


def test_a_worker_is_in_the_segment_of_its_number() -> None:
    group = the_group(a_job(1, 5, template={SIZE: "2"}))
    found = [group.part_of(pod) for pod in (MASTER, *map(worker, range(5)), worker(6))]
    assert found == ["master", "worker-0", "worker-0", "worker-1", "worker-1", "worker-2", ""]


def test_the_size_may_be_on_the_pod_alone() -> None:
    group = the_group(a_job(1, 4), pod=worker(2, **{SIZE: "2"}))
    assert group.part_of(worker(2)) == "worker-1"


REQUIRED, PREFERRED = (
    "kai.scheduler/segment-topology-required-placement",
    "kai.scheduler/segment-topology-preferred-placement",
)
TOPOLOGY = "kai.scheduler/topology"

PLACEMENTS: dict[str, tuple[dict[str, str], dict[str, str], dict[str, str], TopologyConstraint | None]] = {
    "both": (
        {TOPOLOGY: "dc", REQUIRED: "rack", PREFERRED: "node"},
        {},
        {},
        TopologyConstraint(topology="dc", required_topology_level="rack", preferred_topology_level="node"),
    ),
    "required": (
        {TOPOLOGY: "dc", REQUIRED: "rack"},
        {},
        {},
        TopologyConstraint(topology="dc", required_topology_level="rack"),
    ),
    "preferred": (
        {TOPOLOGY: "dc", PREFERRED: "node"},
        {},
        {},
        TopologyConstraint(topology="dc", preferred_topology_level="node"),
    ),
    "the topology of the job": (
        {REQUIRED: "rack"},
        {},
        {TOPOLOGY: "dc"},
        TopologyConstraint(topology="dc", required_topology_level="rack"),
    ),
    "the pod before the template": (
        {TOPOLOGY: "dc", REQUIRED: "rack"},
        {REQUIRED: "zone"},
        {},
        TopologyConstraint(topology="dc", required_topology_level="zone"),
    ),
    "no topology": ({REQUIRED: "rack"}, {}, {}, None),
    "no level": ({TOPOLOGY: "dc"}, {}, {}, None),
}


@pytest.mark.parametrize(("template", "pod", "job", "expected"), PLACEMENTS.values(), ids=PLACEMENTS)
def test_each_segment_stays_together(
    template: dict[str, str], pod: dict[str, str], job: dict[str, str], expected: TopologyConstraint | None
) -> None:
    found = a_job(1, 4, template={SIZE: "2", **template}, annotations=job)
    placements = {part.name: part.topology_constraint for part in the_group(found, pod=worker(0, **pod)).sub_groups}
    assert placements == {"master": None, "worker": None, "worker-0": expected, "worker-1": expected}


@pytest.mark.parametrize("said", ["two", "0", "-2"])
def test_a_size_that_is_no_number_is_told(said: str) -> None:
    with pytest.raises(Ungroupable, match="segment-size of the workers of PyTorchJob team/w"):
        the_group(a_job(1, 4, template={SIZE: said}))


@pytest.mark.parametrize(("index", "problem"), [(None, "has no label"), (-1, "is '-1'"), ("x", "is 'x'")])
def test_a_worker_without_a_number_has_no_segment(index: int | str | None, problem: str) -> None:
    group = the_group(a_job(1, 4, template={SIZE: "2"}))
    with pytest.raises(Ungroupable, match=problem):
        group.part_of(worker(index))


def test_there_are_ten_thousand_segments_at_most() -> None:
    check_segments(10_000, "a job")
    with pytest.raises(Ungroupable, match="would have 10001 segments"):
        the_group(a_job(1, 10_001, template={SIZE: "1"}))


def test_a_job_without_roles_is_told() -> None:
    with pytest.raises(Ungroupable, match=r"has no roles in spec\.pytorchReplicaSpecs"):
        the_group(a_job())
