"""Sets of fields behave as sets of paths do."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.apiserver.apply.elements import Untypeable, encoded, normal, order, quoted, shown
from shoal.cluster.apiserver.apply.fieldset import (
    Tree,
    contains,
    difference,
    intersection,
    joined,
    parsed,
    paths,
    recursive_difference,
)

Path = tuple[str, ...]

labels = st.sampled_from(["f:a", "f:b", 'k:{"name":"x"}', "v:1"])
some_paths = st.lists(st.lists(labels, min_size=1, max_size=3).map(tuple), max_size=6).map(set)


def tree(members: set[Path]) -> Tree:
    """The tree of these members, made the slow way."""
    root: Tree = {}
    for path in sorted(members, key=len):
        branch = root
        for depth, label in enumerate(path[:-1], start=1):
            branch = branch.setdefault(label, {})
            if path[:depth] in members:
                branch["."] = {}
        branch.setdefault(path[-1], {})
    return root


@given(some_paths)
def test_a_tree_holds_its_members_and_no_others(members: set[Path]) -> None:
    made = tree(members)
    assert set(paths(made)) == members
    assert all(contains(made, path) for path in members)
    assert not contains(made, ("f:a", "f:a", "f:a", "f:a"))
    assert parsed(made) == made


@given(some_paths, some_paths)
def test_operations_on_trees_are_those_on_sets(one: set[Path], other: set[Path]) -> None:
    left, right = tree(one), tree(other)
    assert joined(left, right) == tree(one | other)
    assert intersection(left, right) == tree(one & other)
    assert difference(left, right) == tree(one - other)
    below = {path for path in one if any(path[: len(cut)] == cut for cut in other)}
    assert recursive_difference(left, right) == tree(one - below)
    assert (left, right) == (tree(one), tree(other))


@given(some_paths, some_paths)
def test_a_difference_that_takes_nothing_is_the_set_itself(one: set[Path], other: set[Path]) -> None:
    left = tree(one)
    if not one & other:
        assert difference(left, tree(other)) is left


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param("a", '"a"', id="text"),
        pytest.param('a"b\\', '"a\\"b\\\\"', id="quotes"),
        pytest.param("a<b>&c", '"a\\u003cb\\u003e\\u0026c"', id="html"),
        pytest.param("a\nb\x01\u2028", '"a\\nb\\u0001\\u2028"', id="control"),
        pytest.param("ä", '"ä"', id="unicode"),
        pytest.param(True, "true", id="boolean"),
        pytest.param(10, "10", id="integer"),
        pytest.param(1.0, "1", id="whole-float"),
        pytest.param(1.5, "1.5", id="float"),
        pytest.param(-0.25, "-0.25", id="negative-float"),
        pytest.param(1e20, "100000000000000000000", id="large-float"),
        pytest.param(1e21, "1e+21", id="larger-float"),
        pytest.param(1e-6, "0.000001", id="small-float"),
        pytest.param(2.5e-7, "2.5e-7", id="smaller-float"),
        pytest.param(None, "null", id="null"),
        pytest.param({"b": [1], "a": {}}, '{"a":{},"b":[1]}', id="nested"),
    ],
)
def test_values_in_path_elements_are_written_as_go_writes_them(value: Any, text: str) -> None:
    assert encoded(value) == text


@pytest.mark.parametrize(
    ("label", "normal_form", "text"),
    [
        pytest.param("f:spec", "f:spec", ".spec", id="field"),
        pytest.param('k:{"b": 1, "a":"x"}', 'k:{"a":"x","b":1}', '[a="x",b=1]', id="key"),
        pytest.param('v: "x"', 'v:"x"', '[="x"]', id="value"),
        pytest.param("v:1.0", "v:1", "[=1]", id="number"),
        pytest.param("i:03", "i:3", "[3]", id="place"),
    ],
)
def test_path_elements_have_one_normal_form_and_a_readable_one(label: str, normal_form: str, text: str) -> None:
    assert normal(label) == normal_form
    assert shown(normal_form) == text


def test_path_elements_from_the_future_are_ignored() -> None:
    assert normal("z:anything") is None
    assert parsed({"f:a": {"z:b": {}}}) == {"f:a": {}}


@pytest.mark.parametrize("label", ["", "f", "no colon", "k:[]", "k:{", "v:{]", "i:x"])
def test_what_is_no_path_element_is_refused(label: str) -> None:
    with pytest.raises(Untypeable):
        normal(label)


def test_path_elements_are_ordered_by_kind_and_numbers_by_size() -> None:
    given_order = ["v:10", "v:2", 'k:{"port":80}', 'k:{"port":9}', "f:b", "f:a", 'v:"a"', "v:true"]
    wanted = ["f:a", "f:b", 'k:{"port":9}', 'k:{"port":80}', "v:2", "v:10", 'v:"a"', "v:true"]
    assert sorted(given_order, key=order) == wanted


def test_quotes_are_those_of_go() -> None:
    assert quoted('a"b\\c\nd\x01é\x7f') == '"a\\"b\\\\c\\nd\\x01é\\x7f"'
