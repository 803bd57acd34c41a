"""Kinds of two group versions in one storage, as a real server showed them."""

from __future__ import annotations

import json
from typing import Any

import pytest

from shoal.cluster.apiserver.kinds.kind import Kind, Object
from shoal.cluster.apiserver.kinds.tables import builtin_kinds
from tests.cluster.apiserver.kinds.recorded import Example, examples

KINDS = {(kind.group, kind.version, kind.kind): kind for kind in builtin_kinds({})}
EVENT = KINDS["events.k8s.io", "v1", "Event"]
AUTOSCALER = KINDS["autoscaling", "v1", "HorizontalPodAutoscaler"]
ALPHA = "autoscaling.alpha.kubernetes.io"
TARGET = {"kind": "Deployment", "name": "d", "apiVersion": "apps/v1"}


def stored(kind: Kind, value: Object) -> Object:
    assert kind.to_storage is not None
    return kind.to_storage(value)


def shown(kind: Kind, value: Object) -> Object:
    assert kind.from_storage is not None
    return kind.from_storage(value)


CORE_EVENT = {
    "metadata": {"name": "e"},
    "involvedObject": {"kind": "Pod", "namespace": "default", "name": "x"},
    "reason": "r",
    "message": "m",
    "source": {},
    "firstTimestamp": None,
    "lastTimestamp": None,
    "type": "Normal",
    "eventTime": None,
    "reportingComponent": "",
    "reportingInstance": "",
}
OTHER_EVENT = {
    "metadata": {"name": "e"},
    "eventTime": None,
    "reason": "r",
    "regarding": {"kind": "Pod", "namespace": "default", "name": "x"},
    "note": "m",
    "type": "Normal",
    "deprecatedSource": {},
    "deprecatedFirstTimestamp": None,
    "deprecatedLastTimestamp": None,
}


def test_an_event_has_other_names_in_the_other_group() -> None:
    assert shown(EVENT, CORE_EVENT) == OTHER_EVENT
    assert stored(EVENT, OTHER_EVENT) == CORE_EVENT


def test_an_event_says_which_version_it_is() -> None:
    assert shown(EVENT, {"apiVersion": "v1", "kind": "Event", **CORE_EVENT})["apiVersion"] == "events.k8s.io/v1"
    assert stored(EVENT, {"apiVersion": "events.k8s.io/v1", "kind": "Event", **OTHER_EVENT})["apiVersion"] == "v1"


