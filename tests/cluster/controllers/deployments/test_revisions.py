from __future__ import annotations

import copy
from datetime import UTC, datetime
from typing import Any

import msgspec
import pytest

from shoal.api.apps import DESIRED_REPLICAS, MAX_REPLICAS, REVISION, REVISION_HISTORY, ReplicaSet
from shoal.cluster.controllers.deployments.revisions import (
    LONGEST_HISTORY,
    annotations_of_new,
    forgettable,
    next_revision,
    same_template,
    set_name,
    versions,
    wanted_set,
)
from tests.cluster.controllers.deployments.builders import TEMPLATE, a_deployment, a_set


def changed(**fields: Any) -> dict[str, Any]:
    template = copy.deepcopy(TEMPLATE)
    template["spec"] |= fields.pop("spec", {})
    template["metadata"] |= fields
    return template


@pytest.mark.parametrize(
    ("template", "is_same"),
    [
        pytest.param(TEMPLATE, True, id="itself"),
        pytest.param(changed(labels={"app": "web", "pod-template-hash": "x"}), True, id="with a hash"),
        pytest.param(changed(creationTimestamp=None, annotations={}), True, id="with what means nothing"),
        pytest.param(changed(labels={"app": "web", "tier": "a"}), False, id="with another label"),
        pytest.param(changed(annotations={"restartedAt": "now"}), False, id="with an annotation"),
        pytest.param(changed(spec={"containers": [{"image": "b"}]}), False, id="with another image"),
    ],
)
def test_a_template_is_the_same_but_for_its_hash(template: dict[str, Any], is_same: bool) -> None:
    hashed = changed(labels={"app": "web", "pod-template-hash": "y"})
    assert same_template(template, TEMPLATE) is same_template(template, hashed) is is_same


def test_the_set_of_the_present_template_is_the_oldest_that_has_it() -> None:
    other = changed(spec={"containers": [{"image": "b"}]})
    sets = [
        a_set(1, name="young", age=1),
        a_set(1, name="other", age=3, template=other),
        a_set(1, name="old", age=2),
    ]
    new, old = versions(a_deployment(), sets)
    assert new is sets[2]
    assert [one.metadata.name for one in old] == ["other", "young"]


def test_there_is_no_set_of_a_template_that_never_was() -> None:
    new, old = versions(a_deployment(template=changed(spec={"containers": []})), [a_set(1)])
    assert new is None
    assert len(old) == 1


@pytest.mark.parametrize(
    ("revisions", "expected"),
    [([], 1), (["1", "4", "2"], 5), (["1", "many"], 2), ([None], 1)],
    ids=["the first", "after the latest", "one that is no number", "one that says none"],
)
def test_a_new_version_comes_after_all_others(revisions: list[str | None], expected: int) -> None:
    assert next_revision([a_set(0, revision=revision) for revision in revisions]) == expected


@pytest.mark.parametrize(
    ("present", "revision", "expected"),
    [
        pytest.param({}, 1, {REVISION: "1"}, id="a first revision"),
        pytest.param({REVISION: "2"}, 2, {REVISION: "2"}, id="as it was"),
        pytest.param({REVISION: "5"}, 2, {REVISION: "5"}, id="later ones have been forgotten"),
        pytest.param({REVISION: "1"}, 3, {REVISION: "3", REVISION_HISTORY: "1"}, id="rolled back to"),
        pytest.param(
            {REVISION: "3", REVISION_HISTORY: "1"}, 5, {REVISION: "5", REVISION_HISTORY: "1,3"}, id="and once more"
        ),
        pytest.param({REVISION: "many"}, 5, {REVISION: "many"}, id="no number, and left alone"),
    ],
)
def test_a_set_has_its_place_in_the_history(present: dict[str, str], revision: int, expected: dict[str, str]) -> None:
    assert annotations_of_new(a_deployment(), present, revision) == expected


