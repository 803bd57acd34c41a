"""Who may start after whom."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from tests.gangs.admission.verdicts import problems
from tests.gangs.builders import a_clique_template, a_set

CASES: dict[str, tuple[Mapping[str, list[str]], list[str]]] = {
    "a parent that is not there": (
        {"a": [], "b": ["c"]},
        ['spec.template.cliques[1].spec.startsAfter[0]: Not found: "c": name a clique of this set'],
    ),
    "an empty parent": (
        {"a": [], "b": [""]},
        ['spec.template.cliques[1].spec.startsAfter[0]: Not found: "": name a clique of this set'],
    ),
    "itself": (
        {"a": ["a"], "b": []},
        ['spec.template.cliques[0].spec.startsAfter[0]: Invalid value: "a": a clique cannot start after itself'],
    ),
    "a parent twice": (
        {"a": [], "b": ["a", "a"]},
        ['spec.template.cliques[1].spec.startsAfter[1]: Duplicate value: "a": name each clique once'],
    ),
    "a circle of two": (
        {"a": ["b"], "b": ["a"]},
        [
            'spec.template.cliques[0].spec.startsAfter: Invalid value: ["b"]: cliques wait for each other: '
            '"a" after "b" after "a"'
        ],
    ),
    "a circle of three behind one that is well": (
        {"first": [], "c": ["b", "first"], "a": ["c"], "b": ["a"]},
        [
            'spec.template.cliques[1].spec.startsAfter: Invalid value: ["b","first"]: cliques wait for each other: '
            '"c" after "b" after "a" after "c"'
        ],
    ),
}


def ordered(parents: Mapping[str, list[str]], startup: str = "CliqueStartupTypeExplicit") -> list[str]:
    cliques = [a_clique_template(name, starts_after=after) for name, after in parents.items()]
    return problems(a_set("web", *cliques, cliqueStartupType=startup))


@pytest.mark.parametrize(("parents", "expected"), CASES.values(), ids=CASES.keys())
def test_an_order_that_cannot_be_kept_is_refused(parents: Mapping[str, list[str]], expected: list[str]) -> None:
    assert ordered(parents) == expected


def test_a_diamond_is_no_circle() -> None:
    assert ordered({"d": ["b", "c"], "b": ["a"], "c": ["a"], "a": []}) == []


def test_a_long_chain_is_followed_to_its_end() -> None:
    chain = {f"c{index}": [f"c{index + 1}"] for index in range(3000)} | {"c3000": []}
    assert ordered(chain) == []
    [problem] = ordered(chain | {"c3000": ["c0"]})
    assert "cliques wait for each other" in problem


@pytest.mark.parametrize("startup", ["CliqueStartupTypeAnyOrder", "CliqueStartupTypeInOrder"])
def test_parents_count_only_where_the_order_is_explicit(startup: str) -> None:
    assert ordered({"a": ["b"], "b": ["a"]}, startup) == []
