"""LimitRange and ResourceQuota: which resources they may speak of, and how their numbers must agree."""

from __future__ import annotations

from typing import Any

from shoal.api.meta import Quantity, parse_quantity
from shoal.cluster.apiserver.builtin.names import qualified_name_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.resource_names import (
    QUOTA,
    allows_overcommit,
    amount_problems,
    container_resource_name_problems,
    is_quota_huge_page,
    quota_resource_name_problems,
    resource_name_problems,
)
from shoal.cluster.apiserver.builtin.values import named
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.kube.admission.fields import FieldProblem, duplicate, forbidden, immutable, invalid, required

_POD_RESOURCES = frozenset({"pods", "cpu", "memory", "limits.cpu", "limits.memory", "requests.cpu", "requests.memory"})
SCOPES: dict[str, frozenset[str]] = {
    "Terminating": _POD_RESOURCES,
    "NotTerminating": _POD_RESOURCES,
    "BestEffort": frozenset({"pods"}),
    "NotBestEffort": _POD_RESOURCES,
    "PriorityClass": _POD_RESOURCES,
    "CrossNamespacePodAffinity": _POD_RESOURCES,
    "VolumeAttributesClass": frozenset({"persistentvolumeclaims", "requests.storage"}),
}
"""The resources that each scope can be asked about."""

_ONLY_EXISTS = ("BestEffort", "NotBestEffort", "Terminating", "NotTerminating", "CrossNamespacePodAffinity")
_LARGEST_MILLI = (2**63 - 1) // 1000


def default_limit_range(new: Object) -> None:
    """Lets a container's defaults follow from the bounds that are given."""
    for item in (new.get("spec") or {}).get("limits") or ():
        if item.get("type") != "Container":
            continue
        limits = {**(item.get("max") or {}), **(item.get("default") or {})}
        requests = {**(item.get("min") or {}), **limits, **(item.get("defaultRequest") or {})}
        if limits:
            item["default"] = limits
        if requests:
            item["defaultRequest"] = requests


