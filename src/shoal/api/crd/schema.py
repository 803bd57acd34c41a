"""From a type to the structural schema that the API server enforces and prunes by.

The type is read through ``msgspec.inspect``, so wire names, optional fields and nested annotations are what decoding
sees. The walk goes down the type and builds each node on the way up, where ``checks`` looks at the finished node; what
cannot be expressed is refused with the struct and the field it was found in.

A CRD schema has no references: a struct is written out wherever it is used, and a struct that contains itself has no
schema. Properties are sorted, so that moving a Python field changes no manifest.
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Any, TypeAlias

import msgspec
import msgspec.inspect as types

from shoal.api.crd import checks
from shoal.api.crd.fields import NOTHING, STRUCT_FACTS, Facts, facts_of
from shoal.api.crd.kubernetes_types import KubernetesType
from shoal.api.crd.well_known import QUANTITY_PATTERN, SHAPES

Schema: TypeAlias = dict[str, Any]


class SchemaError(Exception):
    """A type has no CRD schema: names the struct, the field as Python spells it, and what to do."""

    def __init__(self, struct: str, field: str, problem: str) -> None:
        self.struct = struct
        self.field = field
        self.problem = problem
        super().__init__(f"{struct}.{field} {problem}" if field else f"{struct} {problem}")


def object_schema(struct: type[Any]) -> Schema:
    """The schema of a whole API object, whose type, kind and metadata are the server's own business."""
    schema = schema_of(struct)
    if missing := sorted(_IDENTITY.keys() - schema.get("properties", {}).keys()):
        raise SchemaError(_name(struct), "", f"is no API object, it lacks {', '.join(missing)}: derive it from Object")
    return _with_identity(schema)


def schema_of(type_: Any) -> Schema:
    """The structural schema of any type that has one, in a fixed order of keys."""
    return _schema(types.type_info(type_), _Place(struct=_name(type_)))


_IDENTITY: Mapping[str, Schema] = {
    "apiVersion": {"description": "The API group and version that this object is written in.", "type": "string"},
    "kind": {"description": "The kind of this object.", "type": "string"},
    "metadata": {"type": "object"},
}

_SCALARS: Mapping[type[types.Type], Schema] = {
    types.BoolType: {"type": "boolean"},
    types.IntType: {"type": "integer"},
    types.FloatType: {"type": "number"},
    types.StrType: {"type": "string"},
    types.BytesType: {"type": "string", "format": "byte"},
    types.DateTimeType: {"type": "string", "format": "date-time"},
    types.DateType: {"type": "string", "format": "date"},
    types.UUIDType: {"type": "string", "format": "uuid"},
    types.AnyType: {"x-kubernetes-preserve-unknown-fields": True},
    types.RawType: {"x-kubernetes-preserve-unknown-fields": True},
}

_INT_OR_STRING: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_UNIONS: Mapping[frozenset[type[types.Type]], Schema] = {
    frozenset({types.IntType, types.FloatType}): {"type": "number"},
    frozenset({types.IntType, types.StrType}): _INT_OR_STRING,
    # A quantity: some writers send fractions as bare numbers, which are read, and which the server refuses.
    frozenset({types.IntType, types.StrType, types.FloatType}): {**_INT_OR_STRING, "pattern": QUANTITY_PATTERN},
}

_ENFORCED = ("gt", "ge", "lt", "le", "multiple_of", "min_length", "max_length", "pattern")


@dataclass(frozen=True)
class _Place:
    """Where the walk is: for messages, and to notice a struct inside itself."""

    struct: str
    field: str = ""
    within: tuple[type[Any], ...] = ()

    def refusal(self, problem: str) -> SchemaError:
        return SchemaError(self.struct, self.field, problem)


def _schema(node: types.Type, place: _Place) -> Schema:
    bare, facts = _peel(node)
    if isinstance(facts.shape, KubernetesType):
        return _finished(_kubernetes_schema(facts.shape, place), facts, place)
    if facts.shape is not None:
        return _finished(_schema(types.type_info(facts.shape), place), facts, place)
    return _finished(_bare_schema(bare, place), facts, place)


def _kubernetes_schema(shape: KubernetesType, place: _Place) -> Schema:
    try:
        return shape.schema()
    except KeyError:
        raise place.refusal(
            f"has the shape {shape.name}, whose schema was not made: name it where schemas of built-in types are made"
        ) from None


def _peel(node: types.Type) -> tuple[types.Type, Facts]:
    """A type without its annotations and without None, and all that the annotations state."""
    if isinstance(node, types.Metadata):
        bare, inner = _peel(node.type)
        return bare, facts_of(node.extra_json_schema, node.extra).over(inner)
    if isinstance(node, types.UnionType):
        some = tuple(member for member in node.types if not isinstance(member, types.NoneType))
        return _peel(some[0]) if len(some) == 1 else (types.UnionType(some), NOTHING)
    return node, NOTHING


def _bare_schema(node: types.Type, place: _Place) -> Schema:
    if enforced := [name for name in _ENFORCED if getattr(node, name, None) is not None]:
        names = ", ".join(enforced)
        raise place.refusal(f"is checked while decoding ({names}): state bounds with field_schema instead")
    if scalar := _SCALARS.get(type(node)):
        return dict(scalar)
    match node:
        case types.StructType():
            return _struct_schema(node, place)
        case types.ListType() | types.VarTupleType() | types.SetType() | types.FrozenSetType():
            return _list_schema(node, place)
        case types.DictType():
            return _map_schema(node, place)
        case types.LiteralType() | types.EnumType():
            return _enum_schema(node, place)
        case types.UnionType():
            return _union_schema(node, place)
        case _:
            raise place.refusal(f"is {_word(node)}, which no CRD schema can express: use another type, or give a shape")


