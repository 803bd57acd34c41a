"""The object in a request's body: read, checked against the URL, brought into its normal form and completed."""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from shoal.cluster.apiserver.calls import Call
from shoal.cluster.apiserver.kinds.bodies import BadBody, read_json, read_yaml, version_and_kind
from shoal.cluster.apiserver.kinds.decode import WrongType, decode
from shoal.cluster.apiserver.kinds.go_names import internal_name
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.kinds.protobuf import read_protobuf
from shoal.cluster.apiserver.kinds.tables import body_schema
from shoal.cluster.apiserver.refusals import Unhandled, bad_request, invalid, unsupported_media_type
from shoal.cluster.apiserver.schema import Schema
from shoal.cluster.apiserver.verbs.asked import Asked, field_checks
from shoal.kube.admission.fields import invalid as invalid_field

_JSON = "application/json"
_YAML = "application/yaml"
_PROTOBUF = "application/vnd.kubernetes.protobuf"
_PARAMETERS = re.compile(r"""(\s*;\s*[^\s;="]+=([^\s;="]+|"[^"]*"))*\s*;?\s*""")


def media_type(header: str) -> str:
    """A Content-Type without its parameters; JSON where there is none."""
    return header.partition(";")[0].strip().lower() or _JSON


@lru_cache(maxsize=256)
def _body_type(header: str) -> str:
    """The media type of a body; one whose parameters cannot be read is none at all."""
    media, separator, parameters = header.partition(";")
    return media_type(media) if _PARAMETERS.fullmatch(separator + parameters) else ""


def read_value(call: Call, kind: str, *, is_custom: bool = False) -> tuple[Any, list[str]]:
    """A body as plain values, and the fields that came twice; ``kind`` is what it should be."""
    try:
        return read_body(call, is_custom=is_custom)
    except BadBody as error:
        raise bad_request(error.unrecognized(kind)) from None


def read_body(call: Call, *, is_custom: bool = False) -> tuple[Any, list[str]]:
    """The same; raises BadBody where it cannot be read."""
    match _body_type(call.headers.get("content-type", "")):
        case "application/json":
            return read_json(call.body, merges=not is_custom)
        case "application/yaml":
            return read_yaml(call.body)
        case "application/vnd.kubernetes.protobuf" if not is_custom:
            return read_protobuf(call.body, body_schema), []
    raise unsupported_media_type([_JSON, _YAML, *([] if is_custom else [_PROTOBUF])])


def read_object(asked: Asked) -> Object:
    """The object that a create or an update carries, in normal form and with its defaults."""
    kind = asked.kind
    value, unknown = read_value(asked.call, kind.kind, is_custom=kind.is_custom)
    value = _checked(asked, value)
    new = completed(kind, value, unknown)
    field_checks(asked, unknown, prefix=_strict(kind.version, kind.kind))
    return new


async def read_other(asked: Asked, schema: Schema, api_version: str, kind: str) -> Object:
    """A body with a kind of its own (Scale, Eviction, Binding, TokenRequest …) in normal form."""
    return await asked.computed(lambda: _read_other(asked, schema, api_version, kind))


def _read_other(asked: Asked, schema: Schema, api_version: str, kind: str) -> Object:
    value, unknown = read_value(asked.call, kind)
    try:
        version, stated = version_and_kind(value, asked.call.body)
    except BadBody as error:
        raise bad_request(error.unrecognized(kind)) from None
    if version and stated and body_schema(version, stated) is None:
        raise _unregistered(version, stated, kind)
    try:
        new: Object = decode(schema, value or {}, unknown)
    except WrongType as error:
        raise Unhandled(kind, api_version.rpartition("/")[2], kind, str(error)) from None
    field_checks(asked, unknown, prefix=_strict(api_version.rpartition("/")[2], kind))
    new["apiVersion"], new["kind"] = version or api_version, stated or kind
    return new


def _strict(version: str, kind: str) -> str:
    return f'{kind} in version "{version}" cannot be handled as a {kind}: strict decoding error: '


def check_type(kind: Kind, api_version: str, name: str, object_name: str = "") -> None:
    """Refuses an object of another kind or version than the URL's."""
    if kind.is_custom and name != kind.kind and api_version == kind.api_version:
        raise invalid(name, kind.group, object_name, [invalid_field("kind", name, f"must be {kind.kind}")])
    if api_version and name and not kind.is_custom and (api_version, name) != (kind.api_version, kind.kind):
        if body_schema(api_version, name) is None:
            raise _unregistered(api_version, name, kind.kind)
        if name != kind.kind:
            version = api_version.rpartition("/")[2]
            problem = f"converting ({version}.{name}) to ({internal_name(kind)}): unknown conversion"
            raise Unhandled(name, version, kind.kind, problem)
    if (api_version or kind.is_custom) and api_version != kind.api_version:
        raise bad_request(
            f"the API version in the data ({api_version}) does not match the expected API version ({kind.api_version})"
        )


def _unregistered(api_version: str, name: str, kind: str) -> Unhandled:
    """400: a body states a kind that there is none of."""
    problem = f'no kind "{name}" is registered for version "{api_version}" in scheme "pkg/runtime/scheme.go:111"'
    return Unhandled(name, api_version.rpartition("/")[2], kind, problem)


def completed(kind: Kind, value: Object, unknown: list[str]) -> Object:
    """A value as the server keeps it: of known fields, canonical and with defaults; ``unknown`` gets the rest's names.

    The value is used up.
    """
    value["apiVersion"], value["kind"] = kind.api_version, kind.kind
    if kind.read is not None:
        return kind.read(value, unknown)
    try:
        new: Object = decode(kind.schema, value, unknown)
    except WrongType as error:
        raise Unhandled(kind.kind, kind.version, kind.kind, str(error)) from None
    kind.rules.defaults(new)
    return new


def empty_status(kind: Kind, new: Object) -> None:
    """Replaces the status by one that says nothing, as a new object has it."""
    nothing = None if kind.is_custom else decode(kind.schema, {}, []).get("status")
    if nothing is None:
        new.pop("status", None)
    else:
        new["status"] = nothing


def _checked(asked: Asked, value: Any) -> Object:
    try:
        version, name = version_and_kind(value, asked.call.body)
        if asked.kind.is_custom and not name:
            raise BadBody(f"Object 'Kind' is missing in '{asked.call.body.decode(errors='replace')}'", asked.call.body)
        metadata = (value or {}).get("metadata")
        stated = metadata.get("name", "") if isinstance(metadata, dict) else ""
        check_type(asked.kind, version, name, stated if isinstance(stated, str) else "")
    except BadBody as error:
        raise bad_request(error.unrecognized(asked.kind.kind)) from None
    return value or {}
