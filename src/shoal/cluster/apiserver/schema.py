"""The shape of a value: one node type that decoding, patches, apply, validation and OpenAPI all read.

Built-in kinds get theirs from the kind tables, custom kinds from their CRD. A node describes a *place*: two fields of
the same type have two nodes, which share their children but may differ in how they merge, default or are left out.
Nodes may form cycles (JSONSchemaProps holds itself). They are made once and never changed.
"""

from __future__ import annotations

import enum
from dataclasses import dataclass, field
from typing import Any

import msgspec


class ListType(enum.StrEnum):
    """How the items of a list are told apart (x-kubernetes-list-type)."""

    ATOMIC = "atomic"
    SET = "set"
    MAP = "map"


class Omit(enum.Enum):
    """When Go leaves a field of a built-in kind out of its JSON."""

    NEVER = 0
    EMPTY = 1  # omitempty: "", 0, false, nil, no items; a struct that is no pointer is always written
    ZERO = 2  # omitzero: also a struct that is all zero


@dataclass(eq=False, slots=True, kw_only=True)
class Schema:
    """One place in an object."""

    type: str = ""
    """object, array, string, integer, number, boolean; empty for any JSON value."""
    format: str = ""
    """int32, int64, double, byte, date-time, micro-time, quantity, int-or-string, … as far as it matters here."""

    properties: dict[str, Schema] = field(default_factory=dict)
    """The fields of an object; empty for a map."""
    additional: Schema | None = None
    """What each value of a map is."""
    items: Schema | None = None
    """What each item of a list is."""

    list_type: ListType = ListType.ATOMIC
    list_keys: tuple[str, ...] = ()
    is_atomic: bool = False
    """Whether a map or struct is owned and replaced whole (x-kubernetes-map-type: atomic)."""
    merge_key: str = ""
    """The key by which a strategic merge patch matches list items."""
    merge_strategies: frozenset[str] = frozenset()
    """Of merge, replace and retainKeys, those that a strategic merge patch follows here."""

    default: Any = msgspec.UNSET
    nullable: bool = False
    preserves_unknown: bool = False
    """Whether fields that are not declared are kept (x-kubernetes-preserve-unknown-fields, RawExtension, …)."""
    is_embedded: bool = False
    """Whether the value is an object of its own, with apiVersion, kind and metadata."""
    required: frozenset[str] = frozenset()
    enum: tuple[Any, ...] = ()
    raw: dict[str, Any] | None = None
    """Of a custom kind: the JSON schema as its CRD states it, for validation, rules and OpenAPI."""

    go_type: str = ""
    """Of a built-in kind: the Go type, such as ``v1.PodSpec`` or ``[]v1.Container``, for messages and protobuf."""
    type_name: str = ""
    """Of a built-in kind: the name of a type that several places share, such as ``core.v1.PodSpec``, for OpenAPI."""
    number: int = 0
    """Of a built-in kind: the protobuf field number."""
    is_pointer: bool = False
    """Of a built-in kind: whether unset and zero are two things."""
    inlined: tuple[Schema, ...] = ()
    """Of a built-in kind: the structs whose fields JSON has among these ``properties``; protobuf nests them."""
    omit: Omit = Omit.EMPTY

    shape: Any = None
    """What apply has made of a kind's root, once it was asked for."""

    @property
    def is_map(self) -> bool:
        """Whether it is an object whose keys are not known beforehand."""
        return self.type == "object" and self.additional is not None
