"""Kinds whose pods are one flat group, or each a group of its own."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.scheduler.grouper.fields import Ungroupable
from tests.scheduler.grouper.builders import a_grouped_pod, an_owner, the_group

ONE_GROUP = [
    ("apps/v1", "StatefulSet"),
    ("apps/v1", "ReplicaSet"),
    ("machinelearning.seldon.io/v1", "SeldonDeployment"),
    ("kubevirt.io/v1", "VirtualMachineInstance"),
    ("tekton.dev/v1", "TaskRun"),
    ("tekton.dev/v1", "PipelineRun"),
    ("workspace.devfile.io/v1alpha2", "DevWorkspace"),
    ("kubeflow.org/v1beta1", "ScheduledWorkflow"),
    ("nobody.example.com/v7", "NeverHeardOf"),
]


@pytest.mark.parametrize(("api_version", "kind"), ONE_GROUP, ids=[kind for _, kind in ONE_GROUP])
def test_the_pods_of_an_owner_are_one_group_and_start_one_by_one(api_version: str, kind: str) -> None:
    owner = an_owner(kind, api_version)
    first, second = the_group(owner, pod=a_grouped_pod("a")), the_group(owner, pod=a_grouped_pod("b"))
    assert (first.name, first.min_member, first.priority_class) == ("pg-w-w-uid", 1, "train")
    assert (first.owner.api_version, first.owner.kind) == (api_version, kind)
    assert first == second


def test_each_pod_of_a_deployment_is_a_group_that_goes_with_it() -> None:
    owners = an_owner("ReplicaSet", "apps/v1", "d-1"), an_owner("Deployment", "apps/v1", "d", labels={"app": "a"})
    group = the_group(*owners, pod=a_grouped_pod("d-1-x"))
    assert (group.name, group.owner.kind, group.owner.uid) == ("pg-d-1-x-d-1-x-uid", "Pod", "d-1-x-uid")
    assert (group.min_member, group.priority_class) == (1, "inference")
    assert group.labels == {"app": "a"}
    assert "kind: Deployment" in group.annotations["kai.scheduler/top-owner-metadata"]


def test_a_label_of_a_deployment_goes_before_its_template() -> None:
    template = {"priorityClassName": "train"}
    owners = (
        an_owner("ReplicaSet", "apps/v1", "d-1", labels=template),
        an_owner("Deployment", "apps/v1", "d", labels={"priorityClassName": "urgent"}),
    )
    assert the_group(*owners, pod=a_grouped_pod(labels=template)).priority_class == "urgent"


@pytest.mark.parametrize(
    ("annotations", "expected"),
    [
        pytest.param({}, 1, id="one by one"),
        pytest.param({"kai.scheduler/batch-min-member": "3"}, 3, id="as annotated"),
        pytest.param({"kai.scheduler/batch-min-member": "0"}, 0, id="no gang at all"),
    ],
)
def test_a_job_is_one_group(annotations: dict[str, str], expected: int) -> None:
    group = the_group(an_owner("Job", "batch/v1", annotations=annotations, spec={"parallelism": 4}))
    assert (group.name, group.min_member, group.priority_class) == ("pg-w-w-uid", expected, "train")


@pytest.mark.parametrize("said", ["three", "", "2.5", "-1", "4294967296"])
def test_a_minimum_that_is_no_number_is_told(said: str) -> None:
    with pytest.raises(Ungroupable, match=r"batch-min-member of Job team/w is .* whole number of at least 0"):
        the_group(an_owner("Job", "batch/v1", annotations={"kai.scheduler/batch-min-member": said}))


def test_each_job_of_a_cron_job_is_a_group_of_its_own() -> None:
    jobs = [
        an_owner("Job", "batch/v1", name, annotations={"kai.scheduler/batch-min-member": "2"})
        for name in ("tick-1", "tick-2")
    ]
    groups = [the_group(job, an_owner("CronJob", "batch/v1", "tick")) for job in jobs]
    assert [group.name for group in groups] == ["pg-tick-1-tick-1-uid", "pg-tick-2-tick-2-uid"]
    assert {(group.owner.kind, group.min_member) for group in groups} == {("Job", 2)}


def test_a_pod_that_a_cron_job_owns_without_a_job_is_told() -> None:
    with pytest.raises(Ungroupable, match="no Job lies between"):
        the_group(an_owner("CronJob", "batch/v1"))


@pytest.mark.parametrize(
    ("kind", "api_version", "expected"),
    [("Notebook", "kubeflow.org/v1beta1", "build"), ("SPOTRequest", "egx.nvidia.io/v1", "inference")],
)
def test_some_kinds_have_a_priority_of_their_own(kind: str, api_version: str, expected: str) -> None:
    assert the_group(an_owner(kind, api_version)).priority_class == expected
    assert the_group(an_owner(kind, api_version, labels={"priorityClassName": "urgent"})).priority_class == "urgent"


def aml(nodes: Any) -> dict[str, Any]:
    envs = {} if nodes is None else {"AZUREML_NODE_COUNT": nodes}
    return an_owner("AmlJob", "amlarc.azureml.com/v1alpha1", spec={"job": {"options": {"envs": envs}}})


@pytest.mark.parametrize("nodes", [4, "4"])
def test_an_azure_ml_job_starts_with_all_of_its_nodes(nodes: Any) -> None:
    assert the_group(aml(nodes)).min_member == 4


@pytest.mark.parametrize("nodes", [None, "many", 0])
def test_an_azure_ml_job_without_nodes_is_told(nodes: Any) -> None:
    with pytest.raises(Ungroupable, match="AZUREML_NODE_COUNT"):
        the_group(aml(nodes))


@pytest.mark.parametrize(
    ("pod", "expected"), [("hpo-3-0", "pg-hpo-3-w-uid"), ("job-0", "pg-job-w-uid"), ("job", "pg-job-w-uid")]
)
def test_the_trials_of_a_runai_job_are_groups_of_their_own(pod: str, expected: str) -> None:
    assert the_group(an_owner("RunaiJob", "run.ai/v1"), pod=a_grouped_pod(pod)).name == expected


SPARK = {"spark-app-name": "pi", "spark-app-selector": "spark-4711"}


@pytest.mark.parametrize(
    "owners",
    [
        pytest.param((), id="the driver"),
        pytest.param((an_owner("Pod", "v1", "driver"),), id="an executor"),
        pytest.param(
            (an_owner("Pod", "v1", "driver"), an_owner("SparkApplication", "sparkoperator.k8s.io/v1beta2")),
            id="an executor of the operator's",
        ),
    ],
)
def test_sparks_pods_are_one_group_by_its_own_label(owners: tuple[dict[str, Any], ...]) -> None:
    group = the_group(*owners, pod=a_grouped_pod("driver", labels=SPARK))
    assert (group.name, group.min_member) == ("spark-4711", 1)


def test_a_name_that_cannot_be_a_groups_is_told() -> None:
    with pytest.raises(Ungroupable, match="would be named 'Spark_1'"):
        the_group(pod=a_grouped_pod(labels={"spark-app-name": "pi", "spark-app-selector": "Spark_1"}))
