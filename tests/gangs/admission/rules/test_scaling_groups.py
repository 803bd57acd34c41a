"""Which cliques are in scaling groups, and how many replicas these have."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gangs.admission.verdicts import CLIQUE, GONE, GROUP, changed, problems, sound

CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "no cliques": (
        {f"{GROUP}[0].cliqueNames": []},
        [f"{GROUP}[0].cliqueNames: Required value: a scaling group has at least one clique"],
    ),
    "a clique that is not there": (
        {f"{GROUP}[0].cliqueNames": ["back", "side"]},
        [f'{GROUP}[0].cliqueNames[1]: Not found: "side": name a clique of this set'],
    ),
    "a clique twice": (
        {f"{GROUP}[0].cliqueNames": ["back", "back"]},
        [f'{GROUP}[0].cliqueNames[1]: Duplicate value: "back": the clique is in scaling group "pair" already'],
    ),
    "a clique in two groups": (
        {GROUP: [{"name": "pair", "cliqueNames": ["back"]}, {"name": "other", "cliqueNames": ["front", "back"]}]},
        [f'{GROUP}[1].cliqueNames[1]: Duplicate value: "back": the clique is in scaling group "pair" already'],
    ),
    "no replicas": (
        {f"{GROUP}[0].replicas": 0},
        [
            f"{GROUP}[0].replicas: Invalid value: 0: must be greater than 0",
            f"{GROUP}[0].minAvailable: Invalid value: 1: must not be greater than replicas, which is 0",
        ],
    ),
    "no minimum": (
        {f"{GROUP}[0].minAvailable": 0},
        [f"{GROUP}[0].minAvailable: Invalid value: 0: must be greater than 0"],
    ),
    "a minimum above the replicas": (
        {f"{GROUP}[0].minAvailable": 3},
        [f"{GROUP}[0].minAvailable: Invalid value: 3: must not be greater than replicas, which is 2"],
    ),
    "a member that is scaled by itself": (
        {f"{CLIQUE}[1].spec.autoScalingConfig": {"minReplicas": 1, "maxReplicas": 4}},
        [
            f'{CLIQUE}[1].spec.autoScalingConfig: Forbidden: clique "back" is scaled by scaling group "pair": '
            f"use {GROUP}[0].scaleConfig"
        ],
    ),
}


@pytest.mark.parametrize(("change", "expected"), CASES.values(), ids=CASES.keys())
def test_a_group_that_cannot_be_is_refused(change: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(sound(), change)) == expected


def test_one_replica_is_meant_where_nothing_is_said() -> None:
    assert problems(changed(sound(), {f"{GROUP}[0].replicas": GONE, f"{GROUP}[0].minAvailable": GONE})) == []
