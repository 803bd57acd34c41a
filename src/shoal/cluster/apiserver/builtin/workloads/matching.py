"""Whether labels are what a LabelSelector of the wire asks for."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.names import label_value_problems, qualified_name_problems

_OPERATORS = ("In", "NotIn", "Exists", "DoesNotExist")


def selector_matches(selector: dict[str, Any] | None, labels: dict[str, str]) -> bool:
    """A selector that is not set, or has a fault, takes nothing; an empty one takes everything."""
    if selector is None or not is_usable(selector):
        return False
    if any(labels.get(key) != value for key, value in (selector.get("matchLabels") or {}).items()):
        return False
    return all(_holds(each, labels) for each in selector.get("matchExpressions") or ())


def is_usable(selector: dict[str, Any] | None) -> bool:
    """Whether it can be put to labels at all; one that is not set can."""
    if not selector:
        return True
    for key, value in (selector.get("matchLabels") or {}).items():
        if qualified_name_problems(key) or label_value_problems(value):
            return False
    for each in selector.get("matchExpressions") or ():
        operator, values = each.get("operator", ""), each.get("values") or ()
        if operator not in _OPERATORS or bool(values) != (operator in ("In", "NotIn")):
            return False
        if qualified_name_problems(each.get("key", "")) or any(label_value_problems(value) for value in values):
            return False
    return True


def shown_selector(selector: dict[str, Any] | None) -> dict[str, Any] | None:
    """A selector as messages show it: its fields as they are declared, its labels in order."""
    if not selector:
        return selector
    shown: dict[str, Any] = {}
    if labels := selector.get("matchLabels"):
        shown["matchLabels"] = dict(sorted(labels.items()))
    if rows := selector.get("matchExpressions"):
        shown["matchExpressions"] = [
            {name: row[name] for name in ("key", "operator", "values") if name in row} for row in rows
        ]
    return shown


def _holds(requirement: dict[str, Any], labels: dict[str, str]) -> bool:
    key, operator = requirement.get("key", ""), requirement["operator"]
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    is_listed = labels.get(key) in (requirement.get("values") or ())
    return is_listed if operator == "In" else not is_listed
