"""How many pods a budget can spare."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from shoal.api.core import Pod
from shoal.api.meta import LabelSelector, LabelSelectorRequirement, now
from shoal.api.policy import PodDisruptionBudget, PodDisruptionBudgetSpec
from shoal.cluster.controllers.disruption.budget import (
    Expected,
    budget_status,
    disrupted,
    expected,
    failed_status,
)
from shoal.cluster.controllers.selections import shown
from tests.support.builders.pods import a_pod

NOW = now()


def a_guarded_pod(name: str, *, ready: bool = True, deleting: bool = False) -> Pod:
    return a_pod(name, deleted=NOW if deleting else None, conditions={"Ready": str(ready)})


def a_budget(**spec: Any) -> PodDisruptionBudget:
    return msgspec.convert({"metadata": {"name": "b", "generation": 3}, "spec": spec}, PodDisruptionBudget)


ASKED = {
    # a budget, how many pods there are, how many are wanted, and what that means
    "a number that must be there": ({"min_available": 2}, 3, 0, Expected(pods=3, healthy=2)),
    "none must be there": ({"min_available": 0}, 3, 0, Expected(pods=3, healthy=0)),
    "a share that must be there is rounded up": ({"min_available": "28%"}, 5, 10, Expected(pods=10, healthy=3)),
    "a number that may be missing": ({"max_unavailable": 1}, 2, 7, Expected(pods=7, healthy=6)),
    "a share that may be missing is rounded up": ({"max_unavailable": "30%"}, 4, 4, Expected(pods=4, healthy=2)),
    "more may be missing than there are": ({"max_unavailable": 10}, 4, 4, Expected(pods=4, healthy=0)),
    "a budget that asks for nothing": ({}, 4, 4, Expected(pods=0, healthy=0)),
}


@pytest.mark.parametrize(("spec", "pods", "scale", "asked"), ASKED.values(), ids=ASKED.keys())
def test_a_budget_asks_for(spec: dict[str, Any], pods: int, scale: int, asked: Expected) -> None:
    assert expected(PodDisruptionBudgetSpec(**spec), pods=pods, scale=scale) == asked


ALLOWED = {
    "all are well": ([a_guarded_pod("a"), a_guarded_pod("b"), a_guarded_pod("c")], Expected(pods=3, healthy=2), 3, 1),
    "one is not ready": (
        [a_guarded_pod("a"), a_guarded_pod("b"), a_guarded_pod("c", ready=False)],
        Expected(pods=3, healthy=2),
        2,
        0,
    ),
    "one is going": (
        [a_guarded_pod("a"), a_guarded_pod("b"), a_guarded_pod("c", deleting=True)],
        Expected(pods=3, healthy=1),
        2,
        1,
    ),
    "fewer than wanted": ([a_guarded_pod("a")], Expected(pods=3, healthy=2), 1, 0),
    "nobody expects any": ([a_guarded_pod("a")], Expected(pods=0, healthy=0), 1, 0),
}


@pytest.mark.parametrize(("pods", "asked", "healthy", "allowed"), ALLOWED.values(), ids=ALLOWED.keys())
def test_a_budget_spares(pods: list[Pod], asked: Expected, healthy: int, allowed: int) -> None:
    status = budget_status(a_budget(), asked, pods, {}, now=NOW)
    assert (status.current_healthy, status.disruptions_allowed) == (healthy, allowed)
    assert (status.expected_pods, status.desired_healthy) == (asked.pods, asked.healthy)
    condition = status.conditions[0]
    said = (condition.type, condition.status, condition.reason, condition.observed_generation)
    assert said == ("DisruptionAllowed", *(("True", "SufficientPods") if allowed else ("False", "InsufficientPods")), 3)


def test_a_granted_eviction_counts_until_it_is_seen_or_two_minutes_old() -> None:
    pods = [a_guarded_pod("fresh"), a_guarded_pod("old"), a_guarded_pod("going", deleting=True), a_guarded_pod("other")]
    fresh, old = NOW - timedelta(seconds=30), NOW - timedelta(seconds=130)
    granted = {"fresh": fresh, "old": old, "going": fresh, "gone": fresh}
    found = disrupted(granted, pods, now=NOW)
    assert found.pods == {"fresh": fresh}
    assert [pod.metadata.name for pod in found.stayed] == ["old"]
    assert found.look_again == fresh + timedelta(minutes=2)
    status = budget_status(a_budget(), Expected(pods=4, healthy=1), pods, found.pods, now=NOW)
    assert (status.current_healthy, status.disruptions_allowed) == (2, 1)


def test_a_budget_that_cannot_be_counted_allows_nothing() -> None:
    before = budget_status(
        a_budget(), Expected(pods=2, healthy=1), [a_guarded_pod("a"), a_guarded_pod("b")], {}, now=NOW
    )
    budget = msgspec.structs.replace(a_budget(), status=before)
    status = failed_status(budget, "jobs.batch does not implement the scale subresource", now=NOW)
    assert (status.disruptions_allowed, status.current_healthy) == (0, 2)
    assert (status.conditions[0].reason, status.conditions[0].status) == ("SyncFailed", "False")


def test_a_selector_is_shown_as_kubernetes_shows_it() -> None:
    selector = LabelSelector(
        match_labels={"b": "2", "a": "1"},
        match_expressions=[LabelSelectorRequirement(key="app", operator="In", values=["lone", "b"])],
    )
    assert shown(selector) == (
        "&LabelSelector{MatchLabels:map[string]string{a: 1,b: 2,},MatchExpressions:[]LabelSelectorRequirement{"
        "LabelSelectorRequirement{Key:app,Operator:In,Values:[lone b],},},}"
    )
