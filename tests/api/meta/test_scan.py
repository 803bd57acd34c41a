"""Cutting JSON into its members by quotes and brackets alone agrees with decoding it."""

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from shoal.api.meta.scan import members

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(st.dictionaries(st.text(max_size=4), values, max_size=5))
def test_the_members_of_an_object_are_its_fields(value: dict[str, Any]) -> None:
    text = msgspec.json.format(msgspec.json.encode(value), indent=1)
    assert {name: msgspec.json.decode(part) for name, part in members(text)} == value


@given(st.lists(values, max_size=5))
def test_the_members_of_an_array_are_its_elements(value: list[Any]) -> None:
    text = msgspec.json.encode(value)
    assert [msgspec.json.decode(part) for _, part in members(text)] == value


def test_depth_is_no_obstacle() -> None:
    deep = b"[" * 50_000 + b"]" * 50_000
    assert dict(members(b'{"deep":' + deep + b',"name":"a"}')) == {"deep": deep, "name": b'"a"'}
