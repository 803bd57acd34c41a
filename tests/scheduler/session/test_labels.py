"""Node selectors and node selector terms, as Kubernetes reads them."""

from __future__ import annotations

from typing import Any

import pytest

from shoal.scheduler.session.labels import LabelIndex
from tests.scheduler.session.node_builders import labelled, names_in

NODES = labelled(
    {
        "one": {"zone": "east", "gpus": "8", "disk": "ssd"},
        "two": {"zone": "west", "gpus": "4"},
        "three": {"zone": "north", "gpus": "many", "disk": ""},
        "four": {},
    }
)
LABELS = LabelIndex(NODES)


def an_expression(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchExpressions": [{"key": key, "operator": operator, "values": list(values)}]}


def a_field(key: str, operator: str, *values: str) -> dict[str, Any]:
    return {"matchFields": [{"key": key, "operator": operator, "values": list(values)}]}


@pytest.mark.parametrize(
    ("term", "expected"),
    [
        pytest.param(an_expression("zone", "In", "east", "west"), {"one", "two"}, id="one of the values"),
        pytest.param(an_expression("zone", "In", "south"), set(), id="a value that no node has"),
        pytest.param(an_expression("zone", "NotIn", "east"), {"two", "three", "four"}, id="not in: absent will do"),
        pytest.param(an_expression("disk", "Exists"), {"one", "three"}, id="exists, even when empty"),
        pytest.param(an_expression("disk", "DoesNotExist"), {"two", "four"}, id="does not exist"),
        pytest.param(an_expression("disk", "In", ""), {"three"}, id="the empty value is a value"),
        pytest.param(an_expression("gpus", "Gt", "4"), {"one"}, id="greater: words and absence are no numbers"),
        pytest.param(an_expression("gpus", "Lt", "8"), {"two"}, id="less"),
        pytest.param(an_expression("gpus", "Gt", "-1"), {"one", "two"}, id="greater than a negative number"),
        pytest.param(an_expression("gpus", "Gt", "few"), set(), id="the bound must be a number"),
        pytest.param(an_expression("gpus", "Gt", "9223372036854775808"), set(), id="the bound must have 64 bits"),
        pytest.param(an_expression("gpus", "Lt", "8", "9"), set(), id="one bound only"),
        pytest.param(an_expression("zone", "In"), set(), id="in needs values"),
        pytest.param(an_expression("zone", "NotIn"), set(), id="not in needs values"),
        pytest.param(an_expression("zone", "Exists", "east"), set(), id="exists takes no values"),
        pytest.param(an_expression("zone", "Like", "east"), set(), id="an unknown operator"),
        pytest.param(a_field("metadata.name", "In", "two"), {"two"}, id="by name"),
        pytest.param(a_field("metadata.name", "NotIn", "two"), {"one", "three", "four"}, id="all but one name"),
        pytest.param(a_field("metadata.name", "In", "five"), set(), id="a name that is not there"),
        pytest.param(a_field("metadata.name", "In", "one", "two"), set(), id="one name at a time"),
        pytest.param(a_field("metadata.name", "Exists"), set(), id="a name is in or not in"),
        pytest.param(a_field("metadata.uid", "NotIn", "x"), set(), id="no other field"),
        pytest.param({}, set(), id="an empty term matches nothing"),
        pytest.param(
            {**an_expression("zone", "Exists"), **a_field("metadata.name", "NotIn", "one")},
            {"two", "three"},
            id="labels and name together",
        ),
        pytest.param(
            {
                "matchExpressions": [
                    {"key": "zone", "operator": "NotIn", "values": ["west"]},
                    {"key": "gpus", "operator": "Exists"},
                ]
            },
            {"one", "three"},
            id="all expressions of a term",
        ),
    ],
)
def test_a_node_selector_term_means_what_kubernetes_says(term: dict[str, Any], expected: set[str]) -> None:
    assert names_in(NODES, LABELS.matching(term)) == expected


def test_one_term_of_several_is_enough_and_none_is_not() -> None:
    terms = [
        an_expression("zone", "In", "east"),
        an_expression("zone", "Like", "x"),
        a_field("metadata.name", "In", "four"),
    ]
    assert names_in(NODES, LABELS.matching_any(terms)) == {"one", "four"}
    assert names_in(NODES, LABELS.matching_any([])) == set()


def test_a_node_selector_asks_for_all_of_its_labels() -> None:
    assert names_in(NODES, LABELS.selected({"zone": "east", "disk": "ssd"})) == {"one"}
    assert names_in(NODES, LABELS.selected({"zone": "west", "disk": "ssd"})) == set()
    assert names_in(NODES, LABELS.selected({})) == {"one", "two", "three", "four"}


def test_no_nodes_at_all_are_no_trouble() -> None:
    nodes = labelled({})
    assert LabelIndex(nodes).matching(an_expression("zone", "Gt", "1")).tolist() == []
