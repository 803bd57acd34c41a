"""How autoscalers are printed: for each metric what is measured and what is wanted; scales have a table as well."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.tables.ages import UNKNOWN, age
from shoal.cluster.apiserver.tables.printer import AGE, NAME, Printer, Printers, column, metadata_of, number, part_of
from shoal.cluster.apiserver.tables.wording import NONE, UNSET, some_of

_SOURCES = {
    "External": "external",
    "Pods": "pods",
    "Object": "object",
    "Resource": "resource",
    "ContainerResource": "containerResource",
}
_NIL = "<nil>"


def _autoscaler(value: Object, now: datetime) -> list[Any]:
    metadata, spec, status = metadata_of(value), part_of(value, "spec"), part_of(value, "status")
    target, least = part_of(spec, "scaleTargetRef"), spec.get("minReplicas")
    return [
        metadata.get("name") or "",
        f"{target.get('kind') or ''}/{target.get('name') or ''}",
        _metrics_text(spec.get("metrics") or [], status.get("currentMetrics") or []),
        UNSET if least is None else str(least),
        spec.get("maxReplicas") or 0,
        status.get("currentReplicas") or 0,
        age(metadata.get("creationTimestamp"), now),
    ]


def _metrics_text(metrics: list[Object], statuses: list[Object]) -> str:
    if not metrics:
        return NONE
    known = [*statuses, *({} for _ in metrics)]
    texts = (_metric_text(metric, status) for metric, status in zip(metrics, known, strict=False))
    return some_of(texts, len(metrics), limit=2, separator=", ")


def _metric_text(metric: Object, status: Object) -> str:
    """One metric; its status stands at the same place in the list, and may be of another type while it is new."""
    kind = metric.get("type") or ""
    if kind not in _SOURCES:
        return "<unknown type>"
    source = _SOURCES[kind]
    target = part_of(metric, source, "target")
    measured = status.get(source)
    current = None if measured is None else part_of(measured, "current")
    average = target.get("averageValue")
    if kind in ("Resource", "ContainerResource"):
        name = part_of(metric, source).get("name") or ""
        if average is not None:
            return f"{name}: {_value(current, 'averageValue')}/{average}"
        utilization = None if current is None else current.get("averageUtilization")
        return f"{name}: {_percent(utilization, UNKNOWN)}/{_percent(target.get('averageUtilization'), '<auto>')}"
    if kind == "Pods":
        return f"{_value(current, 'averageValue')}/{_NIL if average is None else average}"
    if average is not None:
        known = None if current is None else current.get("averageValue")
        return f"{UNKNOWN if known is None else known}/{average} (avg)"
    return f"{_value(current, 'value')}/{_value(target, 'value')}"


def _value(amounts: Object | None, name: str) -> str:
    if amounts is None:
        return UNKNOWN
    amount = amounts.get(name)
    return _NIL if amount is None else str(amount)


def _percent(share: int | None, missing: str) -> str:
    return missing if share is None else f"{share}%"


def _scale(value: Object, now: datetime) -> list[Any]:
    metadata = metadata_of(value)
    return [
        metadata.get("name") or "",
        part_of(value, "spec").get("replicas") or 0,
        part_of(value, "status").get("replicas") or 0,
        age(metadata.get("creationTimestamp"), now),
    ]


SCALE = Printer(
    [
        column("Name", "Name of the object."),
        number("Desired", "Replicas that are asked for."),
        number("Available", "Replicas that there are."),
        AGE,
    ],
    _scale,
)

PRINTERS: Printers = {
    ("autoscaling", "HorizontalPodAutoscaler"): Printer(
        [
            NAME,
            column("Reference", "The object that is scaled."),
            column("Targets", "For each metric, what is measured and what is wanted."),
            column("MinPods", "The least replicas that it may set."),
            column("MaxPods", "The most replicas that it may set."),
            column("Replicas", "Replicas that there are."),
            AGE,
        ],
        _autoscaler,
    )
}
