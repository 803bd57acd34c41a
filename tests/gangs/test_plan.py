"""What a replica of a set is made of: names, gangs, and who starts after whom."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.grove import names
from shoal.gangs import plan
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set, typed

IN_ORDER, EXPLICIT = "CliqueStartupTypeInOrder", "CliqueStartupTypeExplicit"


def inference(**template: Any) -> Any:
    """A front end alone, and a scaling group of prefill and decode with one replica more than its minimum."""
    return typed(
        a_set(
            "web",
            a_clique_template("front", 1),
            a_clique_template("prefill", 2, min_available=1),
            a_clique_template("decode", 4, min_available=3),
            groups=[a_scaling_group_template("model", ["prefill", "decode"], 3, min_available=2)],
            **template,
        )
    )


def test_the_base_gang_holds_cliques_alone_first_and_then_each_replica_of_a_group_up_to_its_minimum() -> None:
    gang = plan.base_gang(inference(), 1)
    assert gang.name == "web-1"
    assert [clique.name for clique in gang.cliques] == [
        "web-1-front",
        "web-1-model-0-prefill",
        "web-1-model-0-decode",
        "web-1-model-1-prefill",
        "web-1-model-1-decode",
    ]
    assert {clique.gang for clique in gang.cliques} == {"web-1"}
    assert {clique.base_gang for clique in gang.cliques} == {""}


def test_a_scaled_gang_is_counted_from_the_first_replica_beyond_the_minimum() -> None:
    pcs = inference()
    gang = plan.scaled_gang(pcs, 0, pcs.spec.template.pod_clique_scaling_groups[0], 3)
    assert gang.name == "web-0-model-1"
    assert [clique.name for clique in gang.cliques] == ["web-0-model-3-prefill", "web-0-model-3-decode"]
    assert {(clique.gang, clique.base_gang) for clique in gang.cliques} == {("web-0-model-1", "web-0")}
    assert {(clique.group, clique.group_replica) for clique in gang.cliques} == {("web-0-model", 3)}


@pytest.mark.parametrize(
    ("live", "expected"),
    [
        pytest.param({}, ["web-0", "web-0-model-0"], id="the template's replicas where there is no group yet"),
        pytest.param({"web-0-model": 5}, ["web-0", "web-0-model-0", "web-0-model-1", "web-0-model-2"], id="scaled out"),
        pytest.param({"web-0-model": 2}, ["web-0"], id="scaled in to the minimum"),
        pytest.param({"web-0-model": 1}, ["web-0"], id="below the minimum"),
        pytest.param({"web-1-model": 9}, ["web-0", "web-0-model-0"], id="another replica's group does not count"),
    ],
)
def test_gangs_follow_the_live_replicas_of_scaling_groups(live: dict[str, int], expected: list[str]) -> None:
    assert [gang.name for gang in plan.gangs_of_replica(inference(), 0, live)] == expected


def test_a_group_lists_its_cliques_in_its_own_order() -> None:
    pcs = typed(
        a_set(
            "web",
            a_clique_template("a"),
            a_clique_template("b"),
            groups=[a_scaling_group_template("g", ["b", "a"])],
        )
    )
    [group] = pcs.spec.template.pod_clique_scaling_groups
    assert [clique.template.name for clique in plan.group_cliques(pcs, 0, group, 0)] == ["b", "a"]
    assert plan.standalone_cliques(pcs, 0) == []
    assert plan.group_of(pcs, "a") is group
    assert plan.group_of(inference(), "front") is None


def test_cliques_whose_names_end_alike_stay_apart() -> None:
    pcs = typed(a_set("web", a_clique_template("a"), a_clique_template("b-a")))
    assert [clique.name for clique in plan.standalone_cliques(pcs, 0)] == ["web-0-a", "web-0-b-a"]


def parents_of(pcs: Any, name: str) -> list[tuple[str, int]]:
    [group] = pcs.spec.template.pod_clique_scaling_groups
    cliques = [*plan.base_gang(pcs, 0).cliques, *plan.scaled_gang(pcs, 0, group, 2).cliques]
    [found] = [clique for clique in cliques if clique.name == name]
    return [(parent.clique, parent.min_available) for parent in found.parents]


DECODE_AFTER_BOTH = [
    a_clique_template("front", 1),
    a_clique_template("prefill", 2, min_available=1),
    a_clique_template("decode", 4, min_available=3, starts_after=["prefill", "front"]),
]


@pytest.mark.parametrize(
    ("order", "clique", "parents"),
    [
        pytest.param("CliqueStartupTypeAnyOrder", "web-0-model-0-decode", [], id="in any order after nobody"),
        pytest.param(IN_ORDER, "web-0-front", [], id="in order the first after nobody"),
        pytest.param(IN_ORDER, "web-0-model-0-prefill", [("web-0-front", 1)], id="in order after the one before"),
        pytest.param(
            IN_ORDER,
            "web-0-model-1-decode",
            [("web-0-model-0-prefill", 1), ("web-0-model-1-prefill", 1)],
            id="in the base gang after all base replicas of a group",
        ),
        pytest.param(IN_ORDER, "web-0-model-2-prefill", [], id="in a scaled gang never after another gang"),
        pytest.param(
            IN_ORDER,
            "web-0-model-2-decode",
            [("web-0-model-2-prefill", 1)],
            id="in a scaled gang after the same replica alone",
        ),
        pytest.param(
            EXPLICIT,
            "web-0-model-0-decode",
            [("web-0-model-0-prefill", 1), ("web-0-model-1-prefill", 1), ("web-0-front", 1)],
            id="explicitly after those that are listed, as listed",
        ),
        pytest.param(EXPLICIT, "web-0-model-0-prefill", [], id="explicitly after nobody"),
    ],
)
def test_who_starts_after_whom(order: str, clique: str, parents: list[tuple[str, int]]) -> None:
    pcs = typed(
        a_set(
            "web",
            *DECODE_AFTER_BOTH,
            groups=[a_scaling_group_template("model", ["prefill", "decode"], 3, min_available=2)],
            cliqueStartupType=order,
        )
    )
    assert parents_of(pcs, clique) == parents


def test_a_parent_that_is_not_in_the_set_is_passed_over() -> None:
    pcs = typed(a_set("web", a_clique_template("a", starts_after=["ghost"]), cliqueStartupType=EXPLICIT))
    assert plan.standalone_cliques(pcs, 0)[0].parents == ()


def test_names_of_gangs_and_services_of_a_replica_are_the_same() -> None:
    assert names.base_gang("web", 3) == names.headless_service("web", 3) == "web-3"
