"""PodDisruptionBudget: one bound, as a count or a percentage."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.conditions import conditions_problems
from shoal.cluster.apiserver.builtin.names import path_segment_problems, percent_problems
from shoal.cluster.apiserver.builtin.selectors import label_selector_problems
from shoal.cluster.apiserver.builtin.values import named, not_negative, one_of
from shoal.cluster.apiserver.builtin.workloads.matching import shown_selector
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, invalid

_COUNTS = ("disruptionsAllowed", "currentHealthy", "desiredHealthy", "expectedPods")


def budget_problems(new: Object, old: Object | None = None) -> list[FieldProblem]:
    """What is wrong with a budget."""
    spec = new.get("spec") or {}
    problems: list[FieldProblem] = []
    if spec.get("minAvailable") is not None and spec.get("maxUnavailable") is not None:
        shown = {
            "MinAvailable": spec["minAvailable"],
            "Selector": shown_selector(spec.get("selector")),
            "MaxUnavailable": spec["maxUnavailable"],
            "UnhealthyPodEvictionPolicy": spec.get("unhealthyPodEvictionPolicy"),
        }
        problems.append(invalid("spec", shown, "minAvailable and maxUnavailable cannot be both set"))
    for field in ("minAvailable", "maxUnavailable"):
        if spec.get(field) is not None:
            problems += int_or_percent_problems(f"spec.{field}", spec[field])
    before = (old or {}).get("spec") or {}
    loose = old is not None and bool(label_selector_problems(before.get("selector"), ""))
    problems += label_selector_problems(spec.get("selector"), "spec.selector", allow_invalid_values=loose)
    if (policy := spec.get("unhealthyPodEvictionPolicy")) is not None:
        problems += one_of("spec.unhealthyPodEvictionPolicy", policy, ("AlwaysAllow", "IfHealthyBudget"))
    return problems


def int_or_percent_problems(path: str, value: int | str) -> list[FieldProblem]:
    """What is wrong with a count, or a percentage up to a hundred."""
    if isinstance(value, int):
        return not_negative(path, value)
    problems = named(path, value, percent_problems)
    if not problems and int(value[:-1]) > 100:
        problems.append(invalid(path, value, "must not be greater than 100%"))
    return problems


def validate_status(new: Object, _old: Object) -> list[FieldProblem]:
    """What is wrong with what its controller counts."""
    status: dict[str, Any] = new.get("status") or {}
    problems = conditions_problems(status.get("conditions"), "status.conditions")
    for field in _COUNTS:
        problems += not_negative(f"status.{field}", status.get(field))
    return problems


RULES = {
    ("policy", "PodDisruptionBudget"): Rules(
        name_problems=path_segment_problems,
        checks_metadata=False,
        validate_create=budget_problems,
        validate_update=budget_problems,
        validate_status=validate_status,
        unconditional_update=False,
        resets={"": (("status",),), "status": (("spec",),)},
    )
}
