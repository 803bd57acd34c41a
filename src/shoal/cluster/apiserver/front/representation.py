"""Stored objects as the bytes that a client reads.

A whole object is the stored bytes behind a head with its kind, so most answers are made without decoding anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from shoal.api.meta import now
from shoal.cluster.apiserver.front.negotiation import Form, Representation
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.state import State, decoded
from shoal.cluster.apiserver.storage import Record
from shoal.cluster.apiserver.tables import cells, columns, conditions, scale_cells, scale_columns
from shoal.cluster.apiserver.verbs.reading import Listed

_META_V1 = "meta.k8s.io/"


class _Head(msgspec.Struct):
    """The metadata of a stored object, untouched."""

    metadata: msgspec.Raw


_heads = msgspec.json.Decoder(_Head)


def head(kind: Kind) -> bytes:
    """The beginning of an object's JSON, up to the first of its stored fields."""
    return _head(kind.kind, kind.api_version)


@lru_cache(4096)
def _head(kind: str, api_version: str) -> bytes:
    return b'{"kind":"%s","apiVersion":"%s",' % (kind.encode(), api_version.encode())


def whole(kind: Kind, state: State, record: Record) -> bytes:
    """A stored object as JSON."""
    if kind.from_storage is None:
        return head(kind) + record.data[1:]
    return msgspec.json.encode(in_version(kind, state, record))


def in_version(kind: Kind, state: State, record: Record) -> Object:
    """A stored object as values in the version that is asked for."""
    value = decoded(state.stored_kind(kind), record)
    if kind.from_storage is not None:
        value = kind.from_storage(value)
    value["apiVersion"], value["kind"] = kind.api_version, kind.kind
    return value


def shown(kind: Kind, state: State, record: Record, representation: Representation) -> bytes:
    """One stored object in a representation."""
    if representation.form is Form.WHOLE:
        return whole(kind, state, record)
    if representation.form is Form.TABLE:
        return table(kind, state, [record], representation, {"resourceVersion": str(record.revision)})
    return metadata_alone(record, representation)


def metadata_alone(record: Record, representation: Representation) -> bytes:
    """An object's metadata as JSON, without reading the rest."""
    version = representation.version.encode()
    raw = bytes(_heads.decode(record.data).metadata)
    return b'{"kind":"PartialObjectMetadata","apiVersion":"meta.k8s.io/%s","metadata":%s}' % (version, raw)


def page(kind: Kind, state: State, listed: Listed, representation: Representation) -> list[bytes]:
    """A list as pieces of JSON."""
    metadata: dict[str, Any] = {"resourceVersion": str(listed.revision)}
    if listed.continues or (kind.is_custom and representation.form is Form.WHOLE):
        metadata["continue"] = listed.continues
    if listed.remaining is not None:
        metadata["remainingItemCount"] = listed.remaining
    if representation.form is Form.TABLE:
        return [table(kind, state, listed.records, representation, metadata)]
    if representation.is_metadata:
        items: Iterable[bytes] = (metadata_alone(record, representation) for record in listed.records)
        start = {"kind": "PartialObjectMetadataList", "apiVersion": _META_V1 + representation.version}
    else:
        items = _items(kind, state, listed.records)
        start = {"kind": kind.list_kind, "apiVersion": kind.api_version}
    if representation.is_metadata and not listed.records:
        return [msgspec.json.encode({**start, "metadata": metadata, "items": None})]
    opening = msgspec.json.encode({**start, "metadata": metadata})[:-1] + b',"items":['
    pieces = [opening]
    for item in items:
        pieces += (item, b",")
    pieces[-1:] = [b"]}"] if len(pieces) > 1 else [opening, b"]}"]
    return pieces


def _items(kind: Kind, state: State, records: Sequence[Record]) -> Iterable[bytes]:
    """Items of built-in kinds do not repeat their kind; those of custom ones do."""
    if kind.from_storage is not None:
        if kind.is_custom:
            return (whole(kind, state, record) for record in records)
        return (_without_type(in_version(kind, state, record)) for record in records)
    if kind.is_custom:
        start = head(kind)
        return (start + record.data[1:] for record in records)
    return (record.data for record in records)


def _without_type(value: Object) -> bytes:
    return msgspec.json.encode({key: item for key, item in value.items() if key not in ("apiVersion", "kind")})


def table(
    kind: Kind,
    state: State,
    records: Sequence[Record],
    representation: Representation,
    metadata: dict[str, Any],
    *,
    with_columns: bool = True,
) -> bytes:
    """Objects as rows for people to read."""
    moment = now()
    rows = [_row(kind, state, record, representation, moment) for record in records]
    value = {
        "kind": "Table",
        "apiVersion": _META_V1 + representation.version,
        "metadata": metadata,
        "columnDefinitions": columns(kind) if with_columns else None,
        "rows": rows,
    }
    return msgspec.json.encode(value)


def _row(kind: Kind, state: State, record: Record, representation: Representation, moment: datetime) -> dict[str, Any]:
    stored = decoded(state.stored_kind(kind), record)
    row: dict[str, Any] = {"cells": cells(kind, stored, moment, is_stored=True)}
    if found := conditions(kind, stored):
        row["conditions"] = found
    if representation.include == "Object":
        row["object"] = in_version(kind, state, record)
    elif representation.include == "None":
        row["object"] = None
    else:
        row["object"] = msgspec.Raw(metadata_alone(record, representation))
    return row


def unstored_table(kind: Kind, value: Object, representation: Representation) -> bytes:
    """One object that is nowhere stored (a dry run's, or a Scale) as a row."""
    is_scale = value.get("kind") == "Scale" and kind.kind != "Scale"
    row: dict[str, Any] = {"cells": scale_cells(kind, value, now()) if is_scale else cells(kind, value, now())}
    version = _META_V1 + representation.version
    if representation.include == "Object":
        row["object"] = value
    elif representation.include == "None":
        row["object"] = None
    else:
        metadata = {"kind": "PartialObjectMetadata", "apiVersion": version, "metadata": value.get("metadata", {})}
        row["object"] = metadata
    made = {
        "kind": "Table",
        "apiVersion": version,
        "metadata": {"resourceVersion": value.get("metadata", {}).get("resourceVersion", "")},
        "columnDefinitions": scale_columns(kind) if is_scale else columns(kind),
        "rows": [row],
    }
    return msgspec.json.encode(made)
