from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from shoal.kube.admission.jsonpatch import PatchError, PatchTestFailed, apply, difference, is_same, pointer

KEYS = st.sampled_from(["a", "b", "", "~", "/", "~1", "a/b", "m~n", "0", "-", "ü"])
LEAVES = (
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from([0.0, 1.0, 1.5]) | st.sampled_from(["", "a", "1"])
)
VALUES = st.recursive(
    LEAVES,
    lambda inner: st.lists(inner, max_size=5) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=15,
)


@settings(max_examples=500)
@given(VALUES, VALUES)
def test_the_difference_of_two_values_turns_one_into_the_other(before: Any, after: Any) -> None:
    kept = copy.deepcopy(before), copy.deepcopy(after)
    operations = difference(before, after)
    assert is_same(apply(operations, before), after), operations
    assert is_same(before, kept[0])
    assert is_same(after, kept[1])


@given(VALUES)
def test_equal_values_have_no_difference(value: Any) -> None:
    assert difference(value, copy.deepcopy(value)) == []


class Unread(dict[str, Any]):
    """A map that must not be looked into."""

    def items(self) -> Any:
        raise AssertionError("looked into")

    __iter__ = __eq__ = items  # type: ignore[assignment]


def test_what_both_values_share_is_not_looked_into() -> None:
    shared = Unread(a=1)
    before, after = {"l": [shared, 1], "m": shared, "n": 1}, {"l": [shared, 2], "m": shared, "n": 2}
    assert [each["path"] for each in difference(before, after)] == ["/l/1", "/n"]


@settings(max_examples=200)
@given(st.lists(VALUES, min_size=1, max_size=4), st.lists(VALUES, max_size=2))
def test_sharing_makes_no_other_difference(shared: list[Any], new: list[Any]) -> None:
    before, after = {"m": shared[0], "l": shared}, {"m": shared[-1], "l": [*shared[1:], *new]}
    assert difference(before, after) == difference(copy.deepcopy(before), copy.deepcopy(after))


@given(st.lists(st.integers(0, 50), max_size=12), st.integers(0, 12), st.integers(100, 200))
def test_one_item_put_in_or_taken_out_is_one_operation(items: list[int], place: int, item: int) -> None:
    longer = [*items[:place], item, *items[place:]]
    assert [each["op"] for each in difference(items, longer)] == ["add"]
    assert [each["op"] for each in difference(longer, items)] == ["remove"]


@pytest.mark.parametrize(
    ("before", "after", "operations"),
    [
        pytest.param({"a": 1}, {"a": 2}, [{"op": "replace", "path": "/a", "value": 2}], id="changed"),
        pytest.param({}, {"a": None}, [{"op": "add", "path": "/a", "value": None}], id="null is a value"),
        pytest.param({"a": 1}, {}, [{"op": "remove", "path": "/a"}], id="removed"),
        pytest.param({"a": True}, {"a": 1}, [{"op": "replace", "path": "/a", "value": 1}], id="true is not one"),
        pytest.param(
            {"x.io/a~b": "1"}, {"x.io/a~b": "2"}, [{"op": "replace", "path": "/x.io~1a~0b", "value": "2"}], id="escapes"
        ),
        pytest.param(
            {"l": [{"n": 1}, {"n": 2}]},
            {"l": [{"n": 1}, {"n": 3}]},
            [{"op": "replace", "path": "/l/1/n", "value": 3}],
            id="inside an item",
        ),
        pytest.param(
            {"l": [1, 2, 3, 4]},
            {"l": [1, 4]},
            [{"op": "remove", "path": "/l/2"}, {"op": "remove", "path": "/l/1"}],
            id="removed from the back",
        ),
        pytest.param(
            {"a": [1]}, {"a": {"0": 1}}, [{"op": "replace", "path": "/a", "value": {"0": 1}}], id="other kind"
        ),
        pytest.param(1, 2, [{"op": "replace", "path": "", "value": 2}], id="the whole"),
    ],
)
def test_a_difference_is_small(before: Any, after: Any, operations: list[dict[str, Any]]) -> None:
    assert difference(before, after) == operations


