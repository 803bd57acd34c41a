"""What volumes and devices ask about nodes."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.api.meta import LabelSelector
from shoal.scheduler.ground import Ground
from tests.scheduler.needed_objects import ZONE, a_volume, on, some_nodes

OLD_ZONE, REGION = "failure-domain.beta.kubernetes.io/zone", "topology.kubernetes.io/region"
HOST = "kubernetes.io/hostname"
NODES = some_nodes(
    a={HOST: "a", ZONE: "east", REGION: "here"},
    b={HOST: "b", ZONE: "west", REGION: "here"},
    c={HOST: "c"},
)


def names(mask: Any) -> set[str]:
    found = Ground(NODES).names(mask)
    return {"a", "b", "c"} if found is None else set(found)


@pytest.mark.parametrize(
    ("labels", "nodes"),
    [
        pytest.param({}, {"a", "b", "c"}, id="a volume of no zone"),
        pytest.param({ZONE: "east"}, {"a", "c"}, id="one zone, and nodes that are in none"),
        pytest.param({ZONE: "east__west"}, {"a", "b", "c"}, id="two zones"),
        pytest.param({ZONE: "north"}, {"c"}, id="a zone without nodes"),
        pytest.param({OLD_ZONE: "west"}, {"b", "c"}, id="by the label's old name"),
        pytest.param({ZONE: "east", REGION: "there"}, {"c"}, id="all of them must hold"),
    ],
)
def test_nodes_are_in_the_zones_of_a_volume(labels: dict[str, str], nodes: set[str]) -> None:
    assert names(Ground(NODES).in_zones_of(labels)) == nodes


@pytest.mark.parametrize(
    ("topologies", "nodes"),
    [
        pytest.param([], {"a", "b", "c"}, id="none named"),
        pytest.param([{"matchLabelExpressions": [{"key": ZONE, "values": ["east"]}]}], {"a"}, id="one"),
        pytest.param(
            [
                {"matchLabelExpressions": [{"key": ZONE, "values": ["east"]}]},
                {"matchLabelExpressions": [{"key": HOST, "values": ["c"]}]},
            ],
            {"a", "c"},
            id="any of two",
        ),
        pytest.param([{}], set(), id="an empty one means nobody"),
    ],
)
def test_a_class_allows_nodes_by_its_topologies(topologies: list[dict[str, Any]], nodes: set[str]) -> None:
    assert names(Ground(NODES).allowed_by(topologies)) == nodes


@pytest.mark.parametrize(
    ("selector", "nodes"),
    [
        pytest.param(None, set(), id="none"),
        pytest.param(LabelSelector(), {"a", "b", "c"}, id="empty"),
        pytest.param(LabelSelector(match_labels={ZONE: "west"}), {"b"}, id="by label"),
    ],
)
def test_a_label_selector_means_nodes(selector: LabelSelector | None, nodes: set[str]) -> None:
    assert names(Ground(NODES).labelled(selector)) == nodes


def test_a_volume_is_reached_from_where_its_affinity_says_and_without_any_from_everywhere() -> None:
    ground = Ground(NODES)
    assert names(ground.reaching(a_volume("v", affinity=on("b", "c")))) == {"b", "c"}
    assert names(ground.reaching(a_volume("v"))) == {"a", "b", "c"}


def test_all_nodes_are_no_constraint_and_equal_sets_are_one() -> None:
    ground = Ground(NODES)
    assert ground.names(ground.everywhere) is None
    assert ground.names(ground.named("b")) is ground.names(ground.selected([_by_name("b")]))
    assert ground.names(ground.nowhere) == frozenset()


def _by_name(name: str) -> dict[str, Any]:
    return {"matchFields": [{"key": "metadata.name", "operator": "In", "values": [name]}]}
