"""How quickly a size may change."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from shoal.api.autoscaling import Behavior, ScalingPolicy, ScalingRules
from shoal.cluster.controllers.autoscaling.limits import (
    History,
    Normalized,
    growth_limit,
    normalized,
    shrink_limit,
)

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def ago(seconds: float) -> datetime:
    return NOW - timedelta(seconds=seconds)


def decide(wanted: int, current: int, history: History | None = None, **chosen: Any) -> Normalized:
    return normalized(
        wanted,
        current=current,
        history=history or History(),
        downscale_window=timedelta(minutes=5),
        now=NOW,
        **{"minimum": 1, "maximum": 100, "behavior": None, **chosen},
    )


def rules(*policies: tuple[str, int, int], select: str = "Max", window: int | None = 0) -> ScalingRules:
    return ScalingRules(
        stabilization_window_seconds=window,
        select_policy=select,
        policies=[ScalingPolicy(type=kind, value=value, period_seconds=period) for kind, value, period in policies],
    )


BOUNDS = {
    "as wanted": (decide(5, 4), 5, False, "DesiredWithinRange"),
    "no more than the maximum": (decide(9, 5, maximum=7), 7, True, "TooManyReplicas"),
    "no fewer than the minimum": (decide(1, 5, minimum=3), 3, True, "TooFewReplicas"),
    "at most doubled": (decide(90, 10), 20, True, "ScaleUpLimit"),
    "but four at least": (decide(90, 1), 4, True, "ScaleUpLimit"),
}


@pytest.mark.parametrize(("found", "size", "limited", "reason"), BOUNDS.values(), ids=BOUNDS.keys())
def test_a_size_has_bounds(found: Normalized, size: int, limited: bool, reason: str) -> None:
    assert (found.replicas, found.is_limited, found.limit.reason) == (size, limited, reason)


def test_a_recent_wish_for_more_keeps_a_size_up() -> None:
    history = History(wishes=[(8, ago(200)), (12, ago(400))])
    found = decide(2, 10, history)
    assert (found.replicas, found.able.reason) == (8, "ScaleDownStabilized")
    assert decide(2, 10, History(wishes=[(8, ago(301))])).able.reason == "ReadyForNewScale"


def test_the_first_size_counts_as_a_wish() -> None:
    history = History()
    history.begin(10, NOW)
    assert decide(2, 10, history).replicas == 10


def test_windows_hold_both_directions() -> None:
    behavior = Behavior(scale_up=rules(("Percent", 900, 15), window=60), scale_down=rules(("Percent", 100, 15)))
    found = decide(10, 3, History(wishes=[(5, ago(30)), (2, ago(90))]), behavior=behavior)
    assert (found.replicas, found.able.reason) == (5, "ScaleUpStabilized")
    assert decide(1, 3, History(wishes=[(9, ago(1))]), behavior=behavior).replicas == 1  # no window downwards
    patient = Behavior(scale_up=rules(("Pods", 4, 15)), scale_down=rules(("Percent", 100, 15), window=None))
    assert decide(1, 9, History(wishes=[(7, ago(200))]), behavior=patient).replicas == 7  # the default window


GROWTH = {
    "by a number": (rules(("Pods", 4, 60)), History(), 14),
    "by a share, rounded up": (rules(("Percent", 15, 60)), History(), 12),
    "the larger of two": (rules(("Pods", 4, 60), ("Percent", 100, 60)), History(), 20),
    "the smaller of two": (rules(("Pods", 4, 60), ("Percent", 100, 60), select="Min"), History(), 14),
    "what was added lately counts": (rules(("Pods", 4, 60)), History(added=[(3, ago(30)), (5, ago(90))]), 11),
    "what was removed lately is given back": (rules(("Pods", 4, 60)), History(removed=[(2, ago(30))]), 16),
    "not at all": (rules(("Pods", 4, 60), select="Disabled"), History(), 10),
}


@pytest.mark.parametrize(("policies", "history", "limit"), GROWTH.values(), ids=GROWTH.keys())
def test_policies_pace_growth(policies: ScalingRules, history: History, limit: int) -> None:
    assert growth_limit(10, policies, history, NOW) == limit


SHRINKING = {
    "by a number": (rules(("Pods", 4, 60)), History(), 6),
    "by a share, rounded down": (rules(("Percent", 15, 60)), History(), 8),
    "the larger of two": (rules(("Pods", 4, 60), ("Percent", 50, 60)), History(), 5),
    "the smaller of two": (rules(("Pods", 4, 60), ("Percent", 50, 60), select="Min"), History(), 6),
    "what was removed lately counts": (rules(("Pods", 4, 60)), History(removed=[(3, ago(30))]), 9),
    "not at all": (rules(("Pods", 4, 60), select="Disabled"), History(), 10),
}


@pytest.mark.parametrize(("policies", "history", "limit"), SHRINKING.values(), ids=SHRINKING.keys())
def test_policies_pace_shrinking(policies: ScalingRules, history: History, limit: int) -> None:
    assert shrink_limit(10, policies, history, NOW) == limit


def test_pacing_says_what_limits() -> None:
    behavior = Behavior(scale_up=rules(("Pods", 2, 60)), scale_down=rules(("Pods", 2, 60)))
    grown = decide(50, 10, behavior=behavior)
    assert (grown.replicas, grown.limit.reason) == (12, "ScaleUpLimit")
    shrunk = decide(1, 10, behavior=behavior)
    assert (shrunk.replicas, shrunk.limit.reason) == (8, "ScaleDownLimit")
    assert decide(50, 10, behavior=behavior, maximum=11).limit.reason == "TooManyReplicas"
    assert decide(1, 10, behavior=behavior, minimum=9).limit.reason == "TooFewReplicas"