def _struct_schema(node: types.StructType, place: _Place) -> Schema:
    struct = node.cls
    if shape := SHAPES.get(struct):
        return _schema(types.type_info(shape), place)
    if struct in place.within:
        raise place.refusal(f"contains {_name(struct)} inside itself, and a CRD schema cannot recurse: type it dict")
    if node.array_like:
        raise place.refusal(f"holds {_name(struct)}, which is written as an array: a CRD schema needs an object")
    if node.tag is not None:
        raise place.refusal(f"holds {_name(struct)}, which is tagged: a CRD schema knows no tagged types")
    properties: dict[str, Schema] = {}
    required = []
    for field in node.fields:
        inside = _Place(struct=_name(struct), field=field.name, within=(*place.within, struct))
        properties[field.encode_name] = _schema(field.type, inside)
        stated = _peel(field.type)[1].required
        if field.required if stated is None else stated:
            required.append(field.encode_name)
    schema: Schema = {"type": "object", "properties": dict(sorted(properties.items())), "required": sorted(required)}
    if document := vars(struct).get("__doc__"):
        schema["description"] = _first_paragraph(document)
    stated_for_struct = getattr(struct, STRUCT_FACTS, None)
    if not isinstance(stated_for_struct, msgspec.Meta):
        return _without_empty(schema)
    facts = facts_of(stated_for_struct.extra_json_schema, stated_for_struct.extra)
    return _finished(_without_empty(schema), facts, _Place(struct=_name(struct)))


def _list_schema(
    node: types.ListType | types.VarTupleType | types.SetType | types.FrozenSetType, place: _Place
) -> Schema:
    schema: Schema = {"type": "array", "items": _schema(node.item_type, place)}
    is_set = isinstance(node, types.SetType | types.FrozenSetType)
    return {**schema, "x-kubernetes-list-type": "set"} if is_set else schema


def _map_schema(node: types.DictType, place: _Place) -> Schema:
    key, _ = _peel(node.key_type)
    if not isinstance(key, types.StrType | types.AnyType):
        raise place.refusal(f"is a map by {_word(key)}: the keys of JSON are strings")
    value, facts = _peel(node.value_type)
    if isinstance(value, types.AnyType | types.RawType) and facts == NOTHING:
        return {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    return {"type": "object", "additionalProperties": _schema(node.value_type, place)}


def _enum_schema(node: types.LiteralType | types.EnumType, place: _Place) -> Schema:
    members = [member.value for member in node.cls] if isinstance(node, types.EnumType) else node.values
    chosen = [value for value in members if value is not None]
    kinds = {type(value) for value in chosen}
    for kind, name in ((str, "string"), (int, "integer"), (float, "number")):
        if kinds == {kind}:
            return {"type": name, "enum": chosen}
    raise place.refusal(f"may be {', '.join(map(repr, chosen))}: an enum needs values of one type, strings or numbers")


def _union_schema(node: types.UnionType, place: _Place) -> Schema:
    peeled = [_peel(member) for member in node.types]
    kinds = {type(bare) for bare, _ in peeled}
    facts = NOTHING
    for bare, stated in peeled:
        _bare_schema(bare, place)  # each member must be expressible by itself
        facts = stated.over(facts)
    if schema := _UNIONS.get(frozenset(kinds)):
        return _finished(deepcopy(schema), facts, place)
    names = " or ".join(_word(bare) for bare, _ in peeled)
    raise place.refusal(f"is {names}, which no CRD schema can express: use Any, or give a shape")


def _finished(schema: Schema, facts: Facts, place: _Place) -> Schema:
    """The node with what was stated about it, checked, and with its keys in the fixed order."""
    whole = {**schema, **facts.keywords}
    if facts.rules:
        stated = [rule.to_wire() for rule in facts.rules]
        whole["x-kubernetes-validations"] = [*schema.get("x-kubernetes-validations", ()), *stated]
    if whole.get("x-kubernetes-embedded-resource"):
        whole = _with_identity(whole)
    if problem := checks.problem_in(whole):
        raise place.refusal(problem)
    return {key: whole[key] for key in checks.KEYWORDS if key in whole}


def _with_identity(schema: Schema) -> Schema:
    """The schema of an object with the parts that the server itself defines reduced to what it allows to be said."""
    if "properties" not in schema:
        return schema
    own = {key: dict(_IDENTITY.get(key, value)) for key, value in schema["properties"].items()}
    return {**schema, "properties": own}


def _without_empty(schema: Schema) -> Schema:
    return {key: value for key, value in schema.items() if value not in ([], {})}


def _first_paragraph(document: str) -> str:
    paragraph, _, _ = inspect.cleandoc(document).partition("\n\n")
    return " ".join(paragraph.split())


def _name(type_: Any) -> str:
    return str(getattr(type_, "__name__", type_))


def _word(node: types.Type) -> str:
    custom = getattr(node, "cls", None)
    return _name(custom) if custom else type(node).__name__.removesuffix("Type").lower()
