"""Where a pod may run: tolerations, spreading, and the gates it waits behind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from shoal.cluster.apiserver.builtin.names import label_value_problems, qualified_name_problems
from shoal.cluster.apiserver.builtin.selectors import label_key_problems, label_selector_problems
from shoal.kube.admission.fields import (
    FieldProblem,
    duplicate,
    forbidden,
    invalid,
    not_supported,
    required,
)

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def check_tolerations(tolerations: list[dict[str, Any]], path: str, problems: list[FieldProblem]) -> None:
    """The taints that a pod puts up with."""
    for index, toleration in enumerate(tolerations):
        here = f"{path}[{index}]"
        key, operator, value = (toleration.get(each, "") for each in ("key", "operator", "value"))
        effect = toleration.get("effect", "")
        if key:
            problems += label_key_problems(key, f"{here}.key")
        elif operator != "Exists":
            words = 'operator must be Exists when `key` is empty, which means "match all values and all keys"'
            problems.append(invalid(f"{here}.operator", operator, words))
        if effect != "NoExecute" and toleration.get("tolerationSeconds") is not None:
            words = "effect must be 'NoExecute' when `tolerationSeconds` is set"
            problems.append(invalid(f"{here}.effect", effect, words))
        if operator in ("Equal", ""):
            if messages := label_value_problems(value):
                problems.append(invalid(f"{here}.operator", value, ";".join(messages)))
        elif operator == "Exists":
            if value:
                words = "value must be empty when `operator` is 'Exists'"
                problems.append(invalid(f"{here}.operator", value, words))
        else:
            known = ["Equal", "Exists", "Lt", "Gt"] if operator in ("Lt", "Gt") else ["Equal", "Exists"]
            problems.append(not_supported(f"{here}.operator", operator, known))
        if effect and effect not in _EFFECTS:
            problems.append(not_supported(f"{here}.effect", effect, _EFFECTS))


def check_spread(constraints: list[dict[str, Any]], path: str, problems: list[FieldProblem]) -> None:
    """How evenly pods are spread."""
    for index, constraint in enumerate(constraints):
        here = f"{path}[{index}]"
        skew, key, action = constraint.get("maxSkew", 0), constraint.get("topologyKey", ""), _action(constraint)
        if skew <= 0:
            problems.append(invalid(f"{here}.maxSkew", skew, "must be greater than zero"))
        if not key:
            problems.append(required(f"{here}.topologyKey", "can not be empty"))
        if action not in ("DoNotSchedule", "ScheduleAnyway"):
            known = ["DoNotSchedule", "ScheduleAnyway"]
            problems.append(not_supported(f"{here}.whenUnsatisfiable", action, known))
        if any((each.get("topologyKey", ""), _action(each)) == (key, action) for each in constraints[index + 1 :]):
            where = f"{here}.{{topologyKey, whenUnsatisfiable}}"
            problems.append(duplicate(where, f"{{{key}, {action}}}"))
        if (domains := constraint.get("minDomains")) is not None:
            if domains <= 0:
                problems.append(invalid(f"{here}.minDomains", domains, "must be greater than zero"))
            if action != "DoNotSchedule":
                words = f"can only use minDomains if whenUnsatisfiable=DoNotSchedule, not {action}"
                problems.append(invalid(f"{here}.minDomains", domains, words))
        for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
            policy = constraint.get(field)
            if policy is not None and policy not in ("Honor", "Ignore"):
                problems.append(not_supported(f"{here}.{field}", policy, ["Honor", "Ignore"]))
        check_label_keys(constraint, here, problems)
        problems += label_selector_problems(constraint.get("labelSelector"), f"{here}.labelSelector")


def check_label_keys(term: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    """Labels of the pod itself whose values become part of a selector."""
    matching, mismatching = term.get("matchLabelKeys") or (), term.get("mismatchLabelKeys") or ()
    if not matching and not mismatching:
        return
    selector = term.get("labelSelector")
    for field, keys in (("matchLabelKeys", matching), ("mismatchLabelKeys", mismatching)):
        if keys and selector is None:
            problems.append(forbidden(f"{path}.{field}", "must not be specified when labelSelector is not set"))
        elif keys:
            for index, key in enumerate(keys):
                problems += label_key_problems(key, f"{path}.{field}[{index}]")
    if selector is not None:
        seen = set(selector.get("matchLabels") or ())
        for expression in selector.get("matchExpressions") or ():
            key = expression.get("key", "")
            if key in matching and key in seen:
                words = "exists in both matchLabelKeys and labelSelector"
                problems.append(invalid(f"{path}[{_last_index(matching, key)}]", key, words))
            seen.add(key)
    for index, key in enumerate(matching):
        if key in mismatching:
            words = "exists in both matchLabelKeys and mismatchLabelKeys"
            problems.append(invalid(f"{path}.matchLabelKeys[{index}]", key, words))


def check_gates(gates: list[dict[str, Any]], path: str, problems: list[FieldProblem]) -> None:
    """What must be taken away before a pod is scheduled."""
    seen: set[str] = set()
    for index, gate in enumerate(gates):
        name = gate.get("name", "")
        problems += [invalid(f"{path}[{index}]", name, each) for each in qualified_name_problems(name)]
        if name in seen:
            problems.append(duplicate(f"{path}[{index}]", name))
        seen.add(name)


def _action(constraint: dict[str, Any]) -> str:
    action: str = constraint.get("whenUnsatisfiable", "")
    return action


def _last_index(keys: Sequence[str], key: str) -> int:
    return max(index for index, each in enumerate(keys) if each == key)
