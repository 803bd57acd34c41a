"""Writes the schemas of built-in types for those who embed them in CRDs: one line for each type, without prose.

They say what generators of CRDs for Go say of the same types: no enums, and only such defaults as a type's author
declared. A type stands in others by its name (``$ref``); few of them (quantities, times, metadata) are known to the
reader of the file and are not in it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from shoal.api.crd.checks import KEYWORDS
from shoal.api.crd.kubernetes_types import SPECIAL

ROOTS = ["autoscaling.v2.MetricSpec", "core.v1.PodTemplateSpec", "resource.v1.ResourceClaimTemplateSpec"]

_KEPT = ("type", "format", "default", "x-kubernetes-list-type", "x-kubernetes-list-map-keys", "x-kubernetes-map-type")

_BY_NAME_OF_CONSTANT = {"core.v1.AzureDiskVolumeSource": ("cachingMode", "kind")}
"""Defaults that Go declares by the name of a constant, which generators of CRDs pass over."""

Row = dict[str, Any]


def schemas(published: Mapping[str, Row], described: Mapping[str, Row]) -> str:
    """The text of the file, from what a server's OpenAPI and what Go say of each type."""
    by_name = {_short(name): schema for name, schema in published.items()}
    atomic = {name for name, schema in by_name.items() if schema.get("x-kubernetes-map-type") == "atomic"}
    rows: dict[str, Row] = {}
    waiting = list(ROOTS)
    while waiting:
        name = waiting.pop()
        if name in rows or name in SPECIAL:
            continue
        rows[name] = _place(by_name[name])
        for field in _BY_NAME_OF_CONSTANT.get(name, ()):
            del rows[name]["properties"][field]["default"]
        if atomic.intersection(field["type"] for field in described[name]["fields"] if "name" not in field):
            rows[name]["x-kubernetes-map-type"] = "atomic"  # a struct with an atomic one inlined counts as such
        waiting += _references(rows[name])
    lines = ",\n".join(f"{json.dumps(name)}:{_compact(rows[name])}" for name in sorted(rows))
    return f"{{\n{lines}\n}}\n"


def _place(published: Row) -> Row:
    row = {key: published[key] for key in _KEPT if key in published}
    if reference := _reference(published):
        row = {"$ref": reference, **row}
    if "properties" in published:
        needed = published.get("required", [])
        row["properties"] = {
            name: _field(field, name in needed) for name, field in sorted(published["properties"].items())
        }
        if needed:
            row["required"] = sorted(needed)
    for inner in ("items", "additionalProperties"):
        if inner in published:
            row[inner] = _field(published[inner], is_required=True)
    return {key: row[key] for key in ("$ref", *KEYWORDS) if key in row}


def _field(published: Row, is_required: bool) -> Row:
    """What is said of a field; Go's zero value of one that is always written is no default that anyone declared."""
    row = _place(published)
    if row.get("default", {}) == {} or (is_required and not row["default"]):
        row.pop("default", None)
    return row


def _reference(published: Row) -> str:
    either = [published, *published.get("allOf", [])]
    return next((_short(each["$ref"].rpartition("/")[2]) for each in either if "$ref" in each), "")


def _references(row: Row) -> Iterator[str]:
    if "$ref" in row:
        yield row["$ref"]
    inside = [
        *row.get("properties", {}).values(),
        *(row[key] for key in ("items", "additionalProperties") if key in row),
    ]
    for inner in inside:
        yield from _references(inner)


def _short(name: str) -> str:
    return ".".join(name.split(".")[-3:])


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False)
