"""The bounds of autoscaling, of cliques and of scaling groups."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gangs.admission.verdicts import CLIQUE, GROUP, changed, problems, sound

OF_CLIQUE = f"{CLIQUE}[0].spec.autoScalingConfig"  # 2 replicas, all of them needed
OF_GROUP = f"{GROUP}[0].scaleConfig"  # 2 replicas, one needed

CASES: dict[str, tuple[str, dict[str, Any], list[str]]] = {
    "a clique below its minimum": (
        OF_CLIQUE,
        {"minReplicas": 1, "maxReplicas": 4},
        [f"{OF_CLIQUE}.minReplicas: Invalid value: 1: must not be less than minAvailable, which is 2"],
    ),
    "a clique's bounds the wrong way round": (
        OF_CLIQUE,
        {"minReplicas": 3, "maxReplicas": 2},
        [f"{OF_CLIQUE}.maxReplicas: Invalid value: 2: must not be less than minReplicas, which is 3"],
    ),
    "a clique with more replicas than it may have": (
        OF_CLIQUE,
        {"minReplicas": 2, "maxReplicas": 1},
        [
            f"{OF_CLIQUE}.maxReplicas: Invalid value: 1: must not be less than minReplicas, which is 2",
            f"{OF_CLIQUE}.maxReplicas: Invalid value: 1: must not be less than replicas, which is 2",
        ],
    ),
    "a group below its minimum": (
        OF_GROUP,
        {"minReplicas": 0, "maxReplicas": 4},
        [f"{OF_GROUP}.minReplicas: Invalid value: 0: must not be less than minAvailable, which is 1"],
    ),
    "a group's bounds the wrong way round": (
        OF_GROUP,
        {"minReplicas": 3, "maxReplicas": 2},
        [f"{OF_GROUP}.maxReplicas: Invalid value: 2: must not be less than minReplicas, which is 3"],
    ),
    "a group with more replicas than it may have": (
        OF_GROUP,
        {"minReplicas": 1, "maxReplicas": 1},
        [f"{OF_GROUP}.maxReplicas: Invalid value: 1: must not be less than replicas, which is 2"],
    ),
}


@pytest.mark.parametrize(("path", "scaling", "expected"), CASES.values(), ids=CASES.keys())
def test_bounds_that_contradict_are_refused(path: str, scaling: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(sound(), {path: scaling})) == expected


@pytest.mark.parametrize("scaling", [{"maxReplicas": 2}, {"minReplicas": 2, "maxReplicas": 9}])
@pytest.mark.parametrize("path", [OF_CLIQUE, OF_GROUP])
def test_bounds_that_fit_pass(path: str, scaling: dict[str, Any]) -> None:
    assert problems(changed(sound(), {path: scaling})) == []
