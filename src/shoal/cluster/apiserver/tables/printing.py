"""The printer of every kind, made once for each: built-in kinds have theirs, custom ones one of their definition."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any
from weakref import WeakKeyDictionary

from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.tables import (
    access,
    autoscalers,
    cluster,
    devices,
    events,
    metrics,
    networks,
    pods,
    storage,
    workloads,
)
from shoal.cluster.apiserver.tables.custom import custom_printer, custom_scale_printer
from shoal.cluster.apiserver.tables.printer import NAME, Cells, Printer, Printers, column, metadata_of

_ROOMS = (pods, workloads, autoscalers, networks, storage, cluster, access, events, devices, metrics)
_BUILT_IN: Printers = {name: printer for room in _ROOMS for name, printer in room.PRINTERS.items()}
_HEAD = ("apiVersion", "kind", "metadata")
_NO_CREATION = "0001-01-01T00:00:00Z"


_UNPRINTED_STATUS = {("apiextensions.k8s.io", "CustomResourceDefinition"), ("resource.k8s.io", "ResourceClaim")}


def has_table(kind: Kind, subresource: str = "") -> bool:
    """Whether Kubernetes gives a table here; elsewhere a client that takes nothing else is refused (406)."""
    match subresource:
        case "":
            return "get" in kind.verbs or "list" in kind.verbs or kind.is_custom
        case "status":
            return (kind.group, kind.kind) not in _UNPRINTED_STATUS
    return subresource == "scale"


def columns(kind: Kind) -> list[dict[str, Any]]:
    """The column definitions of a kind's table, wide ones among them; they are shared: not to be changed."""
    return _printer(kind).columns


def cells(kind: Kind, value: Object, now: datetime, *, is_stored: bool = False) -> list[Any]:
    """The cells of one object's row; ``now`` has a time zone, and matters for ages.

    The object is as the kind's version has it, or as it is stored. Kubernetes prints the latter: an autoscaler keeps
    the order of its metrics there, which autoscaling/v1 loses.
    """
    is_other = is_stored and kind.to_storage is not None and not kind.is_custom
    printer = _stored_printer(kind) if is_other else _printer(kind)
    return printer.cells(value, now)


def conditions(kind: Kind, value: Object) -> list[dict[str, str]]:
    """What is said of a row beside its cells: that a pod is over. Most rows have nothing."""
    return pods.pod_conditions(value) if kind.kind == "Pod" and not kind.group else []


def scale_columns(kind: Kind) -> list[dict[str, Any]]:
    """The column definitions of a table of the kind's scale subresource."""
    return _scale_printer(kind).columns


def scale_cells(kind: Kind, scale: Object, now: datetime) -> list[Any]:
    """The cells of one Scale of an object of this kind."""
    return _scale_printer(kind).cells(scale, now)


def _default_cells(value: Object, _now: datetime) -> list[Any]:
    metadata = metadata_of(value)
    return [metadata.get("name") or "", metadata.get("creationTimestamp") or _NO_CREATION]


_DEFAULT = Printer([NAME, column("Created At", "When the object was created.", kind="date")], _default_cells)
"""Of a built-in kind that nothing special is printed of."""

_made: WeakKeyDictionary[Kind, Printer] = WeakKeyDictionary()
_made_for_scales: WeakKeyDictionary[Kind, Printer] = WeakKeyDictionary()


def _printer(kind: Kind) -> Printer:
    printer = _made.get(kind)
    if printer is None:
        printer = _made[kind] = custom_printer(kind) if kind.is_custom else _built_in_printer(kind)
    return printer


def _scale_printer(kind: Kind) -> Printer:
    printer = _made_for_scales.get(kind)
    if printer is None:
        printer = _made_for_scales[kind] = custom_scale_printer(kind) if kind.is_custom else autoscalers.SCALE
    return printer


def _built_in_printer(kind: Kind) -> Printer:
    """The printer of the kind's group, which knows the stored version: others are converted for it."""
    printer = _stored_printer(kind)
    if kind.to_storage is None:
        return printer
    return Printer(printer.columns, _converted(kind.to_storage, printer.cells))


def _stored_printer(kind: Kind) -> Printer:
    return _BUILT_IN.get((kind.group, kind.kind), _DEFAULT)


def _converted(to_storage: Callable[[Object], Object], stored_cells: Cells) -> Cells:
    def row(value: Object, now: datetime) -> list[Any]:
        # A bookmark has metadata alone, for which conversion would make up a spec.
        is_whole = any(part for field, part in value.items() if field not in _HEAD)
        return stored_cells(to_storage({**value, "metadata": metadata_of(value)}) if is_whole else value, now)

    return row
