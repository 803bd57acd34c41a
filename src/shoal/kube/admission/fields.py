"""What is wrong with a field, in Kubernetes' own words.

A user sees the same sentence from our rules as from the API server's: ``Queue.scheduling.run.ai "team-a" is invalid:
spec.priority: Invalid value: -3: must be at least 0``, and a program finds each field among the causes of the Status.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any

import msgspec

from shoal.kube.errors import Cause, Status, StatusDetails


class Reason(Enum):
    """Why a field is refused: the cause's reason on the wire, and how a message begins."""

    INVALID = "FieldValueInvalid", "Invalid value"
    REQUIRED = "FieldValueRequired", "Required value"
    FORBIDDEN = "FieldValueForbidden", "Forbidden"
    DUPLICATE = "FieldValueDuplicate", "Duplicate value"
    NOT_SUPPORTED = "FieldValueNotSupported", "Unsupported value"
    NOT_FOUND = "FieldValueNotFound", "Not found"
    TOO_LONG = "FieldValueTooLong", "Too long"
    TOO_MANY = "FieldValueTooMany", "Too many"
    TOO_FEW = "FieldValueTooFew", "Too few"
    WRONG_TYPE = "FieldValueTypeInvalid", "Invalid value"

    @property
    def cause(self) -> str:
        """The reason as the wire says it."""
        return self.value[0]

    @property
    def words(self) -> str:
        """The reason as people read it."""
        return self.value[1]


_LONGEST_MESSAGE = 256 * 1024
"""After so many characters further problems are counted and no longer named: an object can have a hundred thousand."""

# A value does not help with these: it is missing, beside the point, or too long to show.
_SILENT = frozenset({Reason.REQUIRED, Reason.FORBIDDEN, Reason.TOO_LONG})


@dataclass(frozen=True)
class FieldProblem:
    """One field that breaks a rule: where (``spec.workers[0].name``), what is wrong, and the value found there."""

    path: str
    message: str = ""
    reason: Reason = Reason.INVALID
    value: Any = msgspec.UNSET

    @property
    def words(self) -> str:
        """The problem without its place, as a cause says it."""
        shown = "" if self.reason in _SILENT or self.value is msgspec.UNSET else f": {_shown(self.value)}"
        return f"{self.reason.words}{shown}" + (f": {self.message}" if self.message else "")

    def __str__(self) -> str:
        return f"{self.path}: {self.words}"


def invalid(path: str, value: Any, message: str) -> FieldProblem:
    """The value breaks a rule that the message states: ``must be at least 0``."""
    return FieldProblem(path, message, Reason.INVALID, value)


def required(path: str, message: str = "") -> FieldProblem:
    """The field must be set."""
    return FieldProblem(path, message, Reason.REQUIRED)


def forbidden(path: str, message: str) -> FieldProblem:
    """The field may not be set, or not changed, as things are."""
    return FieldProblem(path, message, Reason.FORBIDDEN)


def immutable(path: str, value: Any) -> FieldProblem:
    """The field was changed and may not be."""
    return FieldProblem(path, "field is immutable", Reason.INVALID, value)


def duplicate(path: str, value: Any) -> FieldProblem:
    """The value is there already where each may be only once."""
    return FieldProblem(path, "", Reason.DUPLICATE, value)


def not_supported(path: str, value: Any, supported: Sequence[str]) -> FieldProblem:
    """The value is none of those that are known."""
    message = "supported values: " + ", ".join(_shown(each) for each in supported) if supported else ""
    return FieldProblem(path, message, Reason.NOT_SUPPORTED, value)


def not_found(path: str, value: Any) -> FieldProblem:
    """The value names something that does not exist."""
    return FieldProblem(path, "", Reason.NOT_FOUND, value)


def too_long(path: str, limit: int) -> FieldProblem:
    """The text has more bytes than the limit."""
    return FieldProblem(path, f"may not be more than {limit} bytes", Reason.TOO_LONG)


def too_many(path: str, count: int, limit: int) -> FieldProblem:
    """The list has more items than the limit."""
    noun = "item" if limit == 1 else "items"
    return FieldProblem(path, f"must have at most {limit} {noun}", Reason.TOO_MANY, count)


def invalid_status(group: str, kind: str, name: str, problems: Iterable[FieldProblem]) -> Status:
    """The 422 answer that names every problem, worded as the API server words its own."""
    # Keyed by text, since a value need not be hashable; two rules may well find the same fault.
    distinct: dict[str, FieldProblem] = {}
    left_out = size = 0
    for problem in problems:
        if size > _LONGEST_MESSAGE:
            left_out += 1
            continue
        text = str(problem)
        size += len(text)
        distinct[text] = problem
    said = list(distinct)
    if left_out:
        said.append(f"and {left_out} more")
    told = said[0] if len(said) == 1 else f"[{', '.join(said)}]"
    qualified = f"{kind}.{group}" if group else kind
    causes = [Cause(reason=each.reason.cause, message=each.words, field=each.path) for each in distinct.values()]
    return Status(
        message=f"{qualified} {_shown(name)} is invalid: {told}",
        reason="Invalid",
        code=422,
        details=StatusDetails(name=name, group=group, kind=kind, causes=causes),
    )


def _shown(value: Any) -> str:
    return msgspec.json.encode(value, enc_hook=str).decode()
