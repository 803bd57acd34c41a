"""Kubernetes' protobuf, read by the field numbers of the kind tables: kubectl and Go's controllers write objects in it.

A body is the prefix ``k8s\\0`` and an envelope that names apiVersion and kind. How a value is written follows from its
type: texts, bytes, messages, lists and maps by length, whole numbers and booleans as varints, floats in eight bytes.
What comes out is what the same object would be in JSON, in normal form.
"""

from __future__ import annotations

import base64
import struct
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from shoal.api.meta import Duration, format_micro_time, format_time
from shoal.cluster.apiserver.kinds.bodies import BadBody
from shoal.cluster.apiserver.kinds.decode import WrongType, decode
from shoal.cluster.apiserver.schema import Schema

PREFIX = b"k8s\x00"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_VARINT, _EIGHT_BYTES, _BY_LENGTH, _FOUR_BYTES = 0, 1, 2, 5

Payload = int | bytes
Reader = Callable[[Any], Any]
"""Gives the JSON value of a payload, which is an int for a varint and bytes for all else."""
Setter = Callable[[dict[str, Any], Any], None]
Fields = dict[int, tuple[type, Setter]]
"""By number: what the payload must be, and what puts it into the object."""


class _Malformed(ValueError):
    """No protobuf, or none of the expected message; the message is Go's."""


def read_protobuf(raw: bytes, schema_of: Callable[[str, str], Schema | None]) -> dict[str, Any]:
    """The object of a body, in normal form with its apiVersion and kind; raises BadBody, or what ``schema_of`` raises.

    ``schema_of`` is asked with the apiVersion and kind of the envelope, either of which may be empty.
    """
    if not raw.startswith(PREFIX):
        shown = " ".join(str(byte) for byte in PREFIX)
        problem = f"provided data does not appear to be a protobuf message, expected prefix [{shown}]"
        raise BadBody(problem if raw else "empty data", raw)
    version, kind = "", ""
    try:
        envelope = _message(raw[len(PREFIX) :], _ENVELOPE, {})
        version, kind = envelope.get("apiVersion", ""), envelope.get("kind", "")
        schema = schema_of(version, kind)
        if schema is None:
            problem = f'no kind "{kind}" is registered for version "{version}" in scheme "pkg/runtime/scheme.go:111"'
            raise BadBody(problem, raw, version=version, kind=kind)
        value = _message(envelope.get("raw", b""), _fields(schema), {})
    except _Malformed as error:
        raise BadBody(str(error), raw, version=version, kind=kind) from error
    except RecursionError as error:
        raise BadBody("exceeded max depth", raw, version=version, kind=kind) from error
    stated = {name: said for name, said in (("apiVersion", version), ("kind", kind)) if said}
    try:
        read: dict[str, Any] = decode(schema, stated | value, [])
    except WrongType as error:
        raise BadBody(str(error), raw, version=version, kind=kind) from error
    return read


def _message(raw: bytes, fields: Fields, into: dict[str, Any]) -> dict[str, Any]:
    """Reads every field that is known; a message that comes in parts is put together."""
    position, end = 0, len(raw)
    payload: Payload
    while position < end:
        tag, position = _varint(raw, position)
        wire = tag & 7
        if wire == _BY_LENGTH:
            size, position = _varint(raw, position)
            payload, position = raw[position : position + size], position + size
        elif wire == _VARINT:
            payload, position = _varint(raw, position)
        elif wire in (_EIGHT_BYTES, _FOUR_BYTES):
            size = 8 if wire == _EIGHT_BYTES else 4
            payload, position = raw[position : position + size], position + size
        else:
            raise _Malformed(f"proto: illegal wireType {wire}")
        if position > end:
            raise _Malformed("unexpected EOF")
        known = fields.get(tag >> 3)
        if known is not None:
            expected, put = known
            if payload.__class__ is not expected:
                raise _Malformed(f"proto: wrong wireType = {wire} for field {tag >> 3}")
            put(into, payload)
    return into


