"""HorizontalPodAutoscalers of autoscaling/v1, which know one metric: what else v2 has travels in annotations.

The share of the CPU has a field of its own in v1. All other metrics, the current ones and the conditions are JSON in
annotations, in shapes of v1; the behaviour is there under its Go names. In v2 the annotations do not exist.
"""

from __future__ import annotations

from typing import Any

import msgspec

from shoal.api.meta import InvalidQuantity, parse_quantity
from shoal.cluster.apiserver.kinds.decode import WrongType, decode
from shoal.cluster.apiserver.kinds.kind import Object
from shoal.cluster.apiserver.schema import Schema

_PREFIX = "autoscaling.alpha.kubernetes.io/"
_METRICS = f"{_PREFIX}metrics"
_CURRENT_METRICS = f"{_PREFIX}current-metrics"
_CONDITIONS = f"{_PREFIX}conditions"
_BEHAVIOR = f"{_PREFIX}behavior"
_DROPPED = {_METRICS, _CURRENT_METRICS, _CONDITIONS, _BEHAVIOR} | {
    f"{_PREFIX}scale-{way}-tolerance" for way in ("up", "down")
}
_DEFAULT_CPU = 80
_KINDS = ("object", "pods", "resource", "containerResource", "external")


def autoscaler_to_v2(v2: Schema, autoscaler: Object) -> Object:
    """An autoscaler of autoscaling/v1 as v2 has it."""
    annotations = autoscaler.get("metadata", {}).get("annotations") or {}
    spec, status = dict(autoscaler.get("spec") or {}), dict(autoscaler.get("status") or {})
    utilization = spec.pop("targetCPUUtilizationPercentage", None)
    metrics = [] if utilization is None else [_cpu_share(utilization)]
    current = status.pop("currentCPUUtilizationPercentage", None)
    status["currentMetrics"] = None if current is None else [_cpu_status(current)]
    places = v2.properties["spec"].properties, v2.properties["status"].properties

    others = _annotated(annotations, _METRICS, places[0]["metrics"], lambda given: [_spec_to_v2(m) for m in given])
    if others is not None:
        metrics = [*others, *metrics[:1]]
    spec["metrics"] = metrics or [_cpu_share(_DEFAULT_CPU)]
    if behavior := _annotated(annotations, _BEHAVIOR, places[0]["behavior"], _lowered):
        spec["behavior"] = behavior
    currents = _annotated(
        annotations, _CURRENT_METRICS, places[1]["currentMetrics"], lambda given: [_status_to_v2(m) for m in given]
    )
    if currents is not None:
        status["currentMetrics"] = currents
    conditions = _annotated(annotations, _CONDITIONS, places[1]["conditions"], list)
    if conditions is not None:
        status["conditions"] = conditions
    return _converted(v2, autoscaler, {}, spec, status, "autoscaling/v2")


def autoscaler_from_v2(v1: Schema, autoscaler: Object) -> Object:
    """An autoscaler of autoscaling/v2 as v1 has it."""
    spec, status = dict(autoscaler.get("spec") or {}), dict(autoscaler.get("status") or {})
    metrics, behavior = spec.pop("metrics", None) or [], spec.pop("behavior", None)
    currents, conditions = status.pop("currentMetrics", None) or [], status.pop("conditions", None) or []
    shares = [metric["resource"]["target"]["averageUtilization"] for metric in metrics if _is_cpu_share(metric)]
    if shares:
        spec["targetCPUUtilizationPercentage"] = shares[0]
    for metric in currents:
        found = metric.get("resource") or {}
        if metric["type"] == "Resource" and found.get("name") == "cpu" and "averageUtilization" in found["current"]:
            status["currentCPUUtilizationPercentage"] = found["current"]["averageUtilization"]
    annotations = {}
    if others := [_spec_to_v1(metric) for metric in metrics if not _is_cpu_share(metric)]:
        annotations[_METRICS] = _text(others)
    if currents:
        annotations[_CURRENT_METRICS] = _text([_status_to_v1(metric) for metric in currents])
    if behavior is not None:
        annotations[_BEHAVIOR] = _text({name: _rules_to_v1(behavior.get(field)) for name, field in _DIRECTIONS})
    if conditions:
        order = ("type", "status", "lastTransitionTime", "reason", "message")
        annotations[_CONDITIONS] = _text([{key: each[key] for key in order if key in each} for each in conditions])
    return _converted(v1, autoscaler, annotations, spec, status, "autoscaling/v1")


def _converted(
    schema: Schema, given: Object, annotations: dict[str, str], spec: Object, status: Object, api_version: str
) -> Object:
    metadata = dict(given.get("metadata") or {})
    kept = {key: text for key, text in (metadata.get("annotations") or {}).items() if key not in _DROPPED}
    metadata["annotations"] = kept | annotations
    made = {**given, "metadata": metadata, "spec": spec, "status": status}
    if "apiVersion" in made:
        made["apiVersion"] = api_version
    converted: Object = decode(schema, made, [])
    return converted


def _annotated(annotations: dict[str, str], name: str, place: Schema, convert: Any) -> Any:
    """What an annotation says, in normal form; None where it is not there or not what it should be."""
    if name not in annotations:
        return None
    try:
        return decode(place, convert(msgspec.json.decode(annotations[name])), []) or []
    except (msgspec.MsgspecError, WrongType, InvalidQuantity, AttributeError, TypeError, KeyError):
        return None


def _cpu_share(utilization: Any) -> Object:
    target = {"type": "Utilization", "averageUtilization": utilization}
    return {"type": "Resource", "resource": {"name": "cpu", "target": target}}


def _cpu_status(utilization: Any) -> Object:
    return {"type": "Resource", "resource": {"name": "cpu", "current": {"averageUtilization": utilization}}}


