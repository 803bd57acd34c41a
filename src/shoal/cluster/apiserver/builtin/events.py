"""Event, in the core group and in events.k8s.io: the same records, of which the newer group asks more.

Rules see an event in the shape of its own group; messages name the core group's fields in both, as Kubernetes does.
"""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.names import path_segment_problems, qualified_name_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.values import named, text
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, immutable, invalid, required

_TO_CORE = {
    "regarding": "involvedObject",
    "note": "message",
    "deprecatedSource": "source",
    "deprecatedFirstTimestamp": "firstTimestamp",
    "deprecatedLastTimestamp": "lastTimestamp",
    "deprecatedCount": "count",
    "reportingController": "reportingComponent",
}
_LIMITS = {"reportingInstance": 128, "action": 128, "reason": 128, "message": 1024}
_IMMUTABLE = (
    "involvedObject",
    "reason",
    "message",
    "source",
    "firstTimestamp",
    "lastTimestamp",
    "count",
    "type",
    "eventTime",
    "action",
    "related",
    "reportingComponent",
    "reportingInstance",
)
_TEXTS = ("reason", "message", "type", "action", "reportingComponent", "reportingInstance")


def event_problems(event: Object, *, newer: bool = False) -> list[FieldProblem]:
    """What both groups ask of an event, given in the core group's shape."""
    problems: list[FieldProblem] = []
    namespace = event["metadata"].get("namespace", "")
    involved = (event.get("involvedObject") or {}).get("namespace", "")
    elsewhere = invalid("involvedObject.namespace", involved, "does not match event.namespace")
    if not event.get("eventTime"):
        if (not involved and namespace not in ("", "default")) or (involved and namespace != involved):
            problems.append(elsewhere)
    else:
        if not involved and namespace not in ("default", "kube-system"):
            problems.append(elsewhere)
        controller = event.get("reportingComponent", "")
        field = "reportingController" if newer else "reportingComponent"
        if not controller:
            problems.append(required(field))
        problems += named(field, controller, qualified_name_problems)
        for each, limit in _LIMITS.items():
            value = event.get(each, "")
            if not value and each != "message":
                problems.append(required(each))
            if len(value.encode()) > limit:
                problems.append(invalid(each, "", f"can have at most {limit} characters"))
    return problems + named("namespace", namespace, subdomain_problems)


def validate_newer_create(new: Object) -> list[FieldProblem]:
    """What events.k8s.io asks beyond that: no fields of old."""
    event = _in_core(new)
    problems = event_problems(event, newer=True) + _series_problems(event)
    problems += named("metadata.name", event["metadata"].get("name", ""), subdomain_problems)
    if not event.get("eventTime"):
        problems.append(required("eventTime"))
    if event.get("type") not in ("Normal", "Warning"):
        problems.append(invalid("type", "", f"has invalid value: {event.get('type', '')}"))
    for field in ("firstTimestamp", "lastTimestamp", "count"):
        if event.get(field):
            problems.append(invalid(field, "", "needs to be unset"))
    source = event.get("source") or {}
    if source.get("component") or source.get("host"):
        problems.append(invalid("source", "", "needs to be unset"))
    return problems


def validate_newer_update(new: Object, old: Object) -> list[FieldProblem]:
    """Only the series of an event goes on."""
    event, before = _in_core(new), _in_core(old)
    problems = event_problems(event, newer=True)
    if event.get("series") != before.get("series"):
        problems += _series_problems(event)
    for field in _IMMUTABLE:
        value = event.get(field)
        if (value or None) != (before.get(field) or None):
            shown: Any = "" if value is None and field in _TEXTS else value
            path = "reportingController" if field == "reportingComponent" else field
            problems.append(immutable(path, shown))
    return problems


def _in_core(event: Object) -> Object:
    return {_TO_CORE.get(key, key): value for key, value in event.items()}


def _series_problems(event: Object) -> list[FieldProblem]:
    series = event.get("series")
    if series is None:
        return []
    problems = []
    if (series.get("count") or 0) < 2:
        problems.append(invalid("series.count", "", "should be at least 2"))
    if not series.get("lastObservedTime"):
        problems.append(required("series.lastObservedTime"))
    return problems


def _source(event: Object) -> str:
    return (event.get("source") or {}).get("component") or event.get("reportingComponent") or ""


_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_CORE_FIELDS = {
    **{f"involvedObject.{each}": text("involvedObject", each) for each in _INVOLVED},
    "reason": text("reason"),
    "reportingComponent": text("reportingComponent"),
    "source": _source,
    "type": text("type"),
}
_NEWER_FIELDS = {
    **{f"regarding.{each}": text("regarding", each) for each in _INVOLVED},
    "reason": text("reason"),
    "reportingController": text("reportingController"),
    "type": text("type"),
}

RULES = {
    ("", "Event"): Rules(
        name_problems=path_segment_problems,
        checks_metadata=False,
        validate_create=event_problems,
        validate_update=lambda new, _old: event_problems(new),
        has_generation=False,
        create_on_update=True,
        fields=_CORE_FIELDS,
    ),
    ("events.k8s.io", "Event"): Rules(
        name_problems=path_segment_problems,
        validate_create=validate_newer_create,
        validate_update=validate_newer_update,
        has_generation=False,
        create_on_update=True,
        fields=_NEWER_FIELDS,
        stored_fields={
            **{f"regarding.{each}": f"involvedObject.{each}" for each in _INVOLVED},
            "reportingController": "reportingComponent",
        },
    ),
}