METRICS: list[tuple[Any, Any]] = [
    (
        {"type": "Resource", "resource": {"name": "memory", "target": {"type": "AverageValue", "averageValue": "1Gi"}}},
        {"type": "Resource", "resource": {"name": "memory", "targetAverageValue": "1Gi"}},
    ),
    (
        {
            "type": "Pods",
            "pods": {
                "metric": {"name": "x", "selector": {"matchLabels": {"a": "b"}}},
                "target": {"type": "AverageValue", "averageValue": "5"},
            },
        },
        {
            "type": "Pods",
            "pods": {"metricName": "x", "targetAverageValue": "5", "selector": {"matchLabels": {"a": "b"}}},
        },
    ),
    (
        {
            "type": "Object",
            "object": {
                "describedObject": TARGET,
                "target": {"type": "Value", "value": "5"},
                "metric": {"name": "x"},
            },
        },
        {"type": "Object", "object": {"target": TARGET, "metricName": "x", "targetValue": "5"}},
    ),
    (
        {
            "type": "Object",
            "object": {
                "describedObject": TARGET,
                "target": {"type": "AverageValue", "averageValue": "5"},
                "metric": {"name": "x"},
            },
        },
        {"type": "Object", "object": {"target": TARGET, "metricName": "x", "targetValue": "0", "averageValue": "5"}},
    ),
    (
        {
            "type": "External",
            "external": {
                "metric": {"name": "x", "selector": {"matchLabels": {"a": "b"}}},
                "target": {"type": "Value", "value": "5"},
            },
        },
        {
            "type": "External",
            "external": {"metricName": "x", "metricSelector": {"matchLabels": {"a": "b"}}, "targetValue": "5"},
        },
    ),
    (
        {
            "type": "ContainerResource",
            "containerResource": {
                "name": "cpu",
                "target": {"type": "Utilization", "averageUtilization": 70},
                "container": "c",
            },
        },
        {
            "type": "ContainerResource",
            "containerResource": {"name": "cpu", "targetAverageUtilization": 70, "container": "c"},
        },
    ),
]
CURRENT: list[tuple[Any, Any]] = [
    (
        {"type": "Resource", "resource": {"name": "cpu", "current": {"averageValue": "10m", "averageUtilization": 33}}},
        {
            "type": "Resource",
            "resource": {"name": "cpu", "currentAverageUtilization": 33, "currentAverageValue": "10m"},
        },
    ),
    (
        {"type": "Pods", "pods": {"metric": {"name": "x"}, "current": {"averageValue": "7"}}},
        {"type": "Pods", "pods": {"metricName": "x", "currentAverageValue": "7"}},
    ),
    (
        {
            "type": "Object",
            "object": {
                "metric": {"name": "x"},
                "current": {"value": "5", "averageValue": "6"},
                "describedObject": TARGET,
            },
        },
        {
            "type": "Object",
            "object": {"target": TARGET, "metricName": "x", "currentValue": "5", "averageValue": "6"},
        },
    ),
    (
        {"type": "External", "external": {"metric": {"name": "x"}, "current": {"value": "5"}}},
        {"type": "External", "external": {"metricName": "x", "currentValue": "5"}},
    ),
    (
        {
            "type": "ContainerResource",
            "containerResource": {"name": "cpu", "current": {"averageValue": "5"}, "container": "c"},
        },
        {
            "type": "ContainerResource",
            "containerResource": {"name": "cpu", "currentAverageValue": "5", "container": "c"},
        },
    ),
]
CPU = {"type": "Resource", "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 50}}}
CONDITION = {
    "type": "AbleToScale",
    "status": "True",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "reason": "r",
    "message": "m",
}
V2 = {
    "metadata": {"name": "a", "annotations": {"k": "v"}},
    "spec": {
        "scaleTargetRef": TARGET,
        "minReplicas": 1,
        "maxReplicas": 3,
        "metrics": [*(new for new, _ in METRICS), CPU],
        "behavior": {
            "scaleUp": {
                "stabilizationWindowSeconds": 3,
                "selectPolicy": "Max",
                "policies": [{"type": "Pods", "value": 4, "periodSeconds": 15}],
            },
            "scaleDown": {"selectPolicy": "Disabled"},
        },
    },
    "status": {
        "currentReplicas": 1,
        "desiredReplicas": 2,
        "currentMetrics": [new for new, _ in CURRENT],
        "conditions": [CONDITION],
    },
}
BEHAVIOR = (
    '{"ScaleUp":{"StabilizationWindowSeconds":3,"SelectPolicy":"Max","Policies":'
    '[{"Type":"Pods","Value":4,"PeriodSeconds":15}],"Tolerance":null},'
    '"ScaleDown":{"StabilizationWindowSeconds":null,"SelectPolicy":"Disabled","Policies":null,"Tolerance":null}}'
)


def compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


V1 = {
    "metadata": {
        "name": "a",
        "annotations": {
            "k": "v",
            f"{ALPHA}/metrics": compact([old for _, old in METRICS]),
            f"{ALPHA}/current-metrics": compact([old for _, old in CURRENT]),
            f"{ALPHA}/conditions": compact([CONDITION]),
            f"{ALPHA}/behavior": BEHAVIOR,
        },
    },
    "spec": {"scaleTargetRef": TARGET, "minReplicas": 1, "maxReplicas": 3, "targetCPUUtilizationPercentage": 50},
    "status": {"currentReplicas": 1, "desiredReplicas": 2, "currentCPUUtilizationPercentage": 33},
}


def test_what_an_old_autoscaler_cannot_say_travels_in_annotations() -> None:
    assert shown(AUTOSCALER, V2) == V1
    assert stored(AUTOSCALER, V1) == V2


def test_an_old_autoscaler_without_a_metric_aims_at_the_usual_share_of_the_cpu() -> None:
    found = stored(AUTOSCALER, {"spec": {"scaleTargetRef": TARGET, "maxReplicas": 3}})
    assert found["spec"]["metrics"][0]["resource"]["target"] == {"type": "Utilization", "averageUtilization": 80}
    assert found["status"] == {"desiredReplicas": 0, "currentMetrics": None}


@pytest.mark.parametrize(
    "text", ["", "{", "[3]", '[{"type":3}]', '[{"object":{"averageValue":"1","targetValue":"x"}}]']
)
def test_an_annotation_that_cannot_be_read_counts_for_nothing(text: str) -> None:
    given_value = {"metadata": {"annotations": {f"{ALPHA}/metrics": text}}, "spec": V1["spec"]}
    found = stored(AUTOSCALER, given_value)
    assert found["spec"]["metrics"] == [CPU]
    assert found["metadata"] == {}


@pytest.mark.parametrize("each", [each for each in examples() if each.kind == "HorizontalPodAutoscaler"], ids=str)
def test_recorded_autoscalers_survive_the_way_there_and_back(each: Example) -> None:
    start = each.written if each.api_version.endswith("v2") else stored(AUTOSCALER, each.written)
    once = stored(AUTOSCALER, shown(AUTOSCALER, start))
    assert stored(AUTOSCALER, shown(AUTOSCALER, once)) == once
