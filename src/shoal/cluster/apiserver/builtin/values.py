"""Rules of single values that many kinds share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

from shoal.api.meta import parse_quantity
from shoal.cluster.apiserver.builtin.names import port_name_problems, port_number_problems
from shoal.kube.admission.fields import FieldProblem, invalid, not_supported, required

NOT_NEGATIVE = "must be greater than or equal to 0"
POSITIVE = "must be greater than zero"


def named(path: str, value: str, rule: Callable[[str], Iterable[str]]) -> list[FieldProblem]:
    """A text that must follow a naming rule."""
    return [invalid(path, value, each) for each in rule(value)]


def one_of(path: str, value: str, supported: Sequence[str]) -> list[FieldProblem]:
    """A text that must be one of a few."""
    return [] if value in supported else [not_supported(path, value, supported)]


def required_one_of(path: str, value: str | None, supported: Sequence[str], words: str = "") -> list[FieldProblem]:
    """The same where it also must be set."""
    return one_of(path, value, supported) if value else [required(path, words)]


def not_negative(path: str, value: int | None) -> list[FieldProblem]:
    """A number that may be nothing, but not less."""
    return [] if value is None or value >= 0 else [invalid(path, value, NOT_NEGATIVE)]


def not_negative_quantity(path: str, value: str | int | float) -> list[FieldProblem]:
    """The same for a quantity."""
    return [] if parse_quantity(value).nano >= 0 else [invalid(path, str(value), NOT_NEGATIVE)]


def port_number(path: str, value: int) -> list[FieldProblem]:
    """A port's number."""
    return [invalid(path, value, each) for each in port_number_problems(value)]


def port_number_or_name(path: str, value: int | str) -> list[FieldProblem]:
    """A port by number, or by a container port's name."""
    if isinstance(value, int):
        return port_number(path, value)
    return [invalid(path, value, each) for each in port_name_problems(value)]


def part(value: dict[str, Any], *path: str) -> Any:
    """What lies at a path, or None where any part of it is missing."""
    found: Any = value
    for each in path:
        if not isinstance(found, dict):
            return None
        found = found.get(each)
    return found


def text(*path: str) -> Callable[[dict[str, Any]], str]:
    """A reader of the text at a path, for field selectors; nothing reads as the empty text."""

    def read(value: dict[str, Any]) -> str:
        found = part(value, *path)
        if isinstance(found, bool):
            return "true" if found else "false"
        return "" if found is None else str(found)

    return read


def flag(*path: str) -> Callable[[dict[str, Any]], str]:
    """The same for a boolean, which reads as false where it is not set."""

    def read(value: dict[str, Any]) -> str:
        return "true" if part(value, *path) else "false"

    return read
