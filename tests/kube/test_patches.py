"""Merge patches lead from what is to what should be, and are empty at rest."""

from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from shoal.kube.patches import merge_patch_between

values = st.recursive(
    st.one_of(st.booleans(), st.integers(), st.text(max_size=3), st.lists(st.integers(), max_size=3)),
    lambda inner: st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)
objects = st.dictionaries(st.sampled_from("abcd"), values, max_size=4)


@given(objects, objects)
def test_a_patch_leads_from_before_to_after(before: dict[str, Any], after: dict[str, Any]) -> None:
    assert merged(before, merge_patch_between(before, after)) == after


@given(objects)
def test_nothing_to_change_gives_an_empty_patch(same: dict[str, Any]) -> None:
    assert merge_patch_between(same, same) == {}


def test_only_what_differs_is_named() -> None:
    before = {"ready": 1, "conditions": [{"type": "A"}], "deep": {"x": 1, "y": 2}, "old": True}
    after = {"ready": 2, "conditions": [{"type": "A"}], "deep": {"x": 1, "y": 3}}
    assert merge_patch_between(before, after) == {"ready": 2, "deep": {"y": 3}, "old": None}


def merged(target: Any, patch: Any) -> Any:
    """RFC 7396, as the standard states it."""
    if not isinstance(patch, dict):
        return patch
    result = dict(target) if isinstance(target, dict) else {}
    for key, value in patch.items():
        if value is None:
            result.pop(key, None)
        else:
            result[key] = merged(result.get(key), value)
    return result
