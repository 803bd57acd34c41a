"""HorizontalPodAutoscaler: bounds, metrics and behaviour; v1 is judged as what it becomes in v2."""

from __future__ import annotations

from typing import Any

from shoal.api.meta import parse_quantity
from shoal.cluster.apiserver.builtin.names import label_problems, path_segment_problems, subdomain_problems
from shoal.cluster.apiserver.builtin.resource_names import container_resource_name_problems
from shoal.cluster.apiserver.builtin.values import POSITIVE, named, not_negative, not_negative_quantity, one_of
from shoal.cluster.apiserver.kinds.autoscalers import autoscaler_to_v2
from shoal.cluster.apiserver.kinds.kind import Object, Rules
from shoal.cluster.apiserver.kinds.tables import type_schema
from shoal.kube.admission.fields import FieldProblem, forbidden, invalid, not_supported, required

V1 = "autoscaling/v1"
METRICS = "autoscaling.alpha.kubernetes.io/metrics"
DEFAULT_UTILIZATION = 80
MAX_PERIOD = 1800
MAX_WINDOW = 3600
SOURCES = {
    "ContainerResource": "containerResource",
    "External": "external",
    "Object": "object",
    "Pods": "pods",
    "Resource": "resource",
}
_CHECKED_FIRST = ("object", "external", "pods", "resource", "containerResource")
_FIFTEEN_SECONDS = 15


def default_autoscaler(new: Object) -> None:
    """At least one pod, by CPU, and by the usual pace where a pace is spoken of."""
    spec = new.setdefault("spec", {})
    spec.setdefault("minReplicas", 1)
    if new.get("apiVersion") == V1:
        if METRICS not in ((new.get("metadata") or {}).get("annotations") or {}):
            spec.setdefault("targetCPUUtilizationPercentage", DEFAULT_UTILIZATION)
        return
    if not spec.get("metrics"):
        target = {"type": "Utilization", "averageUtilization": DEFAULT_UTILIZATION}
        spec["metrics"] = [{"type": "Resource", "resource": {"name": "cpu", "target": target}}]
    if (behavior := spec.get("behavior")) is not None:
        behavior["scaleUp"] = _scale_up() | (behavior.get("scaleUp") or {})
        behavior["scaleDown"] = _scale_down() | (behavior.get("scaleDown") or {})


def autoscaler_problems(new: Object, old: Object | None = None) -> list[FieldProblem]:
    """What is wrong with an autoscaler."""
    spec, before = _spec_of_v2(new), _spec_of_v2(old or {})
    low, high, lowest = spec.get("minReplicas"), spec.get("maxReplicas", 0), int(before.get("minReplicas") != 0)
    problems: list[FieldProblem] = []
    if low is not None and low < lowest:
        problems.append(invalid("spec.minReplicas", low, f"must be greater than or equal to {lowest}"))
    if high == 0:
        problems.append(required("spec.maxReplicas", "must be set and greater than 0"))
    elif high < 0:
        problems.append(invalid("spec.maxReplicas", high, "must be greater than or equal to 1"))
    if low is not None and high < low:
        problems.append(invalid("spec.maxReplicas", high, "must be greater than or equal to `minReplicas`"))
    target, had = spec.get("scaleTargetRef") or {}, before.get("scaleTargetRef")
    same = had is not None and all(had.get(each) == target.get(each) for each in ("apiVersion", "kind"))
    free = target.get("kind") == "ReplicationController"
    problems += _reference_problems(target, "spec.scaleTargetRef", any_version=same, any_group=free)
    metrics = spec.get("metrics") or ()
    for index, metric in enumerate(metrics):
        problems += _metric_problems(metric, f"spec.metrics[{index}]")
    if low == 0 and not any(each.get("type") in ("Object", "External") for each in metrics):
        words = "must specify at least one Object or External metric to support scaling to zero replicas"
        problems.append(forbidden("spec.metrics", words))
    behavior = spec.get("behavior") or {}
    for field in ("scaleUp", "scaleDown"):
        if behavior.get(field) is not None:
            problems += _rules_problems(behavior[field], f"spec.behavior.{field}")
    return problems


