"""What a ClusterTopologyBinding may say."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from shoal.api.grove import ClusterTopologyBinding
from shoal.gangs.admission.topology_bindings import binding_problems
from shoal.gangs.admission.webhooks import TOPOLOGY_SCHEDULERS


def a_level(domain: str, key: str = "") -> dict[str, str]:
    return {"domain": domain, "key": key or f"example.com/{domain}"}


def said_of(*levels: dict[str, str], bindings: tuple[tuple[str, str], ...] = ()) -> list[str]:
    body: dict[str, Any] = {
        "metadata": {"name": "racks"},
        "spec": {
            "levels": list(levels),
            "schedulerTopologyBindings": [
                {"schedulerName": scheduler, "topologyReference": reference} for scheduler, reference in bindings
            ],
        },
    }
    binding = msgspec.convert(body, ClusterTopologyBinding)
    return [str(problem) for problem in binding_problems(binding, TOPOLOGY_SCHEDULERS)]


LEVELS: dict[str, tuple[tuple[dict[str, str], ...], list[str]]] = {
    "none": ((), ["spec.levels: Required value: a topology has at least one level"]),
    "a domain twice": (
        (a_level("rack"), a_level("host"), a_level("rack", "example.com/other")),
        ['spec.levels[2].domain: Duplicate value: "rack": name each level differently'],
    ),
    "a key twice": (
        (a_level("block", "example.com/rack"), a_level("rack")),
        ['spec.levels[1].key: Duplicate value: "example.com/rack": two levels cannot go by the same node label'],
    ),
}


@pytest.mark.parametrize(("levels", "expected"), LEVELS.values(), ids=LEVELS.keys())
def test_each_level_is_one_of_its_own(levels: tuple[dict[str, str], ...], expected: list[str]) -> None:
    assert said_of(*levels) == expected


SCHEDULERS: dict[str, tuple[tuple[tuple[str, str], ...], list[str]]] = {
    "no name": (
        (("", "racks"),),
        ["spec.schedulerTopologyBindings[0].schedulerName: Required value: name the scheduler whose topology is meant"],
    ),
    "twice": (
        (("kai-scheduler", "a"), ("kai-scheduler", "b")),
        ['spec.schedulerTopologyBindings[1].schedulerName: Duplicate value: "kai-scheduler": name each scheduler once'],
    ),
    "one without topologies": (
        (("default-scheduler", "a"),),
        [
            'spec.schedulerTopologyBindings[0].schedulerName: Unsupported value: "default-scheduler": '
            'supported values: "kai-scheduler"'
        ],
    ),
}


@pytest.mark.parametrize(("bindings", "expected"), SCHEDULERS.values(), ids=SCHEDULERS.keys())
def test_each_scheduler_has_topologies_and_is_named_once(
    bindings: tuple[tuple[str, str], ...], expected: list[str]
) -> None:
    assert said_of(a_level("rack"), bindings=bindings) == expected


def test_a_sound_binding_passes() -> None:
    assert said_of(a_level("block"), a_level("rack"), bindings=(("kai-scheduler", "theirs"),)) == []
