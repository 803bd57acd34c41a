"""What a clique may not say of its pods."""

from __future__ import annotations

from typing import Any

import pytest

from tests.gangs.admission.verdicts import CLIQUE, changed, problems, sound

POD = f"{CLIQUE}[0].spec.podSpec"

ENVIRONMENT: dict[str, tuple[str, list[dict[str, str]], list[str]]] = {
    "a variable without a name": ("containers", [{"name": ""}], ["[0].name: Required value: name the variable"]),
    "a name with an equals sign": (
        "containers",
        [{"name": "A"}, {"name": "B=C"}],
        ["[1].name: Invalid value: \"B=C\": must consist of printable ASCII characters other than '='"],
    ),
    "a variable twice": (
        "containers",
        [{"name": "A"}, {"name": "B"}, {"name": "A"}],
        ['[2].name: Duplicate value: "A": set each variable once'],
    ),
    "a variable twice in an init container": (
        "initContainers",
        [{"name": "A"}, {"name": "A"}],
        ['[1].name: Duplicate value: "A": set each variable once'],
    ),
}


@pytest.mark.parametrize(("kind", "variables", "expected"), ENVIRONMENT.values(), ids=ENVIRONMENT.keys())
def test_a_bad_variable_is_refused(kind: str, variables: list[dict[str, str]], expected: list[str]) -> None:
    body = changed(sound(), {f"{POD}.{kind}": [{"name": "main", "image": "busybox", "env": variables}]})
    assert problems(body) == [f"{POD}.{kind}[0].env{problem}" for problem in expected]


def test_two_containers_may_have_a_variable_each() -> None:
    containers = [{"name": name, "image": "busybox", "env": [{"name": "A"}]} for name in ("one", "two")]
    assert problems(changed(sound(), {f"{POD}.containers": containers})) == []


PLACEMENT: dict[str, tuple[str, Any, str]] = {
    "spread": (
        f"{POD}.topologySpreadConstraints",
        [{"maxSkew": 1}],
        "Forbidden: pods of a gang are placed together: use topologyConstraint, or leave this out",
    ),
    "a node": (
        f"{POD}.nodeName",
        "node-1",
        "Forbidden: a scheduler places the pods: use nodeSelector or affinity, or leave this out",
    ),
}


@pytest.mark.parametrize(("path", "value", "expected"), PLACEMENT.values(), ids=PLACEMENT.keys())
def test_a_new_set_does_not_say_where_pods_go(path: str, value: Any, expected: str) -> None:
    assert problems(changed(sound(), {path: value})) == [f"{path}: {expected}"]


@pytest.mark.parametrize(("path", "value", "_"), PLACEMENT.values(), ids=PLACEMENT.keys())
def test_that_is_asked_of_new_sets_alone(path: str, value: Any, _: str) -> None:
    assert problems(changed(sound(), {path: value}), old=sound()) == []
