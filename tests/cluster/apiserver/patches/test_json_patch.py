from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.apiserver.patches import json_patch
from shoal.cluster.apiserver.patches.json_patch import unknown_fields
from shoal.cluster.apiserver.refusals import Refused
from shoal.kube.admission.jsonpatch import difference, is_same

DOCUMENT = {"data": {"k": "v", "n": None}, "list": ["a", "b"], "a/b": {"m~n": 1}}


@pytest.mark.parametrize(
    ("operations", "place", "result"),
    [
        pytest.param([{"op": "add", "path": "/data/x", "value": 1}], "data", {"k": "v", "n": None, "x": 1}, id="add"),
        pytest.param([{"op": "add", "path": "/data/k"}], "data", {"k": None, "n": None}, id="add without a value"),
        pytest.param([{"op": "add", "path": "/list/-", "value": "c"}], "list", ["a", "b", "c"], id="append"),
        pytest.param([{"op": "add", "path": "/list/0", "value": "c"}], "list", ["c", "a", "b"], id="prepend"),
        pytest.param([{"op": "add", "path": "/list/2", "value": "c"}], "list", ["a", "b", "c"], id="add at the end"),
        pytest.param([{"op": "add", "path": "/list/-1", "value": "c"}], "list", ["a", "b", "c"], id="add from the end"),
        pytest.param([{"op": "add", "path": "/list/-3", "value": "c"}], "list", ["c", "a", "b"], id="add from far"),
        pytest.param([{"op": "replace", "path": "/list/-1", "value": "c"}], "list", ["a", "c"], id="replace the last"),
        pytest.param([{"op": "remove", "path": "/list/-2"}], "list", ["b"], id="remove from the end"),
        pytest.param([{"op": "remove", "path": "/list/+1"}], "list", ["a"], id="a signed place"),
        pytest.param([{"op": "remove", "path": "/list/01"}], "list", ["a"], id="a place with a leading zero"),
        pytest.param([{"op": "replace", "path": "/new", "value": 1}], "new", 1, id="replace what is not there"),
        pytest.param([{"op": "copy", "from": "/data/none", "path": "/new"}], "new", None, id="copy what is not there"),
        pytest.param([{"op": "test", "path": "/data/none", "value": None}], "list", ["a", "b"], id="nothing is null"),
        pytest.param([{"op": "test", "path": "/data/none"}], "list", ["a", "b"], id="nothing is no value"),
        pytest.param([{"op": "test", "path": "/a~1b/m~0n", "value": 1}], "list", ["a", "b"], id="escapes"),
        pytest.param([{"op": "test", "path": "", "value": DOCUMENT}], "list", ["a", "b"], id="test the whole"),
        pytest.param([{"op": "move", "from": "/list/0", "path": "/list/-"}], "list", ["b", "a"], id="move"),
        pytest.param([{"op": "move", "from": "/data", "path": "/data"}], "data", {"k": "v", "n": None}, id="stay"),
        pytest.param([{"op": "replace", "path": "", "value": {"z": 1}}], "z", 1, id="replace the whole"),
        pytest.param([{"op": "add", "path": "x/new", "value": 1}], "new", 1, id="before the first slash"),
        pytest.param([], "list", ["a", "b"], id="no operations"),
        pytest.param(None, "list", ["a", "b"], id="null"),
    ],
)
def test_operations_are_carried_out_as_kubernetes_does(operations: Any, place: str, result: Any) -> None:
    before = copy.deepcopy(DOCUMENT)
    assert json_patch(DOCUMENT, operations)[place] == result
    assert before == DOCUMENT


