"""How the usage of nodes and pods is printed, as metrics-server does it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from typing import Any

from shoal.api.meta import InvalidDuration, InvalidQuantity, Quantity, parse_duration, parse_quantity
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.tables.printer import NAME, Cells, Printer, Printers, column, metadata_of

_RESOURCES = ("cpu", "memory")


def _usage_row(usages: Callable[[Object], Iterable[Object]]) -> Cells:
    def row(value: Object, _now: datetime) -> list[Any]:
        used = list(usages(value))
        amounts = (_sum(usage.get(resource, "0") for usage in used) for resource in _RESOURCES)
        return [metadata_of(value).get("name") or "", *amounts, _window(value.get("window"))]

    return row


def _sum(amounts: Iterable[str]) -> str:
    total: Quantity | None = None
    for text in amounts:
        try:
            amount = parse_quantity(text)
        except InvalidQuantity:
            continue
        total = amount if total is None else total + amount
    return "0" if total is None else str(total)


def _window(text: str | None) -> str:
    try:
        return str(parse_duration(text or "0s"))
    except InvalidDuration:
        return "0s"


_COLUMNS = [
    NAME,
    *(column(resource, "", format="quantity") for resource in _RESOURCES),
    column("Window", "", format="duration"),
]

PRINTERS: Printers = {
    ("metrics.k8s.io", "NodeMetrics"): Printer(_COLUMNS, _usage_row(lambda value: [value.get("usage") or {}])),
    ("metrics.k8s.io", "PodMetrics"): Printer(
        _COLUMNS,
        _usage_row(lambda value: [container.get("usage") or {} for container in value.get("containers") or ()]),
    ),
}
