"""Which planned clique a PodClique is, and whose pods are whose."""

from __future__ import annotations

import msgspec
import pytest

from shoal.api.grove import PodCliqueScalingGroup, names
from shoal.gangs.cliques.membership import is_wanted, own_pods, planned_clique
from tests.gangs.builders import a_clique, a_clique_pod, a_clique_template, a_scaling_group_template, a_set, typed

PCS = typed(
    a_set(
        "web",
        a_clique_template("a"),
        a_clique_template("b-a"),
        a_clique_template("c"),
        groups=[a_scaling_group_template("b", ["c"], 3)],
        replicas=2,
    )
)


@pytest.mark.parametrize(
    ("name", "labels", "template"),
    [
        pytest.param("web-0-a", {}, "a", id="alone"),
        pytest.param("web-0-b-a", {}, "b-a", id="a name that ends like another"),
        pytest.param("web-1-a", {names.SET_REPLICA_LABEL: "1"}, "a", id="another replica"),
        pytest.param(
            "web-0-b-2-c",
            {names.SCALING_GROUP_LABEL: "web-0-b", names.SCALING_GROUP_REPLICA_LABEL: "2"},
            "c",
            id="in a group",
        ),
        pytest.param("web-0-gone", {}, None, id="not in the template any more"),
        pytest.param("web-0-a", {names.SET_REPLICA_LABEL: "x"}, None, id="no number"),
        pytest.param("web-0-b-2-c", {names.SCALING_GROUP_LABEL: "web-0-z"}, None, id="a group that is not there"),
    ],
)
def test_a_clique_is_found_by_its_labels(name: str, labels: dict[str, str], template: str | None) -> None:
    found = planned_clique(PCS, a_clique(name, labels=labels))
    assert (found.template.name if found else None) == template


def test_pods_of_an_earlier_clique_of_the_name_are_not_its_own() -> None:
    stranger = a_clique_pod("b", ownerReferences=[])
    assert own_pods(a_clique(), [a_clique_pod("a"), stranger]) == [a_clique_pod("a")]


SCALED = {names.SCALING_GROUP_LABEL: "web-0-b", names.SCALING_GROUP_REPLICA_LABEL: "2", names.BASE_GANG_LABEL: "web-0"}
FIRST = {names.SCALING_GROUP_LABEL: "web-0-b", names.SCALING_GROUP_REPLICA_LABEL: "0"}


@pytest.mark.parametrize(
    ("labels", "size", "answer"),
    [
        pytest.param({}, None, True, id="of a replica that is asked for"),
        pytest.param({names.SET_REPLICA_LABEL: "1"}, None, True, id="of the last one"),
        pytest.param({names.SET_REPLICA_LABEL: "2"}, None, False, id="of one beyond"),
        pytest.param({names.SET_REPLICA_LABEL: "x"}, None, False, id="of none that can be read"),
        pytest.param(SCALED, 3, True, id="in a group that is large enough"),
        pytest.param(SCALED, 2, False, id="in a group that was scaled in"),
        pytest.param(SCALED, None, True, id="in a group that is not seen yet"),
        pytest.param(FIRST, 0, True, id="in the base gang, which stays whole"),
    ],
)
def test_a_clique_is_wanted_while_its_replica_and_its_groups_are(
    labels: dict[str, str], size: int | None, answer: bool
) -> None:
    group = None if size is None else msgspec.convert({"spec": {"replicas": size}}, PodCliqueScalingGroup)
    assert is_wanted(PCS, a_clique(labels=labels), group) is answer
