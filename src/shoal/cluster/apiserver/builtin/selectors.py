"""What a LabelSelector, or a set of labels, inside an object may say, and which labels it takes."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.names import label_value_problems, qualified_name_problems, subdomain_problems
from shoal.kube.admission.fields import FieldProblem, forbidden, invalid, required


def labels_problems(labels: dict[str, str] | None, path: str) -> list[FieldProblem]:
    """What is wrong with labels; Kubernetes names the map, not the key."""
    problems: list[FieldProblem] = []
    for key, value in (labels or {}).items():
        if found := qualified_name_problems(key):
            problems += [invalid(path, key, each) for each in found]
        if found := label_value_problems(value):
            problems += [invalid(path, value, each) for each in found]
    return problems


def label_selector_problems(
    selector: dict[str, Any] | None, path: str, *, allow_invalid_values: bool = False
) -> list[FieldProblem]:
    """What is wrong with a LabelSelector; one that is not set has no fault.

    ``allow_invalid_values`` is for objects that were stored when values in expressions were not looked at.
    """
    if not selector:
        return []
    problems = labels_problems(selector.get("matchLabels"), f"{path}.matchLabels")
    for index, requirement in enumerate(selector.get("matchExpressions") or ()):
        here = f"{path}.matchExpressions[{index}]"
        problems += requirement_problems(requirement, here, allow_invalid_values=allow_invalid_values)
    return problems


def requirement_problems(
    requirement: dict[str, Any], path: str, *, allow_invalid_values: bool = False
) -> list[FieldProblem]:
    """What is wrong with one expression of a LabelSelector."""
    problems: list[FieldProblem] = []
    operator = requirement.get("operator", "")
    values = requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            problems.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            words = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            problems.append(forbidden(f"{path}.values", words))
    else:
        problems.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    problems += label_key_problems(requirement.get("key", ""), f"{path}.key")
    if not allow_invalid_values:
        for index, value in enumerate(values):
            problems += [invalid(f"{path}.values[{index}]", value, each) for each in label_value_problems(value)]
    return problems


def label_key_problems(key: str, path: str) -> list[FieldProblem]:
    """What keeps a text at a path from being a label key."""
    return [invalid(path, key, each) for each in qualified_name_problems(key)]


def selector_is_empty(selector: dict[str, Any] | None) -> bool:
    """Whether it is not set, or takes everything."""
    return not selector or not (selector.get("matchLabels") or selector.get("matchExpressions"))


def node_selector_problems(selector: dict[str, Any], path: str) -> list[FieldProblem]:
    """What is wrong with a NodeSelector, as volumes and device classes have them."""
    terms = selector.get("nodeSelectorTerms") or ()
    if not terms:
        return [required(f"{path}.nodeSelectorTerms", "must have at least one node selector term")]
    problems: list[FieldProblem] = []
    for index, term in enumerate(terms):
        here = f"{path}.nodeSelectorTerms[{index}]"
        for place, each in enumerate(term.get("matchExpressions") or ()):
            problems += _node_requirement_problems(each, f"{here}.matchExpressions[{place}]")
        for place, each in enumerate(term.get("matchFields") or ()):
            problems += _node_field_problems(each, f"{here}.matchFields[{place}]")
    return problems


def _node_requirement_problems(requirement: dict[str, Any], path: str) -> list[FieldProblem]:
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    if operator not in ("Gt", "Lt"):
        return requirement_problems(requirement, path)
    problems = label_key_problems(requirement.get("key", ""), f"{path}.key")
    for index, value in enumerate(values):
        problems += [invalid(f"{path}.values[{index}]", value, each) for each in label_value_problems(value)]
    if len(values) != 1:
        words = "must be specified single value when `operator` is 'Lt' or 'Gt'"
        problems.insert(0, required(f"{path}.values", words))
    return problems


def _node_field_problems(requirement: dict[str, Any], path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    operator, key = requirement.get("operator", ""), requirement.get("key", "")
    values = requirement.get("values") or ()
    if operator not in ("In", "NotIn"):
        problems.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    elif len(values) != 1:
        words = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
        problems.append(required(f"{path}.values", words))
    if key != "metadata.name":
        return [*problems, invalid(f"{path}.key", key, "not a valid field selector key")]
    for index, value in enumerate(values):
        problems += [invalid(f"{path}.values[{index}]", value, each) for each in subdomain_problems(value)]
    return problems
