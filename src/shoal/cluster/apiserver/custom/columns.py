"""Printer columns: what a table shows of an object, as its definition says."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from shoal.api.meta import InvalidTime, parse_time
from shoal.cluster.apiserver.custom.json_path import Find, InvalidPath, compile_path
from shoal.cluster.apiserver.custom.text import go_number

_AGE = {
    "name": "Age",
    "type": "date",
    "jsonPath": ".metadata.creationTimestamp",
    "description": (
        "CreationTimestamp is a timestamp representing the server time when this object was created. It is not "
        "guaranteed to be set in happens-before order across separate operations. Clients may not set this value. It "
        "is represented in RFC3339 form and is in UTC.\n\nPopulated by the system. Read-only. Null for lists. More "
        "info: https://git.k8s.io/community/contributors/devel/sig-architecture/api-conventions.md#metadata"
    ),
}


@dataclass(frozen=True, kw_only=True)
class Column:
    """One column besides the name, which every table begins with."""

    name: str
    type: str
    format: str
    description: str
    priority: int
    cell: Callable[[Any, datetime], Any]
    """What is shown of an object, at a moment."""


def columns_of(version: dict[str, Any]) -> tuple[Column, ...]:
    """The columns of one version of a definition; its age where it states none."""
    return tuple(_column(each) for each in version.get("additionalPrinterColumns") or (_AGE,))


def _column(stated: dict[str, Any]) -> Column:
    path = stated.get("jsonPath") or ""
    told = stated.get("description") or f"Custom resource definition column (in JSONPath format): {path}"
    try:
        find = compile_path(path)
    except InvalidPath:
        find = _nothing
    return Column(
        name=stated["name"],
        type=stated["type"],
        format=stated.get("format") or "",
        description=told,
        priority=stated.get("priority") or 0,
        cell=_cell(stated["type"], find),
    )


def _nothing(_value: Any) -> list[Any]:
    return []


def _cell(kind: str, find: Find) -> Callable[[Any, datetime], Any]:
    def cell(value: Any, now: datetime) -> Any:
        found = find(value)
        if not found:
            return None
        first = found[0]
        match kind:
            case "string":
                return _text(first)
            case "integer" if type(first) in (int, float):
                return int(first)
            case "number" if type(first) in (int, float):
                return first
            case "boolean" if type(first) is bool:
                return first
            case "date" if type(first) is str:
                return _age(first, now)
        return None

    return cell


def _text(value: Any) -> str:
    if isinstance(value, str):
        return value
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return go_number(value)
    if value is None:
        return "<nil>"
    return msgspec.json.encode(value, order="sorted").decode()


def _age(text: str, now: datetime) -> str:
    try:
        moment = parse_time(text)
    except InvalidTime:
        return "<invalid>"
    return human_span(int((now - moment).total_seconds()))


def human_span(seconds: int) -> str:
    """A span in at most two units, as tables show ages: ``5m30s``, ``3h``, ``12d``, ``2y40d``."""
    if seconds < -1:
        return "<invalid>"
    if seconds < 0:
        return "0s"
    if seconds < 60 * 2:
        return f"{seconds}s"
    minutes = seconds // 60
    if minutes < 10:
        return f"{minutes}m{seconds % 60}s" if seconds % 60 else f"{minutes}m"
    if minutes < 60 * 3:
        return f"{minutes}m"
    hours = minutes // 60
    if hours < 8:
        return f"{hours}h{minutes % 60}m" if minutes % 60 else f"{hours}h"
    if hours < 48:
        return f"{hours}h"
    days = hours // 24
    if hours < 24 * 8:
        return f"{days}d{hours % 24}h" if hours % 24 else f"{days}d"
    if hours < 24 * 365 * 2:
        return f"{days}d"
    years = days // 365
    if hours < 24 * 365 * 8:
        return f"{years}y{days % 365}d" if days % 365 else f"{years}y"
    return f"{years}y"
