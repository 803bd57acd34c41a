from __future__ import annotations

import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.apiserver.patches import merge_patch
from shoal.cluster.apiserver.refusals import Refused


@pytest.mark.parametrize(
    ("document", "patch", "result"),
    [
        pytest.param({"a": "b"}, {"a": "c"}, {"a": "c"}, id="changed"),
        pytest.param({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}, id="added"),
        pytest.param({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}, id="removed"),
        pytest.param({"a": ["b"]}, {"a": "c"}, {"a": "c"}, id="a list becomes a text"),
        pytest.param({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}, id="a text becomes a list"),
        pytest.param({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}, id="within a map"),
        pytest.param({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}, id="lists are replaced"),
        pytest.param({"e": None}, {"a": 1}, {"e": None, "a": 1}, id="a null that is there stays"),
        pytest.param({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}, id="nulls of what is new are dropped"),
        pytest.param({}, {"a": [{"b": None}, None]}, {"a": [{}, None]}, id="but not as items"),
        pytest.param({"a": {"b": 1}}, {"a": [{"b": None}]}, {"a": [{"b": None}]}, id="nor in a list over a map"),
        pytest.param({"a": 1}, {"z": None}, {"a": 1}, id="removing what is not there"),
        pytest.param({"a": 1}, {}, {"a": 1}, id="nothing"),
    ],
)
def test_a_merge_patch_merges_maps_and_replaces_the_rest(document: Any, patch: Any, result: Any) -> None:
    before = copy.deepcopy((document, patch))
    assert merge_patch(document, patch) == result
    assert (document, patch) == before


@pytest.mark.parametrize(
    ("patch", "message"),
    [
        pytest.param(
            [],
            "error decoding patch: json: cannot unmarshal array into Go value of type map[string]interface {}",
            id="a list",
        ),
        pytest.param(
            5,
            "error decoding patch: json: cannot unmarshal number into Go value of type map[string]interface {}",
            id="a number",
        ),
        pytest.param(
            "x",
            "error decoding patch: json: cannot unmarshal string into Go value of type map[string]interface {}",
            id="a text",
        ),
        pytest.param(None, "Invalid JSON Patch", id="null"),
    ],
)
def test_what_is_no_map_is_refused(patch: Any, message: str) -> None:
    with pytest.raises(Refused) as refusal:
        merge_patch({"a": 1}, patch)
    assert (refusal.value.status.code, refusal.value.status.message) == (400, message)


# Null in a list that takes a map's place is kept once and dropped the next time, so lists hold none here.
VALUES = st.recursive(
    st.integers(0, 2) | st.text("ab", max_size=1),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=8,
)
MAPS = st.dictionaries(st.sampled_from("abc"), st.none() | VALUES, max_size=3)


@given(MAPS, MAPS)
def test_a_merge_patch_twice_is_a_merge_patch_once(document: Any, patch: Any) -> None:
    once = merge_patch(document, patch)
    assert merge_patch(once, patch) == once