@pytest.mark.parametrize(
    ("operation", "result"),
    [
        pytest.param({"op": "add", "path": "/l/-", "value": 9}, {"a": {"b": 1}, "l": [1, 2, 9]}, id="append"),
        pytest.param({"op": "add", "path": "/l/0", "value": 9}, {"a": {"b": 1}, "l": [9, 1, 2]}, id="prepend"),
        pytest.param({"op": "add", "path": "/a", "value": 9}, {"a": 9, "l": [1, 2]}, id="add over"),
        pytest.param({"op": "add", "path": "", "value": 9}, 9, id="add the whole"),
        pytest.param({"op": "move", "from": "/a/b", "path": "/l/1"}, {"a": {}, "l": [1, 1, 2]}, id="move"),
        pytest.param({"op": "move", "from": "/a", "path": "/a"}, {"a": {"b": 1}, "l": [1, 2]}, id="move to itself"),
        pytest.param(
            {"op": "copy", "from": "/l", "path": "/a/c"}, {"a": {"b": 1, "c": [1, 2]}, "l": [1, 2]}, id="copy"
        ),
        pytest.param({"op": "test", "path": "/l/1", "value": 2}, {"a": {"b": 1}, "l": [1, 2]}, id="test"),
    ],
)
def test_operations_are_applied_as_the_rfc_says(operation: dict[str, Any], result: Any) -> None:
    assert apply([operation], {"a": {"b": 1}, "l": [1, 2]}) == result


@pytest.mark.parametrize(
    ("operation", "problem"),
    [
        pytest.param({"op": "remove", "path": "/x"}, "nothing is at 'x'", id="remove what is not there"),
        pytest.param({"op": "replace", "path": "/x", "value": 1}, "nothing is at 'x'", id="replace what is not there"),
        pytest.param({"op": "replace", "path": "/a"}, "a value is missing", id="no value"),
        pytest.param({"op": "add", "path": "/x/y", "value": 1}, "nothing is at 'x'", id="no parent"),
        pytest.param({"op": "add", "path": "/n/y", "value": 1}, "neither a map nor a list", id="a number as parent"),
        pytest.param({"op": "add", "path": "/l/3", "value": 1}, "past the end", id="past the end"),
        pytest.param({"op": "remove", "path": "/l/2"}, "past the end", id="remove past the end"),
        pytest.param({"op": "remove", "path": "/l/-"}, "no place in a list", id="remove after the end"),
        pytest.param({"op": "add", "path": "/l/01", "value": 1}, "no place in a list", id="leading zero"),
        pytest.param({"op": "add", "path": "/l/-1", "value": 1}, "no place in a list", id="negative"),
        pytest.param({"op": "remove", "path": ""}, "cannot be removed", id="remove the whole"),
        pytest.param({"op": "move", "from": "/a", "path": "/a/b"}, "into itself", id="move into itself"),
        pytest.param({"op": "add", "path": "x", "value": 1}, "must be a JSON pointer", id="no pointer"),
        pytest.param({"op": "copy", "path": "/x"}, "from must be a JSON pointer", id="copy from nowhere"),
        pytest.param({"op": "guess", "path": "/a"}, "no operation 'guess'", id="unknown operation"),
    ],
)
def test_an_operation_that_cannot_be_carried_out_says_why_and_changes_nothing(
    operation: dict[str, Any], problem: str
) -> None:
    value = {"a": {"b": 1}, "l": [1, 2], "n": 1}
    with pytest.raises(PatchError, match=problem):
        apply([{"op": "add", "path": "/l/0", "value": 0}, {"op": "remove", "path": "/l/0"}, operation], value)
    assert value == {"a": {"b": 1}, "l": [1, 2], "n": 1}


def test_a_failed_test_is_told_apart_from_a_broken_patch() -> None:
    with pytest.raises(PatchTestFailed, match="another"):
        apply([{"op": "test", "path": "/a", "value": True}], {"a": 1})


def test_a_pointer_escapes_what_has_a_meaning_in_it() -> None:
    assert pointer("metadata", "labels", "a/b~c", 0) == "/metadata/labels/a~1b~0c/0"