def _varint(raw: bytes, position: int) -> tuple[int, int]:
    value = shift = 0
    try:
        while True:
            byte = raw[position]
            position += 1
            value |= (byte & 127) << shift
            if byte < 128:
                return value, position
            shift += 7
            if shift > 63:
                raise _Malformed("proto: integer overflow")
    except IndexError as error:
        raise _Malformed("unexpected EOF") from error


_known_fields: dict[int, Fields] = {}


def _fields(schema: Schema) -> Fields:
    """The fields of a struct by number; known once all of them are there, since threads share them."""
    # Places of one type share their properties, and these readers keep them: their identity is the type's.
    known = _known_fields.get(id(schema.properties))
    if known is not None:
        return known
    fields: Fields = {}
    inner_names = {name for part in schema.inlined for name in part.properties}
    for part in schema.inlined:
        if part.number:
            fields[part.number] = bytes, _inlined_setter(part)
    for name, place in schema.properties.items():
        if place.number and name not in inner_names:
            fields[place.number] = _setter(name, place)
    _known_fields[id(schema.properties)] = fields
    return fields


def _inlined_setter(part: Schema) -> Setter:
    def put(into: dict[str, Any], payload: bytes) -> None:
        _message(payload, _fields(part), into)

    return put


def _setter(name: str, place: Schema) -> tuple[type, Setter]:
    if place.type == "array" and place.items is not None:
        return _list_setter(name, place.items)
    if place.additional is not None:
        return bytes, _map_setter(name, place.additional)
    if place.type == "object" and not place.preserves_unknown:

        def put_message(into: dict[str, Any], payload: bytes) -> None:
            _message(payload, _fields(place), into.setdefault(name, {}))

        return bytes, put_message
    expected, read = _reader(place)

    def put(into: dict[str, Any], payload: Payload) -> None:
        into[name] = read(payload)

    return expected, put


def _list_setter(name: str, items: Schema) -> tuple[type, Setter]:
    expected, read = _reader(items)

    def put(into: dict[str, Any], payload: Payload) -> None:
        into.setdefault(name, []).append(read(payload))

    return expected, put


def _map_setter(name: str, values: Schema) -> Setter:
    expected, read = _reader(values)
    entry: Fields = {
        1: (bytes, lambda into, payload: into.__setitem__("key", _text(payload))),
        2: (expected, lambda into, payload: into.__setitem__("value", read(payload))),
    }

    def put(into: dict[str, Any], payload: bytes) -> None:
        pair = _message(payload, entry, {})
        # What is not there is the zero value; decoding takes null for that.
        into.setdefault(name, {})[pair.get("key", "")] = pair.get("value")

    return put


def _reader(place: Schema) -> tuple[type, Reader]:
    """How a value is read that is no field by itself: an item, a map's value, or a scalar."""
    if place.type == "array" and place.items is not None:
        # A list that is a map's value is a message of its own.
        fields: Fields = {1: _list_setter("items", place.items)}
        return bytes, lambda payload: _message(payload, fields, {}).get("items", [])
    if place.preserves_unknown:
        return bytes, _any_reader(place)
    if place.type == "object":
        return bytes, lambda payload: _message(payload, _fields(place), {})
    match place.type, place.format:
        case _, "quantity":
            return bytes, lambda payload: _message(payload, _QUANTITY, {}).get("text", "0")
        case _, "int-or-string":
            return bytes, _int_or_string
        case _, "date-time":
            return bytes, _time
        case _, "micro-time":
            return bytes, _micro_time
        case _, "duration":
            return bytes, lambda payload: str(Duration(_signed(_message(payload, _NUMBER, {}).get("number", 0))))
        case _, "byte":
            return bytes, lambda payload: base64.b64encode(payload).decode()
        case "integer", "uint32":
            return int, lambda payload: payload & (2**32 - 1)
        case "integer", "int32":
            return int, lambda payload: _signed(payload, 32)
        case "integer", _:
            return int, _signed
        case "number", _:
            return bytes, _double
        case "boolean", _:
            return int, bool
        case _:
            return bytes, _text


