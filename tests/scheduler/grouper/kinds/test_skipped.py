"""Owners that hold several workloads, or wrap one: the next one below is grouped."""

from __future__ import annotations

import pytest

from shoal.scheduler.grouper.case import Facts
from shoal.scheduler.grouper.defaults import KindDefaults
from shoal.scheduler.grouper.kinds.registry import SKIPPED
from tests.scheduler.grouper.builders import CLASSES, a_grouped_pod, an_owner, the_group


@pytest.mark.parametrize("skipped", sorted(SKIPPED), ids=lambda kind: kind[1])
def test_a_wrapper_is_no_group_and_what_it_says_holds_below(skipped: tuple[str, str]) -> None:
    wrapper = an_owner(
        skipped[1],
        f"{skipped[0]}/v1beta9",
        "top",
        labels={"kai.scheduler/queue": "q", "both": "top"},
        annotations={"kai.scheduler/topology": "dc"},
    )
    group = the_group(an_owner("Job", "batch/v1", labels={"both": "job"}), wrapper)
    assert (group.name, group.owner.kind, group.queue) == ("pg-w-w-uid", "Job", "q")
    assert group.labels == {"kai.scheduler/queue": "q", "both": "job"}
    assert group.topology is not None
    assert group.topology.topology == "dc"


def test_the_rule_of_the_kind_below_holds() -> None:
    owners = (
        an_owner("ReplicaSet", "apps/v1", "r"),
        an_owner("Deployment", "apps/v1", "d"),
        an_owner("Workflow", "argoproj.io/v1alpha1", "flow"),
    )
    assert the_group(*owners, pod=a_grouped_pod("x")).priority_class == "inference"


def test_a_step_of_a_workflow_is_a_group_of_its_own() -> None:
    workflow = an_owner("Workflow", "argoproj.io/v1alpha1", "flow", labels={"kai.scheduler/queue": "q"})
    group = the_group(workflow, pod=a_grouped_pod("step"))
    assert (group.name, group.owner.kind, group.queue) == ("pg-step-step-uid", "Pod", "q")


def test_wrappers_around_each_other_are_all_skipped() -> None:
    owners = (
        an_owner("Job", "batch/v1", "job", labels={"who": "job"}),
        an_owner("TrainJob", "trainer.kubeflow.org/v1alpha1", "train", labels={"who": "train", "middle": "yes"}),
        an_owner("TrainingWorkload", "run.ai/v2alpha1", "top", labels={"who": "top", "topmost": "yes"}),
    )
    group = the_group(*owners)
    assert group.name == "pg-job-job-uid"
    assert group.labels == {"who": "job", "middle": "yes", "topmost": "yes"}


@pytest.mark.parametrize(
    ("labels", "expected"),
    [
        pytest.param({}, "inference", id="where nobody names a class"),
        pytest.param({"priorityClassName": "urgent"}, "urgent", id="but not before what the wrapper itself says"),
    ],
)
def test_the_default_of_a_wrapper_holds(labels: dict[str, str], expected: str) -> None:
    defaults = {"InferenceWorkload": KindDefaults(type_name="InferenceWorkload", priority_name="inference")}
    owners = an_owner("Job", "batch/v1"), an_owner("InferenceWorkload", "run.ai/v2alpha1", "top", labels=labels)
    assert the_group(*owners, facts=Facts(priority_classes=CLASSES, defaults=defaults)).priority_class == expected
