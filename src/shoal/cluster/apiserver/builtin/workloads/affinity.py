"""Affinity of a pod to nodes, and to other pods."""

from __future__ import annotations

from typing import Any

from shoal.cluster.apiserver.builtin.names import label_problems, label_value_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.selectors import label_key_problems, label_selector_problems
from shoal.cluster.apiserver.builtin.workloads.scheduling import check_label_keys
from shoal.kube.admission.fields import FieldProblem, forbidden, invalid, required

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"


def check_affinity(affinity: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    """All kinds of affinity."""
    if (nodes := affinity.get("nodeAffinity")) is not None:
        _check_node_affinity(nodes, f"{path}.nodeAffinity", problems)
    for field in ("podAffinity", "podAntiAffinity"):
        if (pods := affinity.get(field)) is not None:
            here = f"{path}.{field}"
            for index, term in enumerate(pods.get(REQUIRED) or ()):
                _check_pod_term(term, f"{here}.{REQUIRED}[{index}]", problems)
            for index, weighted in enumerate(pods.get(PREFERRED) or ()):
                where = f"{here}.{PREFERRED}[{index}]"
                _check_weight(weighted, where, problems)
                _check_pod_term(weighted.get("podAffinityTerm") or {}, f"{where}.podAffinityTerm", problems)


def _check_node_affinity(affinity: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    if (selector := affinity.get(REQUIRED)) is not None:
        here = f"{path}.{REQUIRED}.nodeSelectorTerms"
        terms = selector.get("nodeSelectorTerms") or ()
        if not terms:
            problems.append(required(here, "must have at least one node selector term"))
        for index, term in enumerate(terms):
            _check_node_term(term, f"{here}[{index}]", problems, checks_values=True)
    for index, preferred in enumerate(affinity.get(PREFERRED) or ()):
        here = f"{path}.{PREFERRED}[{index}]"
        _check_weight(preferred, here, problems)
        _check_node_term(preferred.get("preference") or {}, f"{here}.preference", problems, checks_values=False)


def _check_weight(weighted: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    weight = weighted.get("weight", 0)
    if not 0 < weight <= 100:
        problems.append(invalid(f"{path}.weight", weight, "must be in the range 1-100"))


def _check_node_term(term: dict[str, Any], path: str, problems: list[FieldProblem], *, checks_values: bool) -> None:
    for index, requirement in enumerate(term.get("matchExpressions") or ()):
        _check_node_labels(requirement, f"{path}.matchExpressions[{index}]", problems, checks_values=checks_values)
    for index, requirement in enumerate(term.get("matchFields") or ()):
        _check_node_fields(requirement, f"{path}.matchFields[{index}]", problems)


def _check_node_labels(
    requirement: dict[str, Any], path: str, problems: list[FieldProblem], *, checks_values: bool
) -> None:
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if not values:
            problems.append(required(f"{path}.values", "must be specified when `operator` is 'In' or 'NotIn'"))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            words = "may not be specified when `operator` is 'Exists' or 'DoesNotExist'"
            problems.append(forbidden(f"{path}.values", words))
    elif operator in ("Gt", "Lt"):
        if len(values) != 1:
            words = "must be specified single value when `operator` is 'Lt' or 'Gt'"
            problems.append(required(f"{path}.values", words))
    else:
        problems.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    problems += label_key_problems(requirement.get("key", ""), f"{path}.key")
    if checks_values:
        for index, value in enumerate(values):
            problems += [invalid(f"{path}.values[{index}]", value, each) for each in label_value_problems(value)]


def _check_node_fields(requirement: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    operator, values = requirement.get("operator", ""), requirement.get("values") or ()
    if operator in ("In", "NotIn"):
        if len(values) != 1:
            words = "must be only one value when `operator` is 'In' or 'NotIn' for node field selector"
            problems.append(required(f"{path}.values", words))
    else:
        problems.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    if (key := requirement.get("key", "")) != "metadata.name":
        problems.append(invalid(f"{path}.key", key, "not a valid field selector key"))
        return
    for index, value in enumerate(values):
        problems += [invalid(f"{path}.values[{index}]", value, each) for each in subdomain_problems(value)]


def _check_pod_term(term: dict[str, Any], path: str, problems: list[FieldProblem]) -> None:
    problems += label_selector_problems(term.get("labelSelector"), f"{path}.labelSelector")
    problems += label_selector_problems(term.get("namespaceSelector"), f"{path}.namespaceSelector")
    for name in term.get("namespaces") or ():
        problems += [invalid(f"{path}.namespace", name, each) for each in label_problems(name)]
    check_label_keys(term, path, problems)
    key = term.get("topologyKey", "")
    if not key:
        problems.append(required(f"{path}.topologyKey", "can not be empty"))
    problems += label_key_problems(key, f"{path}.topologyKey")
