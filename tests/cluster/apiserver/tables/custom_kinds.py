"""A custom kind whose columns read values of every type, and objects for it."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

from shoal.api.meta import format_micro_time, format_time
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.schema import Schema

TYPES = ("string", "integer", "number", "boolean", "date")
GROUP = "tables.test"


def value_columns() -> list[Object]:
    """A column of every type at the same place, and paths of several forms."""
    of_types = [{"name": kind.title(), "type": kind, "jsonPath": ".spec.value"} for kind in TYPES]
    return [
        *of_types,
        {"name": "Told", "type": "string", "description": "It is told.", "jsonPath": ".spec.told", "priority": 1},
        {"name": "Format", "type": "integer", "format": "int32", "jsonPath": ".spec.list[0]"},
        {"name": "Ready", "type": "string", "jsonPath": '.status.conditions[?(@.type=="Ready")].status'},
        {"name": "All", "type": "string", "jsonPath": ".spec.list"},
        {"name": "Each", "type": "string", "jsonPath": ".spec.list[*]"},
        {"name": "Label", "type": "string", "jsonPath": ".metadata.labels.app\\.test/name"},
        {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
    ]


def a_definition(plural: str, kind: str, *, columns: list[Object] | None = None, scale: Object | None = None) -> Object:
    version = {
        "name": "v1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}},
        **({"additionalPrinterColumns": columns} if columns else {}),
        **({"subresources": {"scale": scale}} if scale else {}),
    }
    names = {"plural": plural, "singular": kind.lower(), "kind": kind, "listKind": f"{kind}List"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def kind_of(definition: Object) -> Kind:
    names = definition["spec"]["names"]
    return Kind(
        group=GROUP,
        version="v1",
        kind=names["kind"],
        resource=names["plural"],
        schema=Schema(type="object", preserves_unknown=True),
        storage=f"{names['plural']}.{GROUP}",
        definition=definition,
    )


def values() -> dict[str, Any]:
    """What a column may meet, by a name for it."""
    now = datetime.now(UTC)
    return {
        "text": "hello",
        "empty": "",
        "number-text": "12",
        "null-text": "null",
        "true": True,
        "false": False,
        "zero": 0,
        "integer": 123456789,
        "negative": -7,
        "half": 0.5,
        "large": 1234567.5,
        "huge": 1e21,
        "small": 0.00001,
        "whole-float": 3.0,
        "list": [1, "a<b", 2.5, None],
        "object": {"b": 1, "a": {"c": "x&y"}},
        "no-items": [],
        "time": format_time(now - timedelta(hours=5, minutes=12)),
        "micro-time": format_micro_time(now - timedelta(days=3, hours=4, seconds=2)),
        "offset-time": "2001-02-03T04:05:06+02:00",
        "zero-time": "0001-01-01T00:00:00Z",
        "future": format_time(now + timedelta(days=1)),
        "date-alone": "2001-02-03",
        "blank-time": "2001-02-03 04:05:06Z",
    }


def objects() -> dict[str, Object]:
    made = {f"value-{name}": {"spec": {"value": value, "list": [value]}} for name, value in values().items()}
    conditions = [{"type": "Other", "status": "x"}, {"type": "Ready", "status": "yes"}]
    made["nothing"] = {}
    made["null"] = {"spec": {"value": None, "list": [None, 1]}}
    made["told"] = {"spec": {"told": "so", "list": [4, 5]}, "status": {"conditions": conditions}}
    labelled = {"name": "labelled", "labels": {"app.test/name": "n"}}
    return {
        **{name: {"metadata": {"name": name}, **body} for name, body in made.items()},
        "labelled": {"metadata": labelled, "status": {"conditions": []}},
    }
