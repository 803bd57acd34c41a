"""The types of CEL, as Kubernetes uses them: what the checker infers, and how messages name them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Type:
    """A type by its name and parameters; an object also knows its fields, a list how its items are told apart."""

    name: str
    parameters: tuple[Type, ...] = ()
    fields: Mapping[str, Type] | None = field(default=None, compare=False, repr=False)
    """Of an object: its fields, by their escaped names."""
    list_type: str = field(default="", compare=False)
    """Of a list that a schema describes: atomic, set or map, since that is how two of them compare and add."""
    list_keys: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        shown = _SHOWN.get(self.name, self.name)
        return f"{shown}({', '.join(map(str, self.parameters))})" if self.parameters else shown

    @property
    def is_dyn(self) -> bool:
        """Whether anything may be there."""
        return self.name == "dyn"

    @property
    def is_parameter(self) -> bool:
        """Whether it stands for a type that the arguments decide."""
        return len(self.name) == 1


DYN = Type("dyn")
NULL = Type("null")
BOOL = Type("bool")
INT = Type("int")
UINT = Type("uint")
DOUBLE = Type("double")
STRING = Type("string")
BYTES = Type("bytes")
TIMESTAMP = Type("google.protobuf.Timestamp")
DURATION = Type("google.protobuf.Duration")
QUANTITY = Type("kubernetes.Quantity")
URL = Type("kubernetes.URL")
SEMVER = Type("kubernetes.Semver")
NAMED_FORMAT = Type("kubernetes.NamedFormat")
IP = Type("net.IP")
CIDR = Type("net.CIDR")

_SHOWN = {"google.protobuf.Timestamp": "timestamp", "google.protobuf.Duration": "duration"}

NAMED = {
    each.name: each
    for each in (DYN, BOOL, INT, UINT, DOUBLE, STRING, BYTES, TIMESTAMP, DURATION, QUANTITY, URL, SEMVER, IP, CIDR)
} | {"null_type": NULL, "timestamp": TIMESTAMP, "duration": DURATION, "kubernetes.NamedFormat": NAMED_FORMAT}

NULLABLE = frozenset({TIMESTAMP, DURATION, QUANTITY, URL, SEMVER, NAMED_FORMAT, IP, CIDR, NULL})
"""What null may stand for, besides objects."""


def list_of(item: Type, *, list_type: str = "", keys: tuple[str, ...] = ()) -> Type:
    """A list; the last two where a schema says how its items are told apart."""
    return Type("list", (item,), list_type=list_type, list_keys=keys)


def map_of(key: Type, value: Type) -> Type:
    """A map."""
    return Type("map", (key, value))


def optional_of(value: Type) -> Type:
    """A value that may not be there."""
    return Type("optional_type", (value,))


def type_of(value: Type) -> Type:
    """The type of a type."""
    return Type("type", (value,))


def object_of(name: str, fields: Mapping[str, Type]) -> Type:
    """An object with the fields given, by their escaped names."""
    return Type(name, (), fields)


Bindings = dict[str, Type]


def unify(wanted: Type, found: Type, bound: Bindings) -> bool:
    """Whether a value of the type found fits where the other is wanted; decides type parameters on the way."""
    if wanted.is_parameter:
        known = bound.get(wanted.name)
        if known is None or known.is_dyn or (known.name == "null" and found.name != "null"):
            bound[wanted.name] = found
            return known is None or known.is_dyn or _is_nullable(found)
        return unify(known, found, bound)
    if wanted.is_dyn or found.is_dyn:
        return True
    if found.name == "null" and _is_nullable(wanted):
        return True
    if wanted.name != found.name or len(wanted.parameters) != len(found.parameters):
        return False
    if wanted.name == "type":
        return True
    return all(unify(one, other, bound) for one, other in zip(wanted.parameters, found.parameters, strict=True))


def substituted(given: Type, bound: Bindings) -> Type:
    """The type with its parameters filled in; one that nothing decided may be anything."""
    if given.is_parameter:
        return bound.get(given.name, DYN)
    if not given.parameters:
        return given
    return Type(given.name, tuple(substituted(each, bound) for each in given.parameters))


def joined(one: Type, other: Type) -> Type | None:
    """The type that both fit, or None where there is none."""
    if one.is_dyn or other.is_dyn:
        return DYN
    bound: Bindings = {}
    if unify(one, other, bound):
        # Of list(dyn) and list(int) the more telling one counts: an empty literal says nothing.
        return other if one.name == "null" or any(each.is_dyn for each in one.parameters) else one
    return other if unify(other, one, {}) else None


def _is_nullable(given: Type) -> bool:
    return given.fields is not None or given in NULLABLE
