"""From types to structural schemas: one table for what types say, one for what annotations add."""

import enum
import uuid
from datetime import date, datetime
from typing import Annotated, Any, Literal

import msgspec
import pytest

from shoal.api.crd import Int32, Int64, Rule, field_schema, object_schema, schema_of, struct_schema
from shoal.api.crd.well_known import QUANTITY_PATTERN
from shoal.api.meta import Condition, IntOrString, LabelSelector, Object, QuantityString, Wire
from tests.support.schemas.structs import a_kind, a_struct

INT_OR_STRING = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
QUANTITY = {**INT_OR_STRING, "pattern": QUANTITY_PATTERN}
OPEN = {"x-kubernetes-preserve-unknown-fields": True}


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Size(enum.IntEnum):
    SMALL = 1
    LARGE = 2


class Port(Wire, frozen=True, kw_only=True):
    name: str
    port: int


class DefaultedPort(Wire, frozen=True, kw_only=True):
    name: Annotated[str, field_schema(default="main")] = ""


@pytest.mark.parametrize(
    ("type_", "schema"),
    [
        pytest.param(bool, {"type": "boolean"}, id="bool"),
        pytest.param(int, {"type": "integer"}, id="int"),
        pytest.param(float, {"type": "number"}, id="float"),
        pytest.param(int | float, {"type": "number"}, id="int or float"),
        pytest.param(str, {"type": "string"}, id="str"),
        pytest.param(bytes, {"type": "string", "format": "byte"}, id="bytes"),
        pytest.param(datetime, {"type": "string", "format": "date-time"}, id="datetime"),
        pytest.param(date, {"type": "string", "format": "date"}, id="date"),
        pytest.param(uuid.UUID, {"type": "string", "format": "uuid"}, id="uuid"),
        pytest.param(Int32, {"type": "integer", "format": "int32"}, id="int32"),
        pytest.param(Int64, {"type": "integer", "format": "int64"}, id="int64"),
        pytest.param(Int64 | None, {"type": "integer", "format": "int64"}, id="optional int64"),
        pytest.param(Any, OPEN, id="any"),
        pytest.param(msgspec.Raw, OPEN, id="raw"),
        pytest.param(dict[str, Any], {"type": "object", **OPEN}, id="open object"),
        pytest.param(dict[str, msgspec.Raw], {"type": "object", **OPEN}, id="open object of raw values"),
        pytest.param(dict, {"type": "object", **OPEN}, id="bare dict"),
        pytest.param(dict[str, int], {"type": "object", "additionalProperties": {"type": "integer"}}, id="map"),
        pytest.param(list[str], {"type": "array", "items": {"type": "string"}}, id="list"),
        pytest.param(list, {"type": "array", "items": OPEN}, id="bare list"),
        pytest.param(tuple[str, ...], {"type": "array", "items": {"type": "string"}}, id="tuple of any length"),
        pytest.param(
            set[str], {"type": "array", "items": {"type": "string"}, "x-kubernetes-list-type": "set"}, id="set"
        ),
        pytest.param(
            frozenset[int],
            {"type": "array", "items": {"type": "integer"}, "x-kubernetes-list-type": "set"},
            id="frozenset",
        ),
        pytest.param(Literal["a", "b"], {"type": "string", "enum": ["a", "b"]}, id="literal strings"),
        pytest.param(Literal[1, 2], {"type": "integer", "enum": [1, 2]}, id="literal integers"),
        pytest.param(Literal["a", None], {"type": "string", "enum": ["a"]}, id="optional literal"),
        pytest.param(Colour, {"type": "string", "enum": ["red", "blue"]}, id="enum of strings"),
        pytest.param(Size, {"type": "integer", "enum": [1, 2]}, id="enum of integers"),
        pytest.param(IntOrString, INT_OR_STRING, id="int or string"),
        pytest.param(IntOrString | None, INT_OR_STRING, id="optional int or string"),
        pytest.param(QuantityString, QUANTITY, id="quantity"),
        pytest.param(dict[str, QuantityString], {"type": "object", "additionalProperties": QUANTITY}, id="quantities"),
        pytest.param(
            list[list[int]],
            {"type": "array", "items": {"type": "array", "items": {"type": "integer"}}},
            id="list of lists",
        ),
    ],
)
def test_a_type_says_its_schema(type_: Any, schema: dict[str, Any]) -> None:
    assert schema_of(type_) == schema


