"""Whatever a struct is made of: its schema is structural, the same each time, and true of what it encodes to."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

import msgspec
from hypothesis import given, note
from hypothesis import strategies as st

from shoal.api.crd import field_schema, schema_of
from shoal.api.crd.values import misfit
from tests.support.schemas.structs import a_struct
from tests.support.schemas.structural import structural_problems


@dataclass(frozen=True)
class Sort:
    """A type, and how to draw values of it."""

    type: Any
    values: st.SearchStrategy[Any]


NAMES = st.from_regex(r"x[a-z]{1,3}(_[a-z]{1,4})?", fullmatch=True)
SCALARS = st.sampled_from(
    [
        Sort(bool, st.booleans()),
        Sort(int, st.integers(-(2**53), 2**53)),
        Sort(float, st.floats(allow_nan=False, allow_infinity=False)),
        Sort(str, st.text(max_size=5)),
        Sort(int | str, st.integers(0, 9) | st.text(max_size=3)),
        Sort(str | int | float, st.sampled_from(["100m", "4Gi", 2])),
        Sort(dict[str, Any], st.dictionaries(st.text(max_size=3), st.integers() | st.text(max_size=3), max_size=2)),
        Sort(datetime, st.datetimes(timezones=st.just(UTC))),
        Sort(Annotated[int, field_schema("A share.", minimum=0, maximum=100)], st.integers(0, 100)),
        Sort(Annotated[str, field_schema(enum=("a", "b"), default="a")], st.sampled_from(["a", "b"])),
    ]
)


def lists(sorts: st.SearchStrategy[Sort]) -> st.SearchStrategy[Sort]:
    return sorts.map(lambda item: Sort(list[item.type], st.lists(item.values, max_size=3)))  # type: ignore[name-defined]


def maps(sorts: st.SearchStrategy[Sort]) -> st.SearchStrategy[Sort]:
    return sorts.map(
        lambda value: Sort(dict[str, value.type], st.dictionaries(st.text(max_size=3), value.values, max_size=3))  # type: ignore[name-defined]
    )


@st.composite
def structs(draw: st.DrawFn, sorts: st.SearchStrategy[Sort]) -> Sort:
    fields = draw(st.dictionaries(NAMES, st.tuples(sorts, st.booleans()), min_size=1, max_size=4))
    declared: dict[str, Any] = {
        name: (sort.type | None, None) if is_optional else sort.type for name, (sort, is_optional) in fields.items()
    }
    struct = a_struct("Drawn", **declared)
    values = {
        name: st.none() | sort.values if is_optional else sort.values for name, (sort, is_optional) in fields.items()
    }
    return Sort(struct, st.fixed_dictionaries(values).map(lambda drawn: struct(**drawn)))


ANY_SORT = st.recursive(SCALARS, lambda inner: lists(inner) | maps(inner) | structs(inner), max_leaves=6)


@given(structs(ANY_SORT), st.data())
def test_the_schema_of_any_struct_is_structural_and_true(sort: Sort, data: st.DataObject) -> None:
    schema = schema_of(sort.type)
    note(json.dumps(schema, indent=1))
    assert list(structural_problems(schema)) == []
    assert json.dumps(schema_of(sort.type)) == json.dumps(schema)
    encoded = msgspec.json.decode(msgspec.json.encode(data.draw(sort.values)))
    assert misfit(encoded, schema) is None
