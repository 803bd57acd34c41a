"""What may change in a JobSet, and when."""

from __future__ import annotations

import copy
from typing import Any

import pytest

from shoal.training.jobset.admission.sameness import first_difference
from shoal.training.jobset.admission.updates import update_problems
from tests.training.jobset.builders import a_job_set, a_pod_template, a_replicated_job, typed

POD = ("spec", "replicatedJobs", 0, "template", "spec", "template")
CONTAINERS = [
    {"name": "main", "image": "busybox", "resources": {"limits": {"cpu": "1", "memory": "1Gi"}}, "env": []},
]
BEFORE = a_job_set(a_replicated_job(pods=a_pod_template(containers=CONTAINERS), parallelism=2))


def changed(path: tuple[str | int, ...], value: Any) -> dict[str, Any]:
    body: Any = copy.deepcopy(BEFORE)
    place = body
    for step in path[:-1]:
        if isinstance(place, dict):
            place.setdefault(step, {})
        place = place[step]
    place[path[-1]] = value
    return dict(body)


def problems(new: dict[str, Any], *, was: bool | None = None, becomes: bool | None = None) -> list[str]:
    """What is wrong with a change of a JobSet that was, or becomes, suspended."""
    old = {**BEFORE, "spec": {**BEFORE["spec"], "suspend": was}}
    after = {**new, "spec": {**new["spec"], "suspend": becomes}}
    return [str(each) for each in update_problems(typed(after), typed(old))]


PLACEMENT: dict[tuple[str | int, ...], Any] = {
    (*POD, "metadata", "labels"): {"a": "b"},
    (*POD, "metadata", "annotations"): {"a": "b"},
    (*POD, "spec", "nodeSelector"): {"a": "b"},
    (*POD, "spec", "tolerations"): [{"key": "gpu"}],
    (*POD, "spec", "schedulingGates"): [{"name": "g"}],
}


@pytest.mark.parametrize("path", PLACEMENT, ids=lambda path: str(path[-1]))
def test_where_pods_go_may_change_while_the_job_set_is_suspended(path: tuple[str | int, ...]) -> None:
    new = changed(path, PLACEMENT[path])
    assert problems(new, was=True, becomes=True) == []
    assert problems(new, was=True, becomes=False) == []
    assert problems(new, was=False, becomes=True) == []
    [problem] = problems(new, was=False)
    assert problem.startswith("spec.replicatedJobs[0].template.spec.template.")
    assert "field is immutable: suspend the JobSet" in problem


@pytest.mark.parametrize(
    ("path", "value", "place"),
    [
        ((*POD, "spec", "affinity"), {"nodeAffinity": {}}, "template.spec.template.spec.affinity"),
        ((*POD, "spec", "containers", 0, "image"), "alpine", "template.spec.template.spec.containers[0].image"),
        (("spec", "replicatedJobs", 0, "template", "spec", "parallelism"), 3, "template.spec.parallelism"),
        (("spec", "replicatedJobs", 0, "replicas"), 2, "replicas"),
        (("spec", "replicatedJobs", 0, "template", "metadata"), {"labels": {"a": "b"}}, "template.metadata"),
    ],
)
def test_nothing_else_changes_not_even_while_it_is_suspended(
    path: tuple[str | int, ...], value: Any, place: str
) -> None:
    for was in (True, False):
        [problem] = problems(changed(path, value), was=was, becomes=was)
        assert problem.startswith(f"spec.replicatedJobs[0].{place}: ")
        assert "field is immutable" in problem


def test_replicated_jobs_do_not_come_and_go() -> None:
    more = copy.deepcopy(BEFORE)
    more["spec"]["replicatedJobs"].append(a_replicated_job("other"))
    [problem] = problems(more, was=True)
    assert problem.startswith("spec.replicatedJobs: ")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ((*POD, "spec", "containers", 0, "resources", "limits", "cpu"), "1000m"),
        ((*POD, "spec", "containers", 0, "resources", "limits", "cpu"), 1),
        ((*POD, "spec", "containers", 0, "resources", "limits", "memory"), "1024Mi"),
        ((*POD, "spec", "containers", 0, "env"), None),
        ((*POD, "spec", "volumes"), []),
        ((*POD, "metadata"), {}),
        ((*POD, "metadata"), {"labels": {}}),
        (("spec", "replicatedJobs", 0, "template", "metadata"), {"annotations": {}}),
    ],
)
def test_another_way_to_write_the_same_is_no_change(path: tuple[str | int, ...], value: Any) -> None:
    assert problems(changed(path, value)) == []


def test_another_amount_is_a_change() -> None:
    [problem] = problems(changed((*POD, "spec", "containers", 0, "resources", "limits", "cpu"), "500m"))
    assert "containers[0].resources.limits.cpu: " in problem


def test_the_manager_stays() -> None:
    [problem] = problems({**BEFORE, "spec": {**BEFORE["spec"], "managedBy": "a.io/b"}})
    assert problem == 'spec.managedBy: Invalid value: "a.io/b": field is immutable'


def test_what_has_nothing_to_do_with_jobs_may_change() -> None:
    new = {**BEFORE, "spec": {**BEFORE["spec"], "ttlSecondsAfterFinished": 5}}
    assert problems(new, was=False, becomes=True) == []


@pytest.mark.parametrize(
    ("new", "old", "expected"),
    [
        ({"a": 1}, {"a": 1}, ""),
        ({"a": {"b": [1, 2]}}, {"a": {"b": [1, 3]}}, "x.a.b[1]"),
        ({"a": [1]}, {"a": [1, 2]}, "x.a"),
        ({}, {"a": 1}, "x.a"),
    ],
)
def test_the_first_difference_is_named(new: Any, old: Any, expected: str) -> None:
    assert first_difference(new, old, "x") == expected