def limit_range_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a LimitRange."""
    problems: list[FieldProblem] = []
    seen: set[str] = set()
    for index, item in enumerate((new.get("spec") or {}).get("limits") or ()):
        here, kind = f"spec.limits[{index}]", item.get("type", "")
        problems += _limit_type_problems(kind, f"{here}.type")
        if kind in seen:
            problems.append(duplicate(f"{here}.type", kind))
        seen.add(kind)
        problems += _limit_item_problems(item, kind, here)
    return problems


def quota_problems(new: Object) -> list[FieldProblem]:
    """What is wrong with a ResourceQuota."""
    return quota_spec_problems(new.get("spec") or {}) + _amounts_problems(new.get("status") or {}, "status")


def validate_quota_update(new: Object, old: Object) -> list[FieldProblem]:
    """The same for a change: its scopes stay."""
    spec, before = new.get("spec") or {}, old.get("spec") or {}
    problems = quota_spec_problems(spec)
    if set(spec.get("scopes") or ()) != set(before.get("scopes") or ()):
        problems.append(immutable("spec.scopes", spec.get("scopes")))
    return problems


def validate_quota_status(new: Object, _old: Object) -> list[FieldProblem]:
    """What is wrong with what is counted."""
    return _amounts_problems(new.get("status") or {}, "status")


def quota_spec_problems(spec: dict[str, Any]) -> list[FieldProblem]:
    """What is wrong with limits and scopes."""
    problems = _amounts_problems({"hard": spec.get("hard")}, "spec")
    scopes = spec.get("scopes") or []
    for scope in scopes:
        if scope not in SCOPES:
            problems.append(invalid("spec.scopes", scopes, "unsupported scope"))
        for _ in _outside_scope(spec, scope):
            problems.append(invalid("spec.scopes", scopes, "unsupported scope applied to resource"))
    if _is_contradiction(scopes):
        problems.append(invalid("spec.scopes", scopes, "conflicting scopes"))
    selector = spec.get("scopeSelector")
    if selector is None:
        return problems
    path, expressions = "spec.scopeSelector.matchExpressions", selector.get("matchExpressions") or ()
    for expression in expressions:
        for _ in _outside_scope(spec, expression.get("scopeName", "")):
            shown = {"MatchExpressions": [_inner(each) for each in expressions]}
            problems.append(invalid(path, shown, "unsupported scope applied to resource"))
        problems += _expression_problems(expression, path)
    if _is_contradiction([each.get("scopeName") for each in expressions]):
        problems.append(invalid(path, spec.get("scopes"), "conflicting scopes"))
    return problems


def _inner(expression: dict[str, Any]) -> dict[str, Any]:
    """A requirement in the inner shape in which Kubernetes shows it."""
    return {
        "ScopeName": expression.get("scopeName", ""),
        "Operator": expression.get("operator", ""),
        "Values": expression.get("values"),
    }


def _outside_scope(spec: dict[str, Any], scope: str) -> list[str]:
    known = SCOPES.get(scope)
    if known is None:
        return []
    hard = sorted(spec.get("hard") or ())
    return [name for name in hard if (name in QUOTA or is_quota_huge_page(name)) and name not in known]


def _is_contradiction(scopes: list[Any]) -> bool:
    return {"BestEffort", "NotBestEffort"} <= set(scopes) or {"Terminating", "NotTerminating"} <= set(scopes)


def _expression_problems(expression: dict[str, Any], path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    scope, operator = expression.get("scopeName", ""), expression.get("operator", "")
    values = expression.get("values") or []
    if scope not in SCOPES:
        problems.append(invalid(f"{path}.scopeName", scope, "unsupported scope"))
    if scope in _ONLY_EXISTS and operator != "Exists":
        words = (
            "must be 'Exists' when scope is any of ResourceQuotaScopeTerminating, ResourceQuotaScopeNotTerminating, "
            "ResourceQuotaScopeBestEffort, ResourceQuotaScopeNotBestEffort or "
            "ResourceQuotaScopeCrossNamespacePodAffinity"
        )
        problems.append(invalid(f"{path}.operator", operator, words))
    if operator in ("In", "NotIn"):
        if not values:
            words = "must be at least one value when `operator` is 'In' or 'NotIn' for scope selector"
            problems.append(required(f"{path}.values", words))
    elif operator in ("Exists", "DoesNotExist"):
        if values:
            words = "must be no value when `operator` is 'Exist' or 'DoesNotExist' for scope selector"
            problems.append(invalid(f"{path}.values", values, words))
    else:
        problems.append(invalid(f"{path}.operator", operator, "not a valid selector operator"))
    return problems


def _amounts_problems(holder: dict[str, Any], path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for part in ("hard", "used"):
        for name, value in (holder.get(part) or {}).items():
            here = f"{path}.{part}[{name}]"
            problems += quota_resource_name_problems(name, here) + amount_problems(name, value, here)
    return problems


def _limit_type_problems(kind: str, path: str) -> list[FieldProblem]:
    if problems := named(path, kind, qualified_name_problems):
        return problems
    if "/" in kind or kind in ("Pod", "Container", "PersistentVolumeClaim"):
        return []
    return [invalid(path, kind, "must be a standard limit type or fully qualified")]


def _limit_item_problems(item: dict[str, Any], kind: str, here: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    amounts: dict[str, dict[str, Quantity]] = {}
    rule = container_resource_name_problems if kind in ("Pod", "Container") else resource_name_problems
    for field in ("max", "min", "default", "defaultRequest", "maxLimitRequestRatio"):
        values = item.get(field) or {}
        if kind == "Pod" and field in ("default", "defaultRequest"):
            if values:
                problems.append(forbidden(f"{here}.{field}", "may not be specified when `type` is 'Pod'"))
            continue
        for name, value in values.items():
            problems += rule(name, f"{here}.{field}[{name}]")
            amounts.setdefault(name, {})[field] = parse_quantity(value)
    if kind == "PersistentVolumeClaim" and "storage" not in {**(item.get("min") or {}), **(item.get("max") or {})}:
        words = "either minimum or maximum storage value is required, but neither was provided"
        problems.append(required(f"{here}.limits", words))
    for name, found in amounts.items():
        problems += _agreement_problems(name, found, here)
    return problems


def _agreement_problems(name: str, found: dict[str, Quantity], here: str) -> list[FieldProblem]:
    low, high = found.get("min"), found.get("max")
    limit, request, ratio = found.get("default"), found.get("defaultRequest"), found.get("maxLimitRequestRatio")
    # Each: the smaller that is not smaller, both with their words, the field and the value that are blamed.
    orders = (
        (low, high, "min value", "max value", "min", low),
        (low, request, "min value", "default request value", "defaultRequest", request),
        (request, high, "default request value", "max value", "defaultRequest", request),
        (request, limit, "default request value", "default limit value", "defaultRequest", request),
        (low, limit, "min value", "default value", "default", low),
        (limit, high, "default value", "max value", "default", high),
    )
    problems = [
        invalid(f"{here}.{field}[{name}]", str(blamed), f"{small} {less} is greater than {big} {more}")
        for less, more, small, big, field, blamed in orders
        if less is not None and more is not None and less > more
    ]
    path = f"{here}.maxLimitRequestRatio[{name}]"
    if ratio is not None and ratio < Quantity.of(1):
        problems.append(invalid(path, str(ratio), f"ratio {ratio} is less than 1"))
    if ratio is not None and low is not None and high is not None and low.nano:
        exact = max(ratio.value(), low.value(), high.value()) < _LARGEST_MILLI
        most = high.milli_value() / low.milli_value() if exact else high.value() / low.value()
        if (ratio.milli_value() / 1000 if exact else float(ratio.value())) > most:
            problems.append(invalid(path, str(ratio), f"ratio {ratio} is greater than max/min = {most:.6f}"))
    if not allows_overcommit(name) and limit is not None and request is not None and limit != request:
        words = f"default value {limit} must equal to defaultRequest value {request} in {name}"
        problems.append(invalid(f"{here}.defaultRequest[{name}]", str(request), words))
    return problems


RULES = {
    ("", "LimitRange"): Rules(
        name_problems=subdomain_problems,
        defaults=default_limit_range,
        validate_create=limit_range_problems,
        validate_update=lambda new, _old: limit_range_problems(new),
        has_generation=False,
        create_on_update=True,
    ),
    ("", "ResourceQuota"): Rules(
        name_problems=subdomain_problems,
        validate_create=quota_problems,
        validate_update=validate_quota_update,
        validate_status=validate_quota_status,
        has_generation=False,
        resets={"": (("status",),), "status": (("spec",),)},
    ),
}