def _is_cpu_share(metric: Object) -> bool:
    found = metric.get("resource") or {}
    return metric["type"] == "Resource" and found.get("name") == "cpu" and "averageUtilization" in found["target"]


def _without_nothing(**fields: Any) -> Object:
    return {name: value for name, value in fields.items() if value is not None}


def _spec_to_v2(metric: Object) -> Object:
    made: Object = {"type": metric.get("type")}
    for kind in _KINDS:
        if (given := metric.get(kind)) is None:
            continue
        average, share = given.get("targetAverageValue"), given.get("targetAverageUtilization")
        match kind:
            case "resource" | "containerResource":
                how = "AverageValue" if share is None else "Utilization"
                target = _without_nothing(type=how, averageValue=average, averageUtilization=share)
                made[kind] = _without_nothing(name=given.get("name"), container=given.get("container"), target=target)
            case "pods":
                target = {"type": "AverageValue", "averageValue": average or "0"}
                made[kind] = {"metric": _identifier(given, "selector"), "target": target}
            case "external":
                value = given.get("targetValue")
                how = "AverageValue" if value is None else "Value"
                target = _without_nothing(type=how, value=value, averageValue=average)
                made[kind] = {"metric": _identifier(given, "metricSelector"), "target": target}
            case "object":
                value, average = given.get("targetValue", "0"), given.get("averageValue")
                how = "Value" if average is None else "AverageValue"
                # v1 cannot leave the value out.
                shown = None if average is not None and parse_quantity(value).is_zero else value
                target = _without_nothing(type=how, value=shown, averageValue=average)
                made[kind] = {"metric": _identifier(given, "selector"), "target": target}
                made[kind]["describedObject"] = given.get("target")
    return made


def _status_to_v2(metric: Object) -> Object:
    made: Object = {"type": metric.get("type")}
    for kind in _KINDS:
        if (given := metric.get(kind)) is None:
            continue
        average, share = given.get("currentAverageValue"), given.get("currentAverageUtilization")
        match kind:
            case "resource" | "containerResource":
                current = _without_nothing(averageValue=average or "0", averageUtilization=share)
                made[kind] = _without_nothing(name=given.get("name"), container=given.get("container"), current=current)
            case "pods":
                made[kind] = {"metric": _identifier(given, "selector"), "current": {"averageValue": average or "0"}}
            case "external":
                current = _without_nothing(value=given.get("currentValue", "0"), averageValue=average)
                made[kind] = {"metric": _identifier(given, "metricSelector"), "current": current}
            case "object":
                current = _without_nothing(value=given.get("currentValue", "0"), averageValue=given.get("averageValue"))
                made[kind] = {"metric": _identifier(given, "selector"), "current": current}
                made[kind]["describedObject"] = given.get("target")
    return made


def _identifier(given: Object, selector: str) -> Object:
    return _without_nothing(name=given.get("metricName"), selector=given.get(selector))


# The fields below stand in Go's order, so that the annotations have the very same text.


def _spec_to_v1(metric: Object) -> Object:
    return _to_v1(metric, "target")


def _status_to_v1(metric: Object) -> Object:
    return _to_v1(metric, "current")


def _to_v1(metric: Object, place: str) -> Object:
    """A metric in v1's shape, either what is aimed at (``target``) or what it is (``current``)."""
    made: Object = {"type": metric["type"]}
    is_target = place == "target"
    value_name, average_name, share_name = f"{place}Value", f"{place}AverageValue", f"{place}AverageUtilization"
    for kind in _KINDS:
        if (given := metric.get(kind)) is None:
            continue
        amounts = given[place]
        value, average, share = (amounts.get(name) for name in ("value", "averageValue", "averageUtilization"))
        name, selector = given.get("metric", {}).get("name"), _ordered_selector(given.get("metric", {}).get("selector"))
        match kind:
            case "resource" | "containerResource":
                shown = average if is_target else average or "0"
                fields = {"name": given["name"], share_name: share, average_name: shown}
                fields["container"] = given.get("container")
            case "pods":
                fields = {"metricName": name, average_name: average or "0", "selector": selector}
            case "external":
                shown = value if is_target else value or "0"
                fields = {"metricName": name, "metricSelector": selector, value_name: shown, average_name: average}
            case _:
                described = given["describedObject"]
                target = {key: described[key] for key in ("kind", "name", "apiVersion") if key in described}
                fields = {"target": target, "metricName": name, value_name: value or "0"}
                fields |= {"selector": selector, "averageValue": average}
        made[kind] = _without_nothing(**fields)
    return made


def _ordered_selector(selector: Object | None) -> Object | None:
    if selector is None:
        return None
    return {key: selector[key] for key in ("matchLabels", "matchExpressions") if key in selector}


_DIRECTIONS = (("ScaleUp", "scaleUp"), ("ScaleDown", "scaleDown"))
_RULES = ("StabilizationWindowSeconds", "SelectPolicy", "Policies", "Tolerance")
_POLICY = ("Type", "Value", "PeriodSeconds")


def _rules_to_v1(rules: Object | None) -> Object | None:
    if rules is None:
        return None
    made = {name: rules.get(name[0].lower() + name[1:]) for name in _RULES}
    if made["Policies"] is not None:
        made["Policies"] = [{name: each[name[0].lower() + name[1:]] for name in _POLICY} for each in made["Policies"]]
    return made


def _lowered(value: Any) -> Any:
    """The same with fields as JSON usually has them."""
    if isinstance(value, dict):
        return {key[:1].lower() + key[1:]: _lowered(item) for key, item in value.items()}
    return [_lowered(item) for item in value] if isinstance(value, list) else value


def _text(value: Any) -> str:
    return msgspec.json.encode(value).decode()
