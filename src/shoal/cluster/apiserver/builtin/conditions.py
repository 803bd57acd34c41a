"""What a condition in a status may say, where Kubernetes checks it."""

from __future__ import annotations

import re
from typing import Any

from shoal.cluster.apiserver.builtin.names import pattern_problem, text_bytes
from shoal.cluster.apiserver.builtin.selectors import label_key_problems
from shoal.cluster.apiserver.builtin.values import one_of
from shoal.kube.admission.fields import FieldProblem, duplicate, invalid, required, too_long

REASON = "[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?"
REASON_LIMIT = 1024
MESSAGE_LIMIT = 32 * 1024

_reason = re.compile(REASON).fullmatch
_NOT_REASON = pattern_problem(
    "a condition reason must start with alphabetic character, optionally followed by a string of alphanumeric "
    "characters or '_,:', and must end with an alphanumeric character or '_'",
    REASON,
    "my_name",
    "MY_NAME",
    "MyName",
    "ReasonA,ReasonB",
    "ReasonA:ReasonB",
)


def conditions_problems(conditions: list[dict[str, Any]] | None, path: str) -> list[FieldProblem]:
    """What is wrong with conditions, each type of which may be there once."""
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    for index, condition in enumerate(conditions or ()):
        here, kind = f"{path}[{index}]", condition.get("type", "")
        if kind in seen:
            problems.append(duplicate(f"{here}.type", kind))
        seen.add(kind)
        problems += _condition_problems(condition, here)
    return problems


def _condition_problems(condition: dict[str, Any], path: str) -> list[FieldProblem]:
    problems = label_key_problems(condition.get("type", ""), f"{path}.type")
    problems += one_of(f"{path}.status", condition.get("status", ""), ("False", "True", "Unknown"))
    generation = condition.get("observedGeneration") or 0
    if generation < 0:
        words = "must be greater than or equal to zero"
        problems.append(invalid(f"{path}.observedGeneration", generation, words))
    if not condition.get("lastTransitionTime"):
        problems.append(required(f"{path}.lastTransitionTime"))
    reason = condition.get("reason", "")
    if not reason:
        problems.append(required(f"{path}.reason"))
    elif not _reason(reason):
        problems.append(invalid(f"{path}.reason", reason, _NOT_REASON))
    if text_bytes(reason) > REASON_LIMIT:
        problems.append(too_long(f"{path}.reason", REASON_LIMIT))
    if text_bytes(condition.get("message", "")) > MESSAGE_LIMIT:
        problems.append(too_long(f"{path}.message", MESSAGE_LIMIT))
    return problems