@pytest.mark.parametrize(
    ("type_", "facts", "added"),
    [
        pytest.param(str, field_schema("In words."), {"description": "In words."}, id="description"),
        pytest.param(str, msgspec.Meta(description="In words."), {"description": "In words."}, id="msgspec's own"),
        pytest.param(str, field_schema(default=""), {"default": ""}, id="empty default"),
        pytest.param(int, field_schema(default=0), {"default": 0}, id="zero default"),
        pytest.param(bool, field_schema(default=False), {"default": False}, id="false default"),
        pytest.param(list[str], field_schema(default=[]), {"default": []}, id="empty list default"),
        pytest.param(dict[str, int], field_schema(default={"a": 1}), {"default": {"a": 1}}, id="object default"),
        pytest.param(
            str, field_schema(nullable=True, default=None), {"nullable": True, "default": None}, id="null default"
        ),
        pytest.param(IntOrString, field_schema(default="10%"), {"default": "10%"}, id="default of int or string"),
        pytest.param(str, field_schema(nullable=True), {"nullable": True}, id="nullable"),
        pytest.param(str, field_schema(enum=("a", "b")), {"enum": ["a", "b"]}, id="enum"),
        pytest.param(int, field_schema(enum=(1, 2)), {"enum": [1, 2]}, id="enum of integers"),
        pytest.param(str, field_schema(format="ipv4"), {"format": "ipv4"}, id="format of string"),
        pytest.param(int, field_schema(format="int32"), {"format": "int32"}, id="format of integer"),
        pytest.param(float, field_schema(format="double"), {"format": "double"}, id="format of number"),
        pytest.param(str, field_schema(pattern="^a+$"), {"pattern": "^a+$"}, id="pattern"),
        pytest.param(
            str, field_schema(min_length=0, max_length=9), {"minLength": 0, "maxLength": 9}, id="length of string"
        ),
        pytest.param(int, field_schema(minimum=0, maximum=9), {"minimum": 0, "maximum": 9}, id="bounds"),
        pytest.param(
            float,
            field_schema(minimum=0, exclusive_minimum=True, maximum=1, exclusive_maximum=True),
            {"minimum": 0, "exclusiveMinimum": True, "maximum": 1, "exclusiveMaximum": True},
            id="exclusive bounds",
        ),
        pytest.param(int, field_schema(multiple_of=4), {"multipleOf": 4}, id="multiple"),
        pytest.param(
            list[str], field_schema(min_items=1, max_items=8), {"minItems": 1, "maxItems": 8}, id="length of list"
        ),
        pytest.param(
            dict[str, str],
            field_schema(min_properties=1, max_properties=8),
            {"minProperties": 1, "maxProperties": 8},
            id="size of map",
        ),
        pytest.param(
            list[str], field_schema(list_type="atomic"), {"x-kubernetes-list-type": "atomic"}, id="atomic list"
        ),
        pytest.param(list[str], field_schema(list_type="set"), {"x-kubernetes-list-type": "set"}, id="list as set"),
        pytest.param(
            list[Port],
            field_schema(list_type="map", list_map_keys=("name", "port")),
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name", "port"]},
            id="list as map",
        ),
        pytest.param(
            list[DefaultedPort],
            field_schema(list_type="map", list_map_keys=("name",)),
            {"x-kubernetes-list-type": "map", "x-kubernetes-list-map-keys": ["name"]},
            id="list as map by a defaulted key",
        ),
        pytest.param(
            dict[str, str], field_schema(map_type="atomic"), {"x-kubernetes-map-type": "atomic"}, id="atomic map"
        ),
        pytest.param(
            dict[str, str], field_schema(map_type="granular"), {"x-kubernetes-map-type": "granular"}, id="granular map"
        ),
        pytest.param(
            a_struct(name=str),
            field_schema(preserve_unknown_fields=True),
            {"x-kubernetes-preserve-unknown-fields": True},
            id="struct with unknown fields",
        ),
        pytest.param(
            dict[str, Any],
            field_schema(embedded_resource=True),
            {"x-kubernetes-embedded-resource": True},
            id="embedded resource",
        ),
        pytest.param(
            str,
            field_schema(
                rules=[
                    Rule("self != ''"),
                    Rule(
                        "self == oldSelf.orValue(self)",
                        "never changes",
                        message_expression="'is ' + self",
                        reason="FieldValueForbidden",
                        field_path=".name",
                        optional_old_self=True,
                    ),
                ]
            ),
            {
                "x-kubernetes-validations": [
                    {"rule": "self != ''"},
                    {
                        "rule": "self == oldSelf.orValue(self)",
                        "message": "never changes",
                        "messageExpression": "'is ' + self",
                        "reason": "FieldValueForbidden",
                        "fieldPath": ".name",
                        "optionalOldSelf": True,
                    },
                ]
            },
            id="rules",
        ),
    ],
)
def test_an_annotation_adds_its_facts(type_: Any, facts: msgspec.Meta, added: dict[str, Any]) -> None:
    plain = schema_of(type_)
    assert schema_of(Annotated[type_, facts]) == {**plain, **added}
    assert schema_of(Annotated[type_ | None, facts]) == {**plain, **added}, "facts hold for optional fields too"
    assert schema_of(list[Annotated[type_, facts]])["items"] == {**plain, **added}, "and for items"


