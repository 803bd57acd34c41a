"""Which pods the grouper leaves alone, and what groups are named."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.scheduler.grouper import is_grouped_elsewhere
from shoal.scheduler.grouper.pods import as_owner, group_name
from tests.scheduler.grouper.builders import a_grouped_pod, the_group

JOB = {"apiVersion": "batch/v1", "kind": "Job", "name": "w", "uid": "w-uid"}

ELSEWHERE: dict[str, tuple[dict[str, Any], bool]] = {
    "nothing said": ({}, False),
    "owned": ({"owners": [JOB]}, False),
    "a group without an owner": ({"annotations": {"pod-group-name": "mine"}}, True),
    "the grouper's own mark without an owner": ({"annotations": {"pod-group-name": "pg-p-p-uid"}}, False),
    "a group beside an owner is the grouper's": (
        {"owners": [JOB], "annotations": {"pod-group-name": "pg-w-w-uid"}},
        False,
    ),
    "Spark's driver, marked by the grouper": (
        {
            "labels": {"spark-app-name": "pi", "spark-app-selector": "spark-1"},
            "annotations": {"pod-group-name": "spark-1"},
        },
        False,
    ),
    "asked to skip": ({"owners": [JOB], "annotations": {"kai.scheduler/skip-podgrouper": "true"}}, True),
    "asked not to skip": ({"annotations": {"kai.scheduler/skip-podgrouper": "false"}}, False),
    "the KAI backend of gangs": (
        {
            "owners": [JOB],
            "labels": {"kai.scheduler/subgroup-name": "prefill", "grove.io/podgang": "g"},
            "annotations": {"kai.scheduler/skip-podgrouper": "true", "pod-group-name": "pg-g-1"},
        },
        True,
    ),
    "a PodGang that no backend speaks for": ({"owners": [JOB], "labels": {"grove.io/podgang": "g"}}, False),
    "a Workload": ({"owners": [JOB], "workloadRef": {"name": "w", "podGroup": "a"}}, True),
    "a PodGroup of Kubernetes": ({"owners": [JOB], "schedulingGroup": {"podGroupName": "w-a"}}, True),
    "an empty link to a PodGroup of Kubernetes": ({"owners": [JOB], "schedulingGroup": {}}, False),
    "Koordinator": ({"owners": [JOB], "labels": {"pod-group.scheduling.sigs.k8s.io": "g"}}, True),
    "coscheduling": ({"owners": [JOB], "labels": {"pod-group.scheduling.sigs.k8s.io/name": "g"}}, True),
    "coscheduling since 0.24": ({"owners": [JOB], "labels": {"scheduling.x-k8s.io/pod-group": "g"}}, True),
    "Volcano": ({"owners": [JOB], "annotations": {"scheduling.volcano.sh/group-name": "g"}}, True),
    "Volcano, as of old": ({"owners": [JOB], "annotations": {"scheduling.k8s.io/group-name": "g"}}, True),
}


@pytest.mark.parametrize(("pod", "expected"), ELSEWHERE.values(), ids=ELSEWHERE)
def test_a_pod_that_somebody_else_groups_is_left_alone(pod: dict[str, Any], expected: bool) -> None:
    assert is_grouped_elsewhere(a_grouped_pod(**pod)) is expected


def test_a_pod_of_a_gang_that_has_a_backend_is_left_alone() -> None:
    pod = a_grouped_pod(owners=[JOB], labels={"grove.io/podgang": "g"})
    assert is_grouped_elsewhere(pod, gang_has_backend=True)


def test_a_group_is_named_after_its_owner_and_the_owners_uid() -> None:
    assert group_name("train", "4711") == "pg-train-4711"


def test_the_name_of_a_group_fits_and_keeps_the_uid_however_long_the_owners_is() -> None:
    first, second = group_name("a" * 252 + "b", "4711"), group_name("a" * 252 + "c", "4711")
    assert len(first) <= 253
    assert first.endswith("-4711")
    assert first != second


def test_what_is_written_on_a_pod_while_it_is_scheduled_does_not_change_its_group() -> None:
    before = a_grouped_pod(labels={"app": "a"}, annotations={"note": "n"})
    after = a_grouped_pod(
        labels={"app": "a", "runai-gpu-group/1": "1", "kai.scheduler/subgroup-name": "a"},
        annotations={"note": "n", "pod-group-name": "pg-p-p-uid", "received-resource-type": "Fraction"},
    )
    assert the_group(pod=before) == the_group(pod=after)
    # Nor does that of the pods below it.
    assert the_group(as_owner(before), pod=a_grouped_pod("q")) == the_group(as_owner(after), pod=a_grouped_pod("q"))