def test_a_set_forgets_its_first_places_where_they_become_too_many() -> None:
    history = ",".join(str(number) for number in range(100, 600))
    kept = annotations_of_new(a_deployment(), {REVISION: "900", REVISION_HISTORY: history}, 901)[REVISION_HISTORY]
    assert len(kept) <= LONGEST_HISTORY
    assert kept.endswith(",599,900")


def test_a_set_takes_over_what_the_deployment_is_annotated_with_and_keeps_its_own() -> None:
    deployment = a_deployment(
        annotations={
            "team": "a",
            REVISION: "7",
            "kubectl.kubernetes.io/last-applied-configuration": "{}",
            "deprecated.deployment.rollback.to": "1",
        }
    )
    present = {REVISION: "1", "own": "x", "team": "b"}
    assert annotations_of_new(deployment, present, 1) == {REVISION: "1", "own": "x", "team": "a"}


def test_the_set_of_a_new_template_is_made_from_the_deployment() -> None:
    deployment = a_deployment(4, surge="25%", annotations={"team": "a"}, min_ready_seconds=5)
    wanted = wanted_set(deployment, revision=2, replicas=1)
    digest = wanted["metadata"]["labels"]["pod-template-hash"]
    labels = {"app": "web", "pod-template-hash": digest}
    assert wanted == {
        "metadata": {
            "name": f"web-{digest}",
            "namespace": "a",
            "labels": labels,
            "annotations": {"team": "a", REVISION: "2", DESIRED_REPLICAS: "4", MAX_REPLICAS: "5"},
        },
        "spec": {
            "replicas": 1,
            "minReadySeconds": 5,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": TEMPLATE["spec"]},
        },
    }


def test_the_hash_is_the_same_in_every_process_and_another_after_a_collision() -> None:
    deployment = a_deployment()
    collided = msgspec.structs.replace(deployment, status=msgspec.structs.replace(deployment.status, collision_count=1))
    names = [wanted_set(one, revision=1, replicas=1)["metadata"]["name"] for one in (deployment, collided)]
    assert names[0] == "web-5cccf6dfbc"
    assert names[1] != names[0]


@pytest.mark.parametrize(
    ("name", "expected"),
    [("web", "web-abc"), ("x" * 249, "x" * 249 + "-abc"), ("x" * 253, "x" * 249 + "-abc")],
    ids=["short", "just fits", "cut"],
)
def test_the_name_of_a_set_fits(name: str, expected: str) -> None:
    assert set_name(name, "abc") == expected


def emptied(name: str, revision: str, **options: Any) -> ReplicaSet:
    return a_set(0, name=name, revision=revision, **options)


@pytest.mark.parametrize(
    ("old", "limit", "expected"),
    [
        pytest.param([emptied("a", "2"), emptied("b", "1"), emptied("c", "3")], 1, ["b", "a"], id="the earliest"),
        pytest.param(
            [emptied("a", "1"), a_set(0, name="b", actual=1), a_set(1, name="c", actual=0), a_set(1, name="d")],
            0,
            ["a"],
            id="only empty ones",
        ),
        pytest.param([emptied("a", "1", age=1), emptied("b", "1", age=2)], 0, ["b", "a"], id="by age among equals"),
        pytest.param([emptied("a", "1"), emptied("b", "2")], 2, [], id="no more than are kept"),
        pytest.param([emptied("a", "1"), emptied("b", "2")], None, [], id="all are kept"),
    ],
)
def test_old_versions_are_forgotten(old: list[ReplicaSet], limit: int | None, expected: list[str]) -> None:
    assert [one.metadata.name for one in forgettable(old, limit)] == expected


def test_a_version_that_is_going_or_has_not_been_looked_at_is_left_alone() -> None:
    going = emptied("going", "1")
    going = msgspec.structs.replace(
        going, metadata=msgspec.structs.replace(going.metadata, deletion_timestamp=datetime(2026, 1, 1, tzinfo=UTC))
    )
    unseen = emptied("unseen", "2")
    unseen = msgspec.structs.replace(unseen, metadata=msgspec.structs.replace(unseen.metadata, generation=2))
    assert forgettable([going, unseen], 0) == []