def validate_status(new: Object, _old: Object) -> list[FieldProblem]:
    """What is wrong with what its controller counts."""
    status = new.get("status") or {}
    problems = not_negative("status.currentReplicas", status.get("currentReplicas"))
    return problems + not_negative("status.desiredReplicas", status.get("desiredReplicas"))


def _spec_of_v2(autoscaler: Object) -> dict[str, Any]:
    if autoscaler.get("apiVersion") == V1:
        autoscaler = autoscaler_to_v2(type_schema("autoscaling.v2.HorizontalPodAutoscaler"), autoscaler)
    return autoscaler.get("spec") or {}


def _scale_up() -> dict[str, Any]:
    return {
        "stabilizationWindowSeconds": 0,
        "selectPolicy": "Max",
        "policies": [
            {"type": "Pods", "value": 4, "periodSeconds": _FIFTEEN_SECONDS},
            {"type": "Percent", "value": 100, "periodSeconds": _FIFTEEN_SECONDS},
        ],
    }


def _scale_down() -> dict[str, Any]:
    policies = [{"type": "Percent", "value": 100, "periodSeconds": _FIFTEEN_SECONDS}]
    return {"selectPolicy": "Max", "policies": policies}


def _reference_problems(
    reference: dict[str, Any], path: str, *, any_version: bool = False, any_group: bool = False
) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    for field in ("kind", "name"):
        if value := reference.get(field):
            problems += named(f"{path}.{field}", value, path_segment_problems)
        else:
            problems.append(required(f"{path}.{field}"))
    version = reference.get("apiVersion", "")
    if any_version:
        return problems
    if version.count("/") > 1:
        words = f"unexpected GroupVersion string: {version}"
        problems.append(invalid(f"{path}.apiVersion", version, words))
    elif not any_group and not version.rpartition("/")[0]:
        problems.append(invalid(f"{path}.apiVersion", version, "apiVersion must specify API group"))
    return problems


def _metric_problems(metric: dict[str, Any], path: str) -> list[FieldProblem]:
    kind = metric.get("type", "")
    problems: list[FieldProblem] = []
    if not kind:
        problems.append(required(f"{path}.type", "must specify a metric source type"))
    if kind not in SOURCES:
        problems.append(not_supported(f"{path}.type", kind, list(SOURCES)))
    present = [each for each in _CHECKED_FIRST if metric.get(each) is not None]
    if present:
        problems += _source_problems(present[0], metric[present[0]], f"{path}.{present[0]}")
    expected = SOURCES.get(kind, "")
    if expected and expected not in present:
        problems.append(required(f"{path}.{expected}", "must populate information for the given metric source"))
    if len(present) != 1:
        problems += [
            forbidden(f"{path}.{each}", "must populate the given metric source only")
            for each in present
            if each != expected
        ]
    return problems


