"""Kinds that two group versions share in storage: how an object reads in the other one.

Events of both groups are one and the same under different names of fields; they are stored as core ones. Autoscalers
are stored as autoscaling/v2, and have a file of their own. Every function takes the schema of what it makes, and gives
a new object in normal form.
"""

from __future__ import annotations

from shoal.cluster.apiserver.kinds.decode import decode
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.schema import Schema

# events.k8s.io → core
_CORE_NAMES = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
_OTHER_NAMES = {core: other for other, core in _CORE_NAMES.items()}


def event_to_core(core: Schema, event: Object) -> Object:
    """An event of events.k8s.io/v1 as core/v1 has it."""
    return _renamed(core, event, _CORE_NAMES, "v1")


def event_from_core(other: Schema, event: Object) -> Object:
    """An event of core/v1 as events.k8s.io/v1 has it."""
    return _renamed(other, event, _OTHER_NAMES, "events.k8s.io/v1")


def _renamed(schema: Schema, event: Object, names: dict[str, str], api_version: str) -> Object:
    renamed = {names.get(field, field): value for field, value in event.items()}
    if "apiVersion" in renamed:
        renamed["apiVersion"] = api_version
    converted: Object = decode(schema, renamed, [])
    return converted
