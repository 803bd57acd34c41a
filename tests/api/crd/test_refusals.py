"""What has no CRD schema is refused by one sentence that names the struct, the field, and the way out."""

from collections.abc import Callable
from datetime import timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, Optional

import msgspec
import pytest

from shoal.api.crd import Rule, SchemaError, field_schema, object_schema, schema_of, struct_schema
from shoal.api.meta.objects import Wire
from tests.support.schemas.structs import a_struct


class Tree(Wire, frozen=True, kw_only=True):
    leaves: list[str] = []
    branches: Optional[list["Tree"]] = None  # noqa: UP045 - the quoted name cannot be joined by a bar


class Tagged(msgspec.Struct, tag=True):
    name: str


class Row(msgspec.Struct, array_like=True):
    name: str


class Port(Wire, frozen=True, kw_only=True):
    name: str = ""
    numbers: list[int] = []


class NamedPort(Wire, frozen=True, kw_only=True):
    name: str


@pytest.mark.parametrize(
    ("field", "problem"),
    [
        pytest.param(complex, "is complex, which no CRD schema can express", id="foreign type"),
        pytest.param(Callable[[], None], "no CRD schema can express", id="function"),
        pytest.param(timedelta, "is timedelta, which no CRD schema can express", id="timedelta"),
        pytest.param(Decimal, "is decimal, which no CRD schema can express", id="decimal"),
        pytest.param(tuple[int, str], "is tuple, which no CRD schema can express", id="tuple of fixed length"),
        pytest.param(int | bool, "is int or bool, which no CRD schema can express", id="union of scalars"),
        pytest.param(str | list[str], "is str or list, which no CRD schema can express", id="string or list"),
        pytest.param(dict[int, str], "is a map by int: the keys of JSON are strings", id="map by integer"),
        pytest.param(list[dict[int, str]], "is a map by int", id="deep inside"),
        pytest.param(Literal["a", 1], "may be 1, 'a': an enum needs values of one type", id="mixed enum"),
        pytest.param(Tagged, "holds Tagged, which is tagged", id="tagged struct"),
        pytest.param(Row, "holds Row, which is written as an array", id="struct as array"),
        pytest.param(Annotated[int, msgspec.Meta(ge=0)], "is checked while decoding (ge)", id="enforced bound"),
        pytest.param(
            Annotated[str, msgspec.Meta(min_length=1, pattern="a")],
            "is checked while decoding (min_length, pattern): state bounds with field_schema instead",
            id="enforced length and pattern",
        ),
        pytest.param(
            Annotated[int, msgspec.Meta(ge=0)] | str, "is checked while decoding (ge)", id="enforced bound in a union"
        ),
        pytest.param(Annotated[int, field_schema(pattern="a")], "states pattern, which does not fit", id="misplaced"),
        pytest.param(
            Annotated[str, field_schema(minimum=1)], "states minimum, which does not fit type string", id="minimum"
        ),
        pytest.param(
            Annotated[str, field_schema(list_type="atomic")], "states x-kubernetes-list-type", id="list type of string"
        ),
        pytest.param(
            Annotated[list[str], field_schema(map_type="atomic")], "states x-kubernetes-map-type", id="map type of list"
        ),
        pytest.param(
            Annotated[str, msgspec.Meta(extra_json_schema={"contentEncoding": "x"})],
            "states contentEncoding, which CRD schemas do not know",
            id="unknown keyword",
        ),
        pytest.param(
            Annotated[str, field_schema(format="int32")],
            "states format int32, which is for type integer and not string",
            id="format of another type",
        ),
        pytest.param(
            Annotated[int, field_schema(format="date-time")],
            "states format date-time, which is for type string",
            id="date",
        ),
        pytest.param(
            Annotated[str, field_schema(min_length=3, max_length=2)],
            "states minLength 3 above maxLength 2",
            id="bounds",
        ),
        pytest.param(
            Annotated[int, field_schema(exclusive_minimum=True)],
            "states exclusiveMinimum without minimum",
            id="exclusive",
        ),
        pytest.param(Annotated[str, field_schema(pattern="(")], "which is no regular expression", id="pattern"),
        pytest.param(Annotated[str, field_schema(default=1)], "has default 1, which is no string", id="default type"),
        pytest.param(Annotated[int, field_schema(default=True)], "has default True, which is no integer", id="bool"),
        pytest.param(
            Annotated[str, field_schema(default=None)],
            "which is null, and the field is not nullable",
            id="null default",
        ),
        pytest.param(
            Annotated[str, field_schema(enum=("a",), default="b")],
            "has default 'b', which is none of 'a'",
            id="default",
        ),
        pytest.param(
            Annotated[int, field_schema(minimum=1, default=0)],
            "has default 0, which is below the minimum 1",
            id="below",
        ),
        pytest.param(
            Annotated[list[int], field_schema(default=["a"])], "which holds 'a', which is no integer", id="default item"
        ),
        pytest.param(Annotated[NamedPort, field_schema(default={"nam": "a"})], "which lacks name", id="lacking"),
        pytest.param(
            Annotated[Port, field_schema(default={"nam": "a"})],
            "which has nam, which the schema does not know",
            id="default with an unknown field",
        ),
        pytest.param(Annotated[str, field_schema(enum=("a", 1))], "has 1 in its enum, which is no string", id="enum"),
        pytest.param(
            Annotated[list[Port], field_schema(list_type="map")], "without list_map_keys", id="map without keys"
        ),
        pytest.param(
            Annotated[list[Port], field_schema(list_map_keys=("name",))], "without list_type map", id="keys alone"
        ),
        pytest.param(
            Annotated[list[Port], field_schema(list_type="map", list_map_keys=("label",))],
            "has list_map_keys label, which its items do not have",
            id="unknown key",
        ),
        pytest.param(
            Annotated[list[Port], field_schema(list_type="map", list_map_keys=("name",))],
            "has list_map_keys name, which its items must require or default",
            id="optional key",
        ),
        pytest.param(
            Annotated[list[Port], field_schema(list_type="map", list_map_keys=("numbers",))],
            "has list_map_keys numbers, which is no scalar",
            id="key that is a list",
        ),
        pytest.param(set[Port], "is a list of type set, whose items must be scalars or atomic", id="set of objects"),
        pytest.param(
            Annotated[dict[str, str], field_schema(embedded_resource=True)],
            "is an embedded resource without fields",
            id="embedded resource of strings",
        ),
        pytest.param(Annotated[str, field_schema(rules=[Rule(" ")])], "has an empty rule", id="empty rule"),
        pytest.param(
            Annotated[str, field_schema(rules=[Rule("self ==\n'a'")])],
            "several lines without a message",
            id="long rule",
        ),
        pytest.param(
            Annotated[str, field_schema(rules=[Rule("self == 'a'", "two\nlines")])],
            "message breaks its line",
            id="message",
        ),
        pytest.param(
            Annotated[str, field_schema(rules=[Rule("self == 'a'", reason="Wrong")])], "with reason Wrong", id="reason"
        ),
        pytest.param(
            Annotated[str, field_schema(rules=[Rule("self == 'a'", field_path="a")])],
            "must begin with a dot",
            id="path",
        ),
    ],
)
def test_a_type_without_a_schema_is_refused_by_name(field: Any, problem: str) -> None:
    with pytest.raises(SchemaError) as refused:
        schema_of(a_struct("Outer", inner=a_struct("Inner", some_field=field)))
    assert (refused.value.struct, refused.value.field) == ("Inner", "some_field")
    assert str(refused.value).startswith("Inner.some_field ")
    assert problem in refused.value.problem
    assert "\n" not in str(refused.value)


def test_a_struct_inside_itself_is_refused() -> None:
    with pytest.raises(SchemaError, match=r"Tree\.branches contains Tree inside itself"):
        schema_of(a_struct(tree=Tree))


def test_a_struct_may_be_used_twice_side_by_side() -> None:
    inner = a_struct("Inner", name=str)
    assert schema_of(a_struct(first=inner, second=inner))["properties"]["first"]["properties"]


def test_a_shape_breaks_the_circle() -> None:
    struct = a_struct(tree=Annotated[Tree, field_schema(shape=dict[str, Any])])
    assert schema_of(struct)["properties"]["tree"]["x-kubernetes-preserve-unknown-fields"] is True


def test_wrong_facts_of_a_struct_are_refused_by_its_name() -> None:
    struct = a_struct("Inner", schema=struct_schema(min_properties=3, max_properties=2), name=str)
    with pytest.raises(SchemaError, match="Inner states minProperties 3 above maxProperties 2"):
        schema_of(a_struct("Outer", inner=struct))


def test_only_an_object_is_a_kind() -> None:
    with pytest.raises(SchemaError, match=r"Thing is no API object, it lacks apiVersion, kind: derive it from Object"):
        object_schema(a_struct(metadata=dict, spec=dict))
