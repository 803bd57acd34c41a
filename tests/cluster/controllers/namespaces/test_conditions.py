"""What a namespace says of its own deletion."""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta

import pytest

from shoal.api.core import Pod, PodSpec
from shoal.api.core.config import NamespaceCondition
from shoal.api.core.pods import PodStatus
from shoal.api.meta import PartialObject, Resource
from shoal.cluster.controllers.discovery import Discovered
from shoal.cluster.controllers.namespaces.conditions import (
    conditions_after,
    content_problem,
    discovery_problem,
    remaining_problems,
)
from shoal.cluster.controllers.namespaces.content import Left
from shoal.cluster.controllers.namespaces.controller import grace_left
from shoal.kube import Key

NOW = datetime(2026, 1, 1, tzinfo=UTC)
MAPS = Resource(type=PartialObject, group="", version="v1", kind="ConfigMap", plural="configmaps")
JOBS = Resource(type=PartialObject, group="batch", version="v1", kind="Job", plural="jobs")


def left(resource: Resource[PartialObject], count: int, problem: str = "", **finalizers: int) -> Left:
    objects = {str(number): Key("team", str(number)) for number in range(count)}
    return Left(resource=resource, objects=objects, problem=problem, finalizers=Counter(finalizers))


def test_all_is_well_where_nothing_is_left() -> None:
    said = [(one.type, one.status, one.reason, one.message) for one in conditions_after([], {}, NOW)]
    assert said == [
        (
            "NamespaceDeletionDiscoveryFailure",
            "False",
            "ResourcesDiscovered",
            "All resources successfully discovered",
        ),
        (
            "NamespaceDeletionGroupVersionParsingFailure",
            "False",
            "ParsedGroupVersions",
            "All legacy kube types successfully parsed",
        ),
        (
            "NamespaceDeletionContentFailure",
            "False",
            "ContentDeleted",
            "All content successfully deleted, may be waiting on finalization",
        ),
        ("NamespaceContentRemaining", "False", "ContentRemoved", "All content successfully removed"),
        (
            "NamespaceFinalizersRemaining",
            "False",
            "ContentHasNoFinalizers",
            "All content-preserving finalizers finished",
        ),
    ]


def test_what_remains_is_counted_by_kind_and_by_finalizer() -> None:
    remains = [left(MAPS, 2, a=2, b=1), left(JOBS, 1, a=1)]
    assert remaining_problems(remains) == {
        "NamespaceContentRemaining": (
            "SomeResourcesRemain",
            "Some resources are remaining: configmaps. has 2 resource instances, jobs.batch has 1 resource instances",
        ),
        "NamespaceFinalizersRemaining": (
            "SomeFinalizersRemain",
            "Some content in the namespace has finalizers remaining: "
            "a in 3 resource instances, b in 1 resource instances",
        ),
    }
    assert remaining_problems([left(MAPS, 0)]) == {}


def test_what_failed_is_told_in_order() -> None:
    assert content_problem([left(MAPS, 1, "later"), left(JOBS, 0, "first"), left(JOBS, 0)]) == {
        "NamespaceDeletionContentFailure": (
            "ContentDeletionFailed",
            "Failed to delete all resource types, 2 remaining: first, later",
        )
    }
    stale = Discovered(kinds=(), failures={"x/v1": "stale GroupVersion discovery: x/v1"})
    assert discovery_problem(stale) == {
        "NamespaceDeletionDiscoveryFailure": (
            "DiscoveryFailed",
            "Discovery failed for some groups, 1 failing: unable to retrieve the complete list of server APIs: "
            "x/v1: stale GroupVersion discovery: x/v1",
        )
    }


def test_a_conditions_time_moves_with_its_status_alone() -> None:
    before = [NamespaceCondition(type="Other", status="True"), *conditions_after([], {}, NOW)]
    problems = {"NamespaceContentRemaining": ("SomeResourcesRemain", "one")}
    later, latest = NOW + timedelta(hours=1), NOW + timedelta(hours=2)
    after = conditions_after(before, problems, later)
    assert [one.last_transition_time for one in after] == [None, NOW, NOW, NOW, later, NOW]
    again = conditions_after(after, {"NamespaceContentRemaining": ("SomeResourcesRemain", "two")}, latest)
    assert [one.last_transition_time for one in again] == [None, NOW, NOW, NOW, later, NOW]
    assert again[4].message == "two"
    assert conditions_after(after, problems, latest) == after


@pytest.mark.parametrize(
    ("graces", "phase", "age", "expected"),
    [
        pytest.param([30, 60], "Running", 10, 60, id="the longest counts"),
        pytest.param([30], "Running", 30, 0, id="the time has passed"),
        pytest.param([30], "Succeeded", 0, 0, id="what has ended needs none"),
        pytest.param([None], "Running", 0, 0, id="none was given"),
        pytest.param([], "Running", 0, 0, id="no pods"),
    ],
)
def test_pods_have_their_grace(graces: list[int | None], phase: str, age: int, expected: int) -> None:
    pods = [
        Pod(spec=PodSpec(termination_grace_period_seconds=grace), status=PodStatus(phase=phase)) for grace in graces
    ]
    assert grace_left(pods, NOW - timedelta(seconds=age), NOW) == expected