def test_facts_of_nested_annotations_add_up_and_the_outer_wins() -> None:
    inner = Annotated[str, field_schema("inner", min_length=1, rules=[Rule("self != 'a'")])]
    outer = Annotated[inner | None, field_schema("outer", max_length=9, rules=[Rule("self != 'b'")])]
    assert schema_of(outer) == {
        "description": "outer",
        "type": "string",
        "minLength": 1,
        "maxLength": 9,
        "x-kubernetes-validations": [{"rule": "self != 'a'"}, {"rule": "self != 'b'"}],
    }


def test_fields_are_named_as_on_the_wire_and_sorted() -> None:
    struct = a_struct(node_label=str, alias=str, gpus=(str, msgspec.field(name="selectedGPUs", default="")))
    assert list(schema_of(struct)["properties"]) == ["alias", "nodeLabel", "selectedGPUs"]


@pytest.mark.parametrize(
    ("field", "required"),
    [
        pytest.param(str, True, id="no default"),
        pytest.param((str, ""), False, id="default"),
        pytest.param((str | None, None), False, id="optional"),
        pytest.param((list[str], []), False, id="list with default"),
        pytest.param((str | msgspec.UnsetType, msgspec.UNSET), False, id="unset"),
        pytest.param((Annotated[str, field_schema(required=True)], ""), True, id="default, and still required"),
        pytest.param((Annotated[str | None, field_schema(required=True)], None), True, id="optional only for us"),
        pytest.param(Annotated[str, field_schema(required=False)], False, id="no default, and still optional"),
        pytest.param((Annotated[str, field_schema(default="a")], ""), False, id="default of the server"),
    ],
)
def test_a_field_is_required_unless_it_has_a_default_or_says_otherwise(field: Any, required: bool) -> None:
    assert schema_of(a_struct(name=field)).get("required", []) == (["name"] if required else [])


def test_a_struct_is_described_by_the_first_paragraph_of_its_docstring() -> None:
    struct = a_struct(doc="A thing of\n    two lines.\n\n    And more for programmers.", name=str)
    assert schema_of(struct)["description"] == "A thing of two lines."
    assert "description" not in schema_of(a_struct(name=str))
    assert schema_of(a_struct(outer=struct))["properties"]["outer"]["description"] == "A thing of two lines."
    described = a_struct(outer=Annotated[struct, field_schema("This one.")])
    assert schema_of(described)["properties"]["outer"]["description"] == "This one."


def test_facts_of_a_struct_hold_wherever_it_is_used_and_a_field_may_add_to_them() -> None:
    struct = a_struct(
        schema=struct_schema(
            rules=[Rule("has(self.a) != has(self.b)", "one of a and b")],
            map_type="atomic",
            min_properties=1,
            max_properties=2,
        ),
        a=(str, ""),
        b=(str, ""),
    )
    whole = a_struct(
        plain=struct, strict=Annotated[struct | None, field_schema(min_properties=2, rules=[Rule("self.a == 'a'")])]
    )
    plain, strict = schema_of(whole)["properties"].values()
    assert plain["minProperties"] == 1
    assert plain["maxProperties"] == 2
    assert plain["x-kubernetes-map-type"] == "atomic"
    assert [rule["rule"] for rule in plain["x-kubernetes-validations"]] == ["has(self.a) != has(self.b)"]
    assert strict["minProperties"] == 2
    assert [rule["rule"] for rule in strict["x-kubernetes-validations"]] == [
        "has(self.a) != has(self.b)",
        "self.a == 'a'",
    ]


