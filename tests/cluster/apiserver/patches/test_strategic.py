"""The cases of strategic_cases.json are those of Kubernetes' own tables, with the results that Kubernetes gives."""

from __future__ import annotations

import copy
import time
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from shoal.cluster.apiserver.patches import strategic_merge
from shoal.cluster.apiserver.refusals import Refused
from shoal.cluster.apiserver.schema import Schema

CASES: list[dict[str, Any]] = msgspec.json.decode(Path(__file__).with_name("strategic_cases.json").read_bytes())

MERGE = frozenset({"merge"})


def merge_item_schema() -> Schema:
    """The type that Kubernetes' tables are about: every way in which a list or a map can merge."""
    text, number = Schema(type="string"), Schema(type="integer")
    item = Schema(type="object", go_type="MergeItem")
    simple = Schema(type="object", additional=text)
    merging = Schema(type="array", items=item, merge_key="name", merge_strategies=MERGE)
    merging_numbers = Schema(type="array", items=number, merge_strategies=MERGE)
    plain = {"name": text, "value": text, "other": text, "simpleMap": simple}
    lists = {
        "mergingList": merging,
        "mergingIntList": merging_numbers,
        "nonMergingList": Schema(type="array", items=item),
    }
    retaining = Schema(
        type="object",
        properties={**plain, **lists},
        go_type="RetainKeysMergeItem",
        merge_strategies=frozenset({"retainKeys"}),
    )
    item.properties.update(
        {
            **plain,
            **lists,
            "nonMergingIntList": Schema(type="array", items=number),
            "mergeItemPtr": Schema(
                type="object",
                properties=item.properties,
                merge_key="name",
                merge_strategies=MERGE,
                go_type="MergeItem",
                is_pointer=True,
            ),
            "replacingItem": Schema(
                type="object", go_type="RawExtension", merge_strategies=frozenset({"replace"}), preserves_unknown=True
            ),
            "jsonItem": Schema(type="object", go_type=""),
            "retainKeysMap": retaining,
            "retainKeysMergingList": Schema(
                type="array", items=item, merge_key="name", merge_strategies=frozenset({"merge", "retainKeys"})
            ),
        }
    )
    return item


MERGE_ITEM = merge_item_schema()
PRECISION = Schema(
    type="object",
    go_type="PrecisionItem",
    properties={
        "name": Schema(type="string"),
        "int32": Schema(type="integer"),
        "int64": Schema(type="integer"),
        "float32": Schema(type="number"),
        "float64": Schema(type="number"),
    },
)
SCHEMAS = {"MergeItem": MERGE_ITEM, "PrecisionItem": PRECISION}


@pytest.mark.parametrize("case", CASES, ids=[f"{number}" for number in range(len(CASES))])
def test_a_patch_gives_what_kubernetes_gives(case: dict[str, Any]) -> None:
    given = copy.deepcopy(case)
    schema = SCHEMAS[case["type"]]
    if "error" in case:
        with pytest.raises(Refused) as refusal:
            strategic_merge(case["original"], case["patch"], schema)
        assert refusal.value.status.message == case["error"]
    else:
        assert strategic_merge(case["original"], case["patch"], schema) == case["result"]
    assert case == given


LIVE = {
    "mergingList": [{"name": "a", "value": "1"}, {"name": "b"}],
    "mergingIntList": [1, 2, 3],
    "simpleMap": {"k": "v"},
    "mergeItemPtr": {"name": "p", "value": "1"},
    "replacingItem": {"a": {"b": 1}},
}


