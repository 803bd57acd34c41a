"""What a set says of itself and of its cliques' pods."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.gangs.settings import GangSettings
from tests.gangs.admission.verdicts import CLIQUE, GONE, changed, problems, sound

CASES: dict[str, tuple[dict[str, Any], list[str]]] = {
    "fewer than no replicas": ({"spec.replicas": -1}, ["spec.replicas: Invalid value: -1: must be at least 0"]),
    "no start type": (
        {"spec.template.cliqueStartupType": ""},
        [
            "spec.template.cliqueStartupType: Required value: say one of CliqueStartupTypeAnyOrder, "
            "CliqueStartupTypeInOrder, CliqueStartupTypeExplicit"
        ],
    ),
    "an unknown start type": (
        {"spec.template.cliqueStartupType": "Backwards"},
        [
            'spec.template.cliqueStartupType: Unsupported value: "Backwards": supported values: '
            '"CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit"'
        ],
    ),
    "no termination delay": (
        {"spec.template.terminationDelay": GONE},
        ["spec.template.terminationDelay: Required value: say how long a gang may be broken, as in 4h"],
    ),
    "no time at all": (
        {"spec.template.terminationDelay": "0s"},
        ['spec.template.terminationDelay: Invalid value: "0s": must be greater than 0'],
    ),
    "a negative delay": (
        {"spec.template.terminationDelay": "-1m"},
        ['spec.template.terminationDelay: Invalid value: "-1m": must be greater than 0'],
    ),
    "a delay that is none": (
        {"spec.template.terminationDelay": "4 hours"},
        [
            "spec.template.terminationDelay: Invalid value: \"4 hours\": duration '4 hours' is not valid: "
            "' hours' is no unit; the units are h, m, s, ms, us and ns"
        ],
    ),
    "no clique": (
        {CLIQUE: [], "spec.template.podCliqueScalingGroups": []},
        ["spec.template.cliques: Required value: a set has at least one clique"],
    ),
    "a clique of no pods": (
        {f"{CLIQUE}[0].spec.replicas": 0, f"{CLIQUE}[0].spec.minAvailable": 0},
        [
            "spec.template.cliques[0].spec.replicas: Invalid value: 0: must be greater than 0",
            "spec.template.cliques[0].spec.minAvailable: Invalid value: 0: must be greater than 0",
        ],
    ),
    "no minimum": (
        {f"{CLIQUE}[0].spec.minAvailable": GONE},
        ["spec.template.cliques[0].spec.minAvailable: Required value: say how many pods must start together"],
    ),
    "a negative minimum": (
        {f"{CLIQUE}[0].spec.minAvailable": -1},
        ["spec.template.cliques[0].spec.minAvailable: Invalid value: -1: must be greater than 0"],
    ),
    "a minimum above the replicas": (
        {f"{CLIQUE}[0].spec.minAvailable": 3},
        ["spec.template.cliques[0].spec.minAvailable: Invalid value: 3: must not be greater than replicas, which is 2"],
    ),
    "two schedulers": (
        {
            f"{CLIQUE}[0].spec.podSpec.schedulerName": "kai-scheduler",
            f"{CLIQUE}[1].spec.podSpec.schedulerName": "volcano",
        },
        [
            'spec.template.cliques[1].spec.podSpec.schedulerName: Invalid value: "volcano": clique "back" goes to '
            '"volcano" and clique "front" to "kai-scheduler": name one scheduler for all'
        ],
    ),
    "one scheduler and the default": (
        {f"{CLIQUE}[0].spec.podSpec.schedulerName": "kai-scheduler"},
        [
            'spec.template.cliques[1].spec.podSpec.schedulerName: Invalid value: "": clique "back" goes to '
            '"default-scheduler" and clique "front" to "kai-scheduler": name one scheduler for all'
        ],
    ),
}


@pytest.mark.parametrize(("change", "expected"), CASES.values(), ids=CASES.keys())
def test_a_bad_number_or_word_is_refused(change: dict[str, Any], expected: list[str]) -> None:
    assert problems(changed(sound(), change)) == expected


def test_a_set_may_have_no_replicas() -> None:
    assert problems(changed(sound(), {"spec.replicas": 0})) == []


def test_an_empty_scheduler_is_the_default_one() -> None:
    mixed = changed(sound(), {f"{CLIQUE}[0].spec.podSpec.schedulerName": "kai-scheduler"})
    assert problems(mixed, settings=GangSettings(default_scheduler="kai-scheduler")) == []


def test_a_scheduler_that_nobody_knows_is_let_through() -> None:
    names = {f"{CLIQUE}[{index}].spec.podSpec.schedulerName": "my-own" for index in (0, 1)}
    assert problems(changed(sound(), names)) == []