def test_an_empty_struct_is_an_object() -> None:
    assert schema_of(a_struct()) == {"type": "object"}


def test_a_shape_replaces_the_type_that_is_decoded() -> None:
    template = a_struct("Template", doc="A template.", image=str)
    struct = a_struct(
        template=(Annotated[dict[str, Any], field_schema(shape=template)], {}),
        number=Annotated[msgspec.Raw, field_schema("A number.", shape=Int32, minimum=1)],
    )
    assert schema_of(struct)["properties"] == {
        "number": {"description": "A number.", "type": "integer", "format": "int32", "minimum": 1},
        "template": schema_of(template),
    }


def test_an_object_leaves_its_identity_to_the_server() -> None:
    schema = object_schema(a_kind(doc="A thing.", spec=a_struct(size=int)))
    assert list(schema["properties"]) == ["apiVersion", "kind", "metadata", "spec"]
    assert schema["properties"]["metadata"] == {"type": "object"}
    assert {schema["properties"][key]["type"] for key in ("apiVersion", "kind")} == {"string"}
    assert schema["required"] == ["spec"]
    assert schema["description"] == "A thing."


def test_rules_on_the_whole_object_are_kept() -> None:
    rule = Rule("size(self.metadata.name) < 45", "the name is too long")
    schema = object_schema(a_kind(schema=struct_schema(rules=[rule]), spec=(a_struct(), a_struct()())))
    assert schema["x-kubernetes-validations"] == [rule.to_wire()]


def test_a_typed_embedded_resource_leaves_its_identity_to_the_server_too() -> None:
    claim = a_kind("Claim", spec=(a_struct(size=(str, "")), None))
    schema = schema_of(Annotated[claim, field_schema(embedded_resource=True)])
    assert schema["properties"]["metadata"] == {"type": "object"}
    assert schema["properties"]["spec"]["properties"] == {"size": {"type": "string"}}


def test_keys_come_in_one_order_however_facts_were_stated() -> None:
    facts = field_schema("A name.", pattern="^a$", max_length=3, min_length=1, default="a", nullable=True)
    assert list(schema_of(Annotated[str, facts])) == [
        "description",
        "type",
        "nullable",
        "default",
        "pattern",
        "minLength",
        "maxLength",
    ]


def test_a_condition_has_the_schema_of_kubernetes_own() -> None:
    schema = schema_of(list[Condition])["items"]
    assert schema["required"] == ["lastTransitionTime", "message", "reason", "status", "type"]
    assert schema["properties"]["status"]["enum"] == ["False", "True", "Unknown"]
    assert schema["properties"]["reason"]["maxLength"] == 1024
    assert schema["properties"]["observedGeneration"]["format"] == "int64"
    assert schema["properties"].keys() == {field.encode_name for field in msgspec.inspect.type_info(Condition).fields}  # type: ignore[attr-defined]


def test_a_label_selector_is_replaced_as_a_whole() -> None:
    schema = schema_of(LabelSelector)
    assert schema["x-kubernetes-map-type"] == "atomic"
    assert schema["properties"]["matchExpressions"]["items"]["required"] == ["key", "operator"]


def test_what_was_returned_can_be_changed_without_harm() -> None:
    first = schema_of(dict[str, QuantityString])
    first["additionalProperties"]["anyOf"].clear()
    assert schema_of(dict[str, QuantityString])["additionalProperties"] == QUANTITY


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(b'{"spec":{"size":-5,"name":"","mode":"other","ports":[]}}', id="every bound broken"),
        pytest.param(b'{"spec":{"size":1,"name":"a","mode":"a","extra":1}}', id="unknown field"),
        pytest.param(b'{"spec":{"mode":"a"}}', id="required on the wire, defaulted here"),
    ],
)
def test_facts_are_never_enforced_while_decoding(content: bytes) -> None:
    rules = [Rule("self.size > 3")]
    spec = a_struct(
        schema=struct_schema(rules=rules, min_properties=9),
        size=(Annotated[int, field_schema(minimum=0, required=True)], 0),
        name=(Annotated[str, field_schema(pattern="^a$", min_length=1)], ""),
        mode=Annotated[str, field_schema(enum=("a", "b"))],
        ports=(Annotated[list[int], field_schema(min_items=1)], []),
    )
    kind: type[Object] = a_kind(spec=spec)
    assert msgspec.json.decode(content, type=kind).kind == ""
