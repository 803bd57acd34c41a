"""The words of the API server's schema validator, and what its checks are in ours."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from shoal.cluster.apiserver.cel.formats import FORMATS
from shoal.cluster.apiserver.custom.correlation import Correlation
from shoal.cluster.apiserver.custom.places import Place, dotted
from shoal.cluster.apiserver.custom.text import quoted
from shoal.kube.admission.fields import FieldProblem, Reason

Problems = list[FieldProblem]
Check = Callable[[Any, Place, Problems, Correlation | None], None]
"""Looks at a value at a place; problems go to the list; the last says how it relates to the old object."""
Raw = dict[str, Any]
"""A schema as its definition states it."""

NOWHERE = "<nil>"
INT64_LOW, INT64_HIGH = -(2**63), 2**63 - 1
_NAMES: dict[type, str] = {str: "string", bool: "boolean", dict: "object", list: "array", float: "number"}


def type_name(value: Any) -> str:
    """The JSON type of a value, as messages name it."""
    if type(value) is int:
        return "integer" if INT64_LOW <= value <= INT64_HIGH else "number"
    return "null" if value is None else _NAMES[type(value)]


def known_format(raw: Raw) -> str:
    """The format, if it means anything for the type."""
    given = raw.get("format") or ""
    kind = "" if raw.get("x-kubernetes-int-or-string") else raw.get("type") or ""
    if kind in ("", "string"):
        return given if given.replace("-", "") in FORMATS else ""
    allowed = {"integer": ("int32", "int64"), "number": ("float", "double")}
    return given if given in allowed.get(kind, ()) else ""


def wrong(place: Place, value: Any, message: str, reason: Reason = Reason.INVALID) -> FieldProblem:
    """A problem in the words of the schema's validator, which names the place twice."""
    path = dotted(place)
    return FieldProblem(path, f"{path} in body {message}", reason, value)


def wrong_type(place: Place, expected: str, found: Any) -> FieldProblem:
    """A value of another type, or a string that has not the format."""
    path = dotted(place)
    told = f": {quoted(found)}" if isinstance(found, str) else ""
    return FieldProblem(path, f"{path} in body must be of type {expected}{told}", Reason.WRONG_TYPE, found)


def odd(message: str) -> FieldProblem:
    """A problem that the API server tells without a place of its own."""
    return FieldProblem(NOWHERE, message, Reason.INVALID, "")
