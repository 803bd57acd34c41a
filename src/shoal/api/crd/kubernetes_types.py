"""The schemas of Kubernetes' own types, for kinds that embed them: a pod's specification, an autoscaler's metrics.

``field_schema(shape=KubernetesType("core.v1.PodSpec"))`` gives a field such a schema whatever it decodes into, so the
server prunes, defaults and checks it as it does in Kubernetes' own kinds. The schemas are compact data without prose,
made by ``make kind-tables`` (``kubernetes_types.json``). A type is written out once and shared by all its places, and
by all who ask for it: what is given out is to be read, never to be changed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final, TypeAlias

import msgspec

from shoal.api.crd.well_known import QUANTITY_PATTERN

Schema: TypeAlias = dict[str, Any]

TYPES: Final = Path(__file__).with_name("kubernetes_types.json")

_EITHER: Schema = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
_TEXTS: Schema = {"type": "object", "additionalProperties": {"type": "string"}}
_METADATA = "meta.v1.ObjectMeta"

SPECIAL: Final[Mapping[str, Schema]] = {
    "api.resource.Quantity": {
        "anyOf": _EITHER["anyOf"],
        "pattern": QUANTITY_PATTERN,
        "x-kubernetes-int-or-string": True,
    },
    "meta.v1.Time": {"type": "string", "format": "date-time"},
    _METADATA: {"type": "object"},
    "pkg.runtime.RawExtension": {"type": "object", "x-kubernetes-preserve-unknown-fields": True},
    "util.intstr.IntOrString": _EITHER,
}
"""What is not in the file: types that say more than OpenAPI has words for, or, as metadata, less."""

_KEPT_METADATA: Schema = {
    "type": "object",
    "properties": {
        "annotations": _TEXTS,
        "finalizers": {"type": "array", "items": {"type": "string"}},
        "labels": _TEXTS,
        "name": {"type": "string"},
        "namespace": {"type": "string"},
    },
}


@dataclass(frozen=True)
class KubernetesType:
    """A type of Kubernetes' own, by group, version and name, such as ``core.v1.PodSpec``.

    Of the metadata of objects inside nothing is kept but with ``has_metadata``, which keeps what templates use.
    """

    name: str
    has_metadata: bool = False

    def schema(self) -> Schema:
        """Its schema, not to be changed; raises KeyError where nobody asked for it when the schemas were made."""
        return _schema(self.name, self.has_metadata)


@cache
def _schema(name: str, has_metadata: bool) -> Schema:
    if name == _METADATA and has_metadata:
        return _KEPT_METADATA
    return SPECIAL.get(name) or _written_out(_published()[name], has_metadata)


@cache
def _published() -> dict[str, Schema]:
    return msgspec.json.decode(TYPES.read_bytes(), type=dict[str, dict[str, Any]])


def _written_out(row: Schema, has_metadata: bool) -> Schema:
    """A schema with the types that it names put in their places."""
    if "$ref" in row:
        named = _schema(row["$ref"], has_metadata)
        return {**named, **{key: value for key, value in row.items() if key != "$ref"}} if len(row) > 1 else named
    whole = dict(row)
    if "properties" in row:
        whole["properties"] = {name: _written_out(field, has_metadata) for name, field in row["properties"].items()}
    for inner in ("items", "additionalProperties"):
        if inner in row:
            whole[inner] = _written_out(row[inner], has_metadata)
    return whole