@pytest.mark.parametrize(
    ("patch", "code", "reason", "message"),
    [
        pytest.param(
            {"mergingList": [{"value": "x"}]},
            500,
            "",
            "map: map[value:x] does not contain declared merge key: name",
            id="an item without its key",
        ),
        pytest.param(
            {"mergingIntList": ["x"]},
            500,
            "",
            "list element types are not identical: [[1 2 3] [x]]",
            id="mixed items",
        ),
        pytest.param(
            {"mergingIntList": [None]},
            500,
            "",
            "list element types are not identical: [[1 2 3] [<nil>]]",
            id="null among numbers",
        ),
        pytest.param(
            {"mergingList": [{"name": "a", "$patch": "bogus"}]},
            500,
            "",
            "unknown patch type: bogus in map: map[$patch:bogus name:a]",
            id="unknown directive in an item",
        ),
        pytest.param(
            {"mergeItemPtr": {"$patch": 5}},
            500,
            "",
            "unknown patch type: %!s(int64=5) in map: map[$patch:5]",
            id="a directive that is no text",
        ),
        pytest.param(
            {"mergingList": [{"name": "a", "$patch": "merge"}]},
            500,
            "",
            "merging lists cannot yet be specified in the patch",
            id="merge directive",
        ),
        pytest.param(
            {"mergingList": [{"$patch": "delete"}]},
            500,
            "",
            "map: map[$patch:delete] does not contain declared merge key: name",
            id="delete without a key",
        ),
        pytest.param({"$retainKeys": 5}, 400, "BadRequest", "invalid patch format of retainKeys", id="retain no list"),
        pytest.param(
            {"$retainKeys": ["a"], "value": "1"},
            400,
            "BadRequest",
            "invalid patch format of retainKeys",
            id="a field that is not retained",
        ),
        pytest.param(
            {"$setElementOrder/mergingList": 5},
            500,
            "",
            "expected a []interface {}, but received a int64",
            id="order no list",
        ),
        pytest.param(
            {"$setElementOrder/mergingList": [{"name": "x"}], "mergingList": [{"name": "a", "value": "z"}]},
            500,
            "",
            "The order in patch list:\n[map[name:a value:z]]\n doesn't match $setElementOrder list:\n[map[name:x]]\n",
            id="an item that has no place in the order",
        ),
        pytest.param(
            {"$setElementOrder/mergingList": [{"value": "x"}]},
            500,
            "",
            "map: map[value:x] does not contain declared merge key: name",
            id="an order without keys",
        ),
        pytest.param(
            {"$setElementOrder": []},
            400,
            "BadRequest",
            "invalid patch format of setElementOrder list",
            id="order of what",
        ),
        pytest.param(
            {"$setElementOrder/bogus": []},
            500,
            "",
            'unable to find api field in struct MergeItem for the json field "bogus"',
            id="order of an unknown field",
        ),
        pytest.param(
            {"$deleteFromPrimitiveList": [1]},
            400,
            "BadRequest",
            "invalid patch format of primitive list",
            id="delete from what",
        ),
        pytest.param(
            [],
            400,
            "BadRequest",
            "json: cannot unmarshal array into Go value of type map[string]interface {}",
            id="a list",
        ),
    ],
)
def test_a_patch_that_cannot_be_carried_out_is_refused_in_kubernetes_words(
    patch: Any, code: int, reason: str, message: str
) -> None:
    with pytest.raises(Refused) as refusal:
        strategic_merge(LIVE, patch, MERGE_ITEM)
    status = refusal.value.status
    assert (status.code, status.reason, status.message) == (code, reason, message)


def test_a_map_within_a_map_cannot_be_merged() -> None:
    schema = Schema(
        type="object",
        properties={"m": Schema(type="object", additional=Schema(type="object", properties={"x": Schema()}))},
    )
    with pytest.raises(Refused, match="data type is not struct, instead is: map"):
        strategic_merge({"m": {"k": {"x": 1}}}, {"m": {"k": {"x": 2}}}, schema)


def test_null_is_no_change() -> None:
    assert strategic_merge(LIVE, None, MERGE_ITEM) == LIVE


def test_a_patch_that_nests_without_end_is_refused() -> None:
    deep: dict[str, Any] = {}
    live: dict[str, Any] = {}
    for _ in range(3000):
        deep, live = {"mergeItemPtr": deep}, {"mergeItemPtr": live}
    with pytest.raises(Refused, match="max depth"):
        strategic_merge(live, deep, MERGE_ITEM)


NAMES = st.sampled_from(["a", "b", "c", "d"])
ITEMS = st.lists(
    st.fixed_dictionaries({"name": NAMES}, optional={"value": st.sampled_from(["1", "2"])}),
    unique_by=lambda item: item["name"],
    max_size=4,
)


@given(ITEMS, ITEMS)
def test_merged_lists_have_every_item_once_and_keep_the_order_of_the_patch(live: list[Any], patch: list[Any]) -> None:
    merged = strategic_merge({"mergingList": live}, {"mergingList": patch}, MERGE_ITEM)["mergingList"]
    names = [item["name"] for item in merged]
    asked = [item["name"] for item in patch]
    assert sorted(names) == sorted({item["name"] for item in live} | set(asked))
    assert [name for name in names if name in asked] == asked


@given(ITEMS, ITEMS)
def test_a_merge_twice_is_a_merge_once(live: list[Any], patch: list[Any]) -> None:
    once = strategic_merge({"mergingList": live}, {"mergingList": patch}, MERGE_ITEM)
    assert strategic_merge(once, {"mergingList": patch}, MERGE_ITEM) == once


@pytest.mark.parametrize(
    ("field", "items"),
    [
        ("mergingList", [{"name": f"n{number}", "value": "v"} for number in range(30_000)]),
        ("mergingIntList", list(range(60_000))),
    ],
)
def test_the_time_to_merge_a_list_grows_with_its_length_and_not_with_its_square(field: str, items: list[Any]) -> None:
    began = time.process_time()
    merged = strategic_merge({field: items}, {field: items}, merge_item_schema())
    assert time.process_time() - began < 10
    assert merged[field] == items
