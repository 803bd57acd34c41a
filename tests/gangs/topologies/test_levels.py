"""Whether the topology is there that a set asks for: Grove's table of the condition TopologyLevelsUnavailable."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.gangs.settings import GangSettings
from shoal.gangs.topologies import levels_condition, topology_name
from shoal.gangs.topologies.levels import missing_domains
from tests.gangs.builders import a_clique_template, a_scaling_group_template, a_set, typed
from tests.gangs.topologies.sites import a_binding, within

ON, OFF = GangSettings(has_topologies=True), GangSettings(has_topologies=False)
SITES = {"site": a_binding("site", "rack", "host")}


def a_set_with(
    template: dict[str, Any] | None = None, group: dict[str, Any] | None = None, clique: dict[str, Any] | None = None
) -> dict[str, Any]:
    def held(constraint: dict[str, Any] | None) -> dict[str, Any]:
        return {} if constraint is None else {"topologyConstraint": constraint}

    cliques = [a_clique_template("a", **held(clique)), a_clique_template("p")]
    groups = [a_scaling_group_template("grp", ["p"], **held(group))]
    return a_set("web", *cliques, groups=groups, metadata={"generation": 7}, **held(template))


@pytest.mark.parametrize(
    ("body", "settings", "answer"),
    [
        (a_set_with(), OFF, None),
        (a_set_with(within("rack")), OFF, ("Unknown", "TopologyAwareSchedulingDisabled")),
        (a_set_with(), ON, ("False", "AllClusterTopologyLevelsAvailable")),
        (a_set_with(within("rack", name="")), ON, ("Unknown", "TopologyNameMissing")),
        (a_set_with(within("rack", name="gone")), ON, ("Unknown", "ClusterTopologyNotFound")),
        (a_set_with(within("block")), ON, ("True", "ClusterTopologyLevelsUnavailable")),
        (a_set_with(within("rack", "zone")), ON, ("True", "ClusterTopologyLevelsUnavailable")),
        (a_set_with(group=within("block")), ON, ("True", "ClusterTopologyLevelsUnavailable")),
        (a_set_with(clique=within("block")), ON, ("True", "ClusterTopologyLevelsUnavailable")),
        (a_set_with(within("rack", "host")), ON, ("False", "AllClusterTopologyLevelsAvailable")),
        (a_set_with(clique={"packDomain": "rack"}), ON, ("Unknown", "TopologyNameMissing")),
        (
            a_set_with(clique={"packDomain": "zone", "topologyName": "site"}),
            ON,
            ("True", "ClusterTopologyLevelsUnavailable"),
        ),
    ],
    ids=[
        "off and nothing asked for",
        "off",
        "nothing asked for",
        "no name",
        "no such topology",
        "no such domain",
        "no such preferred domain",
        "no such domain, of a group",
        "no such domain, of a clique",
        "all there",
        "the old field, no name",
        "the old field, no such domain",
    ],
)
def test_the_condition(body: dict[str, Any], settings: GangSettings, answer: tuple[str, str] | None) -> None:
    condition = levels_condition(typed(body), SITES, settings)
    assert (condition and (condition.status, condition.reason)) == answer
    if condition is not None:
        assert (condition.type, condition.observed_generation) == ("TopologyLevelsUnavailable", 7)
        assert condition.message


def test_missing_domains_are_told_once_each_in_the_order_of_asking() -> None:
    pcs = typed(a_set_with(within("zone", "block"), group=within("block", "rack"), clique=within("zone")))
    assert missing_domains(pcs, SITES["site"]) == ["zone", "block"]
    condition = levels_condition(pcs, SITES, ON)
    assert condition is not None
    assert condition.message.endswith("zone, block")


@pytest.mark.parametrize(
    ("body", "name"),
    [
        (a_set_with(), ""),
        (a_set_with(within("rack")), "site"),
        (a_set_with(within("rack", name=""), clique=within("rack", name="a")), "a"),
        (a_set_with(group=within("rack", name="b"), clique=within("rack", name="")), "b"),
    ],
    ids=["none", "of the set", "of a clique alone", "of a group alone"],
)
def test_one_name_holds_for_the_whole_set(body: dict[str, Any], name: str) -> None:
    assert topology_name(typed(body)) == name
