"""How custom kinds are printed: by the columns that their definition states, each a path into the object."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any

import msgspec

from shoal.api.meta import InvalidTime, parse_time
from shoal.cluster.apiserver.custom.json_path import Find, InvalidPath, compile_path
from shoal.cluster.apiserver.custom.text import go_number
from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.tables.ages import UNKNOWN, human_duration, is_zero
from shoal.cluster.apiserver.tables.printer import AGE, NAME, Printer, column, metadata_of, part_of

_AGE = {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp", "description": AGE["description"]}
_DESIRED = {"name": "Desired", "type": "integer", "jsonPath": ".spec.replicas", "description": "Replicas asked for."}
_AVAILABLE = {"name": "Available", "type": "integer", "jsonPath": ".status.replicas", "description": "Replicas."}
_LARGE = 10**21
"""From here on Go writes whole numbers of floating point with an exponent."""
_INT64 = 2**63

Show = Callable[[Any, datetime], Any]


def custom_printer(kind: Kind) -> Printer:
    """The table of a custom kind; where the definition states no columns it has an age."""
    return _printer(_version(kind).get("additionalPrinterColumns") or [_AGE])


def custom_scale_printer(kind: Kind) -> Printer:
    """The table of a custom kind's scale subresource."""
    scale = part_of(_version(kind), "subresources", "scale")
    desired = [_DESIRED] if scale.get("specReplicasPath") else []
    available = [_AVAILABLE] if scale.get("statusReplicasPath") else []
    return _printer([*desired, *available, _AGE])


def _version(kind: Kind) -> Object:
    versions = part_of(kind.definition or {}, "spec").get("versions") or ()
    return next((version for version in versions if version.get("name") == kind.version), {})


def _printer(stated: list[Object]) -> Printer:
    columns, finders = [NAME], []
    for each in stated:
        path = each.get("jsonPath") or ""
        try:
            find = compile_path(path)
        except InvalidPath:
            break  # Kubernetes prints the columns before one that it cannot read
        columns.append(
            column(
                each.get("name") or "",
                each.get("description") or f"Custom resource definition column (in JSONPath format): {path}",
                kind=each.get("type") or "",
                format=each.get("format") or "",
                priority=each.get("priority") or 0,
            )
        )
        finders.append((find, _SHOW.get(each.get("type") or "", _nothing)))

    def cells(value: Object, now: datetime) -> list[Any]:
        return [metadata_of(value).get("name") or "", *(_cell(find, show, value, now) for find, show in finders)]

    return Printer(columns, cells)


def _cell(find: Find, show: Show, value: Object, now: datetime) -> Any:
    try:
        found = find(value)
        return show(found[0], now) if found else None
    except RecursionError:
        return None


def _text(value: Any, _now: datetime) -> str:
    match value:
        case None:
            return "<no value>"
        case bool():
            return "true" if value else "false"
        case float():
            return go_number(value)
        case dict() | list():
            return _json_text(value)
    return str(value)


def _json_text(value: Any) -> str:
    text = msgspec.json.encode(_plain(value), order="deterministic").decode()
    for letter in "<>&\u2028\u2029":
        text = text.replace(letter, f"\\u{ord(letter):04x}")
    return text


def _plain(value: Any) -> Any:
    """The value with whole floats as integers, as Go writes them."""
    match value:
        case float() if abs(value) >= _LARGE:
            return msgspec.Raw(go_number(value).encode())
        case float():
            return _plain_number(value)
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list():
            return [_plain(item) for item in value]
    return value


def _plain_number(value: float) -> float:
    return int(value) if value.is_integer() and abs(value) < _LARGE else value


def _whole(value: Any, _now: datetime) -> int | None:
    if type(value) not in (int, float):
        return None
    # What does not fit becomes the smallest number, as processors have it.
    return int(value) if -_INT64 <= value < _INT64 else -_INT64


def _number(value: Any, _now: datetime) -> float | None:
    return _plain_number(float(value)) if type(value) in (int, float) else None


def _truth(value: Any, _now: datetime) -> bool | None:
    return value if isinstance(value, bool) else None


def _date(value: Any, now: datetime) -> str | None:
    if not isinstance(value, str):
        return None
    if value in ("", "null"):
        return UNKNOWN
    try:
        moment = parse_time(value)
    except InvalidTime:
        return "<invalid>"
    return UNKNOWN if is_zero(moment) else human_duration((now - moment).total_seconds())


def _nothing(_value: Any, _now: datetime) -> None:
    return None


_SHOW: dict[str, Show] = {"string": _text, "integer": _whole, "number": _number, "boolean": _truth, "date": _date}
