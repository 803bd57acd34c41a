"""Go's JSON round trip: what an API server would write of an object that it has read into its own types.

Fields that the type does not have are dropped, nulls are the same as nothing, scalars get their canonical form, empty
values are left out or written as Go's tags say (``status: {}``, ``containers: null``). A list or map without items is
nil, since protobuf, in which Kubernetes stores, does not tell them apart.

Each place is compiled once into a function. Those of structs walk over the given fields, not over the declared ones:
an object has few of them. They neither know where they are nor note it: the path of an unknown field is found by a
second walk, which only wrong objects need, and that of a wrong value on the way out of the exception.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable
from typing import Any

from shoal.cluster.apiserver.kinds import scalars
from shoal.cluster.apiserver.kinds.scalars import WrongType, kind_of
from shoal.cluster.apiserver.schema import Omit, Schema

__all__ = ["WrongType", "decode", "unknown_fields"]

_MOST_UNKNOWN = 100

Reader = Callable[[Any, list[str]], Any]
"""Gives what Go would write of a value that is not null; adds to the list where it drops a field."""
Zero = Callable[[], Any]
"""Makes what Go would write of a value that was never set."""


def decode(schema: Schema, value: Any, unknown: list[str]) -> Any:
    """The value in normal form, as a new value; adds ``unknown field "spec.x"`` for each field that was dropped.

    Raises WrongType with Go's message. The given value is not touched, but parts that any JSON may be are shared.
    """
    read, zero = _compiled(schema)
    dropped: list[str] = []
    try:
        decoded = zero() if value is None else read(value, dropped)
    except RecursionError as error:
        raise WrongType("", "", problem="exceeded max depth") from error
    if dropped:
        unknown += unknown_fields(schema, value)
    return decoded


def unknown_fields(schema: Schema, value: Any) -> list[str]:
    """Every field that the schema does not have, as a strict decoder words it: at most a hundred, in their order."""
    found: dict[str, None] = {}
    _collect_unknown(schema, value, "", found)
    return [f"unknown field {json.dumps(path, ensure_ascii=False)}" for path in found]


def _collect_unknown(schema: Schema, value: Any, path: str, found: dict[str, None]) -> None:
    if schema.preserves_unknown or len(found) >= _MOST_UNKNOWN:
        return
    if isinstance(value, list) and schema.items is not None:
        for position, item in enumerate(value):
            _collect_unknown(schema.items, item, f"{path}[{position}]", found)
    elif isinstance(value, dict) and schema.type == "object":
        for key, item in value.items():
            inner = schema.additional or schema.properties.get(key)
            place = f"{path}.{key}" if path else key
            if inner is not None:
                _collect_unknown(inner, item, place, found)
            elif len(found) < _MOST_UNKNOWN:
                found[place] = None


_programs: dict[Schema, tuple[Reader, Zero]] = {}
_structs: dict[int, tuple[Reader, Zero]] = {}
_compiling = threading.RLock()
"""Large objects are decoded in threads, and none may see a reader whose fields another is still compiling."""


def _compiled(schema: Schema) -> tuple[Reader, Zero]:
    with _compiling:
        program = _programs.get(schema)
        if program is None:
            program = _programs[schema] = _compile(schema)
        return program


def _compile(schema: Schema) -> tuple[Reader, Zero]:
    """How a place is read, were it the value itself and no pointer to it."""
    if schema.preserves_unknown:
        return _compile_any(schema)
    if schema.type == "array":
        assert schema.items is not None
        return _list_reader(schema, schema.items), _none
    if schema.additional is not None:
        return _map_reader(schema, schema.additional), _none
    if schema.type == "object":
        return _struct(schema)
    scalar, zero = _scalar(schema)

    def read(value: Any, _dropped: list[str]) -> Any:
        return scalar(value)

    return read, lambda: zero


def _scalar(schema: Schema) -> tuple[scalars.Scalar, Any]:
    """How a scalar is read, and what it is before it is set."""
    match schema.type, schema.format:
        case _, "quantity":
            return scalars.read_quantity, "0"
        case _, "int-or-string":
            return scalars.read_int_or_string, 0
        case _, "date-time":
            return scalars.read_time, None
        case _, "micro-time":
            return scalars.read_micro_time, None
        case _, "duration":
            return scalars.read_duration, "0s"
        case _, "byte":
            return scalars.read_bytes, None
        case "integer", _:
            return scalars.number_reader(schema.go_type, schema.format), 0
        case "number", _:
            return scalars.read_float, 0
        case "boolean", _:
            return scalars.flag_reader(schema.go_type), False
        case _:
            return scalars.text_reader(schema.go_type), ""


def _compile_any(schema: Schema) -> tuple[Reader, Zero]:
    """Any JSON, kept as it is; the schemas of CRDs have places for a schema or something else."""
    name = schema.go_type.rpartition(".")[2]
    if schema.items is None or not name.startswith("JSONSchemaPropsOr"):
        return lambda value, _dropped: value, _none
    props = schema.items

    def read_schema(value: Any) -> Any:
        # A reader of its own, which does not tell what it drops.
        return _compiled(props)[0](value, [])

    def read_or_bool(value: Any, _dropped: list[str]) -> Any:
        if value.__class__ is dict:
            return read_schema(value)
        if value.__class__ is bool:
            return value
        raise WrongType("", "", problem="boolean or JSON schema expected")

    def read_or_array(value: Any, _dropped: list[str]) -> Any:
        if value.__class__ is list and value:
            return [_zero_of(props) if item is None else read_schema(item) for item in value]
        return read_schema(value) if value.__class__ is dict else None

    def read_or_texts(value: Any, _dropped: list[str]) -> Any:
        if value.__class__ is list and value:
            return ["" if item is None else read_text(item) for item in value]
        return read_schema(value) if value.__class__ is dict else None

    read_text = scalars.text_reader("string")
    match name:
        case "JSONSchemaPropsOrBool":
            return read_or_bool, lambda: False
        case "JSONSchemaPropsOrArray":
            return read_or_array, _none
        case _:
            return read_or_texts, _none


def _list_reader(schema: Schema, items: Schema) -> Reader:
    read, zero = _compiled(items)
    zero = _none if items.is_pointer else _zero_in_protobuf(items, zero)
    go_type = schema.go_type
    is_text = items.type == "string" and not items.format

    def read_list(value: Any, dropped: list[str]) -> list[Any] | None:
        if value.__class__ is not list:
            raise WrongType(kind_of(value), go_type)
        if is_text and all(item.__class__ is str for item in value):
            return value.copy() or None
        return [zero() if item is None else read(item, dropped) for item in value] or None

    return read_list


def _map_reader(schema: Schema, values: Schema) -> Reader:
    read, zero = _compiled(values)
    zero = _none if values.is_pointer else _zero_in_protobuf(values, zero)
    if values.type == "array":
        # A list in a map is a message in protobuf, which is there even if it is empty.
        read, zero = _never_nil(read), list
    go_type = schema.go_type
    is_text = values.type == "string" and not values.format

    def read_map(value: Any, dropped: list[str]) -> dict[str, Any] | None:
        if value.__class__ is not dict:
            raise WrongType(kind_of(value), go_type)
        if is_text and all(item.__class__ is str for item in value.values()):
            return value.copy() or None
        return {key: zero() if item is None else read(item, dropped) for key, item in value.items()} or None

    return read_map


def _zero_in_protobuf(schema: Schema, zero: Zero) -> Zero:
    """What a null item of a list or a map is: bytes are there, even if they are none."""
    return str if schema.format == "byte" else zero


def _never_nil(read: Reader) -> Reader:
    def read_list(value: Any, dropped: list[str]) -> Any:
        return read(value, dropped) or []

    return read_list


def _struct(schema: Schema) -> tuple[Reader, Zero]:
    """The reader of a struct, one for all its places; it is known before its fields are compiled, for types that
    hold themselves."""
    # The properties are shared by all places of a type, and kept by this reader: their identity is the type's.
    if known := _structs.get(id(schema.properties)):
        return known
    properties = schema.properties
    go_type = schema.go_type
    readers: dict[str, Reader] = {}
    texts: set[str] = set()
    kept: set[str] = set()
    written: list[tuple[str, Zero]] = []
    find = readers.get

    def read_struct(value: Any, dropped: list[str]) -> dict[str, Any]:
        if value.__class__ is not dict:
            raise WrongType(kind_of(value), go_type)
        made: dict[str, Any] = {}
        key = ""
        try:
            for key, item in value.items():
                if item.__class__ is str and key in texts:
                    if item or key in kept:
                        made[key] = item
                    continue
                read = find(key)
                if read is None:
                    dropped.append(key)
                elif item is not None:
                    result = read(item, dropped)
                    if result or key in kept:
                        made[key] = result
        except WrongType as error:
            error.inside(go_type.rpartition(".")[2], *_embedding(schema, key), key)
            raise
        for key, zero in written:
            if key not in made:
                made[key] = zero()
        return made

    def make_zero() -> dict[str, Any]:
        return {key: zero() for key, zero in written}

    _structs[id(properties)] = read_struct, make_zero
    for name, place in properties.items():
        readers[name], zero = _compiled(place)
        if place.type == "string" and not place.format:
            texts.add(name)
        is_written = _is_written(place)
        if place.is_pointer or is_written:
            kept.add(name)
        if is_written:
            written.append((name, _none if place.is_pointer else zero))
    return read_struct, make_zero


def _is_written(place: Schema) -> bool:
    """Whether Go writes the field even where it was never set."""
    if place.omit is Omit.NEVER:
        return True
    if place.omit is Omit.ZERO or place.is_pointer:
        return False
    if place.type == "array" or place.additional is not None:
        return False
    # Structs are never empty in Go's eyes, nor are the scalars that are structs in disguise.
    return place.type == "object" or place.preserves_unknown or place.format in _STRUCT_FORMATS


_STRUCT_FORMATS = frozenset({"quantity", "int-or-string", "date-time", "micro-time", "duration"})


def _embedding(schema: Schema, field: str) -> list[str]:
    """The inlined structs by which Go reaches a field, outermost first."""
    for part in schema.inlined:
        if part.properties.get(field) is schema.properties.get(field):
            return [part.go_type.rpartition(".")[2], *_embedding(part, field)]
    return []


def _zero_of(schema: Schema) -> Any:
    return _compiled(schema)[1]()


def _none() -> None:
    return None
