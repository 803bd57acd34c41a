"""What the scale subresource demands of the values that its paths lead to."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.custom.text import go_number
from shoal.kube.admission.fields import FieldProblem, invalid

_MOST = 2**31 - 1
_GO_TYPES: dict[type, str] = {
    str: "string",
    bool: "bool",
    int: "int64",
    float: "float64",
    list: "[]interface {}",
    dict: "map[string]interface {}",
    type(None): "<nil>",
}


def scale_problems(value: dict[str, Any], scale: dict[str, Any], *, is_status: bool = False) -> list[FieldProblem]:
    """The counts must be counts and the selector a string, where they are set."""
    problems: list[FieldProblem] = []
    if not is_status:
        problems += _count_problems(value, scale["specReplicasPath"])
    problems += _count_problems(value, scale["statusReplicasPath"])
    selector = scale.get("labelSelectorPath")
    if selector is not None:
        _, fault = _nested(value, selector, str, "string")
        if fault:
            problems.append(invalid(selector, "", fault))
    return problems


def scale_path(path: str) -> tuple[str, ...]:
    """The fields that a path of the scale subresource names."""
    return tuple(path.removeprefix(".").split("."))


def _count_problems(value: dict[str, Any], path: str) -> list[FieldProblem]:
    count, fault = _nested(value, path, int, "int64")
    if fault:
        return [invalid(path, 0, fault)]
    if count is not None and count < 0:
        return [invalid(path, count, "should be a non-negative integer")]
    if count is not None and count > _MOST:
        return [invalid(path, count, f"should be less than or equal to {_MOST}")]
    return []


def _nested(value: Any, path: str, wanted: type, named: str) -> tuple[Any, str]:
    """The value at a path, or why there is none of the type; both are empty where nothing is set."""
    steps = scale_path(path)
    for at, step in enumerate(steps):
        if type(value) is not dict:
            if value is None:
                return None, ""
            return None, _accessor_fault(steps[: at + 1], value, "map[string]interface{}")
        if step not in value:
            return None, ""
        value = value[step]
    if type(value) is not wanted:
        return None, _accessor_fault(steps, value, named)
    return value, ""


def _accessor_fault(steps: tuple[str, ...], value: Any, expected: str) -> str:
    shown = value if isinstance(value, str) else _shown(value)
    return f".{'.'.join(steps)} accessor error: {shown} is of the type {_GO_TYPES[type(value)]}, expected {expected}"


def _shown(value: Any) -> str:
    """A value as %v writes it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return go_number(value)
    if isinstance(value, list):
        return "[" + " ".join(map(_shown, value)) + "]"
    if isinstance(value, dict):
        return "map[" + " ".join(f"{key}:{_shown(item)}" for key, item in sorted(value.items())) + "]"
    return "<nil>" if value is None else str(value)