def _source_problems(kind: str, source: dict[str, Any], path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    target = source.get("target") or {}
    total, average, share = (target.get(each) for each in ("value", "averageValue", "averageUtilization"))
    if kind == "object":
        problems += _reference_problems(source.get("describedObject") or {}, f"{path}.describedObject", any_group=True)
    if kind in ("object", "external", "pods"):
        problems += _identifier_problems(source.get("metric") or {}, f"{path}.metric")
    elif not source.get("name"):
        problems.append(required(f"{path}.name", "must specify a resource name"))
    elif kind == "containerResource":
        problems += container_resource_name_problems(source["name"], f"{path}.name")
    if kind == "containerResource":
        if container := source.get("container"):
            problems += named(f"{path}.container", container, label_problems)
        else:
            problems.append(required(f"{path}.container", "must specify a container"))
    problems += _target_problems(target, f"{path}.target")
    if kind == "object" and total is None and average is None:
        words = "must set either a target value or averageValue"
        problems.append(required(f"{path}.target.averageValue", words))
    if kind == "external" and total is None and average is None:
        words = "must set either a target value for metric or a per-pod target"
        problems.append(required(f"{path}.target.averageValue", words))
    if kind == "external" and total is not None and average is not None:
        words = "may not set both a target value for metric and a per-pod target"
        problems.append(forbidden(f"{path}.target.value", words))
    if kind == "pods" and average is None:
        problems.append(required(f"{path}.target.averageValue", "must specify a positive target averageValue"))
    if kind in ("resource", "containerResource"):
        if share is None and average is None:
            words = "must set either a target raw value or a target utilization"
            problems.append(required(f"{path}.target.averageUtilization", words))
        if share is not None and average is not None:
            words = "may not set both a target raw value and a target utilization"
            problems.append(forbidden(f"{path}.target.averageValue", words))
    return problems


def _identifier_problems(identifier: dict[str, Any], path: str) -> list[FieldProblem]:
    if name := identifier.get("name"):
        return named(f"{path}.name", name, path_segment_problems)
    return [required(f"{path}.name", "must specify a metric name")]


def _target_problems(target: dict[str, Any], path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    kind = target.get("type", "")
    if not kind:
        problems.append(required(f"{path}.type", "must specify a metric target type"))
    if kind not in ("Utilization", "Value", "AverageValue"):
        problems.append(invalid(f"{path}.type", kind, "must be either Utilization, Value, or AverageValue"))
    for field in ("value", "averageValue"):
        value = target.get(field)
        if value is not None and parse_quantity(value).nano <= 0:
            problems.append(invalid(f"{path}.{field}", value, "must be positive"))
    share = target.get("averageUtilization")
    if share is not None and share < 1:
        problems.append(invalid(f"{path}.averageUtilization", share, "must be greater than 0"))
    return problems


def _rules_problems(rules: dict[str, Any], path: str) -> list[FieldProblem]:
    problems: list[FieldProblem] = []
    window = rules.get("stabilizationWindowSeconds")
    if window is not None and window < 0:
        words = "must be greater than or equal to zero"
        problems.append(invalid(f"{path}.stabilizationWindowSeconds", window, words))
    if window is not None and window > MAX_WINDOW:
        words = f"must be less than or equal to {MAX_WINDOW}"
        problems.append(invalid(f"{path}.stabilizationWindowSeconds", window, words))
    if (select := rules.get("selectPolicy")) is not None:
        problems += one_of(f"{path}.selectPolicy", select, ("Disabled", "Max", "Min"))
    policies = rules.get("policies") or ()
    if not policies:
        problems.append(required(f"{path}.policies", "must specify at least one Policy"))
    for index, policy in enumerate(policies):
        here, period = f"{path}.policies[{index}]", policy.get("periodSeconds", 0)
        problems += one_of(f"{here}.type", policy.get("type", ""), ("Percent", "Pods"))
        if policy.get("value", 0) <= 0:
            problems.append(invalid(f"{here}.value", policy.get("value", 0), POSITIVE))
        if period <= 0:
            problems.append(invalid(f"{here}.periodSeconds", period, POSITIVE))
        if period > MAX_PERIOD:
            problems.append(invalid(f"{here}.periodSeconds", period, f"must be less than or equal to {MAX_PERIOD}"))
    if rules.get("tolerance") is not None:
        problems += not_negative_quantity(f"{path}.tolerance", rules["tolerance"])
    return problems


RULES = {
    ("autoscaling", "HorizontalPodAutoscaler"): Rules(
        name_problems=subdomain_problems,
        defaults=default_autoscaler,
        validate_create=autoscaler_problems,
        validate_update=autoscaler_problems,
        validate_status=validate_status,
        has_generation=False,
        resets={"": (("status",),), "status": (("spec",),)},
    )
}