@pytest.mark.parametrize(
    "operation",
    [
        pytest.param({"op": "replace", "path": "/nope/x", "value": 1}, id="replace without a parent"),
        pytest.param({"op": "replace", "path": "/list/5", "value": 1}, id="replace past the end"),
        pytest.param({"op": "replace", "path": "/list/-", "value": 1}, id="replace after the end"),
        pytest.param({"op": "replace", "path": "", "value": 5}, id="replace the whole by a number"),
        pytest.param({"op": "replace"}, id="replace nowhere"),
        pytest.param({"op": "remove", "path": "/data/x"}, id="remove what is not there"),
        pytest.param({"op": "remove", "path": "/nope/x"}, id="remove without a parent"),
        pytest.param({"op": "remove", "path": "/list/5"}, id="remove past the end"),
        pytest.param({"op": "remove", "path": "/list/-"}, id="remove after the end"),
        pytest.param({"op": "remove", "path": "/list/-7"}, id="remove before the beginning"),
        pytest.param({"op": "remove", "path": ""}, id="remove the whole"),
        pytest.param({"op": "remove"}, id="remove nowhere"),
        pytest.param({"op": "add", "path": "", "value": {}}, id="add the whole"),
        pytest.param({"op": "add", "path": "x", "value": 1}, id="add without a slash"),
        pytest.param({"op": "add", "path": "/list/x", "value": 1}, id="add at no place"),
        pytest.param({"op": "add", "path": "/list/9", "value": 1}, id="add past the end"),
        pytest.param({"op": "add", "path": "/data/k/x", "value": 1}, id="add within a text"),
        pytest.param({"op": "add", "path": "/data/n/x", "value": 1}, id="add within null"),
        pytest.param({"op": "add", "value": 1}, id="add nowhere"),
        pytest.param({"op": "move", "from": "/data/x", "path": "/x"}, id="move what is not there"),
        pytest.param({"op": "move", "from": "/data/k", "path": "/nope/x"}, id="move to nowhere"),
        pytest.param({"op": "move", "from": "/data", "path": "/data/x"}, id="move into itself"),
        pytest.param({"op": "move", "path": "/x"}, id="move from nowhere"),
        pytest.param({"op": "copy", "from": "/data/k", "path": "/nope/x"}, id="copy to nowhere"),
        pytest.param({"op": "copy", "path": "/x"}, id="copy from nowhere"),
        pytest.param({"op": "test", "path": "/data/k", "value": "w"}, id="another value"),
        pytest.param({"op": "test", "path": "/data/none", "value": "w"}, id="test what is not there"),
        pytest.param({"op": "test", "path": "/nope/none", "value": None}, id="test without a parent"),
        pytest.param({"op": "test", "path": "/list/9", "value": None}, id="test past the end"),
        pytest.param({"op": "test", "path": "", "value": {}}, id="the whole is another"),
        pytest.param({"op": "test", "path": "/a~1b/m~0n", "value": True}, id="one is not true"),
        pytest.param({"op": "test"}, id="test nowhere"),
        pytest.param({"op": "bogus", "path": "/data/k"}, id="unknown operation"),
        pytest.param({"op": None, "path": "/data/k"}, id="null as operation"),
        pytest.param({"path": "/data/k", "value": 1}, id="no operation"),
        pytest.param(None, id="null"),
    ],
)
def test_an_operation_that_cannot_be_carried_out_is_refused_without_a_reason(operation: Any) -> None:
    before = copy.deepcopy(DOCUMENT)
    with pytest.raises(Refused) as refusal:
        json_patch(DOCUMENT, [{"op": "remove", "path": "/list/0"}, operation])
    status = refusal.value.status
    assert (status.code, status.reason) == (422, "Invalid")
    assert status.message == "the server rejected our request due to an error in our request"
    assert before == DOCUMENT


@pytest.mark.parametrize(
    ("operations", "code", "message"),
    [
        pytest.param({}, 400, "cannot unmarshal object into Go value of type []handlers.jsonPatchOp", id="a map"),
        pytest.param("x", 400, "cannot unmarshal string into Go value of type []handlers.jsonPatchOp", id="a text"),
        pytest.param([1], 400, "cannot unmarshal number into Go value of type handlers.jsonPatchOp", id="a number"),
        pytest.param(
            [{"op": "add", "path": 5}],
            400,
            "cannot unmarshal number into Go struct field jsonPatchOp.path of type string",
            id="a number as path",
        ),
        pytest.param(
            [{"op": 5, "path": "/x"}],
            400,
            "cannot unmarshal number into Go struct field jsonPatchOp.op of type string",
            id="a number as operation",
        ),
    ],
)
def test_a_malformed_patch_is_refused(operations: Any, code: int, message: str) -> None:
    with pytest.raises(Refused) as refusal:
        json_patch(DOCUMENT, operations)
    assert refusal.value.status.code == code
    assert refusal.value.status.message == f"error decoding patch: json: {message}"


def test_a_patch_of_too_many_operations_is_refused() -> None:
    operation = {"op": "test", "path": "/data/k", "value": "v"}
    assert json_patch(DOCUMENT, [operation] * 10_000) == DOCUMENT
    with pytest.raises(Refused) as refusal:
        json_patch(DOCUMENT, [operation] * 10_001)
    assert (refusal.value.status.code, refusal.value.status.reason) == (413, "RequestEntityTooLarge")
    assert refusal.value.status.message == (
        "Request entity too large: The allowed maximum operations in a JSON patch is 10000, got 10001"
    )


def test_copies_of_copies_stay_small() -> None:
    doubling = [{"op": "copy", "from": "/data", "path": f"/data/{place}"} for place in range(40)]
    with pytest.raises(Refused, match="rejected our request"):
        json_patch(DOCUMENT, doubling)


def test_what_is_added_is_no_part_of_the_patch() -> None:
    operations = [{"op": "add", "path": "/x", "value": {"a": []}}]
    json_patch(DOCUMENT, operations)["x"]["a"].append(1)
    assert operations == [{"op": "add", "path": "/x", "value": {"a": []}}]


def test_strict_validation_names_unknown_fields_of_operations() -> None:
    assert unknown_fields([{"op": "add", "path": "/x"}, {"op": "add", "foo": 1}]) == [
        'json patch unknown field "[1].foo"'
    ]


KEYS = st.sampled_from(["a", "b", "", "~", "/", "~1", "a/b", "0", "-"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "a"]),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
    max_leaves=12,
)
MAPS = st.dictionaries(KEYS, VALUES, max_size=4)


@given(MAPS, MAPS)
def test_a_difference_turns_one_value_into_the_other(before: Any, after: Any) -> None:
    assert is_same(json_patch(before, difference(before, after)), after)