def _any_reader(place: Schema) -> Reader:
    """Any JSON is JSON in bytes; the schemas of CRDs have places for a schema or something else."""
    name = place.go_type.rpartition(".")[2]
    props = place.items
    if props is None or not name.startswith("JSONSchemaPropsOr"):
        return _json
    is_bool = name == "JSONSchemaPropsOrBool"

    def put_schema(into: dict[str, Any], payload: bytes) -> None:
        _message(payload, _fields(props), into.setdefault("schema", {}))

    fields: Fields = {2 if is_bool else 1: (bytes, put_schema)}
    if is_bool:
        fields[1] = int, lambda into, payload: into.__setitem__("allows", bool(payload))
    else:
        items = props if name == "JSONSchemaPropsOrArray" else Schema(type="string")
        fields[2] = _list_setter("items", items)

    def read(payload: bytes) -> Any:
        found = _message(payload, fields, {})
        return found.get("items") or found.get("schema", found.get("allows", False) if is_bool else None)

    return read


def _text(payload: bytes) -> str:
    return payload.decode("utf-8", "replace")


def _signed(payload: int, bits: int = 64) -> int:
    value = payload & ((1 << bits) - 1)
    return value - (1 << bits) if value >> (bits - 1) else value


def _double(payload: bytes) -> float:
    if len(payload) != 8:
        raise _Malformed("unexpected EOF")
    return float(struct.unpack("<d", payload)[0])


def _json(payload: bytes) -> Any:
    if not payload:
        return None
    raw = _message(payload, _RAW, {}).get("raw")
    try:
        return msgspec.json.decode(raw) if raw else None
    except (msgspec.MsgspecError, UnicodeDecodeError) as error:
        raise _Malformed(f"json: {error}") from error


def _int_or_string(payload: bytes) -> int | str:
    found = _message(payload, _INT_OR_STRING, {})
    return str(found.get("text", "")) if found.get("type") else _signed(found.get("number", 0), 32)


def _time(payload: bytes) -> str | None:
    return format_time(_moment(payload)) if payload else None


def _micro_time(payload: bytes) -> str | None:
    return format_micro_time(_moment(payload)) if payload else None


def _moment(payload: bytes) -> datetime:
    found = _message(payload, _TIMESTAMP, {})
    seconds, nanoseconds = _signed(found.get("seconds", 0)), _signed(found.get("nanos", 0), 32)
    try:
        return _EPOCH + timedelta(seconds=seconds, microseconds=nanoseconds // 1000)
    except OverflowError as error:
        raise _Malformed("Time.MarshalJSON: year outside of range [0,9999]") from error


def _into(name: str, read: Reader) -> Setter:
    return lambda into, payload: into.__setitem__(name, read(payload))


def _as_it_is(payload: Payload) -> Payload:
    return payload


_TYPE_META: Fields = {1: (bytes, _into("apiVersion", _text)), 2: (bytes, _into("kind", _text))}
_ENVELOPE: Fields = {
    1: (bytes, lambda into, payload: into.update(_message(payload, _TYPE_META, {}))),
    2: (bytes, _into("raw", _as_it_is)),
}
_QUANTITY: Fields = {1: (bytes, _into("text", _text))}
_NUMBER: Fields = {1: (int, _into("number", _as_it_is))}
_RAW: Fields = {1: (bytes, _into("raw", _as_it_is))}
_INT_OR_STRING: Fields = {
    1: (int, _into("type", _as_it_is)),
    2: (int, _into("number", _as_it_is)),
    3: (bytes, _into("text", _text)),
}
_TIMESTAMP: Fields = {1: (int, _into("seconds", _as_it_is)), 2: (int, _into("nanos", _as_it_is))}
