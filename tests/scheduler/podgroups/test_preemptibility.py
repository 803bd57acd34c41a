"""Whether a gang may be evicted for others."""

from __future__ import annotations

import pytest

from shoal.api.scheduling_k8s_io import PriorityClass
from shoal.api.scheduling_run_ai import PodGroupSpec
from shoal.scheduler.podgroups.preemptibility import is_preemptible, priority_of


@pytest.mark.parametrize(
    ("said", "priority", "may_be_evicted"),
    [
        ("", 50, True),
        ("", 99, True),
        ("", 100, False),
        ("", 125, False),
        ("preemptible", 125, True),
        ("non-preemptible", 50, False),
        ("perhaps", 125, False),
    ],
)
def test_what_a_gang_says_goes_before_its_priority(said: str, priority: int, may_be_evicted: bool) -> None:
    assert is_preemptible(PodGroupSpec(preemptibility=said), priority) is may_be_evicted


LOW, DEFAULT, HIGHER = (
    PriorityClass(value=10),
    PriorityClass(value=70, global_default=True),
    PriorityClass(value=90, global_default=True),
)


@pytest.mark.parametrize(
    ("own", "classes", "priority"),
    [
        pytest.param(LOW, [LOW, DEFAULT], 10, id="its own class"),
        pytest.param(None, [LOW, DEFAULT], 70, id="the default class"),
        pytest.param(None, [HIGHER, DEFAULT], 70, id="the lowest of several"),
        pytest.param(None, [LOW], 50, id="no default class"),
    ],
)
def test_a_priority_is_that_of_a_class(own: PriorityClass | None, classes: list[PriorityClass], priority: int) -> None:
    assert priority_of(own, classes) == priority
